"""The repository of a workspace, by which its folder is known again when it was moved.

Revision ID: 0020
Revises: 0019
"""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_STATEMENTS = (
    "ALTER TABLE workspaces ADD COLUMN first_commit VARCHAR",
    "ALTER TABLE workspaces ADD COLUMN remote VARCHAR",
)


def upgrade() -> None:
    """Add the columns."""
    connection = op.get_bind()
    for statement in _STATEMENTS:
        connection.exec_driver_sql(statement)
