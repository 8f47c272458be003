"""Failed calls of models get a status, what was assumed its own word, and a spent budget a request and an end.

Revision ID: 0010
Revises: 0009
"""

from __future__ import annotations

from alembic import op

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
"""Tables that are made again, since SQLite cannot change a constraint, with what changes in their text."""
_TAKEN = {"confidence": "CASE confidence WHEN 'fallback_model' THEN 'assumed' ELSE confidence END"}
_BY_BUDGETS = """
UPDATE executions SET end_reason = 'budget' WHERE status = 'cancelled' AND EXISTS (
    SELECT 1 FROM execution_commands c WHERE c.execution_id = executions.id AND c.cause = 'budget')
"""


def upgrade() -> None:
    """Make the tables again with all their rows, indexes and triggers; references from other tables are by name.

    Runs that earlier releases stopped for a budget get the end that they would have now.
    """
    connection = op.get_bind()
    connection.exec_driver_sql("PRAGMA legacy_alter_table = ON")
    for table, changes in _CHANGED.items():
        kept = connection.exec_driver_sql(
            "SELECT type, name, sql FROM sqlite_master WHERE tbl_name = ? AND sql IS NOT NULL", (table,)
        ).fetchall()
        text = next(sql for kind, _, sql in kept if kind == "table")
        if changes[-1][1] in text:
            continue
        for old, new in changes:
            if old not in text:
                raise RuntimeError(f"the table {table} is not as revision {down_revision} made it: {old} is not there")
            text = text.replace(old, new)
        others = [(kind, name, sql) for kind, name, sql in kept if kind != "table"]
        for kind, name, _ in others:
            connection.exec_driver_sql(f"DROP {kind} {name}")
        connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO old")
        connection.exec_driver_sql(text)
        columns = [f'"{row[1]}"' for row in connection.exec_driver_sql("PRAGMA table_info(old)").fetchall()]
        taken = [_TAKEN.get(column.strip('"'), column) for column in columns]
        connection.exec_driver_sql(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(taken)} FROM old ORDER BY rowid"
        )
        connection.exec_driver_sql("DROP TABLE old")
        for _, _, sql in others:
            connection.exec_driver_sql(sql)
    connection.exec_driver_sql("PRAGMA legacy_alter_table = OFF")
    connection.exec_driver_sql(_BY_BUDGETS)
    connection.exec_driver_sql(
        "CREATE INDEX IF NOT EXISTS ix_executions_budget ON executions (task_id) WHERE end_reason = 'budget'"
    )
