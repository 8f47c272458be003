"""Labels of tasks: rows beside the tasks, read together with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, func, insert, select

from agentmon.store import tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ScalarSelect, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.ids import WorkspaceId
    from agentmon.store.database import Database

_MOST_KNOWN: Final = 1000


def _labels_of_row() -> ScalarSelect[str]:
    labels = tables.task_labels
    return (
        select(func.group_concat(labels.c.label, " "))
        .where(labels.c.task_id == tables.tasks.c.id)
        .correlate(tables.tasks)
        .scalar_subquery()
    )


LABELS: Final = _labels_of_row().label("labels")
"""The labels of a row of ``tasks``, with blanks between them; NULL without labels."""


def select_tasks() -> Select[tuple[object, ...]]:
    """Return the statement that reads tasks with all that ``mapping.task_of`` needs."""
    return select(tables.tasks, LABELS)


async def write_labels(connection: AsyncConnection, task_id: str, labels: Sequence[str]) -> None:
    """Let the task have these labels and no others."""
    rows = tables.task_labels
    await connection.execute(delete(rows).where(rows.c.task_id == task_id))
    if labels:
        await connection.execute(insert(rows), [{"task_id": task_id, "label": label} for label in labels])


class LabelRepository:
    """Reads which labels there are."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def known(self, workspace_id: WorkspaceId) -> tuple[str, ...]:
        """Return the labels of the tasks of a workspace, the most used first."""
        labels, tasks = tables.task_labels, tables.tasks
        statement = (
            select(labels.c.label)
            .join(tasks, tasks.c.id == labels.c.task_id)
            .where(tasks.c.workspace_id == workspace_id, tasks.c.deleted_at.is_(None))
            .group_by(labels.c.label)
            .order_by(func.count().desc(), labels.c.label)
            .limit(_MOST_KNOWN)
        )
        async with self._database.reading() as connection:
            return tuple((await connection.execute(statement)).scalars())
