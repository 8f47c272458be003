"""Sessions and tool calls that come live, from files and in any zone: their days and counts are those of their rows."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

import pytest

from agentmon.domain.billing import HistorySession
from agentmon.domain.clock import FakeClock
from agentmon.domain.conversation import SessionNews, ToolFinishedNews, ToolStartedNews
from agentmon.domain.costs import FileCursor
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.operations import OperationStatus, OperationType
from agentmon.store.usage_days import UsageDayRepository
from agentmon.store.usage_import import FilePiece, UsageImport
from tests.seeds import seeds
from tests.store.conversation_place import NOON_MS, an_ending, opened_place
from tests.store.queue_place import NOON
from tests.store.recounts import counted_anew, kept_counts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from agentmon.domain.conversation import ConversationNews
    from tests.store.conversation_place import ConversationPlace

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
_ZONES: Final = ("UTC", "Asia/Kathmandu", "America/St_Johns", "Pacific/Kiritimati", "Europe/Berlin")
_REFS: Final = ("one", "two", "three")
_FOLDERS: Final = (("/w", "/w"), ("/repo/sub", "/repo"), ("/worktree", "/repo"), ("/else", ""))


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ConversationPlace]:
    async with opened_place(tmp_path) as opened:
        yield opened


@pytest.fixture
def files(place: ConversationPlace) -> Iterator[UsageImport]:
    store = UsageImport(place.database.path, zone_name="UTC", clock=FakeClock(NOON))
    yield store
    store.close()


def tell_of_sessions(store: UsageImport, *sessions: HistorySession, path: str = "/a.jsonl") -> None:
    """Let a file of Claude's tell of these conversations, behind what it told before."""
    before = store.cursors().get(path)
    after = FileCursor(
        agent_slug="claude",
        path=path,
        thread_key=path,
        inode=1,
        size_bytes=100,
        mtime_ns=1,
        read_offset=(0 if before is None else before.read_offset) + 100,
        head_hash="",
        parser_version=1,
    )
    assert store.write(FilePiece(before=before, after=after, answers=[], sessions=sessions))


def check(place: ConversationPlace, zone_name: str) -> None:
    """Compare every day with that of its row's own time, and every count with its rows."""
    zone = ZoneInfo(zone_name)
    for table in ("sessions", "operations"):
        for row in place.rows(f"SELECT started_at, day_local FROM {table}"):
            right = datetime.fromisoformat(str(row["started_at"])).astimezone(zone).date().isoformat()
            assert row["day_local"] == right, table
    with closing(sqlite3.connect(place.database.path)) as connection:
        assert kept_counts(connection) == counted_anew(connection)


def a_call(ref: str, *, type_: OperationType = OperationType.READ) -> ToolStartedNews:
    return ToolStartedNews(tool_ref=ref, tool_name="Read", type=type_, target="/w/a")


@pytest.mark.parametrize("seed", seeds(6))
async def test_any_sequence_keeps_days_and_counts(place: ConversationPlace, files: UsageImport, seed: int) -> None:
    dice = random.Random(seed)
    zone_name = "UTC"
    days = UsageDayRepository(place.database)
    await days.move_to(zone_name, at=NOON)
    live = [(await place.begin()).id for _ in range(2)]

    def some_news() -> ConversationNews:
        ref = str(dice.randrange(6))
        match dice.randrange(4):
            case 0:
                return SessionNews(session_ref=dice.choice(_REFS))
            case 1:
                return ToolFinishedNews(tool_ref=ref, status=dice.choice(list(OperationStatus)))
            case _:
                return a_call(ref, type_=dice.choice(list(OperationType)))

    for _ in range(40):
        at_ms = NOON_MS + dice.randrange(-3 * _DAY_MS, 3 * _DAY_MS)
        match dice.randrange(8):
            case 0 | 1 | 2 | 3 if live:
                news = [some_news() for _ in range(dice.randrange(1, 6))]
                await place.tell(dice.choice(live), *news, at_ms=at_ms)
            case 4 | 5:
                cwd, project = dice.choice(_FOLDERS)
                told = HistorySession(
                    session_ref=dice.choice(_REFS),
                    cwd=cwd,
                    project=project,
                    first_at_ms=at_ms,
                    last_at_ms=at_ms + _HOUR_MS,
                )
                tell_of_sessions(files, told)
            case 6:
                files.adopt_conversations()
            case _:
                zone_name = dice.choice(_ZONES)
                await days.move_to(zone_name, at=NOON)
        check(place, zone_name)
    for execution_id in live:
        await place.tell(execution_id, ending=an_ending(ExecutionStatus.FAILED))
    check(place, zone_name)

    assert place.rows("SELECT sum(sessions) AS n FROM daily_sessions")[0]["n"] != 0
    assert place.rows("SELECT sum(operations) AS n FROM daily_operations")[0]["n"] != 0


async def test_a_session_and_its_calls_are_put_under_the_repository_and_their_days(place: ConversationPlace) -> None:
    await UsageDayRepository(place.database).move_to("Pacific/Kiritimati", at=NOON)
    execution = await place.begin()
    late_ms = NOON_MS + 23 * _HOUR_MS

    await place.tell(execution.id, a_call("1"), ToolFinishedNews(tool_ref="1", status=OperationStatus.SUCCESS))
    await place.tell(execution.id, a_call("2"), ToolFinishedNews(tool_ref="2", status=OperationStatus.BLOCKED))
    await place.tell(execution.id, a_call("3"), at_ms=late_ms)

    assert [tuple(row.values()) for row in place.rows("SELECT day_local, project, sessions FROM daily_sessions")] == [
        ("2026-01-02", "/w", 1)
    ]
    counted = place.rows("SELECT day_local, project, operations, successes, failures, blocked FROM daily_operations")
    assert [tuple(row.values()) for row in counted] == [
        ("2026-01-02", "/w", 2, 1, 0, 1),
        ("2026-01-03", "/w", 1, 0, 0, 0),
    ]


async def test_history_that_turns_out_to_begin_earlier_moves_its_session(
    place: ConversationPlace, files: UsageImport
) -> None:
    later = HistorySession(session_ref="one", cwd="/repo/sub", project="/repo", first_at_ms=NOON_MS)
    earlier = HistorySession(session_ref="one", cwd="/else", project="/else", first_at_ms=NOON_MS - 2 * _DAY_MS)

    tell_of_sessions(files, later)
    before = place.rows("SELECT day_local, project, sessions FROM daily_sessions")
    tell_of_sessions(files, earlier)
    after = place.rows("SELECT day_local, project, sessions FROM daily_sessions")

    assert [tuple(row.values()) for row in before] == [("2026-01-01", "/repo", 1)]
    assert [tuple(row.values()) for row in after] == [("2025-12-30", "/else", 1)]


async def test_a_session_of_history_that_ran_here_counts_once(place: ConversationPlace, files: UsageImport) -> None:
    tell_of_sessions(files, HistorySession(session_ref="one", cwd="/w", project="/w", first_at_ms=NOON_MS))
    execution = await place.begin()
    await place.tell(execution.id, SessionNews(session_ref="one"), a_call("1"))

    assert files.adopt_conversations() == 1

    assert place.rows("SELECT sessions FROM daily_sessions") == [{"sessions": 1}]
    check(place, "UTC")


@pytest.mark.parametrize(
    ("at", "day"),
    [
        ("2026-03-29T00:59:59.999+00:00", "2026-03-29"),
        ("2026-03-28T22:59:59.999+00:00", "2026-03-28"),
        ("2026-03-28T23:00:00.000+00:00", "2026-03-29"),
        ("2026-03-29T21:59:59.999+00:00", "2026-03-29"),
        ("2026-03-29T22:00:00.000+00:00", "2026-03-30"),
        ("2026-10-25T22:59:59.999+00:00", "2026-10-25"),
        ("2026-10-25T23:00:00.000+00:00", "2026-10-26"),
    ],
)
async def test_days_that_are_23_or_25_hours_long_have_all_their_calls(
    place: ConversationPlace, at: str, day: str
) -> None:
    await UsageDayRepository(place.database).move_to("Europe/Berlin", at=NOON)
    execution = await place.begin()

    await place.tell(execution.id, a_call("1"), at_ms=round(datetime.fromisoformat(at).timestamp() * 1000))

    assert place.rows("SELECT day_local, operations FROM daily_operations") == [{"day_local": day, "operations": 1}]
