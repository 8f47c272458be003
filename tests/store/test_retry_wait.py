from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import update

from agentmon.domain.execution_status import ExecutionStatus, WaitReason
from agentmon.domain.ids import WorkerId, new_id
from agentmon.store import tables
from agentmon.store.claims import ClaimRepository
from tests.stored_runs import stored

if TYPE_CHECKING:
    from pathlib import Path

    from tests.stored_runs import Stored


async def _is_claimed(place: Stored, *, waits_for: timedelta) -> bool:
    now = datetime.now(UTC)
    task = await place.add_task()
    execution = await place.add_run(task.id, ExecutionStatus.QUEUED)
    async with place.services.database.writing() as connection:
        rows = tables.executions
        waiting = {"not_before": now + waits_for, "wait_reason": WaitReason.RETRY}
        await connection.execute(update(rows).where(rows.c.id == execution.id).values(**waiting))
    claims = ClaimRepository(place.services.database)
    return bool(await claims.claim(worker_id=WorkerId(new_id()), max_running=10, park_after=5, limit=10, at=now))


async def test_a_retry_waits_for_its_time(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        assert not await _is_claimed(place, waits_for=timedelta(minutes=9))


async def test_a_clock_that_was_set_back_makes_no_retry_wait_longer(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        assert await _is_claimed(place, waits_for=timedelta(hours=1))
