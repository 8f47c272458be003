"""Summaries by day and by project, read from the kept sums and counts alone."""

from __future__ import annotations

from calendar import monthrange
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Final

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

    from sqlalchemy import RowMapping
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


@dataclass(slots=True)
class _Project:
    """What is known of a project and a time while its summary is put together."""

    models: dict[str, Spending] = field(default_factory=dict)
    operations: dict[OperationType, int] = field(default_factory=dict)
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
                spent = f"SELECT {name} AS name, s.user_id, {_SPENT} FROM {_OF_SESSIONS} WHERE {_IN_SPAN} GROUP BY 1, 2"
            else:
                spent = f"SELECT {name} AS name, {_SPENT} FROM daily_model_usage u WHERE {_IN_SPAN} GROUP BY 1"
            answers = await _rows(connection, spent, span.days)
            counted = await _rows(connection, _counts(name, "1, 2"), span.days * 2)
        only_user = next(iter(users), "")
        spending = {(row["name"], row.get("user_id", only_user)): _spending(row) for row in answers}
        activity = {(row["name"], row["user_id"]): _activity(row) for row in counted}
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
            f"SELECT {name} AS name, u.project, u.user_id FROM {counts} u WHERE {where} GROUP BY 1, 2, 3"
            for counts in ("daily_sessions", "daily_operations")
        )
        called = (
            f"SELECT {name} AS name, u.project, u.type, sum(u.operations) AS operations "
            f"FROM daily_operations u WHERE {where} GROUP BY 1, 2, 3"
        )
        answered = f"SELECT {name} AS name, u.project, s.user_id FROM {_OF_SESSIONS} WHERE {where} GROUP BY 1, 2, 3"
        found: defaultdict[tuple[str, str], _Project] = defaultdict(_Project)
        async with self._database.reading() as connection:
            users = await _users(connection)
            for row in await _rows(connection, *_spent_query(period, span, within, below)):
                one = found[row["name"], row["project"]]
                one.models[row["model"]] = _spending(row)
                if len(users) == 1:
                    one.users.update(users)
            for row in await _rows(connection, called, parameters):
                found[row["name"], row["project"]].operations[OperationType(row["type"])] = row["operations"]
            for row in await _rows(connection, begun_or_called, parameters * 2):
                found[row["name"], row["project"]].users.add(row["user_id"])
            if len(users) > 1:
                for row in await _rows(connection, answered, parameters):
                    found[row["name"], row["project"]].users.add(row["user_id"])
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
        return _activity(rows[0]) if rows else Activity()


async def _rows(connection: AsyncConnection, statement: str, parameters: tuple[object, ...]) -> Sequence[RowMapping]:
    return (await connection.exec_driver_sql(statement, parameters)).mappings().all()


def _spent_query(
    period: SummaryPeriod, span: DaySpan, within: str, below: tuple[object, ...]
) -> tuple[str, tuple[object, ...]]:
    """Return what reads the sums by name, project and model, from those of whole months where these tell enough."""
    if period is SummaryPeriod.MONTH and span.has_whole_months:
        name, sums, where, days = "u.month_local", "monthly_usage", _IN_MONTHS, tuple(day[:7] for day in span.days)
    else:
        name, sums, where, days = _NAMES[period], "daily_usage", _IN_SPAN, span.days
    return (
        f"SELECT {name} AS name, u.project, u.model, {_SPENT} FROM {sums} u WHERE {where}{within} GROUP BY 1, 2, 3",
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


def _spending(row: RowMapping) -> Spending:
    return Spending(
        answers=row["answers"],
        total_tokens=row["tokens"],
        cost_nano=row["cost_nano"],
        unpriced_answers=row["unpriced_answers"],
    )


def _activity(row: RowMapping) -> Activity:
    return Activity(
        session_count=row["sessions"],
        operation_count=row["operations"],
        successful_operations=row["successes"],
        failed_operations=row["failures"],
        blocked_operations=row["blocked"],
    )


def _project_summary(path: str, period: SummaryPeriod, day: str, one: _Project) -> ProjectSummary:
    models = sorted(
        one.models.items(),
        key=lambda model: (model[1].total_cost_nano is None, -model[1].cost_nano, -model[1].total_tokens, model[0]),
    )
    operations = sorted(one.operations.items(), key=lambda kind: (-kind[1], kind[0]))
    return ProjectSummary(
        workspace=path,
        period=period,
        date=day,
        active_users=len(one.users),
        spending=sum(one.models.values(), Spending()),
        top_models=tuple(
            ModelCost(model=name, cost_nano=spending.total_cost_nano) for name, spending in models[:MOST_MODELS]
        ),
        top_operations=tuple(OperationCount(type=kind, count=count) for kind, count in operations),
    )
