"""Summaries that are read from kept sums say what their rows say, for one user and for several."""

from __future__ import annotations

import random
import sqlite3
from collections import defaultdict
from contextlib import asynccontextmanager, closing
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from agentmon.domain.agents import ToolType
from agentmon.domain.clock import FakeClock
from agentmon.domain.conversation import ToolFinishedNews, ToolStartedNews
from agentmon.domain.ids import LOCAL_USER_ID
from agentmon.domain.operations import OperationStatus, OperationType
from agentmon.domain.summaries import MOST_MODELS, SummaryPeriod
from agentmon.store.summaries import DaySpan, SummaryRepository
from agentmon.store.usage_import import UsageImport
from tests.seeds import seeds
from tests.store.conversation_place import NOON_MS, ConversationPlace
from tests.store.queue_place import NOON, an_agent, opened_queue
from tests.store.random_usage import RandomUsage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from agentmon.domain.conversation import ConversationNews

Row = dict[str, Any]

BOB: Final = "bob"
_SPANS: Final = (
    DaySpan(),
    DaySpan(since_day="2026-01-02"),
    DaySpan(since_day="2026-01-02", until_day="2026-02-10"),
    DaySpan(since_day="2026-01-01", until_day="2026-02-28"),
    DaySpan(until_day="2026-01-31"),
)
_DAY_MS: Final = 86_400_000


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ConversationPlace]:
    async with _opened(tmp_path) as opened:
        yield opened


@pytest.fixture
def files(place: ConversationPlace) -> Iterator[UsageImport]:
    with closing(UsageImport(place.database.path, zone_name="UTC", clock=FakeClock(NOON))) as store:
        yield store


@asynccontextmanager
async def _opened(folder: Path) -> AsyncIterator[ConversationPlace]:
    agents = [an_agent(slug, max_concurrent=0, tool_type=ToolType.AI_AGENT) for slug in ("claude", "codex")]
    async with opened_queue(folder / "a.db", agents, {"w": 0, "v": 0}) as queue:
        yield ConversationPlace(queue=queue)


@pytest.mark.parametrize("users", [1, pytest.param(2, marks=pytest.mark.proof)])
@pytest.mark.parametrize("seed", seeds(4))
async def test_every_summary_is_a_recount_of_its_rows(
    place: ConversationPlace, files: UsageImport, seed: int, users: int
) -> None:
    chance = random.Random(seed)
    usage = RandomUsage(place, files, chance)
    runs = [(await place.begin()).id for _ in range(2)]
    for _ in range(40):
        await usage.change()
        at_ms = NOON_MS + chance.randrange(-_DAY_MS, 60 * _DAY_MS)
        await place.tell(chance.choice(runs), *_calls(chance), at_ms=at_ms)
    if users > 1:
        _share_with_bob(place)
    summaries = SummaryRepository(place.database)

    for period in SummaryPeriod:
        for span in _SPANS:
            daily = [(one.date, one.user_id, one.activity, one.spending) for one in await summaries.daily(period, span)]
            assert [_daily_facts(*one) for one in daily] == _recounted_days(place, period, span), (period, span)
            for project in ("", "/w"):
                projects = await summaries.projects(period, span, project=project)
                assert [
                    (
                        *(one.date, one.workspace, one.active_users, one.spending.total_cost_nano),
                        *(one.spending.unpriced_answers, [(model.model, model.cost_nano) for model in one.top_models]),
                        {kind.type: kind.count for kind in one.top_operations},
                    )
                    for one in projects
                ] == _recounted_projects(place, period, span, project), (period, span, project)


async def test_counts_can_be_had_of_one_agent_or_project(place: ConversationPlace) -> None:
    run = (await place.begin()).id
    await place.tell(run, *_call("1", OperationStatus.SUCCESS), *_call("2", OperationStatus.BLOCKED))
    summaries = SummaryRepository(place.database)

    everything = await summaries.activity(DaySpan())
    of_claude = await summaries.activity(DaySpan(since_day="2026-01-01"), agent_slug="claude", project="/w")

    assert everything == of_claude
    assert (everything.session_count, everything.operation_count, everything.blocked_operations) == (1, 2, 1)
    for other in (
        await summaries.activity(DaySpan(), agent_slug="codex"),
        await summaries.activity(DaySpan(), project="/w/sub"),
        await summaries.activity(DaySpan(until_day="2025-12-31")),
    ):
        assert (other.session_count, other.operation_count, other.success_rate) == (0, 0, None)


async def test_a_user_without_anything_is_in_no_summary(place: ConversationPlace) -> None:
    await place.begin()
    _add_bob(place)

    summaries = await SummaryRepository(place.database).daily(SummaryPeriod.DAY, DaySpan())

    assert [(one.date, one.user) for one in summaries] == [("2026-01-01", "local")]


async def test_no_summary_reads_answers_calls_or_whole_tables_of_them(place: ConversationPlace) -> None:
    read: list[str] = []
    summaries = SummaryRepository(place.database)
    await place.begin()
    async with place.database.reading() as connection:
        raw = (await connection.get_raw_connection()).driver_connection
        assert raw is not None
        await raw.set_trace_callback(read.append)

    for period in SummaryPeriod:
        await summaries.daily(period, DaySpan())
        await summaries.projects(period, DaySpan())
    await summaries.activity(DaySpan())

    statements = [statement for statement in read if "SELECT" in statement]
    assert len(statements) >= 10
    for table in ("llm_interactions", "FROM operations", "FROM sessions", "FROM messages"):
        assert not [statement for statement in statements if table in statement], table


def _call(ref: str, status: OperationStatus, type_: OperationType = OperationType.READ) -> tuple[ConversationNews, ...]:
    return (
        ToolStartedNews(tool_ref=ref, tool_name="Tool", type=type_, target="x"),
        ToolFinishedNews(tool_ref=ref, status=status),
    )


def _calls(chance: random.Random) -> list[ConversationNews]:
    return [
        news
        for _ in range(chance.randrange(3))
        for news in _call(
            str(chance.randrange(10**6)), chance.choice(list(OperationStatus)), chance.choice(list(OperationType))
        )
    ]


def _add_bob(place: ConversationPlace) -> None:
    with closing(sqlite3.connect(place.database.path)) as connection, connection:
        connection.execute(
            "INSERT INTO users (id, name, created_at, updated_at) SELECT ?, 'Bob', created_at, updated_at FROM users",
            (BOB,),
        )


def _share_with_bob(place: ConversationPlace) -> None:
    """Give every other session to another user."""
    _add_bob(place)
    with closing(sqlite3.connect(place.database.path)) as connection, connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM sessions ORDER BY created_at, id")]
        connection.executemany("UPDATE sessions SET user_id = ? WHERE id = ?", [(BOB, one) for one in ids[::2]])


def _name_of(period: SummaryPeriod) -> Callable[[str], str]:
    def name(day: str) -> str:
        if period is SummaryPeriod.MONTH:
            return day[:7]
        found = date.fromisoformat(day)
        return (found - timedelta(days=found.weekday())).isoformat() if period is SummaryPeriod.WEEK else day

    return name


def _rows(place: ConversationPlace, table: str, span: DaySpan) -> list[Row]:
    """Return rows with their days within the span, and the user and project of their session."""
    join = "" if table == "sessions" else "JOIN sessions s ON s.id = t.session_id"
    whose = (
        "t.user_id AS whose, t.project AS place" if table == "sessions" else "s.user_id AS whose, s.project AS place"
    )
    first, last = span.days
    return [
        row
        for row in place.rows(f"SELECT t.*, {whose} FROM {table} t {join}")
        if first <= str(row["day_local"]) <= last
    ]


def _tokens(row: Row) -> int:
    names = ("prompt_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens", "response_tokens")
    return sum(row[name] for name in names)


def _cost(answers: list[Row]) -> int | None:
    known = [row["cost_nano"] for row in answers if row["cost_nano"] is not None]
    return sum(known) if known or not answers else None


def _daily_facts(day: str, user_id: str, activity: Any, spending: Any) -> tuple[Any, ...]:
    return (
        *(day, user_id, activity.session_count, activity.operation_count, activity.blocked_operations),
        *(activity.success_rate, spending.total_tokens, spending.total_cost_nano, spending.unpriced_answers),
    )


def _recounted_days(place: ConversationPlace, period: SummaryPeriod, span: DaySpan) -> list[tuple[Any, ...]]:
    name = _name_of(period)
    found: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for table in ("sessions", "operations", "llm_interactions"):
        for row in _rows(place, table, span):
            found[name(row["day_local"]), row["whose"]][table].append(row)
    days = []
    for (day, user_id), rows in found.items():
        ends = [row["status"] for row in rows["operations"]]
        won, lost = ends.count("success"), ends.count("failed")
        answers = rows["llm_interactions"]
        days.append(
            (
                *(day, user_id, len(rows["sessions"]), len(ends), ends.count("blocked")),
                *(won / (won + lost) if won + lost else None, sum(map(_tokens, answers)), _cost(answers)),
                sum(row["cost_nano"] is None for row in answers),
            )
        )
    names = {LOCAL_USER_ID: "local", BOB: "Bob"}
    return sorted(days, key=lambda one: (one[0], names[one[1]]))


def _recounted_projects(
    place: ConversationPlace, period: SummaryPeriod, span: DaySpan, project: str
) -> list[tuple[Any, ...]]:
    name = _name_of(period)
    answers: dict[tuple[str, str], list[Row]] = defaultdict(list)
    users: dict[tuple[str, str], set[str]] = defaultdict(set)
    calls: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for table in ("sessions", "operations", "llm_interactions"):
        for row in _rows(place, table, span):
            path = row["project"] if table == "llm_interactions" else row["place"]
            if project and path != project and not path.startswith(project + "/"):
                continue
            key = (name(row["day_local"]), path)
            users[key].add(row["whose"])
            if table == "llm_interactions":
                answers[key].append(row)
            elif table == "operations":
                calls[key][row["type"]] += 1
    found = []
    for key, who in users.items():
        models: dict[str, list[Row]] = defaultdict(list)
        for row in answers[key]:
            models[row["model"]].append(row)
        dearest = sorted(
            ((model, _cost(own), sum(map(_tokens, own))) for model, own in models.items()),
            key=lambda one: (one[1] is None, -(one[1] or 0), -one[2], one[0]),
        )
        unpriced = sum(row["cost_nano"] is None for row in answers[key])
        order = (key[0], -(_cost(answers[key]) or 0), -sum(map(_tokens, answers[key])), key[1])
        top = [(model, cost) for model, cost, _ in dearest[:MOST_MODELS]]
        found.append((order, (*key, len(who), _cost(answers[key]), unpriced, top, dict(calls[key]))))
    return [facts for _, facts in sorted(found, key=lambda one: one[0])]
