from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.clock import FakeClock
from agentmon.domain.limit_readings import FIVE_HOUR, SEVEN_DAY, LimitReading, LimitSource
from agentmon.domain.usage_windows import HOUR_MS, WindowOrigin
from agentmon.paths import find_paths
from agentmon.services.limits import LimitService
from agentmon.store.limit_snapshots import LimitSnapshotRepository
from agentmon.store.usage_days import UsageDayRepository
from agentmon.store.usage_import import UsageImport
from agentmon.usage.claude_status import ClaudeStatus
from agentmon.usage.status_reports import leave_report
from agentmon.worker.status_intake import StatusIntake
from tests.store.conversation_place import NOON_MS, opened_place
from tests.store.limit_place import an_answer, context_of, import_piece
from tests.store.queue_place import NOON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.store.conversation_place import ConversationPlace

DAY_MS = 24 * HOUR_MS
SAID = LimitReading(
    window=FIVE_HOUR,
    window_minutes=300,
    used_percent=40.0,
    resets_at_ms=NOON_MS + 2 * HOUR_MS,
    captured_at_ms=NOON_MS - HOUR_MS,
)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ConversationPlace]:
    async with opened_place(tmp_path) as opened:
        yield opened


@pytest.fixture
def files(place: ConversationPlace) -> Iterator[UsageImport]:
    store = UsageImport(place.database.path, zone_name="UTC", clock=FakeClock(NOON))
    yield store
    store.close()


@pytest.fixture
def limits(place: ConversationPlace) -> LimitSnapshotRepository:
    return LimitSnapshotRepository(place.database)


@pytest.fixture
def service(place: ConversationPlace, limits: LimitSnapshotRepository) -> LimitService:
    paths = find_paths({"AGENTMON_HOME": str(place.database.path.parent)})._replace(database_path=place.database.path)
    clock = FakeClock(NOON)
    return LimitService(
        limits=limits,
        days=UsageDayRepository(place.database),
        intake=StatusIntake(limits=limits, paths=paths, clock=clock),
        clock=clock,
    )


async def test_without_answers_and_figures_there_is_no_window(service: LimitService) -> None:
    overview = await service.overview()

    assert overview.windows == ()
    assert overview.burn.hour.tokens_per_minute == 0
    assert overview.projection.month.projected_nano == 0


async def test_answers_alone_give_estimates(service: LimitService, files: UsageImport) -> None:
    import_piece(files, an_answer("old", NOON_MS - 3 * DAY_MS), an_answer("a", NOON_MS - 40 * 60_000))

    five_hours, week = await service.windows()

    assert (five_hours.name, five_hours.origin, five_hours.used_percent) == (FIVE_HOUR, WindowOrigin.ESTIMATE, None)
    assert (five_hours.begun_at_ms, five_hours.resets_at_ms) == (NOON_MS - HOUR_MS, NOON_MS + 4 * HOUR_MS)
    assert five_hours.spent.answers == 1
    assert (week.name, week.spent.answers, week.resets_at_ms) == (SEVEN_DAY, 2, None)


async def test_official_figures_come_with_what_the_answers_cost(
    service: LimitService, files: UsageImport, limits: LimitSnapshotRepository
) -> None:
    import_piece(files, an_answer("before", NOON_MS - 4 * HOUR_MS), an_answer("a", NOON_MS - 2 * HOUR_MS))
    week = replace(SAID, window=SEVEN_DAY, window_minutes=10_080, resets_at_ms=NOON_MS + DAY_MS)
    await limits.record("claude", limits=[SAID, week], source=LimitSource.STATUSLINE, at=NOON)

    found = await service.windows()

    assert [(one.name, one.origin, one.spent.answers) for one in found] == [
        (FIVE_HOUR, WindowOrigin.OFFICIAL, 1),
        (SEVEN_DAY, WindowOrigin.OFFICIAL, 2),
    ]


async def test_a_week_adds_up_the_rest_of_its_first_day_and_whole_days(
    service: LimitService, files: UsageImport, limits: LimitSnapshotRepository
) -> None:
    week = replace(SAID, window=SEVEN_DAY, window_minutes=10_080, resets_at_ms=NOON_MS + DAY_MS)
    begun_ms = NOON_MS - 6 * DAY_MS
    for place, at_ms in enumerate((begun_ms - 1, begun_ms, begun_ms + DAY_MS, NOON_MS - 1)):
        import_piece(files, an_answer(str(place), at_ms, 10**place), path=f"/{place}")
    await limits.record("claude", limits=[week], source=LimitSource.STATUSLINE, at=NOON)

    spent = {one.name: one.spent.prompt_tokens for one in await service.windows()}

    assert spent[SEVEN_DAY] == 1110


async def test_a_window_that_was_reset_is_over_until_the_next_answer(
    service: LimitService, files: UsageImport, limits: LimitSnapshotRepository
) -> None:
    passed = replace(SAID, captured_at_ms=NOON_MS - 5 * HOUR_MS, resets_at_ms=NOON_MS - 2 * HOUR_MS)
    await limits.record("claude", limits=[passed], source=LimitSource.STATUSLINE, at=NOON)
    (over,) = await service.windows()

    import_piece(files, an_answer("a", NOON_MS - HOUR_MS))
    now = {one.name: one for one in await service.windows()}[FIVE_HOUR]

    assert (over.is_over, over.used_percent) == (True, 0.0)
    assert (now.origin, now.used_percent, now.spent.answers) == (WindowOrigin.ESTIMATE, None, 1)


async def test_the_projection_follows_the_last_hour(
    service: LimitService, files: UsageImport, limits: LimitSnapshotRepository
) -> None:
    answers = [an_answer(str(minute), NOON_MS - minute * 60_000 - 1) for minute in range(60)]
    import_piece(files, *answers)
    await limits.record("claude", limits=[SAID], source=LimitSource.STATUSLINE, at=NOON)

    projection = await service.projection()

    burn = await service.burn()
    assert burn.hour.tokens_per_minute == pytest.approx(10, rel=0.05)
    (window,) = projection.windows
    assert window.used_percent == pytest.approx(40 + 40 * 2, rel=0.05)
    assert window.exhausted_at_ms == pytest.approx(NOON_MS + 1.5 * HOUR_MS, abs=0.1 * HOUR_MS)
    assert projection.month.spent_nano == 60 * 10_000


async def test_what_status_lines_left_is_taken_in_once(
    service: LimitService, files: UsageImport, place: ConversationPlace, limits: LimitSnapshotRepository
) -> None:
    import_piece(files, an_answer("a", NOON_MS - HOUR_MS, ref="cf50"))
    status = ClaudeStatus(
        {
            "session_id": "cf50",
            "context_window": {"context_window_size": 1000, "current_usage": {"input_tokens": 600}},
            "rate_limits": {"five_hour": {"used_percentage": 7, "resets_at": (NOON_MS + HOUR_MS) // 1000}},
        }
    )
    leave_report(str(place.database.path), "cf50", status.report(NOON_MS - 1000))
    leave_report(str(place.database.path), "other", {"at_ms": NOON_MS + DAY_MS, "session_id": "cf50"})

    windows = {one.name: one for one in await service.windows()}

    assert windows[FIVE_HOUR].used_percent == 7
    assert await context_of(place, "cf50") == (600, 1000, NOON_MS - 1000)
    assert [one.seen_at_ms for one in await limits.latest()] == [NOON_MS - 1000]
    assert list(place.database.path.parent.glob("*-status/*")) == []


async def test_where_nothing_can_be_written_the_windows_can_be_read(
    service: LimitService, files: UsageImport, place: ConversationPlace
) -> None:
    import_piece(files, an_answer("a", NOON_MS - HOUR_MS))
    async with place.database.writing() as connection:
        await connection.exec_driver_sql(
            "CREATE TRIGGER full BEFORE UPDATE ON sessions BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
    leave_report(
        str(place.database.path),
        "s",
        ClaudeStatus({"session_id": "s", "context_window": {"current_usage": {"input_tokens": 600}}}).report(NOON_MS),
    )

    assert [one.name for one in await service.windows()] == [FIVE_HOUR, SEVEN_DAY]


async def test_the_history_of_a_window_is_kept(service: LimitService, limits: LimitSnapshotRepository) -> None:
    later = replace(SAID, used_percent=50.0, captured_at_ms=SAID.captured_at_ms + 1)
    await limits.record("claude", limits=[SAID, later], source=LimitSource.STATUSLINE, at=NOON + timedelta(1))

    found = await service.history(FIVE_HOUR, since_ms=NOON_MS - HOUR_MS)

    assert [one.used_percent for one in found] == [40.0, 50.0]
