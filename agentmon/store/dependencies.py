"""Dependencies between tasks; a cycle is refused in the transaction that would make it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import ColumnElement, and_, delete, literal, literal_column, or_, select, text, union
from sqlalchemy.dialects.sqlite import insert

from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.events import ActorType, TaskEventType
from agentmon.domain.ids import TaskId
from agentmon.domain.live_state import numbers_text
from agentmon.domain.task_graph import TaskGraph, find_rings
from agentmon.domain.task_status import TaskStatus
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.card_states import awaited, holds
from agentmon.store.mapping import awaited_task_of, task_of
from agentmon.store.stops import find_open
from agentmon.store.task_labels import select_tasks
from agentmon.store.task_moves import SYSTEM_ACTOR, ask_about_waiting, free_waiting, move_task

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import CTE, ColumnClause, RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.domain.tasks import AwaitedTask, Task
    from agentmon.store.database import Database

_LONGEST_SHOWN_RING: Final = 20
_AWAITED: Final[ColumnElement[str | None]] = literal_column(awaited("tasks"))
_HOLDS: Final = text(holds("tasks"))
"""A task holds up what waits for it."""


class DependencyRepository:
    """Reads and changes what a task waits for."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_task(self, task_id: TaskId) -> tuple[AwaitedTask, ...]:
        """Return the tasks it depends on, by number; deleted ones as long as it waits for them."""
        async with self._database.reading() as connection:
            return await read_prerequisites(connection, task_id)

    async def around(self, task_id: TaskId) -> TaskGraph:
        """Return the task with all that it depends on and all that depends on it, at any distance.

        Raises:
            NotFoundError: The task is gone.
        """
        dependencies, tasks = tables.task_dependencies, tables.tasks
        async with self._database.reading() as connection:
            await _task_row(connection, task_id)
            above = _reached(task_id, dependencies.c.task_id, dependencies.c.depends_on_task_id)
            below = _reached(task_id, dependencies.c.depends_on_task_id, dependencies.c.task_id)
            ids = union(select(above.c.id), select(below.c.id)).cte("ids")
            is_shown = or_(tasks.c.deleted_at.is_(None), and_(_HOLDS, tasks.c.id.in_(select(above.c.id))))
            chosen = select_tasks().join(ids, ids.c.id == tasks.c.id).where(is_shown)
            found = {TaskId(row["id"]): task_of(row) for row in (await connection.execute(chosen)).mappings()}
            edges = select(dependencies.c.task_id, dependencies.c.depends_on_task_id).join(
                ids, ids.c.id == dependencies.c.task_id
            )
            needs: dict[TaskId, list[TaskId]] = {}
            for source, target in await connection.execute(edges):
                if source in found and target in found:
                    needs.setdefault(source, []).append(target)
        return TaskGraph(
            tasks=found,
            needs={
                source: sorted(targets, key=lambda one: found[one].number)
                for source, targets in sorted(needs.items(), key=lambda pair: found[pair[0]].number)
            },
        )

    async def rings(self) -> tuple[tuple[Task, ...], ...]:
        """Return the groups of tasks that wait for each other: none, unless the data came from elsewhere."""
        dependencies, tasks = tables.task_dependencies, tables.tasks
        sources, targets = tasks.alias("sources"), tasks.alias("targets")
        edges = (
            select(dependencies.c.task_id, dependencies.c.depends_on_task_id)
            .join(sources, sources.c.id == dependencies.c.task_id)
            .join(targets, targets.c.id == dependencies.c.depends_on_task_id)
            .where(sources.c.deleted_at.is_(None), targets.c.deleted_at.is_(None))
            .order_by(dependencies.c.task_id, dependencies.c.depends_on_task_id)
        )
        async with self._database.reading() as connection:
            needs: dict[TaskId, list[TaskId]] = {}
            for source, target in await connection.execute(edges):
                needs.setdefault(source, []).append(target)
            rings = []
            for ring in find_rings(needs):
                chosen = select_tasks().where(tasks.c.id.in_(ring[:500])).order_by(tasks.c.number)
                rings.append(tuple(task_of(row) for row in (await connection.execute(chosen)).mappings()))
        return tuple(rings)

    async def change(
        self, task_id: TaskId, *, added: Sequence[int], removed: Sequence[int], actor: Actor, at: datetime
    ) -> None:
        """Let the task wait for some tasks of its workspace and no longer for others: all of it, or nothing.

        What it waits for already may be added again. What is removed goes first.

        Raises:
            NotFoundError: One of the tasks is not there, or is to be removed and was not waited for.
            ConflictError: It would wait for itself, directly or in a ring, and the message shows the ring; or it runs
                and would wait for one that is not done; or an agent takes away one that still holds it.
        """
        async with self._database.writing() as connection:
            await change_dependencies(connection, task_id, added=added, removed=removed, actor=actor, at=at)


async def change_dependencies(
    connection: AsyncConnection,
    task_id: str,
    *,
    added: Sequence[int],
    removed: Sequence[int],
    actor: Actor,
    at: datetime,
) -> None:
    """Change what a task waits for inside the caller's transaction; see ``DependencyRepository.change``."""
    row = await _task_row(connection, task_id)
    if removed and actor.type is ActorType.AGENT:
        holding = sorted(set(removed) & set(await _holding_numbers(connection, task_id)))
        if holding:
            raise ConflictError(
                f"an agent cannot let #{row['number']} start before {numbers_text(holding)} is done",
                hint="a person decides that: `agentmon inbox`",
            )
    for number in removed:
        await _remove(connection, row, number, actor=actor, at=at)
    for number in added:
        await add_dependency(connection, await _task_row(connection, task_id), number, actor=actor, at=at)
    if removed:
        await free_waiting(connection, tables.tasks.c.id == task_id, at=at)
    await ask_about_waiting(connection, task_id, at=at)


async def drop_dependencies(connection: AsyncConnection, task_id: str, *, actor: Actor, at: datetime) -> bool:
    """Let a task wait no longer for what keeps it from starting; return whether there was anything."""
    numbers = await _holding_numbers(connection, task_id)
    await change_dependencies(connection, task_id, added=(), removed=numbers, actor=actor, at=at)
    return bool(numbers)


async def _holding_numbers(connection: AsyncConnection, task_id: str) -> list[int]:
    """Return the numbers of all tasks that keep a task from starting, in their order."""
    tasks, dependencies = tables.tasks, tables.task_dependencies
    statement = (
        select(tasks.c.number)
        .join(dependencies, dependencies.c.depends_on_task_id == tasks.c.id)
        .where(dependencies.c.task_id == task_id, _HOLDS)
        .order_by(tasks.c.number)
    )
    return list((await connection.execute(statement)).scalars())


async def _remove(connection: AsyncConnection, task: RowMapping, on_number: int, *, actor: Actor, at: datetime) -> None:
    dependencies = tables.task_dependencies
    prerequisite = await _numbered(connection, task["workspace_id"], on_number, deleted_too=True)
    gone = await connection.execute(
        delete(dependencies).where(
            dependencies.c.task_id == task["id"], dependencies.c.depends_on_task_id == prerequisite["id"]
        )
    )
    if not gone.rowcount:
        raise NotFoundError(
            f"#{task['number']} does not wait for #{on_number}",
            hint=f"`agentmon task after {task['number']}` lists what it waits for",
        )
    await append_task_event(
        connection,
        task_id=task["id"],
        actor=actor,
        event_type=TaskEventType.DEPENDENCY_REMOVED,
        payload={"on": on_number},
        at=at,
    )


def _reached(task_id: str, source: ColumnClause[str], target: ColumnClause[str]) -> CTE:
    """Return the ids that lead from a task along dependencies, itself included; a ring ends the recursion."""
    reached = select(literal(task_id).label("id")).cte(f"by_{target.name}", recursive=True)
    return reached.union(select(target).join(reached, source == reached.c.id))


async def read_prerequisites(
    connection: AsyncConnection, task_id: str, *, holding_only: bool = False
) -> tuple[AwaitedTask, ...]:
    """Return the tasks that a task depends on, by number; deleted ones as long as it waits for them."""
    tasks, dependencies = tables.tasks, tables.task_dependencies
    statement = (
        select_tasks()
        .add_columns(_AWAITED.label("awaited_state"))
        .join(dependencies, dependencies.c.depends_on_task_id == tasks.c.id)
        .where(dependencies.c.task_id == task_id, _HOLDS if holding_only else or_(_HOLDS, tasks.c.deleted_at.is_(None)))
        .order_by(tasks.c.number)
        .limit(1000)
    )
    rows = (await connection.execute(statement)).mappings()
    return tuple(awaited_task_of(row) for row in rows)


async def add_dependency(
    connection: AsyncConnection, task: RowMapping, on_number: int, *, actor: Actor, at: datetime
) -> None:
    """Add one dependency inside the caller's transaction and block the card when it now has to wait.

    Raises:
        NotFoundError: The workspace has no task of this number.
        ConflictError: A ring would arise, or the task runs and would have to wait.
    """
    prerequisite = await _numbered(connection, task["workspace_id"], on_number)
    ring = await _path(connection, prerequisite["id"], task["id"])
    if ring:
        shown = _shown([task["number"], *ring])
        raise ConflictError(
            f"#{task['number']} cannot wait for #{on_number}: they would wait for each other ({shown})",
            hint="take one dependency of the ring away first",
        )
    added = await connection.execute(
        insert(tables.task_dependencies)
        .values(task_id=task["id"], depends_on_task_id=prerequisite["id"], created_at=at)
        .on_conflict_do_nothing()
    )
    if not added.rowcount:
        return
    present = await find_open(connection, task["id"])
    if present is not None and present.status.is_live and await _holds(connection, prerequisite["id"]):
        raise ConflictError(
            f"#{task['number']} is running, so it cannot wait for #{on_number}",
            hint=f"add it when the run is over, or stop that first: `agentmon stop {task['number']}`",
        )
    await append_task_event(
        connection,
        task_id=task["id"],
        actor=actor,
        event_type=TaskEventType.DEPENDENCY_ADDED,
        payload={"on": on_number},
        at=at,
    )
    if TaskStatus(task["status"]) is TaskStatus.TODO and await _holds(connection, prerequisite["id"]):
        fresh = await _task_row(connection, task["id"])
        await move_task(
            connection, fresh, TaskStatus.BLOCKED, actor=SYSTEM_ACTOR, at=at, cause=f"waits for #{on_number}"
        )


async def _holds(connection: AsyncConnection, task_id: str) -> bool:
    statement = select(tables.tasks.c.id).where(tables.tasks.c.id == task_id, _HOLDS)
    return (await connection.execute(statement)).first() is not None


def _shown(ring: Sequence[int]) -> str:
    """Return the numbers of a ring with arrows between them; a long one without its middle."""
    names = [f"#{number}" for number in ring]
    if len(names) > _LONGEST_SHOWN_RING:
        names[_LONGEST_SHOWN_RING // 2 : -_LONGEST_SHOWN_RING // 2] = ["…"]
    return " → ".join(names)


async def _path(connection: AsyncConnection, source_id: str, target_id: str) -> tuple[int, ...]:
    """Return the numbers from source to target along dependencies, both included; empty when there is no way."""
    dependencies, tasks = tables.task_dependencies, tables.tasks
    # UNION drops what was seen, so that even a ring made by other means ends the recursion.
    reached = select(literal(source_id).label("id")).cte("reached", recursive=True)
    reached = reached.union(
        select(dependencies.c.depends_on_task_id).join(reached, dependencies.c.task_id == reached.c.id)
    )
    edges = select(dependencies.c.task_id, dependencies.c.depends_on_task_id).join(
        reached, reached.c.id == dependencies.c.task_id
    )
    if source_id != target_id:
        found = select(reached.c.id).where(reached.c.id == target_id)
        if (await connection.execute(found)).first() is None:
            return ()
    onward: dict[str, list[str]] = {}
    for task_id, next_id in await connection.execute(edges):
        onward.setdefault(task_id, []).append(next_id)
    came_from: dict[str, str] = {}
    waiting = [source_id]
    for present in waiting:
        if present == target_id:
            break
        for next_id in onward.get(present, []):
            if next_id not in came_from and next_id != source_id:
                came_from[next_id] = present
                waiting.append(next_id)
    ids = [target_id]
    while ids[-1] != source_id:
        ids.append(came_from[ids[-1]])
    # In parts, since a statement takes only so many values.
    numbers: dict[str, int] = {}
    for start in range(0, len(ids), 500):
        part = select(tasks.c.id, tasks.c.number).where(tasks.c.id.in_(ids[start : start + 500]))
        numbers |= dict((await connection.execute(part)).all())
    return tuple(numbers[task_id] for task_id in reversed(ids))


async def _numbered(
    connection: AsyncConnection, workspace_id: str, number: int, *, deleted_too: bool = False
) -> RowMapping:
    tasks = tables.tasks
    statement = select(tasks).where(tasks.c.workspace_id == workspace_id, tasks.c.number == number)
    row = (await connection.execute(statement)).mappings().first()
    if row is None or (row["deleted_at"] is not None and not deleted_too):
        raise NotFoundError(f"there is no task #{number} to wait for", hint="`agentmon task list` shows all tasks")
    return row


async def _task_row(connection: AsyncConnection, task_id: str) -> RowMapping:
    statement = select(tables.tasks).where(tables.tasks.c.id == task_id, tables.tasks.c.deleted_at.is_(None))
    row = (await connection.execute(statement)).mappings().first()
    if row is None:
        raise NotFoundError("this task was deleted", hint="`agentmon task restore` brings it back")
    return row
