"""Budgets: the rows, and what was spent of them by the kept sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, update
from sqlalchemy.dialects.sqlite import insert

from agentmon.domain.budgets import (
    Budget,
    BudgetAction,
    BudgetPeriod,
    BudgetScope,
    BudgetUnit,
    BudgetUse,
)
from agentmon.domain.errors import NotFoundError
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import WaitReason
from agentmon.domain.ids import BudgetId, new_id
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.moments import parse_moment
from agentmon.store.money_setting import MONEY_ROWS, money_format, money_words_of
from agentmon.store.told_conversation import in_pieces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.amounts import MoneyFormat
    from agentmon.domain.budgets import BudgetSpan, TaskBudget
    from agentmon.domain.events import Actor
    from agentmon.store.database import Database

MAX_BUDGETS: Final = 1_000
_LIST: Final = f"""
SELECT b.*, coalesce(a.slug, w.name, '#' || t.number, '#' || et.number, '') AS label
FROM budgets b
LEFT JOIN agents a ON b.scope = 'agent' AND a.id = b.scope_id
LEFT JOIN workspaces w ON b.scope = 'workspace' AND w.id = b.scope_id
LEFT JOIN tasks t ON b.scope = 'task' AND t.id = b.scope_id
LEFT JOIN executions e ON b.scope = 'execution' AND e.id = b.scope_id
LEFT JOIN tasks et ON et.id = e.task_id
ORDER BY b.id LIMIT {MAX_BUDGETS}
"""
_TOKENS: Final = "u.prompt_tokens + u.cache_write_5m_tokens + u.cache_write_1h_tokens + u.response_tokens"
_USE: Final = (
    "SELECT ? AS place, coalesce(sum(u.cost_nano), 0) AS cost_nano, "
    f"coalesce(sum({_TOKENS}), 0) AS tokens, coalesce(sum(u.cache_read_tokens), 0) AS cached, "
    "coalesce(sum(u.unpriced_answers), 0) AS unpriced FROM {source} WHERE {condition}"
)
_SOURCES: Final[Mapping[BudgetScope, tuple[str, str]]] = {
    BudgetScope.ALL: ("daily_model_usage u", "? = ''"),
    BudgetScope.AGENT: ("daily_model_usage u", "u.agent_id = ?"),
    BudgetScope.WORKSPACE: (
        "(SELECT id, root_path, rtrim(root_path, '/') || '/' AS below FROM workspaces) w JOIN {projects} u",
        "w.id = ? AND (u.project = w.root_path OR substr(u.project, 1, length(w.below)) = w.below)",
    ),
    BudgetScope.TASK: (
        "session_usage u",
        "u.execution_id <> '' AND u.execution_id IN (SELECT id FROM executions WHERE task_id = ?)",
    ),
    BudgetScope.EXECUTION: ("session_usage u", "u.execution_id <> '' AND u.execution_id = ?"),
}


class BudgetRepository:
    """Reads and changes budgets; each change stands in the audit trail."""

    def __init__(self, database: Database, *, money_words: Mapping[str, str] | None = None) -> None:
        """Make the repository.

        Args:
            database: Where they are kept.
            money_words: How amounts are shown where the database does not say; see ``money_setting``.
        """
        self._database = database
        self._money_words = money_words or {}

    async def list(self) -> tuple[Budget, ...]:
        """Return all budgets, oldest first."""
        async with self._database.reading() as connection:
            return await read_budgets(connection, self._money_words)

    async def set(self, budget: Budget, *, actor: Actor, at: datetime) -> Budget:
        """Write a budget, over the one of the same scope, period and unit, and return it as it is now.

        What it had been told and held back begins anew.
        """
        async with self._database.writing() as connection:
            return await set_budget(connection, budget, self._money_words, actor=actor, at=at)

    async def remove(self, budget_id: BudgetId, *, actor: Actor, at: datetime) -> Budget:
        """Take a budget away, let what it held back go on, and return what it was.

        Raises:
            NotFoundError: There is none of this id.
        """
        async with self._database.writing() as connection:
            return await _remove(connection, budget_id, self._money_words, actor=actor, at=at)

    async def uses(self, spans: Sequence[tuple[Budget, BudgetSpan | None]]) -> tuple[BudgetUse, ...]:
        """Return what was spent of each budget in its days, in their order; None means all days."""
        found: dict[int, BudgetUse] = {}
        async with self._database.reading() as connection:
            for places in in_pieces(range(len(spans))):
                parts = [_use_statement(place, *spans[place]) for place in places]
                statement = " UNION ALL ".join(part for part, _ in parts)
                parameters = tuple(value for _, values in parts for value in values)
                for row in (await connection.exec_driver_sql(statement, parameters)).mappings():
                    found[row["place"]] = _use_of(spans[row["place"]][0], row)
        return tuple(found[place] for place in range(len(spans)))


async def read_budgets(connection: AsyncConnection, money_words: Mapping[str, str]) -> tuple[Budget, ...]:
    """Return all budgets, oldest first, each with the name of what it is about."""
    rows = (await connection.exec_driver_sql(_LIST)).mappings().all()
    if not rows:
        return ()
    stored = money_words_of([tuple(row) for row in await connection.exec_driver_sql(MONEY_ROWS)])
    money = money_format({**money_words, **stored})
    return tuple(_budget_of(row, money) for row in rows)


async def set_task_budget(
    connection: AsyncConnection,
    task_id: str,
    wanted: TaskBudget,
    money_words: Mapping[str, str],
    *,
    actor: Actor,
    at: datetime,
) -> None:
    """Set, change or take away what all runs of a task together may cost, inside the caller's transaction."""
    place = (BudgetScope.TASK, task_id, BudgetPeriod.TOTAL, BudgetUnit.MONEY)
    budgets = await read_budgets(connection, money_words)
    present = next((one for one in budgets if (one.scope, one.scope_id, one.period, one.unit) == place), None)
    if wanted.limit is not None:
        scope, scope_id, period, unit = place
        budget = Budget(
            id=BudgetId(new_id()),
            scope=scope,
            scope_id=scope_id,
            period=period,
            unit=unit,
            limit=wanted.limit,
            action=wanted.action,
            created_at=at,
        )
        await set_budget(connection, budget, money_words, actor=actor, at=at)
    elif present is not None:
        await _remove(connection, present.id, money_words, actor=actor, at=at)


async def set_budget(
    connection: AsyncConnection, budget: Budget, money_words: Mapping[str, str], *, actor: Actor, at: datetime
) -> Budget:
    """Write a budget inside the caller's transaction; see ``BudgetRepository.set``."""
    budgets = tables.budgets
    values = {
        "id": budget.id,
        "scope": budget.scope,
        "scope_id": budget.scope_id,
        "period": budget.period,
        "unit": budget.unit,
        "amount": budget.limit,
        "counts_cached": budget.counts_cached,
        "action": budget.action,
        "created_at": budget.created_at,
        "updated_at": at,
    }
    changed = {name: values[name] for name in ("amount", "counts_cached", "action", "updated_at")}
    statement = insert(budgets).values(**values)
    row_id = (
        await connection.execute(
            statement.on_conflict_do_update(
                index_elements=["scope", "scope_id", "period", "unit"],
                set_=changed | {"told_percent": 0, "told_day": "", "spent_until": None},
            ).returning(budgets.c.id)
        )
    ).scalar_one()
    await let_go_on(connection, at=at)
    written = await _read(connection, row_id, money_words)
    await _tell(connection, written, "set" if row_id == budget.id else "changed", actor=actor, at=at)
    return written


async def _remove(
    connection: AsyncConnection, budget_id: BudgetId, money_words: Mapping[str, str], *, actor: Actor, at: datetime
) -> Budget:
    removed = await _read(connection, budget_id, money_words)
    await connection.execute(delete(tables.budgets).where(tables.budgets.c.id == budget_id))
    await let_go_on(connection, at=at)
    await _tell(connection, removed, "removed", actor=actor, at=at)
    return removed


async def let_go_on(connection: AsyncConnection, *, at: datetime) -> None:
    """Let all go on that waits for budgets; the next look at them holds back again what still has to wait."""
    executions = tables.executions
    await connection.execute(
        update(executions)
        .where(tables.IS_QUEUED, executions.c.wait_reason == WaitReason.BUDGET)
        .values(not_before=None, wait_reason=None, error=None, updated_at=at)
    )


def _use_statement(place: int, budget: Budget, span: BudgetSpan | None) -> tuple[str, tuple[object, ...]]:
    source, condition = _SOURCES[budget.scope]
    parameters: tuple[object, ...] = (place, budget.scope_id)
    if span is not None:
        condition, parameters = f"{condition} AND u.day_local BETWEEN ? AND ?", (*parameters, *_days(span))
    projects = "monthly_usage" if span is None else "daily_usage"
    return _USE.format(source=source.format(projects=projects), condition=condition), parameters


def _days(span: BudgetSpan) -> tuple[str, str]:
    return span.first_day, span.last_day


def _use_of(budget: Budget, row: RowMapping) -> BudgetUse:
    if budget.unit is BudgetUnit.MONEY:
        return BudgetUse(spent=row["cost_nano"], unpriced_answers=row["unpriced"])
    return BudgetUse(spent=row["tokens"] + (row["cached"] if budget.counts_cached else 0))


def _budget_of(row: RowMapping, money: MoneyFormat) -> Budget:
    return Budget(
        id=BudgetId(row["id"]),
        scope=BudgetScope(row["scope"]),
        scope_id=row["scope_id"],
        period=BudgetPeriod(row["period"]),
        unit=BudgetUnit(row["unit"]),
        limit=row["amount"],
        counts_cached=bool(row["counts_cached"]),
        action=BudgetAction(row["action"]),
        money=money,
        label=row["label"],
        told_percent=row["told_percent"],
        told_day=row["told_day"],
        spent_until=None if row["spent_until"] is None else parse_moment(row["spent_until"]),
        created_at=parse_moment(row["created_at"]),
    )


async def _read(connection: AsyncConnection, budget_id: str, money_words: Mapping[str, str]) -> Budget:
    found = [budget for budget in await read_budgets(connection, money_words) if budget.id == budget_id]
    if not found:
        raise NotFoundError(f"there is no budget {budget_id}", hint="`agentmon budget` lists them")
    return found[0]


async def _tell(connection: AsyncConnection, budget: Budget, change: str, *, actor: Actor, at: datetime) -> None:
    await append_task_event(
        connection,
        task_id=budget.scope_id if budget.scope is BudgetScope.TASK and budget.label else None,
        actor=actor,
        event_type=TaskEventType.BUDGET_CHANGED,
        payload={
            "budget_id": budget.id,
            "change": change,
            "text": budget.words,
            "scope": budget.scope.value,
            "scope_id": budget.scope_id,
            "period": budget.period.value,
            "unit": budget.unit.value,
            "limit": budget.limit,
            "counts_cached": budget.counts_cached,
            "action": budget.action.value,
        },
        at=at,
    )
