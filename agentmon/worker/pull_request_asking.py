"""What became of open pull requests, asked rarely, one after the other, each bounded in time."""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import AgentmonError
from agentmon.domain.plain_text import plain_line
from agentmon.threads import in_daemon_thread
from agentmon.workspaces import forges

if TYPE_CHECKING:
    from agentmon.domain.clock import Clock
    from agentmon.domain.ids import PullRequestId
    from agentmon.domain.pull_requests import PullRequest
    from agentmon.store.pull_requests import PullRequestRepository

_log = logging.getLogger(__name__)

ASK_EVERY_S: Final = 120.0
ASK_AGAIN_AFTER_S: Final = 1800.0
"""One about which nobody could be asked."""
_LOOK_EVERY_S: Final = 15.0
_MAX_PROBLEM: Final = 300


class PullRequestAsker:
    """Belongs to one worker."""

    def __init__(self, *, repository: PullRequestRepository, clock: Clock) -> None:
        self._pull_requests = repository
        self._clock = clock
        self._not_before: dict[PullRequestId, float] = {}

    async def look(self) -> None:
        """Ask about those that are open and were not asked about for a while."""
        for one in await self._pull_requests.open_ones():
            if time.monotonic() >= self._not_before.get(one.id, 0.0):
                await self._ask(one)

    async def rest(self) -> None:
        """Wait until there may be something to ask."""
        await asyncio.sleep(_LOOK_EVERY_S)

    async def _ask(self, one: PullRequest) -> None:
        problem, status = "", None
        try:
            asking = partial(forges.ask, Path(one.folder), one.program, one.number or 0)
            status = await in_daemon_thread(asking, name="pull request")
        except AgentmonError as error:
            problem = plain_line(str(error), max_characters=_MAX_PROBLEM)
        self._not_before[one.id] = time.monotonic() + (ASK_AGAIN_AFTER_S if problem else ASK_EVERY_S)
        # What is as it was is not written again, since all that show the board would read it again.
        if problem != one.error or (status is not None and status != one.status):
            if problem:
                _log.warning("%s: %s", one.url, problem)
            await self._pull_requests.note(one.id, status, error=problem, at=self._clock.now())
