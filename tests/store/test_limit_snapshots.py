from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.clock import FakeClock
from agentmon.domain.limit_readings import FIVE_HOUR, ContextReading, LimitReading, LimitSource
from agentmon.store import limit_snapshots
from agentmon.store.limit_snapshots import LimitSnapshotRepository
from agentmon.store.usage_import import UsageImport
from tests.store.conversation_place import NOON_MS, opened_place
from tests.store.limit_place import an_answer, context_of, import_piece
from tests.store.queue_place import NOON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from agentmon.domain.limit_readings import LimitSnapshot
    from tests.store.conversation_place import ConversationPlace

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
SAID = LimitReading(
    account="codex",
    window=FIVE_HOUR,
    window_minutes=300,
    used_percent=12.5,
    resets_at_ms=NOON_MS + 3 * HOUR_MS,
    captured_at_ms=NOON_MS,
)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ConversationPlace]:
    async with opened_place(tmp_path) as opened:
        yield opened


@pytest.fixture
def limits(place: ConversationPlace) -> LimitSnapshotRepository:
    return LimitSnapshotRepository(place.database)


@pytest.fixture
def files(place: ConversationPlace) -> Iterator[UsageImport]:
    store = UsageImport(place.database.path, zone_name="UTC", clock=FakeClock(NOON))
    yield store
    store.close()


async def say(limits: LimitSnapshotRepository, *readings: LimitReading) -> tuple[LimitSnapshot, ...]:
    """Record them one after the other and return the whole history."""
    for reading in readings:
        await limits.record("claude", limits=[reading], source=LimitSource.STATUSLINE, at=NOON)
    return await limits.history(FIVE_HOUR, 0)


def later(minutes: float, used_percent: float = 12.5) -> LimitReading:
    return replace(SAID, captured_at_ms=NOON_MS + round(minutes * MINUTE_MS), used_percent=used_percent)


async def test_what_is_said_is_kept(limits: LimitSnapshotRepository) -> None:
    await say(limits, SAID)

    (snapshot,) = await limits.latest()

    assert (snapshot.agent_slug, snapshot.account, snapshot.window) == ("claude", "codex", FIVE_HOUR)
    assert (snapshot.used_percent, snapshot.resets_at_ms) == (12.5, SAID.resets_at_ms)
    assert (snapshot.captured_at_ms, snapshot.seen_at_ms) == (NOON_MS, NOON_MS)
    assert snapshot.source is LimitSource.STATUSLINE


async def test_the_same_again_is_only_seen_again(limits: LimitSnapshotRepository) -> None:
    wavering = replace(later(5), resets_at_ms=NOON_MS + 3 * HOUR_MS + 900)

    (snapshot,) = await say(limits, SAID, later(2), wavering)

    assert (snapshot.captured_at_ms, snapshot.seen_at_ms) == (NOON_MS, NOON_MS + 5 * MINUTE_MS)


async def test_the_same_within_a_minute_writes_nothing(
    limits: LimitSnapshotRepository, place: ConversationPlace
) -> None:
    await say(limits, SAID)
    version = place.database.data_version()

    await say(limits, later(0.5))

    assert place.database.data_version() == version


async def test_another_value_is_another_line_of_the_history(limits: LimitSnapshotRepository) -> None:
    history = await say(limits, SAID, later(1, 13.0), later(2, 12.5))

    assert [one.used_percent for one in history] == [12.5, 13.0, 12.5]
    assert [one.used_percent for one in await limits.latest()] == [12.5]


async def test_what_is_older_than_the_newest_changes_nothing(limits: LimitSnapshotRepository) -> None:
    history = await say(limits, SAID, later(2), later(1, 50.0), later(-3, 60.0))

    assert [one.used_percent for one in history] == [12.5]


async def test_what_was_said_in_the_future_is_damage(limits: LimitSnapshotRepository) -> None:
    history = await say(limits, later(61, 90.0), SAID)

    assert [one.used_percent for one in history] == [12.5]


async def test_windows_and_accounts_are_apart(limits: LimitSnapshotRepository) -> None:
    week = replace(SAID, window="seven_day", window_minutes=10_080)
    other = replace(SAID, account="codex_other", used_percent=90.0)

    await say(limits, SAID, week, other)

    assert [(one.account, one.window) for one in await limits.latest()] == [
        ("codex", FIVE_HOUR),
        ("codex", "seven_day"),
        ("codex_other", FIVE_HOUR),
    ]


async def test_what_an_agent_says_that_is_not_there_is_dropped(limits: LimitSnapshotRepository) -> None:
    await limits.record("nobody", limits=[SAID], source=LimitSource.STATUSLINE, at=NOON)

    assert await limits.latest() == ()


async def test_a_file_tells_windows_with_its_answers(limits: LimitSnapshotRepository, files: UsageImport) -> None:
    import_piece(files, limits=(SAID,))

    (snapshot,) = await limits.latest()
    assert snapshot.source is LimitSource.TRANSCRIPT


async def test_a_context_is_written_into_its_session(place: ConversationPlace, files: UsageImport) -> None:
    import_piece(files, contexts=(ContextReading(session_ref="s", tokens=500, limit_tokens=1000, at_ms=NOON_MS),))

    assert await context_of(place, "s") == (500, 1000, NOON_MS)


async def test_an_older_word_on_a_context_changes_nothing_and_an_unknown_limit_leaves_the_known_one(
    place: ConversationPlace, files: UsageImport, limits: LimitSnapshotRepository
) -> None:
    import_piece(files, contexts=(ContextReading(session_ref="s", tokens=500, limit_tokens=1000, at_ms=NOON_MS),))
    older = ContextReading(session_ref="s", tokens=7, limit_tokens=8, at_ms=NOON_MS - 1)
    newer = ContextReading(session_ref="s", tokens=600, limit_tokens=None, at_ms=NOON_MS + 1)

    await limits.record("claude", contexts=[older, newer], source=LimitSource.STATUSLINE, at=NOON)

    assert await context_of(place, "s") == (600, 1000, NOON_MS + 1)


async def test_answers_are_summed_up_by_minute_and_by_quarter_of_an_hour(
    limits: LimitSnapshotRepository, files: UsageImport
) -> None:
    import_piece(
        files,
        an_answer("a", NOON_MS + 1000),
        an_answer("b", NOON_MS + 59_000),
        an_answer("c", NOON_MS + 60_000),
        an_answer("d", NOON_MS + 16 * MINUTE_MS),
        an_answer("old", NOON_MS - HOUR_MS),
        an_answer("to come", NOON_MS + 5 * HOUR_MS),
    )

    minutes = await limits.minutes(NOON_MS, NOON_MS + HOUR_MS)
    slices = await limits.slices(NOON_MS, NOON_MS + HOUR_MS)

    assert sorted((one.begun_at_ms - NOON_MS, one.tokens, one.cost_nano) for one in minutes) == [
        (0, 20, 20_000),
        (60_000, 10, 10_000),
        (16 * MINUTE_MS, 10, 10_000),
    ]
    assert [(one.first_at_ms - NOON_MS, one.last_at_ms - NOON_MS, one.sums.answers) for one in slices["claude"]] == [
        (1000, 60_000, 3),
        (16 * MINUTE_MS, 16 * MINUTE_MS, 1),
    ]


async def test_what_was_spent_is_known_by_moments_and_by_days(
    limits: LimitSnapshotRepository, files: UsageImport
) -> None:
    import_piece(files, an_answer("a", NOON_MS), an_answer("b", NOON_MS + 24 * HOUR_MS))
    today, tomorrow = NOON.date().isoformat(), (NOON + timedelta(days=1)).date().isoformat()

    assert (await limits.spent("claude", NOON_MS, NOON_MS + 1)).answers == 1
    assert (await limits.spent("codex", NOON_MS, NOON_MS + 1)).answers == 0
    assert (await limits.spent_days("claude", today, tomorrow)).cost_nano == 20_000
    assert {day: one.cost_nano for day, one in (await limits.days(tomorrow, tomorrow)).items()} == {tomorrow: 10_000}


async def test_a_session_that_ran_here_takes_the_context_that_its_file_told(
    place: ConversationPlace, files: UsageImport
) -> None:
    told = ContextReading(session_ref="s", tokens=500, limit_tokens=1000, at_ms=NOON_MS)
    import_piece(files, contexts=(told,))
    async with place.database.writing() as connection:
        await connection.exec_driver_sql(
            "INSERT INTO sessions (id, user_id, agent_id, workspace, session_ref, status, started_at, created_at, "
            "updated_at) SELECT 'ran', user_id, agent_id, workspace, session_ref, status, started_at, created_at, "
            "updated_at FROM sessions WHERE session_ref = 's'"
        )

    assert files.adopt_conversations() == 1

    assert await context_of(place, "s") == (500, 1000, NOON_MS)


def test_what_is_asked_often_never_reads_all_answers(place: ConversationPlace) -> None:
    statements = (limit_snapshots._MINUTES, limit_snapshots._SLICES, limit_snapshots._SPENT)
    with closing(sqlite3.connect(place.database.path)) as connection:
        plans = [
            " ".join(str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {one}", [None] * one.count("?")))
            for one in statements
        ]

    assert all("llm_interactions_at_ms" in plan and "SCAN u" not in plan for plan in plans), plans
