"""What follows from budgets that are used: it is told, what would start waits, what runs is asked to end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, insert, select, text, update

from agentmon.domain.budgets import ALL_PERCENT, BudgetAction, BudgetScope
from agentmon.domain.events import EventLevel, EventType, TaskEventType
from agentmon.domain.execution_status import ExecutionStatus, WaitReason
from agentmon.domain.executions import CommandCause, CommandType
from agentmon.domain.ids import LOCAL_USER_ID
from agentmon.store import tables
from agentmon.store.audit import append_task_event, append_task_events
from agentmon.store.budget_reach import COVERS, HOLDS_BACK
from agentmon.store.budgets import read_budgets
from agentmon.store.column_types import Moment, json_text
from agentmon.store.execution_commands import add_command
from agentmon.store.mapping import execution_of
from agentmon.store.moments import moment_text
from agentmon.store.stops import ask_to_stop
from agentmon.store.task_moves import SYSTEM_ACTOR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.budgets import Budget, BudgetState
    from agentmon.domain.executions import Execution
    from agentmon.store.database import Database

NEVER: Final = datetime(9999, 12, 31, tzinfo=UTC)
"""Until when a budget without a period is spent."""
GENTLE_GRACE: Final = timedelta(seconds=10)
"""How long an agent that was interrupted may take to end, before its processes are asked to."""
_CHANGED_AT_ONCE: Final = 1_000
_MAX_PIECES: Final = 1_000
_AT: Final = bindparam("at", type_=Moment())
_JOINED: Final = "JOIN tasks t ON t.id = q.task_id JOIN agents a ON a.id = q.agent_id"
# Of the budgets that hold a row back that counts which is spent for the longest time. The rows are compared here, since
# thousands may wait while every change of the data is a reason to look again.
_TO_CHANGE: Final = text(f"""
WITH known AS (
    SELECT key AS id, json_extract(value, '$.until') AS until, json_extract(value, '$.words') AS words
    FROM json_each(:budgets)
),
held AS (
    SELECT q.id, q.task_id, q.not_before, q.error, q.wait_reason, b.id AS budget_id,
        max(b.spent_until || b.id) AS longest
    FROM executions q {_JOINED}
    LEFT JOIN budgets b ON {HOLDS_BACK}
    WHERE q.status = 'queued'
      AND (q.wait_reason = 'budget' OR b.id IS NOT NULL AND (q.not_before IS NULL OR q.not_before <= :at))
    GROUP BY q.id
)
SELECT held.id, held.task_id, held.budget_id
FROM held LEFT JOIN known ON known.id = held.budget_id
WHERE (held.wait_reason = 'budget') IS NOT (held.budget_id IS NOT NULL)
   OR held.error IS NOT known.words
   OR held.not_before IS NOT known.until
LIMIT :limit
""").bindparams(_AT)
# What has a bill of its own is an agent, whatever started it.
_RUNNING: Final = text(f"""
SELECT q.id, min(b.id) AS budget_id
FROM executions q {_JOINED}
JOIN budgets b ON b.action = 'stop' AND b.spent_until > :at AND (
    {COVERS}
    OR (b.scope = 'all' OR b.scope = 'workspace' AND b.scope_id = t.workspace_id)
        AND EXISTS (SELECT 1 FROM llm_interactions u WHERE u.execution_id = q.id))
WHERE q.status IN ('cancelling', 'finalizing', 'queued', 'running') AND q.status = 'running'
GROUP BY q.id
""").bindparams(_AT)
_ASKED: Final = text("""
SELECT q.id, min(json_extract(c.payload, '$.reason')) AS reason, min(c.created_at) AS asked_at
FROM executions q JOIN execution_commands c ON c.execution_id = q.id
WHERE q.status IN ('cancelling', 'finalizing', 'queued', 'running') AND q.status = 'cancelling'
  AND c.cause = 'budget' AND c.type = 'interrupt' AND c.attempt = q.attempt
  AND NOT EXISTS (
      SELECT 1 FROM execution_commands s
      WHERE s.execution_id = q.id AND s.attempt = q.attempt AND s.type IN ('stop', 'kill'))
GROUP BY q.id
""").columns(asked_at=Moment())
_COVERED: Final = text(f"""
SELECT q.id, q.session_id FROM executions q {_JOINED}
JOIN budgets b ON b.id = :budget_id AND {COVERS}
WHERE q.status IN ('cancelling', 'finalizing', 'queued', 'running') AND q.status <> 'queued'
""")


class BudgetEnforcement:
    """Writes what follows from budgets; several workers may call it at a time, and each thing is written once."""

    def __init__(self, database: Database, *, money_words: Mapping[str, str] | None = None) -> None:
        """Make it, like ``BudgetRepository``."""
        self._database = database
        self._money_words = money_words or {}

    async def note(self, state: BudgetState, *, spent_until: datetime | None, at: datetime) -> None:
        """Note how far a budget is used, and tell of it in the audit trail and beside what it is about, once.

        Args:
            state: As it is now.
            spent_until: Until when it is spent; None when it is not.
            at: The time now.
        """
        budgets, budget = tables.budgets, state.budget
        told = {"told_percent": state.due_percent, "told_day": state.first_day}
        noted = (
            update(budgets)
            .where(
                budgets.c.id == budget.id,
                budgets.c.amount == budget.limit,
                budgets.c.told_percent == budget.told_percent,
                budgets.c.told_day == budget.told_day,
            )
            .values(spent_until=spent_until, updated_at=at, **(told if state.has_news else {}))
            .returning(budgets.c.id)
        )
        async with self._database.writing() as connection:
            if (await connection.execute(noted)).first() is not None and state.has_news:
                await _tell(connection, state, at=at)

    async def hold_back(self, *, at: datetime) -> None:
        """Let all that would start wait for the budgets that are spent, and what waits for no such budget go on."""
        async with self._database.reading() as connection:
            if not await _find_changes(connection, self._money_words, at=at, limit=1):
                return
        # In pieces, so that others can write in between.
        for _ in range(_MAX_PIECES):
            if await self._hold_some_back(at=at) < _CHANGED_AT_ONCE:
                return

    async def _hold_some_back(self, *, at: datetime) -> int:
        async with self._database.writing() as connection:
            changes = await _find_changes(connection, self._money_words, at=at, limit=_CHANGED_AT_ONCE)
            if not changes:
                return 0
            executions, parked = tables.executions, []
            written = (
                update(executions)
                .where(executions.c.id == bindparam("row_id"), executions.c.status == ExecutionStatus.QUEUED)
                .values(
                    not_before=bindparam("new_not_before"),
                    wait_reason=bindparam("new_wait_reason"),
                    error=bindparam("new_error"),
                    updated_at=at,
                )
            )
            await connection.execute(
                written,
                [
                    {"row_id": execution_id, **{f"new_{name}": value for name, value in columns.items()}}
                    for execution_id, _, columns in changes
                ],
            )
            for execution_id, task_id, columns in changes:
                until, words = columns["not_before"], columns["error"]
                if words is not None:
                    particulars = {"until": until.isoformat()} if isinstance(until, datetime) else {}
                    parked.append(
                        (task_id, {"execution_id": execution_id, "reason": "budget", "text": words, **particulars})
                    )
            await append_task_events(
                connection, parked, actor=SYSTEM_ACTOR, event_type=TaskEventType.EXECUTION_PARKED, at=at
            )
        return len(changes)

    async def stop_running(self, *, at: datetime) -> bool:
        """Ask what runs on budgets that are spent to end, the gentlest way its agent obeys.

        A conversation is interrupted and told to finish; when it has not ended after ``GENTLE_GRACE``, and for any
        other program at once, its processes are asked to end, as ``agentmon stop`` does.

        Returns:
            Whether there are commands that hosts have to get.
        """
        async with self._database.reading() as connection:
            running = (await connection.execute(_RUNNING, {"at": at})).all()
            late = await _find_late(connection, at=at)
        if not running and not late:
            return False
        async with self._database.writing() as connection:
            reasons = {budget.id: budget.spent_words for budget in await read_budgets(connection, self._money_words)}
            running = (await connection.execute(_RUNNING, {"at": at})).all()
            for row in running:
                await _ask_gently(connection, await _read(connection, row.id), reasons[row.budget_id], at=at)
            for row in await _find_late(connection, at=at):
                execution = await _read(connection, row.id)
                await _ask_to_stop(connection, execution, CommandType.STOP, row.reason, at=at)
        return True

    async def is_stopping(self) -> bool:
        """Return whether something that was interrupted for a budget has not ended yet."""
        async with self._database.reading() as connection:
            return (await connection.execute(_ASKED)).first() is not None


async def _find_changes(
    connection: AsyncConnection, money_words: Mapping[str, str], *, at: datetime, limit: int
) -> list[tuple[str, str, dict[str, datetime | WaitReason | str | None]]]:
    """Return the queued executions that have to wait for another budget than their rows say, with the new columns."""
    columns = {budget.id: _columns_of(budget) for budget in await read_budgets(connection, money_words)}
    known = {
        budget_id: {"words": wanted["error"], "until": _written(wanted["not_before"])}
        for budget_id, wanted in columns.items()
    }
    parameters = {"budgets": json_text(known), "at": at, "limit": limit}
    rows = (await connection.execute(_TO_CHANGE, parameters)).all()
    return [
        (row.id, row.task_id, _columns_of(None) if row.budget_id is None else columns[row.budget_id]) for row in rows
    ]


def _written(moment: datetime | WaitReason | str | None) -> str | None:
    return moment_text(moment) if isinstance(moment, datetime) else None


def _columns_of(budget: Budget | None) -> dict[str, datetime | WaitReason | str | None]:
    if budget is None:
        return {"not_before": None, "wait_reason": None, "error": None}
    is_for_ever = budget.spent_until is None or budget.spent_until >= NEVER
    return {
        "not_before": None if is_for_ever else budget.spent_until,
        "wait_reason": WaitReason.BUDGET,
        "error": budget.spent_words,
    }


async def _find_late(connection: AsyncConnection, *, at: datetime) -> Sequence[Row[tuple[str, str, datetime]]]:
    return [row for row in (await connection.execute(_ASKED)).all() if row.asked_at <= at - GENTLE_GRACE]


async def _ask_gently(connection: AsyncConnection, execution: Execution, reason: str, *, at: datetime) -> None:
    if not execution.mode.is_conversation:
        await _ask_to_stop(connection, execution, CommandType.STOP, reason, at=at)
    elif await _ask_to_stop(connection, execution, CommandType.INTERRUPT, reason, at=at) and execution.mode.is_protocol:
        await add_command(
            connection, execution.id, CommandType.FINISH, {}, actor=SYSTEM_ACTOR, cause=CommandCause.BUDGET, at=at
        )


async def _ask_to_stop(
    connection: AsyncConnection, execution: Execution, command_type: CommandType, reason: str, *, at: datetime
) -> bool:
    cause = CommandCause.BUDGET
    return await ask_to_stop(connection, execution, command_type, actor=SYSTEM_ACTOR, cause=cause, at=at, reason=reason)


async def _tell(connection: AsyncConnection, state: BudgetState, *, at: datetime) -> None:
    budget = state.budget
    is_spent = state.due_percent >= ALL_PERCENT
    particulars = {
        "budget_id": budget.id,
        "percent": state.due_percent,
        "text": budget.words,
        "used": state.words,
        "action": budget.action.value,
    }
    await append_task_event(
        connection,
        task_id=budget.scope_id if budget.scope is BudgetScope.TASK and budget.label else None,
        actor=SYSTEM_ACTOR,
        event_type=TaskEventType.BUDGET_REACHED,
        payload=particulars,
        at=at,
    )
    covered = (await connection.execute(_COVERED, {"budget_id": budget.id})).all()
    if covered:
        await connection.execute(
            insert(tables.events),
            [
                {
                    "execution_id": row.id,
                    "session_id": row.session_id,
                    "user_id": LOCAL_USER_ID,
                    "trace_id": row.id,
                    "type": EventType.STATUS_CHANGE,
                    "level": EventLevel.ERROR if is_spent and budget.action is BudgetAction.STOP else EventLevel.WARN,
                    "timestamp_ms": round(at.timestamp() * 1000),
                    "payload": {"entry": "budget_reached", **particulars},
                }
                for row in covered
            ],
        )


async def _read(connection: AsyncConnection, execution_id: str) -> Execution:
    statement = select(tables.executions).where(tables.executions.c.id == execution_id)
    return execution_of((await connection.execute(statement)).mappings().one())
