"""The end of a run as a phase: what belongs to it is done once, bounded in time, and survives a kill."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import DatabaseBusyError
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import CommandType
from agentmon.domain.live_state import LiveState
from agentmon.services.actors import USER_ACTOR
from agentmon.store.executions import ExecutionRepository
from agentmon.store.settling import SettlementRepository
from agentmon.threads import in_daemon_thread
from agentmon.worker.finalizing import EndStep, Finalizer
from tests.endings import finish, watch_of
from tests.stored_runs import stored
from tests.worker.test_watching import FAILED, STARTED, claim, write_journal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agentmon.domain.executions import ClaimedExecution, ExecutionEnding
    from agentmon.domain.ids import ExecutionId
    from agentmon.worker.watching import Watch, Watched
    from tests.stored_runs import Stored


def finalizer_of(place: Stored, watch: Watch, *steps: EndStep) -> Finalizer:
    settlement = SettlementRepository(place.services.database)
    return Finalizer(watch=watch, settlement=settlement, clock=SystemClock(), on_settled=lambda: None, steps=steps)


def step(name: str, work: Callable[[Watched, ExecutionEnding], ExecutionEnding], *, limit_s: float = 60.0) -> EndStep:
    async def in_thread(watched: Watched, ending: ExecutionEnding) -> ExecutionEnding:
        return await in_daemon_thread(partial(work, watched, ending), name=name)

    return EndStep(name, lambda *_: True, in_thread, limit_s)


async def take_up(place: Stored, execution_id: ExecutionId, claimed: ClaimedExecution) -> Watch:
    """Watch what a worker that is gone left, as another one does."""
    execution = await place.services.executions.get(execution_id)
    watch = watch_of(place.services.database, place.services.paths)
    await watch.add(replace(claimed, execution=execution))
    return watch


async def test_an_end_that_a_kill_cut_off_is_finished_by_the_next_worker_and_no_step_is_done_twice(
    tmp_path: Path,
) -> None:
    done: list[str] = []

    def note(name: str) -> EndStep:
        def work(_: Watched, ending: ExecutionEnding) -> ExecutionEnding:
            done.append(name)
            return replace(ending, error=f"{ending.error or ''}{name} ")

        return step(name, work)

    def killed(_: Watched, ending: ExecutionEnding) -> ExecutionEnding:
        del ending
        raise KeyboardInterrupt

    async with stored(tmp_path) as place:
        claimed, folder = await claim(place)
        watch = watch_of(place.services.database, place.services.paths)
        await watch.add(claimed)
        write_journal(folder, STARTED, FAILED)
        await watch.read_journals()
        first = finalizer_of(place, watch, note("first"), step("second", killed))
        _, (watched,) = first.begin()
        with pytest.raises(KeyboardInterrupt):
            await first.finish(watched)
        between = await place.services.executions.get(claimed.execution.id)

        later = await take_up(place, claimed.execution.id, claimed)
        second = finalizer_of(place, later, note("first"), note("second"))
        _, (again,) = second.begin()
        await second.finish(again)
        ended = await place.services.executions.get(claimed.execution.id)

    assert (between.status, between.live_state) == (ExecutionStatus.FINALIZING, LiveState.FINALIZING)
    assert done == ["first", "second"]
    assert (ended.status, ended.error) == (ExecutionStatus.FAILED, "first second ")
    assert ended.ending is None


async def test_neither_a_step_that_fails_nor_one_that_hangs_keeps_a_run_from_its_end(tmp_path: Path) -> None:
    opened = threading.Event()

    def hang(_: Watched, ending: ExecutionEnding) -> ExecutionEnding:
        opened.wait()
        return ending

    def fail(_: Watched, ending: ExecutionEnding) -> ExecutionEnding:
        del ending
        raise ValueError("no")

    try:
        async with stored(tmp_path) as place:
            claimed, folder = await claim(place)
            watch = watch_of(place.services.database, place.services.paths)
            await watch.add(claimed)
            write_journal(folder, STARTED, FAILED)
            await watch.read_journals()
            finalizer = finalizer_of(place, watch, step("fails", fail), step("hangs", hang, limit_s=0.05))
            _, (watched,) = finalizer.begin()
            assert finalizer.begin() == ((), ())

            await finalizer.finish(watched)

            assert (await place.services.executions.get(claimed.execution.id)).status is ExecutionStatus.FAILED
            noted = (folder.path / "finalizing.jsonl").read_text().splitlines()
            assert [json.loads(line)["step"] for line in noted] == ["fails", "hangs"]
            assert claimed.execution.id not in watch
    finally:
        opened.set()


async def test_a_step_is_done_whatever_the_program_wrote_of_it_while_it_ran(tmp_path: Path) -> None:
    done: list[str] = []

    def verify(_: Watched, ending: ExecutionEnding) -> ExecutionEnding:
        done.append("verified")
        return ending

    async with stored(tmp_path) as place:
        claimed, folder = await claim(place)
        watch = watch_of(place.services.database, place.services.paths)
        await watch.add(claimed)
        write_journal(folder, STARTED, FAILED)
        (folder.path / "finalizing.jsonl").write_text('{"step": "verification"}\n')
        await watch.read_journals()
        finalizer = finalizer_of(place, watch, step("verification", verify))
        _, (watched,) = finalizer.begin()

        await finalizer.finish(watched)

    assert done == ["verified"]


async def test_a_stop_in_the_end_phase_of_a_failed_run_lets_it_not_be_tried_again(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        claimed, folder = await claim(place, max_retries=3)
        watch = watch_of(place.services.database, place.services.paths)
        await watch.add(claimed)
        write_journal(folder, STARTED, FAILED)
        await watch.read_journals()
        await ExecutionRepository(place.services.database).request_stop(
            claimed.task.id, command_type=CommandType.STOP, actor=USER_ACTOR, at=SystemClock().now()
        )

        await finish(watch, place.services.database)

        ended = await place.services.executions.get(claimed.execution.id)
        assert (ended.status, ended.retry_count) == (ExecutionStatus.CANCELLED, 0)


async def test_every_end_passes_through_the_phase(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        with closing(sqlite3.connect(place.services.paths.database_path)) as connection, connection:
            connection.execute("CREATE TABLE seen (id TEXT, status TEXT)")
            connection.execute(
                "CREATE TRIGGER seen_moves AFTER UPDATE OF status ON executions "
                "BEGIN INSERT INTO seen VALUES (NEW.id, NEW.status); END"
            )
        watch = watch_of(place.services.database, place.services.paths)
        runs = []
        for reason in (EndReason.LOST, EndReason.START_FAILED, EndReason.STOPPED, EndReason.EXITED):
            claimed, folder = await claim(place)
            watched = await watch.add(claimed)
            runs.append(claimed.execution.id)
            if reason in {EndReason.LOST, EndReason.START_FAILED}:
                await watch.fail(watched, "gone", reason=reason)
            else:
                outcome = "stopped" if reason is EndReason.STOPPED else "exited"
                write_journal(folder, STARTED, {**FAILED, "outcome": outcome})
        await watch.read_journals()
        await finish(watch, place.services.database)

        with closing(sqlite3.connect(place.services.paths.database_path)) as connection:
            seen = [
                [status for (status,) in connection.execute("SELECT status FROM seen WHERE id = ?", (run,))]
                for run in runs
            ]
    assert seen == [
        ["queued", "running", "finalizing", "failed"],
        ["queued", "running", "finalizing", "failed"],
        ["queued", "running", "finalizing", "cancelled"],
        ["queued", "running", "finalizing", "failed"],
    ]


@pytest.mark.parametrize("name", ["finalizing.jsonl", "output.log"])
async def test_a_pipe_in_the_place_of_a_file_keeps_no_run_from_its_end(tmp_path: Path, name: str) -> None:
    async with stored(tmp_path) as place:
        claimed, folder = await claim(place)
        watch = watch_of(place.services.database, place.services.paths)
        await watch.add(claimed)
        write_journal(folder, STARTED, FAILED)
        (folder.path / name).unlink(missing_ok=True)
        os.mkfifo(folder.path / name)
        await watch.read_journals()

        await finish(watch, place.services.database)

        assert (await place.services.executions.get(claimed.execution.id)).status is ExecutionStatus.FAILED
        if name == "output.log":
            (line,) = (folder.path / "finalizing.jsonl").read_text().splitlines()
            assert "within" not in json.loads(line)["problem"]


async def test_the_end_of_one_run_that_cannot_be_written_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise DatabaseBusyError("held")

    async with stored(tmp_path) as place:
        (bad, bad_folder), (good, good_folder) = await claim(place), await claim(place)
        watch = watch_of(place.services.database, place.services.paths)
        for claimed, folder in ((bad, bad_folder), (good, good_folder)):
            await watch.add(claimed)
            write_journal(folder, STARTED, FAILED)
        await watch.read_journals()
        with closing(sqlite3.connect(place.services.paths.database_path)) as connection, connection:
            connection.execute(
                f"CREATE TRIGGER refused BEFORE UPDATE OF ended_at ON executions WHEN NEW.id = '{bad.execution.id}' "
                "BEGIN SELECT RAISE(ABORT, 'poisoned'); END"
            )

        monkeypatch.setattr(watch, "note_problem", refuse)
        finalizer = finalizer_of(place, watch)
        ended, _ = finalizer.begin()
        with pytest.raises(DatabaseBusyError):
            await finalizer.settle(ended)

        assert (await place.services.executions.get(bad.execution.id)).status is ExecutionStatus.FINALIZING
        assert (await place.services.executions.get(good.execution.id)).status is ExecutionStatus.FAILED
        assert watch.ids == {bad.execution.id}
