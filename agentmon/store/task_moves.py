"""Moves of cards inside a transaction: by a person, by an execution, and by what they wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, exists, or_, select, text, update

from agentmon.domain.activity import Activity
from agentmon.domain.errors import ConflictError
from agentmon.domain.events import Actor, ActorType, TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.life_cycles import require_task_move
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import SORT_ORDER_GAP
from agentmon.store import tables
from agentmon.store.audit import append_task_event, append_task_events
from agentmon.store.card_states import ALTERNATIVES, OPEN, awaited, holds
from agentmon.store.column_types import Moment, json_text
from agentmon.store.columns import top_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, RowMapping, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

SYSTEM_ACTOR = Actor(type=ActorType.SYSTEM)
DEPENDENCY_SOURCE: Final = "dependency"
"""The source of the activity of a queued execution that waits for what will not be done by itself."""
_UNSUCCESSFUL = [ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT]
_ASKING: Final = f"""
SELECT q.id, q.task_id, q.activity_note AS known, (
    SELECT group_concat(a.name, ', ') FROM (
        SELECT '#' || p.number || ' (' || {awaited("p")} || ')' AS name
        FROM task_dependencies d JOIN tasks p ON p.id = d.depends_on_task_id
        WHERE d.task_id = q.task_id AND {awaited("p")} NOT IN ('', 'still running', 'not queued', 'in review')
        ORDER BY p.number) a) AS names
FROM ({{tasks}}) t
CROSS JOIN executions q ON q.task_id = t.id
WHERE q.status IN ('cancelling', 'finalizing', 'queued', 'running') AND q.status = 'queued' AND NOT q.is_held
"""
"""What each queued execution of the tasks ``t`` says that it waits for, and what it is to say."""
_ASKING_AROUND: Final = text(
    _ASKING.format(
        tasks="SELECT :task_id AS id UNION"
        f" SELECT w.task_id FROM task_dependencies w WHERE w.depends_on_task_id IN ({ALTERNATIVES})"
    )
)
_ASKING_ALL: Final = text(
    _ASKING.format(tasks=f"SELECT o.task_id AS id FROM executions o WHERE {OPEN} AND o.status = 'queued'")
)
# One statement for all: each has its triggers make a journal of what it may have to undo.
_MOVE_ALL: Final = text("""
UPDATE tasks
SET status = :status, sort_order = json_extract(m.value, '$[1]'), version = version + 1, updated_at = :at
FROM json_each(:moves) AS m
WHERE tasks.id = json_extract(m.value, '$[0]')
""").bindparams(bindparam("at", type_=Moment()))


def require_on_board(task: RowMapping, refusal: str) -> None:
    """Refuse what cannot be done with an archived card.

    Args:
        task: Its row.
        refusal: What it does not do, such as ``does not run``.

    Raises:
        ConflictError: It is archived.
    """
    if task["archived_at"] is not None:
        raise ConflictError(
            f"#{task['number']} is archived, and {refusal}",
            hint=f"bring it back first: Z on the board, or `agentmon task unarchive {task['number']}`",
        )


async def move_task(
    connection: AsyncConnection,
    task: RowMapping,
    target: TaskStatus,
    *,
    actor: Actor,
    at: datetime,
    sort_order: int | None = None,
    cause: str | None = None,
) -> None:
    """Move a card to a column, at its top unless a ``sort_order`` is given, and free what waited for it.

    Raises:
        IllegalMoveError: The life cycle of tasks has no such move.
    """
    source = TaskStatus(task["status"])
    require_task_move(source, target)
    if sort_order is None:
        if source is target:
            return
        sort_order = await top_of(connection, task["workspace_id"], target)
    await connection.execute(
        update(tables.tasks)
        .where(tables.tasks.c.id == task["id"])
        .values(status=target, sort_order=sort_order, version=tables.tasks.c.version + 1, updated_at=at)
    )
    if source is target:
        return
    payload: dict[str, object] = {"from": source.value, "to": target.value}
    await append_task_event(
        connection,
        task_id=task["id"],
        actor=actor,
        event_type=TaskEventType.TASK_MOVED,
        payload=payload if cause is None else payload | {"cause": cause},
        at=at,
    )
    if target is TaskStatus.DONE:
        await free_dependents(connection, task["id"], at=at)
    elif source is TaskStatus.DONE:
        await hold_dependents(connection, task, at=at)
    await ask_about_waiting(connection, task["id"], at=at)


async def move_tasks(
    connection: AsyncConnection,
    tasks: Sequence[RowMapping],
    target: TaskStatus,
    *,
    actor: Actor,
    at: datetime,
    cause: str,
) -> None:
    """Move any number of cards to the top of an open column, the first of them topmost.

    Raises:
        IllegalMoveError: The life cycle of tasks has no such move.
    """
    if not tasks:
        return
    tops: dict[str, int] = {}
    moves = []
    for task in reversed(tasks):
        require_task_move(TaskStatus(task["status"]), target)
        workspace_id = task["workspace_id"]
        if workspace_id in tops:
            tops[workspace_id] -= SORT_ORDER_GAP
        else:
            tops[workspace_id] = await top_of(connection, workspace_id, target)
        moves.append((task["id"], tops[workspace_id]))
    await connection.execute(_MOVE_ALL, {"status": target.value, "moves": json_text(moves), "at": at})
    await append_task_events(
        connection,
        [
            (task["id"], {"from": TaskStatus(task["status"]).value, "to": target.value, "cause": cause})
            for task in tasks
        ],
        actor=actor,
        event_type=TaskEventType.TASK_MOVED,
        at=at,
    )


async def open_column_of(connection: AsyncConnection, task_id: str) -> TaskStatus:
    """Return the column of an open card that does not run: Blocked while it waits for tasks, otherwise Todo."""
    tasks = tables.tasks
    is_waiting = (await connection.execute(select(waits(tasks.c.id)).where(tasks.c.id == task_id))).scalar_one()
    return TaskStatus.BLOCKED if is_waiting else TaskStatus.TODO


async def hold_dependents(connection: AsyncConnection, prerequisite: RowMapping, *, at: datetime) -> None:
    """Block every card in Todo that waits for this one, which is done no longer, or for an alternative of it."""
    tasks = tables.tasks
    statement = select(tasks).where(
        tasks.c.id.in_(_dependents(prerequisite["id"])),
        tasks.c.status == TaskStatus.TODO,
        tasks.c.deleted_at.is_(None),
        waits(tasks.c.id),
    )
    cause = f"waits for #{prerequisite['number']}"
    for task in (await connection.execute(statement)).mappings().all():
        await move_task(connection, task, TaskStatus.BLOCKED, actor=SYSTEM_ACTOR, at=at, cause=cause)


async def free_dependents(connection: AsyncConnection, task_id: str, *, at: datetime) -> None:
    """Free every card that waited for this one, or for an alternative of it."""
    await free_waiting(connection, tables.tasks.c.id.in_(_dependents(task_id)), at=at)


async def free_waiting(connection: AsyncConnection, condition: ColumnElement[bool], *, at: datetime) -> None:
    """Move to Todo every blocked card of the condition that waits for nothing any more.

    One whose newest run failed stays: it is blocked because a person has to decide.
    """
    tasks, executions = tables.tasks, tables.executions
    newest_status = (
        select(executions.c.status)
        .where(executions.c.task_id == tasks.c.id)
        .order_by(executions.c.created_at.desc(), executions.c.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    statement = select(tasks).where(
        condition,
        tasks.c.status == TaskStatus.BLOCKED,
        tasks.c.deleted_at.is_(None),
        ~waits(tasks.c.id),
        or_(newest_status.is_(None), newest_status.not_in(_UNSUCCESSFUL)),
    )
    for task in (await connection.execute(statement)).mappings().all():
        await move_task(connection, task, TaskStatus.TODO, actor=SYSTEM_ACTOR, at=at, cause="nothing left to wait for")


async def ask_about_waiting(connection: AsyncConnection, task_id: str | None, *, at: datetime) -> None:
    """Let queued executions ask a person, once, when what they wait for will not be done by itself, or ask no longer.

    Looks at the task and at those that wait for it, or at all for None; called by whatever changes where a task stands,
    in its transaction.
    """
    executions = tables.executions
    statement = _ASKING_ALL if task_id is None else _ASKING_AROUND
    asking = (await connection.execute(statement, {} if task_id is None else {"task_id": task_id})).all()
    for execution_id, waiting_id, known, names in asking:
        note = None if names is None else f"waits for {names}"
        if note == known:
            continue
        await connection.execute(
            update(executions)
            .where(executions.c.id == execution_id)
            .values(
                activity=None if note is None else Activity.WAITING,
                activity_note=note,
                activity_source=None if note is None else DEPENDENCY_SOURCE,
                activity_at=None if note is None else executions.c.activity_at if known else at,
            )
        )
        if note is not None and known is None:
            await append_task_event(
                connection,
                task_id=waiting_id,
                actor=SYSTEM_ACTOR,
                event_type=TaskEventType.EXECUTION_HELD,
                payload={"execution_id": execution_id, "title": note},
                at=at,
            )


def _dependents(task_id: str) -> Select[tuple[str]]:
    """Return the cards that wait for a task or for an alternative of it."""
    dependencies = tables.task_dependencies
    awaited_ids = text(ALTERNATIVES).bindparams(task_id=task_id).columns(tables.tasks.c.id)
    return select(dependencies.c.task_id).where(dependencies.c.depends_on_task_id.in_(awaited_ids))


def waits(task_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that some task that it depends on holds it; see ``card_states.holds``."""
    dependencies = tables.task_dependencies.alias("links")
    prerequisites = tables.tasks.alias("prerequisites")
    return exists().where(
        dependencies.c.task_id == task_id,
        prerequisites.c.id == dependencies.c.depends_on_task_id,
        text(holds(prerequisites.name)),
    )
