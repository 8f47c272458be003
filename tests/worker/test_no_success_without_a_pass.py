"""Whatever becomes of a verification, and whatever is cut off on its way: nothing succeeds without a pass."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import DatabaseBusyError
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.ids import WorkerId
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.verifications import VerificationStatus
from agentmon.settings import VerificationSettings
from agentmon.store.settling import SettlementRepository
from agentmon.store.verifications import VerificationRepository
from agentmon.worker.finalizing import Finalizer
from agentmon.worker.repositories import Repositories
from agentmon.worker.settings_in_force import read_settings
from agentmon.worker.verifying import Verifier
from agentmon.worker.worktree_making import WorktreeMaker
from tests.endings import watch_of
from tests.stored_runs import stored
from tests.worker.test_watching import STARTED, claim_next, write_journal

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.domain.executions import ClaimedExecution
    from agentmon.domain.ids import ExecutionId
    from agentmon.domain.verifications import Verification
    from agentmon.runners.execution_folder import ExecutionFolder
    from tests.stored_runs import Stored

_ENDED = {
    "type": "ended",
    "outcome": "exited",
    "exit_code": 0,
    "output_bytes": 0,
    "output_lines": 0,
    "left_out_bytes": 0,
    "duration_ms": 5,
    "error": None,
}
_COMMANDS = ("true", "exit 1", "kill -9 $$", "no-such-program", "echo $(", "", "cd gone", "exec 1>&- 2>&-; false")


class _Troubled(VerificationRepository):
    """Fails where the case says so, a kill among it: before or after what is written, once each."""

    troubles: list[tuple[str, str, type[BaseException]]]

    async def begin(
        self, execution_id: ExecutionId, command: str, *, log_path: Callable[[int], str], at: object
    ) -> Verification:
        self._fail("begin", "before")
        done = await super().begin(execution_id, command, log_path=log_path, at=at)  # type: ignore[arg-type]
        self._fail("begin", "after")
        return done

    async def end(
        self, verification: Verification, status: VerificationStatus, *, exit_code: int | None, at: object
    ) -> Verification:
        self._fail("end", "before")
        done = await super().end(verification, status, exit_code=exit_code, at=at)  # type: ignore[arg-type]
        self._fail("end", "after")
        return done

    def _fail(self, call: str, moment: str) -> None:
        for trouble in self.troubles:
            if trouble[:2] == (call, moment):
                self.troubles.remove(trouble)
                raise trouble[2]("as planned")


class _Killed(BaseException):
    """Nothing that was planned after it happens."""


@dataclass(frozen=True)
class _Case:
    command: str
    troubles: tuple[tuple[str, str, type[BaseException]], ...]
    loses_folder: bool
    is_stopped: bool


_TROUBLES = st.tuples(
    st.sampled_from(["begin", "end"]),
    st.sampled_from(["before", "after"]),
    st.sampled_from([_Killed, DatabaseBusyError, OSError, ValueError]),
)
_CASES = st.builds(
    _Case,
    command=st.sampled_from(_COMMANDS),
    troubles=st.lists(_TROUBLES, max_size=3).map(tuple),
    loses_folder=st.sampled_from([False, False, False, True]),
    is_stopped=st.sampled_from([False, False, False, True]),
)


def _verifier(place: Stored, repositories: Repositories, verifications: VerificationRepository) -> Verifier:
    paths, clock = place.services.paths, SystemClock()
    return Verifier(
        verifications=verifications,
        agent_files=repositories.agent_files,
        worktrees=WorktreeMaker(
            worktrees=repositories.worktrees, agent_files=repositories.agent_files, paths=paths, clock=clock
        ),
        settings=lambda: replace(
            read_settings(None, {}), verification=VerificationSettings(timeout_s=30, verify_retries=1)
        ),
        paths=paths,
        clock=clock,
    )


async def _claimed(place: Stored, case: _Case, folder: Path) -> tuple[ClaimedExecution, ExecutionFolder]:
    work = folder / "work"
    work.mkdir()
    task = await place.add_task("a task", "true", verify=case.command, working_dir=str(work))
    await place.add_run(task.id, ExecutionStatus.QUEUED)
    claimed, run_folder = await claim_next(place)
    write_journal(run_folder, STARTED, _ENDED)
    if case.is_stopped:
        run_folder.append_command({"id": "stop", "type": "stop"})
    if case.loses_folder:
        work.rmdir()
    return claimed, run_folder


async def _end(place: Stored, case: _Case, claimed: ClaimedExecution) -> None:
    """Let worker after worker look at the end, each until it is killed, as long as it does not count."""
    database = place.services.database
    repositories = Repositories.over(database)
    verifications = _Troubled(database)
    verifications.troubles = list(case.troubles)
    for _ in range(2 * len(case.troubles) + 2):
        execution = await place.services.executions.get(claimed.execution.id)
        if not execution.status.is_open:
            return
        watch = watch_of(database, place.services.paths)
        worker_id = WorkerId(execution.worker_id or "")
        (taken,) = await repositories.live.take_over([execution.id], worker_id=worker_id, at=SystemClock().now())
        await watch.add(taken)
        await watch.read_journals()
        verifier = _verifier(place, repositories, verifications)
        finalizer = Finalizer(
            watch=watch,
            settlement=SettlementRepository(database),
            clock=SystemClock(),
            on_settled=lambda: None,
            steps=(verifier.end_step,),
        )
        plain, long = finalizer.begin()
        try:
            await finalizer.settle(plain)
            for watched in long:
                await finalizer.finish(watched)
        except (_Killed, DatabaseBusyError):
            continue


async def _check(case: _Case, folder: Path) -> None:
    async with stored(folder) as place:
        claimed, _ = await _claimed(place, case, folder)
        waiting = await place.add_task("later")
        await place.services.tasks.add_dependency(waiting.id, claimed.task.number, actor=place.services.actor)
        await _end(place, case, claimed)
        ended = await place.services.executions.get(claimed.execution.id)
        task = await place.services.tasks.get(claimed.task.id)
        held = await place.services.tasks.get(waiting.id)
        newest = await VerificationRepository(place.services.database).newest(ended.id)

    assert not ended.status.is_open, "it comes to its end"
    has_passed = newest is not None and newest.status is VerificationStatus.PASSED
    if case.command:
        assert (ended.status is ExecutionStatus.SUCCEEDED) <= has_passed
        assert has_passed <= (case.command == "true")
    else:
        assert ended.status is ExecutionStatus.SUCCEEDED
    if ended.status is not ExecutionStatus.SUCCEEDED:
        assert ended.end_reason in {EndReason.UNVERIFIED, EndReason.STOPPED}
        assert task.status is not TaskStatus.DONE
        assert held.status is TaskStatus.BLOCKED
    assert (
        newest is None or newest.status
    ) is not VerificationStatus.RUNNING or ended.end_reason is EndReason.UNVERIFIED


@pytest.mark.proof
@given(case=_CASES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_succeeds_without_a_pass(case: _Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_check(case, Path(folder)))
