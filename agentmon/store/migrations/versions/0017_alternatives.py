"""Tasks that are alternatives of each other: one thing done by several agents, of which a person takes one.

Revision ID: 0017
Revises: 0016
"""

from __future__ import annotations

from alembic import op

from agentmon.store.migrations.rebuilding import make_again

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_ASSIGNEE = "FOREIGN KEY(assignee_agent_id) REFERENCES agents (id) ON DELETE SET NULL"
_GROUP = "CONSTRAINT fk_tasks_alternatives_id FOREIGN KEY(alternatives_id) REFERENCES tasks (id) ON DELETE SET NULL"
_CHANGED = {
    "tasks": (
        ("archived_at VARCHAR(24),", "archived_at VARCHAR(24), alternatives_id VARCHAR(36),"),
        (_ASSIGNEE, f"{_ASSIGNEE}, {_GROUP}"),
    )
}
_INDEX = """CREATE INDEX IF NOT EXISTS ix_tasks_alternatives_id ON tasks (alternatives_id)
WHERE alternatives_id IS NOT NULL"""


def upgrade() -> None:
    """Add the column and its index."""
    connection = op.get_bind()
    make_again(connection, _CHANGED)
    connection.exec_driver_sql(_INDEX)
