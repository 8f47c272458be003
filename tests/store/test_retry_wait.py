from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, update

from agentmon.domain.agents import ParkReason
from agentmon.domain.execution_status import ExecutionStatus, WaitReason
from agentmon.domain.ids import WorkerId, new_id
from agentmon.store import tables
from agentmon.store.claims import ClaimRepository
from tests.stored_runs import stored

if TYPE_CHECKING:
    from pathlib import Path

    from tests.stored_runs import Stored


async def _is_claimed(
    place: Stored,
    *,
    waits_for: timedelta,
    reason: WaitReason = WaitReason.RETRY,
    written: timedelta = timedelta(0),
) -> bool:
    now = datetime.now(UTC)
    task = await place.add_task()
    execution = await place.add_run(task.id, ExecutionStatus.QUEUED)
    async with place.services.database.writing() as connection:
        rows = tables.executions
        waiting = {"not_before": now + waits_for, "wait_reason": reason, "updated_at": now + written}
        await connection.execute(update(rows).where(rows.c.id == execution.id).values(**waiting))
    return await _claims_one(place, now)


async def _claims_one(place: Stored, at: datetime) -> bool:
    claims = ClaimRepository(place.services.database)
    return bool(await claims.claim(worker_id=WorkerId(new_id()), max_running=10, park_after=5, limit=10, at=at))


@pytest.mark.parametrize(
    ("reason", "waits_for"),
    [
        (WaitReason.RETRY, timedelta(minutes=9)),
        (WaitReason.NOT_STARTED, timedelta(minutes=1)),
        (WaitReason.FAILURES, timedelta(minutes=59)),
        (WaitReason.RATE_LIMIT, timedelta(days=2)),
        (WaitReason.USAGE_LIMIT, timedelta(days=39)),
        (WaitReason.SCHEDULED, timedelta(days=300)),
    ],
)
async def test_what_waits_waits_for_its_time(tmp_path: Path, reason: WaitReason, waits_for: timedelta) -> None:
    async with stored(tmp_path) as place:
        assert not await _is_claimed(place, waits_for=waits_for, reason=reason)


@pytest.mark.parametrize(
    ("reason", "waits_for"),
    [
        (WaitReason.RETRY, timedelta(hours=1)),
        (WaitReason.FAILURES, timedelta(hours=2)),
        (WaitReason.RATE_LIMIT, timedelta(days=41)),
        (WaitReason.USAGE_LIMIT, timedelta(days=41)),
    ],
)
async def test_nothing_waits_longer_than_its_reason_can_ask_for(
    tmp_path: Path, reason: WaitReason, waits_for: timedelta
) -> None:
    async with stored(tmp_path) as place:
        assert await _is_claimed(place, waits_for=waits_for, reason=reason)


@pytest.mark.parametrize("reason", [WaitReason.FAILURES, WaitReason.RATE_LIMIT, WaitReason.USAGE_LIMIT])
async def test_a_wait_that_was_written_by_a_clock_that_is_set_back_is_over(tmp_path: Path, reason: WaitReason) -> None:
    async with stored(tmp_path) as place:
        assert await _is_claimed(
            place, waits_for=timedelta(hours=5, minutes=30), reason=reason, written=timedelta(hours=5)
        )


async def test_a_time_that_somebody_named_stays_when_the_clock_is_set_back(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        assert not await _is_claimed(
            place, waits_for=timedelta(hours=6), reason=WaitReason.SCHEDULED, written=timedelta(hours=5)
        )


@pytest.mark.parametrize(("parked", "is_claimed"), [(timedelta(0), False), (timedelta(hours=5), True)])
async def test_an_agent_that_was_parked_later_than_now_starts_again(
    tmp_path: Path, parked: timedelta, is_claimed: bool
) -> None:
    now = datetime.now(UTC)
    async with stored(tmp_path) as place:
        task = await place.add_task()
        await place.add_run(task.id, ExecutionStatus.QUEUED)
        async with place.services.database.writing() as connection:
            rest = {"park_reason": ParkReason.USAGE_LIMIT, "park_note": "used up", "updated_at": now}
            await connection.execute(
                update(tables.agents).values(
                    parked_at=now + parked, parked_until=now + parked + timedelta(days=2), **rest
                )
            )

        assert await _claims_one(place, now) is is_claimed

        async with place.services.database.reading() as connection:
            found = (await connection.execute(select(tables.agents.c.parked_until).distinct())).scalars().all()
        assert (found == [None]) is is_claimed
