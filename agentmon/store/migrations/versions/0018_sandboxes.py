"""The sandbox of a run.

Revision ID: 0018
Revises: 0017
"""

from __future__ import annotations

from alembic import op

from agentmon.store.migrations.rebuilding import make_again

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_ISOLATION = "CONSTRAINT ck_executions_isolation CHECK (isolation IN ('auto', 'folder', 'worktree'))"
_SANDBOX = "CONSTRAINT ck_executions_sandbox CHECK (sandbox IN ('off', 'agentmon', 'project'))"
_CHANGED = {
    "executions": (
        ("base VARCHAR,", "base VARCHAR, sandbox VARCHAR(8),"),
        (_ISOLATION, f"{_ISOLATION}, {_SANDBOX}"),
    )
}


def upgrade() -> None:
    """Add the column."""
    make_again(op.get_bind(), _CHANGED)
