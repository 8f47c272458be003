"""What the worker follows beside executions: files of agents, their conversations, what the search does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.store.limit_snapshots import LimitSnapshotRepository
from agentmon.worker.history_following import HistoryFollowing
from agentmon.worker.pull_request_asking import PullRequestAsker
from agentmon.worker.search_indexing import SearchFollowing
from agentmon.worker.status_intake import StatusIntake
from agentmon.worker.supervisor import Turn
from agentmon.worker.usage_following import UsageFollowing

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from agentmon.domain.clock import Clock
    from agentmon.domain.history import HistoryOperation
    from agentmon.paths import Paths
    from agentmon.usage.sources import SourceFile
    from agentmon.worker.repositories import Repositories
    from agentmon.worker.screen_watching import ScreenWatch
    from agentmon.worker.settings_in_force import SettingsInForce
    from agentmon.worker.supervisor import Supervisor

_IMPORT_HANGS_AFTER_S: Final = 1_800.0
"""A first history of many gigabytes is read in one turn."""
_ASKING_HANGS_AFTER_S: Final = 600.0
"""Servers that do not answer are waited for one after the other."""


class Following:
    """Belongs to one worker.

    Args:
        repositories: What it reads and writes.
        settings: Gives those in force.
        paths: Where its files are.
        clock: Dates what is written.
        on_answers: Hears when answers may have been imported.
        screens: Of agents that have one of their own: what they say is in their files alone, and read at once.
        on_calls: Hears of tool calls that the files of an agent tell, before they are written, in a thread.
    """

    def __init__(
        self,
        *,
        repositories: Repositories,
        settings: Callable[[], SettingsInForce],
        paths: Paths,
        clock: Clock,
        on_answers: Callable[[], None],
        screens: ScreenWatch,
        on_calls: Callable[[str, Sequence[HistoryOperation]], None],
    ) -> None:
        self._settings = settings
        self._on_answers = on_answers
        self._screens = screens
        self._usage = UsageFollowing(
            agents=repositories.agents,
            days=repositories.usage_days,
            prices=repositories.usage_prices,
            paths=paths,
            clock=clock,
            on_read=self._note_read,
        )
        self._history = HistoryFollowing(paths=paths, clock=clock, on_calls=on_calls)
        self._search = SearchFollowing(paths)
        self._pull_requests = PullRequestAsker(repository=repositories.pull_requests, clock=clock)
        self._statuses = StatusIntake(limits=LimitSnapshotRepository(repositories.database), paths=paths, clock=clock)

    def _note_read(self, sources: Sequence[SourceFile]) -> None:
        self._on_answers()
        if self._screens.is_in_use:
            self._history.hasten(sources)
            self._screens.note_written({source.agent_slug for source in sources})

    def loops(self, supervisor: Supervisor) -> Mapping[str, Coroutine[None, None, None]]:
        """Return the loops by their names, each of which closes what it used when it ends."""
        return {
            "follow usage": self._follow_usage(supervisor),
            "follow history": self._follow_history(supervisor),
            "follow search": self._follow_search(supervisor),
            "pull requests": supervisor.keep(
                Turn("pull requests", self._pull_requests.look, _ASKING_HANGS_AFTER_S), rest=self._pull_requests.rest
            ),
        }

    async def _follow_usage(self, supervisor: Supervisor) -> None:
        """Import what agents write down of their answers."""

        async def look() -> None:
            # Before its answers come in, so that they come to the run.
            await self._screens.find_conversations()
            if self._screens.take_named():
                self._usage.note_named()
            await self._usage.look(self._settings().costs)
            await self._statuses.take_in()

        try:
            await supervisor.keep(Turn("usage import", look, _IMPORT_HANGS_AFTER_S), rest=self._usage.rest)
        finally:
            await self._usage.close()

    async def _follow_history(self, supervisor: Supervisor) -> None:
        """Import what agents write down of what is said and done, in the time that is left."""

        async def look() -> None:
            settings = self._settings()
            await self._history.look(settings.costs, settings.history)

        turn = Turn("conversation import", look, _IMPORT_HANGS_AFTER_S)
        try:
            await supervisor.keep(turn, rest=self._history.rest)
        finally:
            self._history.close()

    async def _follow_search(self, supervisor: Supervisor) -> None:
        """Take up what the search does not know yet."""

        async def look() -> None:
            await self._search.look(self._settings().search)

        try:
            await supervisor.keep(Turn("search index", look), rest=self._search.rest)
        finally:
            self._search.close()
