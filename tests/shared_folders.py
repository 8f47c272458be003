"""Tests of what several agents do at one time let them work in one folder, where one would wait for the other."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agentmon.services.actors import USER_ACTOR
from agentmon.store.workspaces import WorkspaceRepository

if TYPE_CHECKING:
    from agentmon.domain.ids import WorkspaceId
    from agentmon.store.database import Database


async def let_agents_share_folders(database: Database, workspace_id: WorkspaceId) -> None:
    """Let any number of AI agents work in one folder of the workspace, and none in a worktree."""
    rows, now = WorkspaceRepository(database), datetime.now(UTC)
    await rows.set(workspace_id, "max_per_folder", 0, actor=USER_ACTOR, at=now)
    await rows.set(workspace_id, "isolation", "folder", actor=USER_ACTOR, at=now)
