"""Workspaces and the local user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import select, update
from sqlalchemy.dialects.sqlite import insert

from agentmon.domain.events import TaskEventType
from agentmon.domain.ids import LOCAL_USER_ID, WorkspaceId, new_id
from agentmon.domain.repository_identity import RepositoryIdentity
from agentmon.domain.worktrees import Isolation, WorktreeStatus
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.board_setting import LIMITED, limit_name
from agentmon.store.mapping import workspace_of
from agentmon.store.work_places import DEFAULT_PER_FOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from agentmon.domain.events import Actor
    from agentmon.domain.tasks import Workspace
    from agentmon.store.database import Database

SETTING_DEFAULTS: Final[Mapping[str, int | str]] = {
    "max_running": 0,
    "max_per_folder": DEFAULT_PER_FOLDER,
    "isolation": Isolation.AUTO.value,
    "sandbox": "",
    "verify": "",
    **{limit_name(status): 0 for status in LIMITED},
}
"""What a workspace can have of its own; claim and board read it from the JSON by these names."""


class WorkspaceRepository:
    """Reads and registers project folders."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_by_roots(self, root_paths: Sequence[str]) -> Workspace | None:
        """Return the registered workspace with the longest of these root paths."""
        workspaces = tables.workspaces
        statement = select(workspaces).where(workspaces.c.root_path.in_(root_paths))
        async with self._database.reading() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        found = [workspace_of(row) for row in rows]
        return max(found, key=lambda workspace: len(workspace.root_path), default=None)

    async def find_by_worktrees(self, paths: Sequence[str]) -> Workspace | None:
        """Return the workspace for whose task agentmon made a worktree at one of these paths."""
        workspaces, worktrees = tables.workspaces, tables.worktrees
        statement = (
            select(workspaces)
            .join(worktrees, worktrees.c.workspace_id == workspaces.c.id)
            .where(worktrees.c.path.in_(paths), worktrees.c.status != WorktreeStatus.REMOVED)
        )
        async with self._database.reading() as connection:
            row = (await connection.execute(statement)).mappings().first()
        return None if row is None else workspace_of(row)

    async def find(self, workspace_id: WorkspaceId) -> Workspace | None:
        """Return the workspace of this id."""
        statement = select(tables.workspaces).where(tables.workspaces.c.id == workspace_id)
        async with self._database.reading() as connection:
            row = (await connection.execute(statement)).mappings().first()
        return None if row is None else workspace_of(row)

    async def register(self, *, root_path: str, name: str, at: datetime) -> Workspace:
        """Return the workspace of the folder, made when it is new; the local user is made with the first one."""
        stamps = {"created_at": at, "updated_at": at}
        async with self._database.writing() as connection:
            await connection.execute(
                insert(tables.users).values(id=LOCAL_USER_ID, name="local", **stamps).on_conflict_do_nothing()
            )
            await connection.execute(
                insert(tables.workspaces)
                .values(id=new_id(), owner_id=LOCAL_USER_ID, name=name, root_path=root_path, **stamps)
                .on_conflict_do_nothing()
            )
            statement = select(tables.workspaces).where(tables.workspaces.c.root_path == root_path)
            return workspace_of((await connection.execute(statement)).mappings().one())

    async def lacks_identity(self, workspace_id: WorkspaceId) -> bool:
        """Return whether it was never noted which repository the workspace is."""
        workspaces = tables.workspaces
        statement = select(workspaces.c.id).where(workspaces.c.id == workspace_id, workspaces.c.first_commit.is_(None))
        async with self._database.reading() as connection:
            return (await connection.execute(statement)).first() is not None

    async def note_identity(self, workspace_id: WorkspaceId, identity: RepositoryIdentity) -> None:
        """Write which repository the workspace is."""
        workspaces = tables.workspaces
        noted = update(workspaces).where(workspaces.c.id == workspace_id)
        async with self._database.writing() as connection:
            await connection.execute(noted.values(first_commit=identity.first_commit, remote=identity.remote))

    async def identities(self) -> dict[WorkspaceId, RepositoryIdentity]:
        """Return which repository each workspace is, as far as that was noted."""
        workspaces = tables.workspaces
        columns = (workspaces.c.id, workspaces.c.first_commit, workspaces.c.remote)
        statement = select(*columns).where(workspaces.c.first_commit > "")
        async with self._database.reading() as connection:
            rows = (await connection.execute(statement)).all()
        return {
            WorkspaceId(row.id): RepositoryIdentity(first_commit=row.first_commit, remote=row.remote or "")
            for row in rows
        }

    async def settings(self, workspace_id: WorkspaceId) -> dict[str, int | str]:
        """Return what the workspace says itself, by the names of ``SETTING_DEFAULTS``."""
        statement = select(tables.workspaces.c.settings).where(tables.workspaces.c.id == workspace_id)
        async with self._database.reading() as connection:
            stored = (await connection.execute(statement)).scalar_one_or_none() or {}
        return {
            name: stored[name]
            for name, default in SETTING_DEFAULTS.items()
            if isinstance(stored.get(name), type(default))
        }

    async def set(
        self, workspace_id: WorkspaceId, name: str, chosen: int | str | None, *, actor: Actor, at: datetime
    ) -> None:
        """Write a setting of the workspace, with its line in the audit trail; None lets the default hold again."""
        workspaces = tables.workspaces
        async with self._database.writing() as connection:
            row = (await connection.execute(select(workspaces).where(workspaces.c.id == workspace_id))).mappings().one()
            settings = {key: kept for key, kept in row["settings"].items() if key != name}
            before = row["settings"].get(name)
            if before == chosen:
                return
            if chosen is not None:
                settings[name] = chosen
            await connection.execute(
                update(workspaces).where(workspaces.c.id == workspace_id).values(settings=settings, updated_at=at)
            )
            await append_task_event(
                connection,
                task_id=None,
                actor=actor,
                event_type=TaskEventType.SETTING_CHANGED,
                payload={
                    "key": f"workspace.{name}",
                    "workspace": row["name"],
                    "from": SETTING_DEFAULTS[name] if before is None else before,
                    "to": SETTING_DEFAULTS[name] if chosen is None else chosen,
                },
                at=at,
            )

    async def list(self) -> tuple[Workspace, ...]:
        """Return every workspace by name."""
        statement = select(tables.workspaces).order_by(tables.workspaces.c.name).limit(1000)
        async with self._database.reading() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return tuple(workspace_of(row) for row in rows)
