"""Moving workspaces: each path that leads into their folder leads into the new one, in one transaction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, exists, func, literal, or_, select, text, update

from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import LIVE_STATUSES
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.mapping import workspace_of

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.domain.ids import WorkspaceId
    from agentmon.domain.tasks import Workspace
    from agentmon.store.database import Database

_WITH_PATHS: Final = (
    tables.agents.c.working_dir,
    tables.trusted_agent_files.c.path,
    tables.executions.c.working_dir,
    tables.executions.c.repository,
    tables.worktrees.c.source,
    tables.worktrees.c.repository,
    tables.approval_rules.c.path,
)
_OF_TASKS: Final = text(
    "UPDATE tasks SET version = version + 1, input_context = json_set(input_context, '$.working_dir', :new ||"
    " substr(json_extract(input_context, '$.working_dir'), length(:old) + 1))"
    " WHERE json_extract(input_context, '$.working_dir') = :old"
    " OR substr(json_extract(input_context, '$.working_dir'), 1, length(:old) + 1) = :old || '/'"
)
_COUNTED: Final = tables.BoardCountRow.__tablename__
"""Of no workspace's own making: it changes with the tasks."""


class WorkspaceMoveRepository:
    """Writes where the folders of workspaces are now."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def is_used(self, workspace_id: WorkspaceId) -> bool:
        """Return whether anything was ever made or set of a workspace."""
        async with self._database.reading() as connection:
            return await _is_used(connection, workspace_id)

    async def move(self, old: str, new: str, *, actor: Actor, at: datetime) -> tuple[Workspace, ...]:
        """Move every workspace at or below a path, with all paths that lead there, and return them as they are now.

        A workspace that stands at a new place already, and of which nothing was ever made or set, makes room.

        Raises:
            NotFoundError: No workspace is there.
            ConflictError: Something runs in one of them, or another has the new place.
        """
        workspaces = tables.workspaces
        async with self._database.writing() as connection:
            # No place is taken before the one that has it has left it.
            order = workspaces.c.root_path.desc() if new.startswith(f"{old}/") else workspaces.c.root_path
            below = select(workspaces).where(_is_below(workspaces.c.root_path, old)).order_by(order)
            rows = (await connection.execute(below)).mappings().all()
            if not rows:
                raise NotFoundError(f"no workspace is at {old}", hint="`agentmon workspaces` lists them")
            ids = [row["id"] for row in rows]
            await _require_idle(connection, ids)
            moved = []
            for row in rows:
                root_path = new + row["root_path"][len(old) :]
                await _make_room(connection, root_path, but=ids)
                name = PurePath(root_path).name or "/"
                place = update(workspaces).where(workspaces.c.id == row["id"])
                await connection.execute(place.values(root_path=root_path, name=name, updated_at=at))
                moved.append(replace(workspace_of(row), root_path=root_path, name=name))
                await append_task_event(
                    connection,
                    task_id=None,
                    actor=actor,
                    event_type=TaskEventType.WORKSPACE_MOVED,
                    payload={"workspace_id": row["id"], "from": row["root_path"], "to": root_path},
                    at=at,
                )
            for column in _WITH_PATHS:
                there = literal(new) + func.substr(column, len(old) + 1)
                await connection.execute(
                    update(column.table).where(_is_below(column, old)).values({column.name: there})
                )
            await connection.execute(_OF_TASKS, {"old": old, "new": new})
            return tuple(moved)


def _is_below(column: ColumnElement[str], path: str) -> ColumnElement[bool]:
    return or_(column == path, func.substr(column, 1, len(path) + 1) == f"{path}/")


async def _require_idle(connection: AsyncConnection, workspace_ids: list[str]) -> None:
    tasks, executions = tables.tasks, tables.executions
    live = (
        select(tasks.c.number)
        .join(executions, executions.c.task_id == tasks.c.id)
        .where(tasks.c.workspace_id.in_(workspace_ids), executions.c.status.in_(list(LIVE_STATUSES)))
    )
    row = (await connection.execute(live.limit(1))).first()
    if row is not None:
        raise ConflictError(f"#{row.number} runs there", hint="wait for its end, or stop it, then move the workspace")


async def _make_room(connection: AsyncConnection, root_path: str, *, but: list[str]) -> None:
    """Take away a workspace of which nothing was ever made or set.

    Raises:
        ConflictError: The one that stands there is in use.
    """
    workspaces = tables.workspaces
    there = select(workspaces.c.id).where(workspaces.c.root_path == root_path, workspaces.c.id.not_in(but))
    workspace_id = (await connection.execute(there)).scalar()
    if workspace_id is None:
        return
    if await _is_used(connection, workspace_id):
        raise ConflictError(
            f"{root_path} has a board of its own",
            hint=f"`agentmon board -C {root_path}` shows it; a workspace moves only to where there is none",
        )
    await connection.execute(delete(workspaces).where(workspaces.c.id == workspace_id))


async def _is_used(connection: AsyncConnection, workspace_id: str) -> bool:
    workspaces = tables.workspaces
    references = [
        column
        for table in tables.metadata.tables.values()
        if table.name != _COUNTED
        for column in table.columns
        if any(key.column is workspaces.c.id for key in column.foreign_keys)
    ]
    uses = [exists().where(column == workspace_id) for column in (*references, tables.budgets.c.scope_id)]
    has_settings = exists().where(workspaces.c.id == workspace_id, func.json(workspaces.c.settings) != "{}")
    return bool((await connection.execute(select(or_(*uses, has_settings)))).scalar_one())
