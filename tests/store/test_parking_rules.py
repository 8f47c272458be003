from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pytest

from agentmon.domain.agents import ToolType
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import ExecutionEnding
from agentmon.domain.ids import ExecutionId, WorkerId
from agentmon.domain.refusals import Refusal, RefusalKind
from agentmon.store.moments import moment_text
from tests.endings import end_without_journal
from tests.store.queue_place import NOON, an_agent, opened_queue, read_rows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from tests.store.queue_place import QueuePlace

PARK_AFTER: Final = 2
SUCCESS: Final = (ExecutionStatus.SUCCEEDED, EndReason.EXITED)
FAILURE: Final = (ExecutionStatus.FAILED, EndReason.EXITED)
TIME_OUT: Final = (ExecutionStatus.TIMED_OUT, EndReason.TIMED_OUT)
LOST: Final = (ExecutionStatus.FAILED, EndReason.LOST)
TERMINATED: Final = (ExecutionStatus.FAILED, EndReason.TERMINATED)
STOPPED: Final = (ExecutionStatus.CANCELLED, EndReason.STOPPED)

_LIMITS: Final = (RefusalKind.RATE_LIMIT, RefusalKind.USAGE_LIMIT)
_PARKS: Final = "SELECT * FROM task_events WHERE event_type = 'agent_parked'"


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[QueuePlace]:
    agents = [
        an_agent("tool", max_concurrent=0),
        an_agent("command", max_concurrent=0, tool_type=ToolType.SHELL_UTIL),
        an_agent("robot", max_concurrent=0, tool_type=ToolType.AI_AGENT),
        an_agent("watch", max_concurrent=0, tool_type=ToolType.DAEMON),
    ]
    async with opened_queue(tmp_path / "a.db", agents, {"w": 0}) as opened:
        yield opened


async def _queue(place: QueuePlace, agent: str, *, word: str = "make", max_retries: int = 0) -> ExecutionId:
    task = await place.add_task("w")
    return (await place.enqueue(task.id, agent, args={"word": word}, max_retries=max_retries)).id


async def _start(place: QueuePlace, *, at: datetime) -> None:
    await place.claims.claim(worker_id=WorkerId("w"), max_running=99, park_after=PARK_AFTER, limit=99, at=at)


async def _end(
    place: QueuePlace,
    execution_id: ExecutionId,
    end: tuple[ExecutionStatus, EndReason],
    *,
    at: datetime,
    refusal: Refusal | None = None,
) -> None:
    status, reason = end
    ending = ExecutionEnding(status=status, ended_at=at, reason=reason, exit_code=1, refusal=refusal)
    await end_without_journal(place.database, execution_id, ending, park_after=PARK_AFTER, at=at)


@pytest.mark.parametrize("agent", ["tool", "command"])
@pytest.mark.parametrize(
    ("ends", "streak"),
    [
        ([FAILURE], 0),
        ([FAILURE, FAILURE], 2),
        ([TIME_OUT, FAILURE], 2),
        ([FAILURE, FAILURE, TIME_OUT], 3),
        ([FAILURE, SUCCESS, FAILURE], 0),
        ([FAILURE, FAILURE, SUCCESS, FAILURE, FAILURE], 2),
        ([FAILURE, LOST], 0),
        ([LOST, TERMINATED, FAILURE], 0),
        ([FAILURE, LOST, TERMINATED, STOPPED, FAILURE], 2),
    ],
)
async def test_a_command_rests_when_it_failed_too_often_since_its_last_success(
    place: QueuePlace,
    tmp_path: Path,
    agent: str,
    ends: Sequence[tuple[ExecutionStatus, EndReason]],
    streak: int,
) -> None:
    runs = [await _queue(place, agent) for _ in ends]
    await _start(place, at=NOON)
    for minute, (run, end) in enumerate(zip(runs[:-1], ends[:-1], strict=True)):
        await _end(place, run, end, at=NOON + timedelta(minutes=minute))
    waiting, other = await _queue(place, agent), await _queue(place, agent, word="try")
    last_at = NOON + timedelta(minutes=30)

    await _end(place, runs[-1], ends[-1], at=last_at)

    told = "SELECT not_before, queued_at, wait_reason, error FROM executions WHERE id = ?"
    until = moment_text(last_at + timedelta(minutes=2 ** (streak - PARK_AFTER))) if streak else None
    found, untouched = (tuple(*read_rows(tmp_path / "a.db", told, run)) for run in (waiting, other))
    unparked = (None, moment_text(NOON), None, None)
    assert found == ((until, until, "failures", f"its last {streak} runs failed") if streak else unparked)
    assert untouched == unparked
    agents = read_rows(tmp_path / "a.db", "SELECT failure_streak, parked_until FROM agents")
    assert {tuple(row) for row in agents} == {(0, None)}
    parked = read_rows(tmp_path / "a.db", "SELECT payload FROM task_events WHERE event_type = 'execution_parked'")
    assert len([row for row in parked if waiting in row["payload"]]) == bool(streak)


async def test_each_try_of_a_run_counts_and_its_retry_waits_for_the_rest(place: QueuePlace, tmp_path: Path) -> None:
    run = await _queue(place, "command", max_retries=5)
    await _start(place, at=NOON)
    await _end(place, run, FAILURE, at=NOON)
    later = NOON + timedelta(seconds=5)
    await _start(place, at=later)

    await _end(place, run, FAILURE, at=later)

    (row,) = read_rows(tmp_path / "a.db", "SELECT * FROM executions")
    assert (row["retry_count"], row["wait_reason"]) == (2, "failures")
    assert row["not_before"] == moment_text(later + timedelta(minutes=1))


async def test_no_rest_is_longer_than_an_hour(place: QueuePlace, tmp_path: Path) -> None:
    runs = [await _queue(place, "command") for _ in range(12)]
    await _start(place, at=NOON)
    waiting = await _queue(place, "command")

    for run in runs:
        await _end(place, run, FAILURE, at=NOON)

    (row,) = read_rows(tmp_path / "a.db", "SELECT * FROM executions WHERE id = ?", waiting)
    assert row["not_before"] == moment_text(NOON + timedelta(hours=1))


@pytest.mark.parametrize("agent", ["robot", "watch"])
async def test_of_an_agent_that_is_no_tool_all_commands_rest_until_one_succeeds(
    place: QueuePlace, tmp_path: Path, agent: str
) -> None:
    runs = [await _queue(place, agent, word=word) for word in ("one", "two", "three")]
    await _start(place, at=NOON)
    told = "SELECT failure_streak, parked_until, park_reason FROM agents WHERE slug = ?"

    for run in runs[:2]:
        await _end(place, run, FAILURE, at=NOON)
    (after_failures,) = read_rows(tmp_path / "a.db", told, agent)
    await _end(place, runs[2], SUCCESS, at=NOON)
    (after_success,) = read_rows(tmp_path / "a.db", told, agent)

    assert tuple(after_failures) == (2, moment_text(NOON + timedelta(minutes=1)), "failures")
    assert tuple(after_success) == (0, None, None)


async def test_neither_failures_nor_a_success_shorten_the_wait_for_a_vendor(place: QueuePlace, tmp_path: Path) -> None:
    runs = [await _queue(place, "robot") for _ in range(5)]
    await _start(place, at=NOON)
    refusal = Refusal(kind=RefusalKind.USAGE_LIMIT, text="come back later", until=NOON + timedelta(hours=5), advice="")
    told = "SELECT failure_streak, parked_until, park_reason FROM agents WHERE slug = 'robot'"

    await _end(place, runs[0], FAILURE, at=NOON, refusal=refusal)
    for run in runs[1:4]:
        await _end(place, run, FAILURE, at=NOON)
    (after_failures,) = read_rows(tmp_path / "a.db", told)
    await _end(place, runs[4], SUCCESS, at=NOON)
    (after_success,) = read_rows(tmp_path / "a.db", told)

    until = moment_text(NOON + timedelta(hours=5, seconds=5))
    assert tuple(after_failures) == (3, until, "usage_limit")
    assert tuple(after_success) == (0, until, "usage_limit")
    assert len(read_rows(tmp_path / "a.db", _PARKS)) == 1


async def test_waits_for_a_short_limit_are_counted_until_something_else_happens(
    place: QueuePlace, tmp_path: Path
) -> None:
    run = await _queue(place, "robot", max_retries=1)
    short, long = (Refusal(kind=kind, text="later", until=None, advice="") for kind in _LIMITS)
    counts = []

    for hour, refusal in enumerate([short, short, None, short, long, short, short]):
        at = NOON + timedelta(hours=hour)
        await _start(place, at=at)
        await _end(place, run, FAILURE, at=at, refusal=refusal)
        counts += [row["wait_count"] for row in read_rows(tmp_path / "a.db", "SELECT wait_count FROM executions")]

    assert counts == [1, 2, 0, 1, 0, 1, 2]


async def test_a_started_run_says_no_more_why_it_waited(place: QueuePlace, tmp_path: Path) -> None:
    run = await _queue(place, "robot")
    await _start(place, at=NOON)
    refusal = Refusal(kind=RefusalKind.RATE_LIMIT, text="later", until=None, advice="")
    await _end(place, run, FAILURE, at=NOON, refusal=refusal)

    await _start(place, at=NOON + timedelta(hours=1))

    (row,) = read_rows(tmp_path / "a.db", "SELECT status, wait_reason, error FROM executions")
    assert tuple(row) == ("running", None, None)
