"""The worktree of a run: made, filled and set up before its host starts; what a kill cut off, ended afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import AgentmonError, RunnerError
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import CommandType
from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import redact
from agentmon.domain.worktrees import WorktreePlaces, WorktreeStatus
from agentmon.runners.journal import AgentStartedEntry, parse_entry
from agentmon.store.task_moves import SYSTEM_ACTOR
from agentmon.threads import in_daemon_thread
from agentmon.worker.commands import give_to_host
from agentmon.worker.file_trust import read_trusted_setup
from agentmon.worker.finalizing import EndStep
from agentmon.worker.preparation import environment_of, folder_of
from agentmon.worker.project_commands import STRAYS_GRACE_S, CommandLog, run_project_command
from agentmon.worker.run_variables import run_variables
from agentmon.worker.strays import end_strays
from agentmon.workspaces import worktree_filling, worktrees

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ClaimedExecution, ExecutionEnding
    from agentmon.domain.worktrees import Worktree
    from agentmon.paths import Paths
    from agentmon.settings import WorktreeSettings
    from agentmon.store.agent_files import AgentFileRepository
    from agentmon.store.worktrees import WorktreeRepository
    from agentmon.worker.watching import Watched

_log = logging.getLogger(__name__)

_MADE_WITHIN_S: Final = 900.0
_LOCK_WITHIN_S: Final = 120.0
"""A git that outlived a killed worker comes to its end first."""
_LOOK_EVERY_S: Final = 0.1
_MAX_REASON_CHARACTERS: Final = 200
_HEAD_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeWorktree:
    """What the host of a run in a worktree is told."""

    claimed: ClaimedExecution
    """With the folder in which it works."""
    environment: Mapping[str, str]
    """Variables about the worktree."""
    has_output: bool
    """Whether what was said stands in the run's log, which the host goes on with."""


class WorktreeMaker:
    """Belongs to one worker."""

    def __init__(
        self, *, worktrees: WorktreeRepository, agent_files: AgentFileRepository, paths: Paths, clock: Clock
    ) -> None:
        self._worktrees = worktrees
        self._agent_files = agent_files
        self._paths = paths
        self._clock = clock

    def places(self, settings: WorktreeSettings) -> WorktreePlaces:
        """Return where worktrees are made by these settings."""
        return WorktreePlaces(folder=str(self._paths.worktrees_dir), branch_template=settings.branch)

    async def make(self, claimed: ClaimedExecution, settings: WorktreeSettings) -> MadeWorktree:
        """Return the claimed execution in its worktree, which is made when it is not there.

        One that works in the folder itself is returned as it is. A stop that comes meanwhile ends the set-up; the host
        finds it and starts nothing.

        Raises:
            AgentmonError: There is no worktree to work in; the run may not start anywhere else.
        """
        execution = claimed.execution
        environment = await self.variables(claimed)
        if execution.worktree_id is None:
            return MadeWorktree(claimed=claimed, environment=environment, has_output=False)
        worktree = await self._worktrees.get(execution.worktree_id)
        is_there = await in_daemon_thread(partial(_is_there, worktree), name="worktree")
        if worktree.status is WorktreeStatus.READY and is_there:
            return MadeWorktree(claimed=claimed, environment=environment, has_output=False)
        folder = folder_of(execution, self._paths)
        folder.make()
        log = CommandLog(folder.output_log)
        try:
            async with asyncio.timeout(_MADE_WITHIN_S + settings.setup_timeout_s):
                working_dir = await self._make(claimed, worktree, log, environment, settings, is_there=is_there)
        except TimeoutError as error:
            await self._worktrees.finish(worktree, error="it took too long", at=self._clock.now())
            raise RunnerError(f"its worktree was not ready within {_MADE_WITHIN_S:g} s") from error
        except AgentmonError as error:
            log.say(f"error: {error}")
            await self._worktrees.finish(worktree, error=_reason(error), at=self._clock.now())
            raise
        finally:
            log.close()
        claimed = replace(claimed, execution=replace(execution, working_dir=working_dir))
        return MadeWorktree(claimed=claimed, environment=environment, has_output=True)

    async def variables(self, claimed: ClaimedExecution) -> Mapping[str, str]:
        """Return what a run is told about itself."""
        return await run_variables(self._worktrees, claimed.execution, claimed.task, self._paths)

    async def _make(
        self,
        claimed: ClaimedExecution,
        worktree: Worktree,
        log: CommandLog,
        environment: Mapping[str, str],
        settings: WorktreeSettings,
        *,
        is_there: bool,
    ) -> str:
        execution = claimed.execution
        folder = claimed.agent.work_folder(claimed.task.input_context.working_dir, claimed.workspace_root)
        # A set-up that outlived a killed worker would write into what is made anew.
        await end_strays(execution.id, grace_s=STRAYS_GRACE_S)
        async with _lock(worktree) as lock:
            working_dir = execution.working_dir or worktree.path
            if worktree.status is not WorktreeStatus.FAILED or not is_there:
                worktree, working_dir = await self._make_tree(claimed, worktree, folder, log, lock)
                fill = partial(_fill, worktree, lock, log)
                await in_daemon_thread(fill, name="fill worktree")
            problem = await self._set_up(claimed, worktree, log, environment, settings, lock)
            await self._worktrees.finish(worktree, error=problem, at=self._clock.now())
        return working_dir

    async def _make_tree(
        self, claimed: ClaimedExecution, worktree: Worktree, folder: str, log: CommandLog, lock: int
    ) -> tuple[Worktree, str]:
        """Return the worktree as it was made, and the folder in it."""
        is_planned = worktree.base_commit is not None
        adopts = is_planned and worktree.status is not WorktreeStatus.MAKING
        working_dir = claimed.execution.working_dir or worktree.path
        while True:
            if not is_planned:
                planned = await in_daemon_thread(partial(worktrees.plan, worktree, folder), name="plan worktree")
                worktree = planned.worktree
                working_dir = await self._worktrees.plan(
                    worktree, inside=planned.inside, execution_id=claimed.execution.id, at=self._clock.now()
                )
            try:
                making = partial(worktrees.make, worktree, lock=lock, adopts=adopts, say=log.say)
                await in_daemon_thread(making, name="make worktree")
            except worktrees.BranchTakenError:
                is_planned = False
            else:
                return worktree, working_dir

    async def _set_up(
        self,
        claimed: ClaimedExecution,
        worktree: Worktree,
        log: CommandLog,
        environment: Mapping[str, str],
        settings: WorktreeSettings,
        lock: int,
    ) -> str | None:
        """Run the project's set-up; return why it is not done when it was stopped.

        Raises:
            AgentmonError: It is not trusted, failed, or took too long.
        """
        setup = await read_trusted_setup(self._agent_files, claimed.task.workspace_id, claimed.workspace_root)
        if not setup:
            return None
        log.say(f"set-up: {setup}")
        folder = folder_of(claimed.execution, self._paths)
        chosen = await in_daemon_thread(partial(environment_of, claimed, folder), name="environment")
        end = await run_project_command(
            setup,
            working_dir=worktree.path,
            environment={**chosen, **environment},
            execution_id=claimed.execution.id,
            log=log,
            timeout_s=settings.setup_timeout_s,
            is_stopped=lambda: folder.has_stop,
            inherited=(lock,),
        )
        if end.is_stopped:
            return "its set-up was stopped"
        if end.is_timed_out:
            raise RunnerError(
                f"its set-up took longer than {settings.setup_timeout_s:g} s",
                hint="`agentmon settings worktrees.setup_timeout_s 1800` gives it more time",
            )
        if end.exit_code:
            last = f": {log.last_line}" if log.last_line else ""
            raise RunnerError(
                f"its set-up failed with exit code {end.exit_code}{last}",
                hint="its output is in the log of the run",
            )
        return None

    async def stop_in_gone(self, alive: Sequence[Watched]) -> None:
        """Stop the runs whose folder was removed under them: nothing that they do there reaches anybody."""
        if not alive:
            return
        for watched in await in_daemon_thread(lambda: list(filter(_has_lost_folder, alive)), name="folders"):
            _log.warning("execution %s: its folder is gone", watched.id)
            await give_to_host(watched.folder, {"id": _gone_command(watched), "type": CommandType.STOP.value})

    @property
    def end_step(self) -> EndStep:
        """What the end of a run is whose folder was removed under it."""
        return EndStep("its folder", _is_without_folder, _say_gone, limit_s=10.0)

    async def settle(self) -> None:
        """End what a kill cut off: removals that were begun, and making for runs that nobody starts any more.

        Nothing that a run has worked in goes: such a worktree stays until somebody removes it.
        """
        try:
            in_use = await self._worktrees.in_use()
            present = await self._worktrees.present()
        except AgentmonError as error:
            _log.warning("worktrees cannot be looked at: %s", error)
            return
        for worktree in present:
            try:
                await self._settle(worktree, is_in_use=worktree.id in in_use)
            except (AgentmonError, OSError) as error:
                _log.warning("worktree %s: %s", worktree.path, error)

    async def _settle(self, worktree: Worktree, *, is_in_use: bool) -> None:
        folder = self._paths.worktrees_dir
        is_moved = await in_daemon_thread(partial(worktrees.is_moved_aside, worktree, folder), name="worktree")
        if not is_moved and (worktree.status is not WorktreeStatus.MAKING or is_in_use):
            return
        async with _lock(worktree) as lock:
            removal = partial(worktrees.remove, worktree, folder=folder, lock=lock)
            await in_daemon_thread(removal, name="remove worktree")
        await self._worktrees.remove(worktree, actor=SYSTEM_ACTOR, at=self._clock.now())
        _log.info("worktree %s: taken away, as a kill had left it half done", worktree.path)


@contextlib.asynccontextmanager
async def _lock(worktree: Worktree) -> AsyncIterator[int]:
    """Hold the lock of a worktree, waited for while a git holds it that outlived its worker.

    Raises:
        WorktreeError: It is held for too long.
    """
    deadline = time.monotonic() + _LOCK_WITHIN_S
    with contextlib.ExitStack() as stack:
        while True:
            try:
                lock = stack.enter_context(worktrees.held(worktree))
                break
            except worktrees.WorktreeError:
                if time.monotonic() >= deadline:
                    raise
                await asyncio.sleep(_LOOK_EVERY_S)
        yield lock


def _gone_command(watched: Watched) -> str:
    return f"worktree-of-{watched.id}-is-gone"


def _has_lost_folder(watched: Watched) -> bool:
    """Return whether the folder of a run was removed, and its host does not know it yet; one that was moved goes on."""
    execution = watched.claimed.execution
    if execution.working_dir is None or Path(execution.working_dir).exists():
        return False
    is_removed = execution.worktree_id is not None or _works_in_nothing(watched)
    return is_removed and not watched.folder.has_command(_gone_command(watched))


def _works_in_nothing(watched: Watched) -> bool:
    """Return whether the program's own folder has no name any more; false where the system does not tell."""
    try:
        with watched.folder.journal.open("rb") as journal:
            entries = [parse_entry(line) for line in journal.read(_HEAD_BYTES).split(b"\n")[:-1]]
        pids = [entry.pid for entry in entries if isinstance(entry, AgentStartedEntry)]
        return any(str(Path(f"/proc/{pid}/cwd").readlink()).endswith(" (deleted)") for pid in pids)
    except OSError:
        return False


def _is_without_folder(watched: Watched, ending: ExecutionEnding) -> bool:
    folder = watched.claimed.execution.working_dir
    return folder is not None and ending.reason is not EndReason.START_FAILED and not Path(folder).exists()


async def _say_gone(watched: Watched, ending: ExecutionEnding) -> ExecutionEnding:
    """Return the ending as failed where the folder is gone, unless somebody has stopped the run before."""
    execution, number = watched.claimed.execution, watched.claimed.task.number
    is_isolated = execution.worktree_id is not None

    def look() -> bool:
        is_told = watched.folder.has_command(_gone_command(watched))
        return is_told or (is_isolated and not watched.folder.has_stop)

    if not await in_daemon_thread(look, name="folder"):
        return ending
    if is_isolated:
        error = f"its worktree {execution.working_dir} was removed while it ran; "
        error += f"`agentmon worktrees restore {number}` brings it back"
    else:
        error = f"its folder {execution.working_dir} was removed while it ran; "
        error += f"`agentmon diff {number}` shows what it had changed until then"
    return replace(ending, status=ExecutionStatus.FAILED, reason=EndReason.LOST, error=error, may_retry=False)


def _is_there(worktree: Worktree) -> bool:
    """Return whether the worktree is there.

    Raises:
        WorktreeError: Something else stands in its place.
    """
    if worktrees.is_missing(worktree):
        return False
    try:
        worktrees.linked(worktree)
    except worktrees.WorktreeError:
        if worktree.status is WorktreeStatus.READY:
            raise
        return False
    return True


def _fill(worktree: Worktree, lock: int, log: CommandLog) -> None:
    tree, beside = Path(worktree.path), Path(worktree.source)
    worktree_filling.fill_submodules(tree, beside, lock=lock, say=log.say)
    worktree_filling.bring_along(tree, beside, say=log.say)


def _reason(error: AgentmonError) -> str:
    return plain_line(redact(str(error)), max_characters=_MAX_REASON_CHARACTERS)
