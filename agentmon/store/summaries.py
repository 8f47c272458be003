"""Summaries by day and by project, read from the kept sums and counts alone."""

from __future__ import annotations

from calendar import monthrange
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentmon.domain.operations import OperationType
from agentmon.domain.summaries import (
    MOST_MODELS,
    Activity,
    DailySummary,
    ModelCost,
    OperationCount,
    ProjectSummary,
    Spending,
    SummaryPeriod,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.store.database import Database

_NAMES: Final[Mapping[SummaryPeriod, str]] = {
    SummaryPeriod.DAY: "u.day_local",
    SummaryPeriod.WEEK: "date(u.day_local, 'weekday 0', '-6 days')",
    SummaryPeriod.MONTH: "substr(u.day_local, 1, 7)",
}
_TOKENS: Final = (
    "prompt_tokens",
    "cache_read_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
    "response_tokens",
)
_SPENT: Final = (
    f"sum(u.answers) AS answers, sum({' + '.join(f'u.{name}' for name in _TOKENS)}) AS tokens, "
    "sum(u.cost_nano) AS cost_nano, sum(u.unpriced_answers) AS unpriced_answers"
)
_DONE: Final = (
    "sum(u.operations) AS operations, sum(u.successes) AS successes, sum(u.failures) AS failures, "
    "sum(u.blocked) AS blocked"
)
_OF_SESSIONS: Final = "session_usage u JOIN sessions s ON s.id = u.session_id"
_IN_SPAN: Final = "u.day_local BETWEEN ? AND ?"
_IN_MONTHS: Final = "u.month_local BETWEEN ? AND ?"
_FIRST_DAY: Final = date.min.isoformat()
_LAST_DAY: Final = date.max.isoformat()


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySpan:
    """The first and the last day of a time, ``2026-03-01``; None is without a limit."""

    since_day: str | None = None
    until_day: str | None = None

    @property
    def days(self) -> tuple[str, str]:
        """Both days; rows without a day lie outside of them."""
        return self.since_day or _FIRST_DAY, self.until_day or _LAST_DAY

    @property
    def has_whole_months(self) -> bool:
        """Whether it begins and ends with a month."""
        since, until = (date.fromisoformat(day) for day in self.days)
        return since.day == 1 and until.day == monthrange(until.year, until.month)[1]


class _Spent(NamedTuple):
    """The columns of ``_SPENT``."""

    answers: int = 0
    tokens: int = 0
    cost_nano: int = 0
    unpriced_answers: int = 0

    @property
    def known_cost_nano(self) -> int | None:
        return None if self.answers and self.answers == self.unpriced_answers else self.cost_nano


@dataclass(slots=True)
class _Project:
    """What is known of a project and a time while its summary is put together."""

    models: list[tuple[str, _Spent]] = field(default_factory=list)
    operations: list[tuple[int, str]] = field(default_factory=list)
    users: set[str] = field(default_factory=set)


class SummaryRepository:
    """Reads summaries; a year takes milliseconds, however many answers and tool calls it has."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def daily(self, period: SummaryPeriod, span: DaySpan) -> tuple[DailySummary, ...]:
        """Return the summaries by day, week or month, and by user; the oldest first, none for a time without anything.

        An answer belongs to the user of its session.
        """
        name = _NAMES[period]
        async with self._database.reading() as connection:
            users = await _users(connection)
            if len(users) > 1:
                spent = f"SELECT {name}, s.user_id, {_SPENT} FROM {_OF_SESSIONS} WHERE {_IN_SPAN} GROUP BY 1, 2"
            else:
                spent = (
                    f"SELECT {name}, (SELECT id FROM users), {_SPENT} FROM daily_model_usage u WHERE {_IN_SPAN} "
                    "GROUP BY 1, 2"
                )
            answers = await _rows(connection, spent, span.days)
            counted = await _rows(connection, _counts(name, "1, 2"), span.days * 2)
        spending = {(day, user_id): _spending(_Spent(*spent)) for day, user_id, *spent in answers}
        activity = {(day, user_id): _activity(counts) for day, user_id, *counts in counted}
        return tuple(
            DailySummary(
                date=day,
                user_id=user_id,
                user=users.get(user_id, ""),
                activity=activity.get((day, user_id), Activity()),
                spending=spending.get((day, user_id), Spending()),
            )
            for day, user_id in sorted({*spending, *activity}, key=lambda key: (key[0], users.get(key[1], ""), key[1]))
        )

    async def projects(self, period: SummaryPeriod, span: DaySpan, *, project: str = "") -> tuple[ProjectSummary, ...]:
        """Return the summaries of projects by day, week or month: by time the oldest first, then the dearest first.

        Args:
            period: How much time each is about.
            span: Which days count.
            project: The path of one, which stands for those below it too; empty for all.
        """
        name, (within, below) = _NAMES[period], _within(project)
        where, parameters = f"{_IN_SPAN}{within}", (*span.days, *below)
        begun_or_called = " UNION ".join(
            f"SELECT {name}, u.project, u.user_id FROM {counts} u WHERE {where} GROUP BY 1, 2, 3"
            for counts in ("daily_sessions", "daily_operations")
        )
        called = (
            f"SELECT {name}, u.project, u.type, sum(u.operations) "
            f"FROM daily_operations u WHERE {where} GROUP BY 1, 2, 3"
        )
        answered = f"SELECT {name}, u.project, s.user_id FROM {_OF_SESSIONS} WHERE {where} GROUP BY 1, 2, 3"
        found: defaultdict[tuple[str, str], _Project] = defaultdict(_Project)
        async with self._database.reading() as connection:
            users = await _users(connection)
            for day, path, model, *spent in await _rows(connection, *_spent_query(period, span, within, below)):
                found[day, path].models.append((model, _Spent(*spent)))
            for day, path, kind, count in await _rows(connection, called, parameters):
                found[day, path].operations.append((count, kind))
            active, times = (f"{begun_or_called} UNION {answered}", 3) if len(users) > 1 else (begun_or_called, 2)
            for day, path, user_id in await _rows(connection, active, parameters * times):
                found[day, path].users.add(user_id)
        if len(users) == 1:
            for one in found.values():
                one.users.update(users)
        summaries = [_project_summary(path, period, day, one) for (day, path), one in found.items()]
        summaries.sort(key=lambda one: (one.date, -one.spending.cost_nano, -one.spending.total_tokens, one.workspace))
        return tuple(summaries)

    async def activity(self, span: DaySpan, *, agent_slug: str = "", project: str = "") -> Activity:
        """Return how much was done in a time, by one agent or all, in a project with those below it or in all."""
        within, below = _within(project)
        parameters = (*span.days, *below)
        if agent_slug:
            within += " AND u.agent_id = (SELECT id FROM agents WHERE slug = ?)"
            parameters = (*parameters, agent_slug)
        async with self._database.reading() as connection:
            counted = _counts("''", "1", within=within, user="''")
            rows = await _rows(connection, counted, parameters * 2)
        return _activity(rows[0][2:]) if rows else Activity()


async def _rows(connection: AsyncConnection, statement: str, parameters: tuple[object, ...]) -> Sequence[Sequence[Any]]:
    return (await connection.exec_driver_sql(statement, parameters)).all()


def _spent_query(
    period: SummaryPeriod, span: DaySpan, within: str, below: tuple[object, ...]
) -> tuple[str, tuple[object, ...]]:
    """Return what reads the sums by name, project and model, from those of whole months where these tell enough."""
    if period is SummaryPeriod.MONTH and span.has_whole_months:
        name, sums, where, days = "u.month_local", "monthly_usage", _IN_MONTHS, tuple(day[:7] for day in span.days)
    else:
        name, sums, where, days = _NAMES[period], "daily_usage", _IN_SPAN, span.days
    return (
        f"SELECT {name}, u.project, u.model, {_SPENT} FROM {sums} u WHERE {where}{within} GROUP BY 1, 2, 3",
        (*days, *below),
    )


def _counts(name: str, groups: str, *, within: str = "", user: str = "u.user_id") -> str:
    """Return what reads sessions and tool calls by name and user; takes its parameters twice."""
    where = f"{_IN_SPAN}{within}"
    return (
        "SELECT name, user_id, sum(sessions) AS sessions, sum(operations) AS operations, sum(successes) AS successes, "
        "sum(failures) AS failures, sum(blocked) AS blocked FROM ("
        f"SELECT {name} AS name, {user} AS user_id, sum(u.sessions) AS sessions, 0 AS operations, 0 AS successes, "
        f"0 AS failures, 0 AS blocked FROM daily_sessions u WHERE {where} GROUP BY {groups} UNION ALL "
        f"SELECT {name}, {user}, 0, {_DONE} FROM daily_operations u WHERE {where} GROUP BY {groups}"
        ") GROUP BY name, user_id"
    )


async def _users(connection: AsyncConnection) -> dict[str, str]:
    """Return the names of all users by their ids."""
    return {row.id: row.name for row in await connection.exec_driver_sql("SELECT id, name FROM users")}


def _within(project: str) -> tuple[str, tuple[object, ...]]:
    if not project:
        return "", ()
    below = project.rstrip("/") + "/"
    return " AND (u.project = ? OR substr(u.project, 1, ?) = ?)", (project, len(below), below)


def _spending(spent: _Spent) -> Spending:
    return Spending(
        answers=spent.answers,
        total_tokens=spent.tokens,
        cost_nano=spent.cost_nano,
        unpriced_answers=spent.unpriced_answers,
    )


def _activity(counts: Sequence[int]) -> Activity:
    """Return the counts that ``_counts`` reads, in its order."""
    sessions, operations, successes, failures, blocked = counts
    return Activity(
        session_count=sessions,
        operation_count=operations,
        successful_operations=successes,
        failed_operations=failures,
        blocked_operations=blocked,
    )


def _project_summary(path: str, period: SummaryPeriod, day: str, one: _Project) -> ProjectSummary:
    def rank(model: tuple[str, _Spent]) -> tuple[bool, int, int, str]:
        name, spent = model
        return spent.known_cost_nano is None, -spent.cost_nano, -spent.tokens, name

    total = _Spent(*map(sum, zip(*(spent for _, spent in one.models), strict=True)))
    return ProjectSummary(
        workspace=path,
        period=period,
        date=day,
        active_users=len(one.users),
        spending=_spending(total),
        top_models=tuple(
            ModelCost(model=name, cost_nano=spent.known_cost_nano)
            for name, spent in sorted(one.models, key=rank)[:MOST_MODELS]
        ),
        top_operations=tuple(
            OperationCount(type=OperationType(kind), count=count)
            for count, kind in sorted(one.operations, key=lambda operation: (-operation[0], operation[1]))
        ),
    )
