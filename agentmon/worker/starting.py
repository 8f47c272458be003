"""Starting one execution: folder, tmux session, and the first sign of its host."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import AgentmonError, RunnerError, StoreError, TmuxUnavailableError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.threads import in_daemon_thread
from agentmon.worker.preparation import given_conversation, host_command, prepare, session_name
from agentmon.worker.start_check import require_as_queued

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ClaimedExecution
    from agentmon.domain.ids import ExecutionId, WorkerId
    from agentmon.paths import Paths
    from agentmon.runners.execution_folder import ExecutionFolder
    from agentmon.runners.telemetry_launch import TelemetryTarget
    from agentmon.runners.tmux import Tmux
    from agentmon.store.approvals import ApprovalRepository
    from agentmon.store.live_executions import LiveExecutionRepository
    from agentmon.worker.sandbox_choosing import SandboxChooser
    from agentmon.worker.settings_in_force import SettingsInForce
    from agentmon.worker.worktree_making import WorktreeMaker

_log = logging.getLogger(__name__)

_PREPARED_WITHIN_S: Final = 30.0
"""A few small files are written; more is a disk that does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartProblem:
    """Why a host was not started."""

    reason: str
    is_lasting: bool
    """Whether it lies in the task, so that trying again cannot help; else in what agentmon starts runs with."""


class Starter:
    """Starts hosts in sessions of the private tmux server."""

    def __init__(
        self,
        *,
        tmux: Tmux,
        live: LiveExecutionRepository,
        approvals: ApprovalRepository,
        worktrees: WorktreeMaker,
        on_placed: Callable[[ClaimedExecution], None],
        paths: Paths,
        worker_id: WorkerId,
        clock: Clock,
        sandboxes: SandboxChooser,
        look_before: Callable[[ClaimedExecution], Awaitable[None]],
        telemetry_target: Callable[[ExecutionId], TelemetryTarget | None] = lambda _: None,
    ) -> None:
        self._tmux = tmux
        self._live = live
        self._approvals = approvals
        self._worktrees = worktrees
        self._on_placed = on_placed
        self._paths = paths
        self._worker_id = worker_id
        self._clock = clock
        self._sandboxes = sandboxes
        self._look_before = look_before
        self._telemetry_target = telemetry_target

    async def start(self, claimed: ClaimedExecution, settings: SettingsInForce) -> StartProblem | None:
        """Start the host and return None, or what is in the way.

        A tmux that is missing or does not answer may come back, and the session may exist: the execution stays as it
        is and is looked at again. Starting twice is safe, since a second host refuses to touch the folder of the first.
        A worktree is made first, which takes as long as the repository is large and its set-up needs.
        """
        execution = claimed.execution
        name = session_name(execution)
        try:
            await require_as_queued(claimed, approvals=self._approvals, paths=self._paths)
            made = await self._worktrees.make(claimed, settings.worktrees)
            self._on_placed(made.claimed)
            placed = await self._sandboxes.choose(made.claimed)
            self._on_placed(placed)
            await self._look_before(placed)
            target = self._telemetry_target(execution.id)
            filled = partial(
                prepare,
                placed,
                paths=self._paths,
                settings=settings.worker,
                sandbox_settings=settings.sandbox,
                telemetry=target,
                variables=made.environment,
                continues_log=made.has_output,
            )
            async with asyncio.timeout(_PREPARED_WITHIN_S):
                folder = await in_daemon_thread(filled, name="prepare")
            await self._start_session(claimed, name, folder, settings)
        except (StoreError, TmuxUnavailableError) as error:
            _log.warning("execution %s: %s", execution.id, error)
            return StartProblem(reason=_told(error), is_lasting=False)
        except AgentmonError as error:
            return StartProblem(reason=_told(error), is_lasting=os.strerror(errno.ENOSPC) not in str(error))
        except TimeoutError:
            return StartProblem(reason=f"its folder does not answer within {_PREPARED_WITHIN_S:g} s", is_lasting=False)
        except OSError as error:
            return StartProblem(reason=f"its folder cannot be written: {error}", is_lasting=False)
        await self._live.record_session(
            execution.id,
            worker_id=self._worker_id,
            tmux_session_name=name,
            session_ref=given_conversation(claimed) if execution.mode is ExecutionMode.TMUX else None,
            at=self._clock.now(),
        )
        return None

    async def _start_session(
        self, claimed: ClaimedExecution, name: str, folder: ExecutionFolder, settings: SettingsInForce
    ) -> None:
        """Start the host in its session; one that is there already is as good.

        Raises:
            TmuxUnavailableError: tmux did not start it.
        """
        try:
            await self._tmux.start_session(
                name=name,
                command=host_command(folder),
                working_dir=folder.path,
                title=f"#{claimed.task.number} {claimed.task.title}",
                columns=settings.worker.terminal_columns,
                rows=settings.worker.terminal_rows,
                wake=folder.wake,
            )
        except TmuxUnavailableError:
            raise
        except RunnerError as error:
            if not await self._has_session(name):
                raise TmuxUnavailableError(str(error), hint=error.hint) from error

    async def _has_session(self, name: str) -> bool:
        try:
            return name in (await self._tmux.list_sessions()).sessions
        except TmuxUnavailableError:
            return True


def _told(error: AgentmonError) -> str:
    return f"{error} – {error.hint}" if error.hint else str(error)
