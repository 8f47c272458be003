"""Working trees of a repository that agentmon makes for its runs."""

from __future__ import annotations

from enum import StrEnum


class WorktreeStatus(StrEnum):
    """How far a working tree has come."""

    MAKING = "making"
    """Its folder may be there in part; what a kill cut off is finished or taken back at the next start."""
    READY = "ready"
    FAILED = "failed"
    """It could not be made or set up; what there is of it stays until it is removed."""
    REMOVED = "removed"
