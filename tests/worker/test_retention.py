from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from agentmon.domain.clock import SystemClock
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.settings import WorkerSettings
from agentmon.store.old_logs import OldLogRepository
from agentmon.worker.retention import remove_old_logs
from tests.stored_runs import stored

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.domain.executions import Execution
    from tests.stored_runs import Stored


async def add_logs(place: Stored, *ages: timedelta, size: int = 600_000) -> list[Execution]:
    runs = []
    for age in ages:
        task = await place.add_task()
        runs.append(await place.add_run(task.id, output=b"x" * size, age=age))
    return runs


async def remove(place: Stored, **settings: int) -> int:
    old_logs = OldLogRepository(place.services.database)
    return await remove_old_logs(old_logs, WorkerSettings.model_validate(settings), SystemClock())


async def test_logs_that_are_too_old_are_removed_with_a_note(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        old, young = await add_logs(place, timedelta(days=40), timedelta(days=2))

        assert await remove(place, keep_logs_days=30) == 1

        gone, kept = [await place.services.executions.get(run.id) for run in (old, young)]
        assert not place.services.executions.log_path(gone).exists()
        assert gone.log_removed_at is not None
        assert datetime.now(UTC) - gone.log_removed_at < timedelta(minutes=1)
        assert gone.status is ExecutionStatus.SUCCEEDED
        assert place.services.executions.log_path(kept).exists()
        last = (await place.services.audit.of_task(gone.task_id))[-1]
        assert last.event_type is TaskEventType.EXECUTION_LOG_REMOVED
        assert last.payload["reason"] == "age"


async def test_what_a_killed_host_left_of_a_cut_goes_with_the_log(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        (old,) = await add_logs(place, timedelta(days=40))
        half_cut = place.services.executions.log_path(old).with_name("output.log.new")
        half_cut.write_bytes(b"x")

        await remove(place, keep_logs_days=30)

        assert not half_cut.exists()


async def test_the_oldest_logs_go_when_all_together_are_too_large(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        runs = await add_logs(place, timedelta(days=3), timedelta(days=2), timedelta(days=1))

        assert await remove(place, keep_logs_mb=1) == 2

        kept = [place.services.executions.log_path(run).exists() for run in runs]
        assert kept == [False, False, True]
        assert await remove(place, keep_logs_mb=1) == 0


async def test_without_limits_every_log_stays(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        runs = await add_logs(place, timedelta(days=4000))

        assert await remove(place, keep_logs_mb=0, keep_logs_days=0) == 0

        assert place.services.executions.log_path(runs[0]).exists()


async def test_the_log_of_what_runs_is_never_removed(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        task = await place.add_task()
        run = await place.add_run(task.id, ExecutionStatus.RUNNING, output=b"x" * 2_000_000, age=timedelta(days=4000))

        assert await remove(place, keep_logs_mb=1, keep_logs_days=1) == 0

        assert place.services.executions.log_path(run).exists()
