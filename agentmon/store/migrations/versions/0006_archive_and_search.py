"""Tasks can be archived, and what they say is searched.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_ARCHIVE = (
    "ALTER TABLE tasks ADD COLUMN archived_at VARCHAR(24)",
    "DROP INDEX ix_tasks_workspace_id_status_sort_order",
    (
        "CREATE INDEX ix_tasks_board ON tasks (status, workspace_id, sort_order, id, deleted_at, archived_at)"
        " WHERE deleted_at IS NULL AND archived_at IS NULL"
    ),
    (
        "CREATE INDEX ix_tasks_archived ON tasks (status, workspace_id, sort_order, id, deleted_at, archived_at)"
        " WHERE deleted_at IS NULL AND archived_at IS NOT NULL"
    ),
)


def upgrade() -> None:
    """Give the tasks a time since which they are off the board, with indexes for those on it and those off it."""
    connection = op.get_bind()
    for statement in _ARCHIVE:
        connection.exec_driver_sql(statement)
