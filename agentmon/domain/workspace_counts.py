"""What goes on in each workspace, for the choice between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmon.domain.tasks import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceCounts:
    """A workspace and how much of it runs, waits and is to be done."""

    workspace: Workspace
    short_name: str
    """Different from those of all others; see ``workspace_names``."""
    running: int = 0
    """Executions that have or may have a process."""
    queued: int = 0
    needs_you: int = 0
    open_tasks: int = 0
    is_gone: bool = False
    """Whether its folder was moved or is missing; false where that cannot be told."""
    """Tasks on the board that are neither done nor cancelled."""
