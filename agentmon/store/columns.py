"""Places inside a column of the board: cards are ordered by ``sort_order`` with gaps between neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import bindparam, func, select, update

from agentmon.domain.tasks import SORT_ORDER_GAP
from agentmon.store import tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.task_status import TaskStatus


async def top_of(connection: AsyncConnection, workspace_id: str, status: TaskStatus) -> int:
    """Return a ``sort_order`` above all cards of the column."""
    return await _edge(connection, workspace_id, status, func.min(tables.tasks.c.sort_order), -SORT_ORDER_GAP)


async def bottom_of(connection: AsyncConnection, workspace_id: str, status: TaskStatus) -> int:
    """Return a ``sort_order`` below all cards of the column."""
    return await _edge(connection, workspace_id, status, func.max(tables.tasks.c.sort_order), SORT_ORDER_GAP)


async def place_at(
    connection: AsyncConnection, workspace_id: str, status: TaskStatus, index: int, *, moved_id: str
) -> int:
    """Return a ``sort_order`` that puts the moved card at the index, counted from 0 without that card itself.

    Where two neighbours leave no room between them, the column is numbered anew first.
    """
    if index <= 0:
        return await top_of(connection, workspace_id, status)
    above, below = await _neighbours(connection, workspace_id, status, index, moved_id)
    if below is None:
        return await bottom_of(connection, workspace_id, status)
    if above is None or below - above > 1:
        return below - SORT_ORDER_GAP if above is None else (above + below) // 2
    await _number_anew(connection, workspace_id, status)
    above, below = await _neighbours(connection, workspace_id, status, index, moved_id)
    return ((above or 0) + (below or 0)) // 2


async def _neighbours(
    connection: AsyncConnection, workspace_id: str, status: TaskStatus, index: int, moved_id: str
) -> tuple[int | None, int | None]:
    tasks = tables.tasks
    statement = (
        select(tasks.c.sort_order)
        .where(*_in_column(workspace_id, status), tasks.c.id != moved_id)
        .order_by(tasks.c.sort_order, tasks.c.id)
        .limit(2)
        .offset(index - 1)
    )
    orders = list((await connection.execute(statement)).scalars())
    return (orders[0] if orders else None, orders[1] if len(orders) > 1 else None)


async def _number_anew(connection: AsyncConnection, workspace_id: str, status: TaskStatus) -> None:
    tasks = tables.tasks
    statement = select(tasks.c.id).where(*_in_column(workspace_id, status)).order_by(tasks.c.sort_order, tasks.c.id)
    ids = (await connection.execute(statement)).scalars().all()
    if ids:
        await connection.execute(
            update(tasks).where(tasks.c.id == bindparam("task_id")).values(sort_order=bindparam("fresh_order")),
            [{"task_id": task_id, "fresh_order": place * SORT_ORDER_GAP} for place, task_id in enumerate(ids, 1)],
        )


def _in_column(workspace_id: str, status: TaskStatus) -> Sequence[ColumnElement[bool]]:
    tasks = tables.tasks
    return (
        tasks.c.workspace_id == workspace_id,
        tasks.c.status == status,
        tasks.c.deleted_at.is_(None),
        tasks.c.archived_at.is_(None),
    )


async def _edge(
    connection: AsyncConnection, workspace_id: str, status: TaskStatus, edge: ColumnElement[int], step: int
) -> int:
    found = (await connection.execute(select(edge).where(*_in_column(workspace_id, status)))).scalar()
    return 0 if found is None else found + step
