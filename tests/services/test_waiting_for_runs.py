from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sqlalchemy import update

from agentmon.domain.execution_status import ExecutionStatus
from agentmon.services.workers import WorkerService
from agentmon.store import tables
from agentmon.store.executions import ExecutionRepository
from tests.stored_runs import stored
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from agentmon.domain.ids import ExecutionId


async def test_who_waits_reads_nothing_while_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, reads = [], []
    is_open = ExecutionRepository.is_open

    async def look_after(_self: WorkerService) -> None:
        looks.append(1)

    async def read(self: ExecutionRepository, execution_id: ExecutionId) -> bool:
        reads.append(execution_id)
        return await is_open(self, execution_id)

    monkeypatch.setattr(WorkerService, "ensure_running", look_after)
    monkeypatch.setattr(ExecutionRepository, "is_open", read)
    async with stored(tmp_path) as place:
        run = await place.add_run((await place.add_task()).id, ExecutionStatus.QUEUED)
        waiting = asyncio.create_task(place.services.queue.wait(run.id))

        async def has_looked_twice() -> bool:
            return len(looks) > 1

        await until(has_looked_twice, "two looks after the worker")
        reads_before = list(reads)
        rows = tables.executions
        async with place.services.database.writing() as connection:
            await connection.execute(update(rows).where(rows.c.id == run.id).values(status=ExecutionStatus.SUCCEEDED))
        ended = await waiting

    assert ended.status is ExecutionStatus.SUCCEEDED
    assert reads_before == [run.id]
    assert reads == [run.id, run.id]
