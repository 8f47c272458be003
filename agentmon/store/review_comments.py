"""Comments on lines that runs changed, kept from when they are written on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select, update

from agentmon.domain.diffs import LineSpan
from agentmon.domain.plain_text import storable
from agentmon.domain.review_comments import ReviewComment
from agentmon.store import tables

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.ids import TaskId
    from agentmon.store.database import Database


class ReviewCommentRepository:
    """Reads and writes comments."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_task(self, task_id: TaskId) -> tuple[ReviewComment, ...]:
        """Return the comments on all runs of a task, oldest first."""
        rows, executions = tables.review_comments, tables.executions
        statement = (
            select(rows)
            .join(executions, executions.c.id == rows.c.execution_id)
            .where(executions.c.task_id == task_id)
            .order_by(rows.c.created_at, rows.c.id)
        )
        async with self._database.reading() as connection:
            return tuple(
                ReviewComment(
                    id=row.id,
                    execution_id=row.execution_id,
                    span=LineSpan(row.path, row.side, row.first_line, row.last_line),
                    quoted=row.quoted,
                    text=row.text,
                    digest=row.digest,
                    sent_at=row.sent_at,
                )
                for row in await connection.execute(statement)
            )

    async def write(self, comment: ReviewComment, *, at: datetime) -> None:
        """Keep a comment, in the place of the one with its id."""
        rows = tables.review_comments
        async with self._database.writing() as connection:
            changed = update(rows).where(rows.c.id == comment.id).values(text=storable(comment.text), updated_at=at)
            if (await connection.execute(changed)).rowcount:
                return
            path, side, first_line, last_line = comment.span
            await connection.execute(
                insert(rows).values(
                    id=comment.id,
                    execution_id=comment.execution_id,
                    path=storable(path),
                    side=side,
                    first_line=first_line,
                    last_line=last_line,
                    quoted=storable(comment.quoted),
                    text=storable(comment.text),
                    digest=comment.digest,
                    created_at=at,
                    updated_at=at,
                )
            )

    async def remove(self, comment_id: str) -> None:
        """Forget a comment."""
        rows = tables.review_comments
        async with self._database.writing() as connection:
            await connection.execute(delete(rows).where(rows.c.id == comment_id))


async def note_comments_sent(connection: AsyncConnection, comment_ids: Sequence[str], *, at: datetime) -> None:
    """Write that the agent gets these, inside the transaction that sends them."""
    if comment_ids:
        rows = tables.review_comments
        await connection.execute(update(rows).where(rows.c.id.in_(comment_ids)).values(sent_at=at, updated_at=at))
