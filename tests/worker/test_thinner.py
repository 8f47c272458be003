from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import insert

from agentmon.domain.clock import FakeClock
from agentmon.settings import WorkerSettings, load_settings
from agentmon.store import tables
from agentmon.store.thinning import ThinningRepository
from agentmon.worker.thinning import Thinner
from tests.stored_runs import stored

if TYPE_CHECKING:
    from pathlib import Path

    from tests.stored_runs import Stored

SETTINGS = load_settings(WorkerSettings, None, {})


class Running:
    """A thinner of a worker whose two clocks the test moves."""

    def __init__(self, place: Stored) -> None:
        self.place = place
        self.clock = FakeClock()
        self.seconds = 0.0
        thinning = ThinningRepository(place.services.database)
        self.thinner = Thinner(thinning, self.clock, monotonic=lambda: self.seconds)

    def pass_time(self, time: timedelta) -> None:
        self.clock.move(time)
        self.seconds += time.total_seconds()

    async def add_key(self, name: str) -> None:
        row = {"actor_id": "a", "key": name, "action": "run", "digest": "d", "result_id": "r"}
        created_at = self.clock.now() - timedelta(days=8)
        async with self.place.services.database.writing() as connection:
            await connection.execute(insert(tables.idempotency_keys).values(created_at=created_at, **row))

    async def look(self) -> int:
        return await self.thinner.look(SETTINGS)


async def test_what_is_due_goes_ten_minutes_after_the_start_and_then_once_an_hour(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        worker = Running(place)
        await worker.add_key("first")

        at_start = await worker.look()
        worker.pass_time(timedelta(minutes=10))
        first = await worker.look()
        await worker.add_key("second")
        worker.pass_time(timedelta(minutes=59))
        early = await worker.look()
        worker.pass_time(timedelta(minutes=1))

        assert (at_start, first, early, await worker.look()) == (0, 1, 0, 1)


async def test_nothing_goes_by_a_clock_that_has_just_been_set(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        worker = Running(place)
        await worker.look()
        worker.pass_time(timedelta(minutes=10))
        worker.clock.move(timedelta(days=3650))
        await worker.add_key("young")

        wrong = await worker.look()
        worker.pass_time(timedelta(minutes=9))
        still = await worker.look()
        worker.pass_time(timedelta(minutes=1))

        assert (wrong, still, await worker.look()) == (0, 0, 1)
