"""Which sandbox a run starts in."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import ToolType
from agentmon.domain.errors import RunnerError
from agentmon.domain.sandboxes import Sandbox, stricter
from agentmon.runners.sandbox.trial import find_sandbox_problem
from agentmon.threads import in_daemon_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ClaimedExecution
    from agentmon.store.live_executions import LiveExecutionRepository
    from agentmon.store.task_authors import TaskAuthorRepository

_log = logging.getLogger(__name__)

_TRIED_AGAIN_AFTER_S: Final = 60.0


class SandboxChooser:
    """Chooses the sandbox of each run, and knows whether this machine has one."""

    def __init__(
        self,
        *,
        live: LiveExecutionRepository,
        authors: TaskAuthorRepository,
        clock: Clock,
        find_problem: Callable[[], str] = find_sandbox_problem,
    ) -> None:
        self._live = live
        self._authors = authors
        self._clock = clock
        self._find_problem = find_problem
        self._problem = ""
        self._next_trial = 0.0

    async def choose(self, claimed: ClaimedExecution) -> ClaimedExecution:
        """Return a run that is about to start with the sandbox that it starts in, and note that.

        Where nobody has chosen one, AI agents and what an agent has put on the board are kept from agentmon itself,
        where this machine can do that; what an agent has put there is in the sandbox of that agent at least.

        Raises:
            RunnerError: A sandbox was chosen, and none can be had here.
        """
        chosen, of_author = claimed.sandbox, await self._authors.sandbox(claimed.task.id)
        if claimed.execution.sandbox is None and of_author is not Sandbox.OFF:
            chosen = stricter(chosen, of_author)
        is_of_agent = claimed.agent.tool_type is ToolType.AI_AGENT or of_author is not None
        if chosen is None and is_of_agent:
            sandbox = Sandbox.OFF if await self._find() else Sandbox.AGENTMON
        else:
            sandbox = chosen or Sandbox.OFF
            if sandbox is not Sandbox.OFF and (problem := await self._find()):
                raise RunnerError(
                    f"its sandbox {sandbox} cannot be had here: {problem}",
                    hint="`agentmon doctor` says more; `--sandbox off` runs it without",
                )
        if claimed.execution.sandbox is sandbox:
            return claimed
        await self._live.record_sandbox(claimed.execution.id, sandbox, at=self._clock.now())
        return replace(claimed, execution=replace(claimed.execution, sandbox=sandbox))

    async def _find(self) -> str:
        if time.monotonic() >= self._next_trial:
            self._problem = await in_daemon_thread(self._find_problem, name="sandbox")
            self._next_trial = time.monotonic() + _TRIED_AGAIN_AFTER_S if self._problem else float("inf")
            if self._problem:
                _log.warning("no run has a sandbox: %s", self._problem)
        return self._problem
