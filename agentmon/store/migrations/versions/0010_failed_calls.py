"""Failed calls of models get a status, what was assumed its own word, and a spent budget a request and an end.

Revision ID: 0010
Revises: 0009
"""

from __future__ import annotations

from alembic import op

from agentmon.store.migrations.rebuilding import make_again

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_CHANGED = {
    "approvals": (("'start', 'dialog')", "'start', 'dialog', 'budget')"),),
    "executions": (("'lost', 'refused')", "'lost', 'refused', 'budget')"),),
    "llm_interactions": (
        ("error_message VARCHAR,", "error_message VARCHAR, error_status INTEGER,"),
        ("confidence VARCHAR(14)", "confidence VARCHAR(10)"),
        ("'fallback_model'", "'assumed'"),
    ),
}
_TAKEN = {"confidence": "CASE confidence WHEN 'fallback_model' THEN 'assumed' ELSE confidence END"}
_BY_BUDGETS = """
UPDATE executions SET end_reason = 'budget' WHERE status = 'cancelled' AND EXISTS (
    SELECT 1 FROM execution_commands c WHERE c.execution_id = executions.id AND c.cause = 'budget')
"""


def upgrade() -> None:
    """Change the tables; runs that earlier releases stopped for a budget get the end that they would have now."""
    connection = op.get_bind()
    make_again(connection, _CHANGED, taken=_TAKEN)
    connection.exec_driver_sql(_BY_BUDGETS)
    connection.exec_driver_sql(
        "CREATE INDEX IF NOT EXISTS ix_executions_budget ON executions (task_id) WHERE end_reason = 'budget'"
    )
