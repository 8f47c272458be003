"""What follows from budgets that are used: it is told, what would start waits, and so does what runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, insert, text, update

from agentmon.domain.budgets import ALL_PERCENT, BudgetAction, BudgetScope
from agentmon.domain.events import EventLevel, EventType, TaskEventType
from agentmon.domain.execution_status import WaitReason
from agentmon.domain.ids import LOCAL_USER_ID
from agentmon.domain.task_status import Priority
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.budget_pauses import RUNNING_OF_AGENTS, find_steps, take_step
from agentmon.store.budget_reach import COVERS, HOLDS_BACK
from agentmon.store.budgets import read_budgets
from agentmon.store.column_types import Moment, json_text
from agentmon.store.moments import moment_text
from agentmon.store.task_moves import SYSTEM_ACTOR

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.budgets import Budget, BudgetState
    from agentmon.store.database import Database

NEVER: Final = datetime(9999, 12, 31, tzinfo=UTC)
"""Until when a budget without a period is spent."""
_LOOKED_AT_ONCE: Final = 2_000
"""How many rows of the queue one transaction looks at, so that others can write in between."""
_ALL_AGAIN_AFTER: Final = timedelta(minutes=10)
"""A task or an agent may have come under another budget, of which the queue says nothing."""
_LATE_WRITES: Final = timedelta(seconds=20)
"""How long a write may have waited for the database after its time was taken; longer than all busy timeouts."""
_FIRST_MOMENT: Final = ""
_LAST_MOMENT: Final = "~"
_AT: Final = bindparam("at", type_=Moment())
_JOINED: Final = "JOIN tasks t ON t.id = q.task_id JOIN agents a ON a.id = q.agent_id"
# A stretch of the queue, in the order of its index, with what its rows have to wait for. Of the budgets that hold a row
# back that counts which is spent for the longest time.
_STRETCH: Final = f"""
WITH known AS MATERIALIZED (
    SELECT key AS id, json_extract(value, '$.until') AS until, json_extract(value, '$.words') AS words,
        json_extract(value, '$.particulars') AS particulars
    FROM json_each(:budgets)
),
held AS (
    SELECT q.id, q.task_id, q.not_before, q.error, q.wait_reason, b.id AS budget_id,
        max(b.spent_until || b.id) AS longest
    FROM executions q INDEXED BY ix_executions_queued {_JOINED}
    LEFT JOIN budgets b ON {HOLDS_BACK}
    WHERE q.status = 'queued' AND q.priority = :priority
      AND (q.queued_at, q.id) > (:after, :after_id) AND (q.queued_at, q.id) <= (:upto, :upto_id)
      AND (q.wait_reason = 'budget' OR b.id IS NOT NULL AND (q.not_before IS NULL OR q.not_before <= :at))
    GROUP BY q.id
),
changes AS (
    SELECT held.id, held.task_id, known.until, known.words, known.particulars
    FROM held LEFT JOIN known ON known.id = held.budget_id
    WHERE (held.wait_reason = 'budget') IS NOT (held.budget_id IS NOT NULL)
       OR held.error IS NOT known.words
       OR held.not_before IS NOT known.until
)
"""
_HAS_CHANGES: Final = f"{_STRETCH} SELECT 1 FROM changes LIMIT 1"
_STRETCH_END: Final = """
SELECT queued_at, id FROM executions INDEXED BY ix_executions_queued
WHERE status = 'queued' AND priority = :priority
  AND (queued_at, id) > (:after, :after_id) AND (queued_at, id) <= (:upto, :upto_id)
ORDER BY queued_at, id LIMIT 1 OFFSET :rows
"""
_TELL: Final = text(f"""
{_STRETCH}
INSERT INTO task_events (task_id, actor_type, event_type, payload, created_at)
SELECT task_id, :actor, :event, json_set(particulars, '$.execution_id', id), :at FROM changes WHERE words IS NOT NULL
ORDER BY id
""").bindparams(_AT)
_HOLD: Final = text(f"""
{_STRETCH}
UPDATE executions SET not_before = changes.until, error = changes.words, updated_at = :at,
    wait_reason = CASE WHEN changes.words IS NOT NULL THEN 'budget' END
FROM changes WHERE executions.id = changes.id
""").bindparams(_AT)
_INTERRUPTED: Final = text(f"""
SELECT 1 FROM {RUNNING_OF_AGENTS} = 'running'
JOIN execution_commands c ON c.execution_id = q.id AND c.attempt = q.attempt
WHERE c.cause = 'budget' AND c.type = 'interrupt' AND c.obeyed_at IS NULL AND c.error IS NULL LIMIT 1
""")
_COVERED: Final = text(f"""
SELECT q.id, q.session_id FROM {RUNNING_OF_AGENTS} IN ('cancelling', 'finalizing', 'running')
JOIN tasks t ON t.id = q.task_id
JOIN budgets b ON b.id = :budget_id AND {COVERS}
""")


class BudgetEnforcement:
    """Writes what follows from budgets; several workers may call it at a time, and each thing is written once."""

    def __init__(self, database: Database, *, money_words: Mapping[str, str] | None = None) -> None:
        """Make it, like ``BudgetRepository``."""
        self._database = database
        self._money_words = money_words or {}
        self._held: tuple[object, datetime] | None = None
        """The budgets by which the queue was looked at last, and when; None when that failed."""
        self._all_at = NEVER
        self._began_at: datetime | None = None

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
        """Let all that would start wait for the budgets that are spent, and what waits for no such budget go on.

        All of the queue is looked at when the budgets are others than the last time, and now and then; otherwise only
        what came into it or became due since.
        """
        async with self._database.reading() as connection:
            budgets = await read_budgets(connection, self._money_words)
            written = (await connection.exec_driver_sql("SELECT id, updated_at FROM budgets")).all()
        known = {budget.id: _known(budget) for budget in budgets}
        spent = {budget.id for budget in budgets if budget.spent_until is not None and budget.spent_until > at}
        state = (known, spent, {tuple(row) for row in written})
        is_same = self._held is not None and self._held[0] == state
        is_recent = self._held is not None and self._all_at <= self._held[1] <= at < self._all_at + _ALL_AGAIN_AFTER
        after, upto = _FIRST_MOMENT, _LAST_MOMENT
        if self._held is not None and is_same and is_recent:
            after, upto = moment_text(self._held[1] - _LATE_WRITES), moment_text(at)
        else:
            self._all_at = at
        self._held = None
        parameters = {"budgets": json_text(known), "at": moment_text(at)}
        for stretch in await self._database.read(lambda driver: _find_stretches(driver, after, upto, parameters)):
            async with self._database.writing() as connection:
                told = {"actor": SYSTEM_ACTOR.type.value, "event": TaskEventType.EXECUTION_PARKED.value}
                await connection.execute(_TELL, {**parameters, **stretch, **told, "at": at})
                await connection.execute(_HOLD, {**parameters, **stretch, "at": at})
        self._held = (state, at)

    async def hold_up(self, states: Sequence[BudgetState], *, at: datetime) -> bool:
        """Let what runs on budgets that are spent wait for a person, and what waits and may go on do so.

        An agent is interrupted and waits with a request; one that does not obey within ``INTERRUPT_GRACE``, and any
        program that cannot wait, is asked to end as ``agentmon stop`` does.

        Args:
            states: All budgets, with what is spent of them now.
            at: The time now.

        Returns:
            Whether there are commands that hosts have to get.
        """
        known = {str(state.budget.id): state for state in states}
        self._began_at = self._began_at or at
        async with self._database.reading() as connection:
            if not await find_steps(connection, known, began_at=self._began_at, at=at):
                return False
        async with self._database.writing() as connection:
            for step in await find_steps(connection, known, began_at=self._began_at, at=at):
                await take_step(connection, step, known, at=at)
        return True

    async def is_interrupting(self) -> bool:
        """Return whether something that was interrupted for a budget has not obeyed yet."""
        async with self._database.reading() as connection:
            return (await connection.execute(_INTERRUPTED)).first() is not None


def _find_stretches(
    connection: sqlite3.Connection, after: str, upto: str, parameters: Mapping[str, object]
) -> list[dict[str, object]]:
    """Return the stretches of the queue in which something has to wait for another budget than its row says.

    Args:
        connection: On whose thread this runs.
        after: Only rows with a later place in the queue.
        upto: Only rows with no later place.
        parameters: The budgets and the time.
    """
    found = []
    for priority in Priority:
        end = (after, "")
        while end != (upto, _LAST_MOMENT):
            stretch: dict[str, object] = {"priority": priority.value, "after": end[0], "after_id": end[1]}
            whole = stretch | {"upto": upto, "upto_id": _LAST_MOMENT}
            last = connection.execute(_STRETCH_END, whole | {"rows": _LOOKED_AT_ONCE - 1}).fetchone()
            end = (upto, _LAST_MOMENT) if last is None else (last[0], last[1])
            stretch |= {"upto": end[0], "upto_id": end[1]}
            if connection.execute(_HAS_CHANGES, {**parameters, **stretch}).fetchone() is not None:
                found.append(stretch)
    return found


def _known(budget: Budget) -> dict[str, object]:
    """Return what the row and the audit trail of an execution say that waits for the budget."""
    is_for_ever = budget.spent_until is None or budget.spent_until >= NEVER
    until = None if is_for_ever else budget.spent_until
    particulars = {"reason": WaitReason.BUDGET.value, "text": budget.spent_words}
    return {
        "until": None if until is None else moment_text(until),
        "words": budget.spent_words,
        "particulars": particulars | ({} if until is None else {"until": until.isoformat()}),
    }


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
