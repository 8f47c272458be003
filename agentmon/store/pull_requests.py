"""Pull requests that were opened for the branches of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from agentmon.domain.events import TaskEventType
from agentmon.domain.ids import PullRequestId, TaskId
from agentmon.domain.pull_requests import (
    ChecksState,
    PullRequest,
    PullRequestProgram,
    PullRequestState,
    PullRequestStatus,
    ReviewState,
)
from agentmon.store import tables
from agentmon.store.audit import append_task_event

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import RowMapping

    from agentmon.domain.events import Actor
    from agentmon.store.database import Database


class PullRequestRepository:
    """Reads and writes pull requests."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_task(self, task_id: TaskId) -> PullRequest | None:
        """Return the newest one of a task; None for none."""
        rows = tables.pull_requests
        statement = select(rows).where(rows.c.task_id == task_id).order_by(rows.c.updated_at.desc(), rows.c.id.desc())
        async with self._database.reading() as connection:
            row = (await connection.execute(statement.limit(1))).mappings().first()
        return None if row is None else _pull_request_of(row)

    async def open_ones(self) -> tuple[PullRequest, ...]:
        """Return those that somebody can be asked about and that are neither merged nor closed, oldest first."""
        rows = tables.pull_requests
        statement = select(rows).where(rows.c.state == PullRequestState.OPEN, rows.c.number.is_not(None))
        async with self._database.reading() as connection:
            found = (await connection.execute(statement.order_by(rows.c.id).limit(1000))).mappings().all()
        return tuple(map(_pull_request_of, found))

    async def add(self, pull_request: PullRequest, *, actor: Actor) -> None:
        """Write one that was opened, or pushed to again: the one of the same address counts as the same."""
        rows = tables.pull_requests
        values = {
            "id": pull_request.id,
            "task_id": pull_request.task_id,
            "program": pull_request.program,
            "folder": pull_request.folder,
            "branch": pull_request.branch,
            "base": pull_request.base,
            "url": pull_request.url,
            "number": pull_request.number,
            **_status_columns(pull_request.status),
            "created_at": pull_request.created_at,
            "updated_at": pull_request.created_at,
        }
        statement = upsert(rows).values(values)
        kept = {name: statement.excluded[name] for name in values if name not in {"id", "created_at"}}
        async with self._database.writing() as connection:
            await connection.execute(
                statement.on_conflict_do_update(index_elements=["task_id", "url"], set_={**kept, "error": None})
            )
            await append_task_event(
                connection,
                task_id=pull_request.task_id,
                actor=actor,
                event_type=TaskEventType.PULL_REQUEST_OPENED,
                payload={"url": pull_request.url, "number": pull_request.number, "branch": pull_request.branch},
                at=pull_request.created_at,
            )

    async def note(
        self, pull_request_id: PullRequestId, status: PullRequestStatus | None, *, error: str, at: datetime
    ) -> None:
        """Write what its server said, or why nobody could be asked.

        Args:
            pull_request_id: Which.
            status: As it is now; None keeps what was known.
            error: Empty for none.
            at: The time now.
        """
        rows = tables.pull_requests
        values = {} if status is None else _status_columns(status)
        async with self._database.writing() as connection:
            await connection.execute(
                update(rows)
                .where(rows.c.id == pull_request_id)
                .values({**values, "error": error or None, "asked_at": at})
            )


def _status_columns(status: PullRequestStatus) -> dict[str, object]:
    return {
        "state": status.state,
        "is_draft": status.is_draft,
        "checks": status.checks,
        "review": status.review,
    }


def _pull_request_of(row: RowMapping) -> PullRequest:
    return PullRequest(
        id=PullRequestId(row["id"]),
        task_id=TaskId(row["task_id"]),
        program=PullRequestProgram(row["program"]),
        folder=row["folder"],
        branch=row["branch"],
        base=row["base"],
        url=row["url"],
        number=row["number"],
        status=PullRequestStatus(
            state=PullRequestState(row["state"]),
            is_draft=row["is_draft"],
            checks=None if row["checks"] is None else ChecksState(row["checks"]),
            review=None if row["review"] is None else ReviewState(row["review"]),
        ),
        error=row["error"] or "",
        asked_at=row["asked_at"],
        created_at=row["created_at"],
    )
