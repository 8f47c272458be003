"""The offer to bring the board of a project along whose folder was moved to where the app was opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.screens.dialogs.confirm import ConfirmDialog

if TYPE_CHECKING:
    from textual.app import App

    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Workspace


async def offer_moved(app: App[None], services: Services, workspace: Workspace) -> bool:
    """Ask about each moved workspace that this one may be; return whether one was brought here. Must run in a worker.

    Raises:
        ConflictError: Something runs in the one that was chosen, or an agent chose it.
    """
    for moved in await services.workspaces.find_moved(workspace):
        dialog = ConfirmDialog(
            f"Move the board of {moved.name} here?",
            loss=f"Its folder {moved.root_path} is gone, and this is the same repository. Tasks, conversations and "
            "rules come along. No keeps this board empty.",
            yes="Move",
        )
        if await app.push_screen_wait(dialog):
            root = Path(workspace.root_path)
            await services.workspaces.move(moved.root_path, root, actor=services.actor)
            return True
    return False
