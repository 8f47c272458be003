"""Loops that fail, hang and are cancelled, beside others that must not notice."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.background_loops import LoopCondition, LoopState
from agentmon.domain.clock import FakeClock, SystemClock
from agentmon.domain.errors import DatabaseFullError
from agentmon.worker import supervisor as supervising
from agentmon.worker.loop_report import read_loop_report, write_loop_report
from agentmon.worker.supervisor import Supervisor, Turn
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervising, "_FIRST_PAUSE_S", 0.01)


class Told:
    def __init__(self) -> None:
        self.failures: list[tuple[str, str]] = []
        self.changes = 0
        self.supervisor = Supervisor(clock=SystemClock(), on_failure=self._fail, on_change=self._change)

    def _fail(self, name: str, error: Exception) -> None:
        self.failures.append((name, str(error)))

    def _change(self) -> None:
        self.changes += 1

    def state(self, name: str) -> LoopState:
        return next(state for state in self.supervisor.states if state.name == name)


def failing(*, times: int, error: Exception) -> tuple[list[int], Callable[[], Awaitable[None]]]:
    turns: list[int] = []

    async def work() -> None:
        turns.append(len(turns))
        if len(turns) <= times:
            raise error

    return turns, work


async def rest() -> None:
    await asyncio.sleep(0.001)


async def test_a_loop_that_fails_goes_on_and_no_other_notices() -> None:
    told = Told()
    once, fail_once = failing(times=1, error=ValueError("broken, password=hunter2hunter2"))
    always, fail_always = failing(times=10**9, error=DatabaseFullError("the disk is full", hint="free some space"))
    well, go_well = failing(times=0, error=ValueError())
    tasks = [
        asyncio.create_task(told.supervisor.keep(Turn(name, work, longest_pause_s=0.05), rest=rest))
        for name, work in (("once", fail_once), ("always", fail_always), ("well", go_well))
    ]

    async def have_run() -> bool:
        return len(once) > 20 and len(always) > 4 and len(well) > 20

    await until(have_run)
    now = SystemClock().now()
    once_state, always_state, well_state = (told.state(name) for name in ("once", "always", "well"))
    for task in tasks:
        task.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)

    assert once_state.condition(now) is well_state.condition(now) is LoopCondition.FINE
    assert (once_state.failures, once_state.problem) == (0, "")
    assert once_state.failed_at is not None
    assert always_state.condition(now) is LoopCondition.FAILING
    assert (always_state.problem, always_state.hint) == ("the disk is full", "free some space")
    assert always_state.next_try_at is not None
    assert always_state.failures == len(always)
    assert [failure for failure in told.failures if failure[0] == "once"] == [
        ("once", "broken, password=hunter2hunter2")
    ]
    # Once for each loop's first success, and for each failure.
    assert told.changes >= len(always) + 3
    assert all(isinstance(end, asyncio.CancelledError) for end in ends)


async def test_pauses_grow_up_to_the_longest_and_begin_anew_after_a_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervising, "_FIRST_PAUSE_S", 10.0)
    told = Told()
    _turns, work = failing(times=4, error=ValueError("password=hunter2hunter2"))
    turn = Turn("growing", work, longest_pause_s=60)

    pauses = []
    for _ in range(4):
        assert not await told.supervisor.attempt(turn)
        pauses.append(round(told.supervisor.pause_s("growing")))
    problem = told.state("growing").problem
    assert await told.supervisor.attempt(turn)

    assert pauses == [10, 20, 40, 60]
    assert told.supervisor.pause_s("growing") == 0
    assert "hunter2" not in problem


async def test_a_loop_that_hangs_is_seen_and_cancelling_it_ends_it(tmp_path: Path) -> None:
    told, clock = Told(), FakeClock()
    told.supervisor = Supervisor(clock=clock, on_failure=told._fail)
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(told.supervisor.keep(Turn("hanging", hang, hangs_after_s=30), rest=rest))
    await begun.wait()
    early = told.state("hanging").condition(clock.now())
    clock.move(timedelta(seconds=31))
    write_loop_report(tmp_path / "loops.json", told.supervisor.states, at=clock.now())
    task.cancel()
    await asyncio.wait([task])
    report = read_loop_report(tmp_path / "loops.json")

    assert early is LoopCondition.WAITING
    assert report is not None
    assert report.loops[0].condition(clock.now()) is LoopCondition.HANGING
    assert task.cancelled()
    assert told.state("hanging").busy_since is None
    assert told.failures == []


async def test_a_wait_that_is_cancelled_from_within_is_a_failure_and_not_the_end() -> None:
    told = Told()
    turns = 0

    async def wait_for_what_is_cancelled() -> None:
        nonlocal turns
        turns += 1
        awaited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        awaited.cancel()
        await awaited

    task = asyncio.create_task(told.supervisor.keep(Turn("inner", wait_for_what_is_cancelled), rest=rest))

    async def has_tried_again() -> bool:
        return turns > 2

    await until(has_tried_again)
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert told.failures[0] == ("inner", "what it waited for was cancelled")


def test_a_report_that_is_damaged_or_missing_is_none(tmp_path: Path) -> None:
    damaged = tmp_path / "loops.json"

    assert read_loop_report(damaged) is None
    for text in ("", "{", "[]", '{"pid": 1, "beat_at": "x", "loops": []}', '{"pid": 1, "loops": [{"name": 1}]}'):
        damaged.write_text(text)
        assert read_loop_report(damaged) is None
