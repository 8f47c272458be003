"""What single tool calls changed, beside what their runs did.

Revision ID: 0016
Revises: 0015
"""

from __future__ import annotations

from alembic import op

from agentmon.store.migrations.rebuilding import make_again

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_CALL = "FOREIGN KEY(operation_id) REFERENCES operations (id) ON DELETE"


def upgrade() -> None:
    """Let rows of a call go with it; those that 0011 wrote are of runs, whatever call had named their paths."""
    connection = op.get_bind()
    table = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'changes'"
    if f"{_CALL} SET NULL" in connection.exec_driver_sql(table).scalar_one():
        connection.exec_driver_sql(
            "UPDATE changes SET operation_id = NULL WHERE before_mode IS NOT NULL OR after_mode IS NOT NULL"
        )
    make_again(connection, {"changes": ((f"{_CALL} SET NULL", f"{_CALL} CASCADE"),)})
