"""What runs changed in their folders, and the worktrees that are made for them.

Revision ID: 0011
Revises: 0010
"""

from __future__ import annotations

from alembic import op

from agentmon.store.migrations.rebuilding import make_again

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_WORKTREES = (
    """
CREATE TABLE IF NOT EXISTS worktrees (
    id VARCHAR(36) NOT NULL,
    workspace_id VARCHAR(36) NOT NULL,
    task_id VARCHAR(36) NOT NULL,
    source VARCHAR NOT NULL,
    repository VARCHAR,
    path VARCHAR NOT NULL,
    branch VARCHAR NOT NULL,
    base_branch VARCHAR,
    base_commit VARCHAR,
    status VARCHAR(7) NOT NULL,
    error VARCHAR,
    slot INTEGER,
    created_at VARCHAR(24) NOT NULL,
    updated_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_worktrees PRIMARY KEY (id),
    CONSTRAINT fk_worktrees_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE RESTRICT,
    CONSTRAINT fk_worktrees_task_id FOREIGN KEY(task_id) REFERENCES tasks (id) ON DELETE RESTRICT,
    CONSTRAINT ck_worktrees_status CHECK (status IN ('making', 'ready', 'failed', 'removed'))
)""",
    "CREATE INDEX IF NOT EXISTS ix_worktrees_task_id ON worktrees (task_id)",
    "CREATE UNIQUE INDEX IF NOT EXISTS uq_worktrees_path ON worktrees (path) WHERE status <> 'removed'",
)
_LOOKED_AT = """
CREATE TABLE IF NOT EXISTS looked_at (
    digest VARCHAR(64) NOT NULL,
    created_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_looked_at PRIMARY KEY (digest)
)"""
_CHANGED = {
    "executions": (
        (
            "working_dir VARCHAR,",
            (
                "working_dir VARCHAR, before_snapshot VARCHAR, after_snapshot VARCHAR, snapshot_note VARCHAR,"
                " changed_files INTEGER, lines_added INTEGER, lines_removed INTEGER, worktree_id VARCHAR(36),"
                " repository VARCHAR, isolation VARCHAR(8), base VARCHAR,"
            ),
        ),
        (
            "CHECK (activity IN ('working', 'waiting', 'unknown'))",
            (
                "CHECK (activity IN ('working', 'waiting', 'unknown')), CONSTRAINT fk_executions_worktree_id"
                " FOREIGN KEY(worktree_id) REFERENCES worktrees (id) ON DELETE SET NULL,"
                " CONSTRAINT ck_executions_isolation CHECK (isolation IN ('auto', 'folder', 'worktree'))"
            ),
        ),
    ),
    "changes": (
        ("path VARCHAR NOT NULL,", "path VARCHAR NOT NULL, old_path VARCHAR,"),
        ("after_ref VARCHAR,", "after_ref VARCHAR, before_mode INTEGER, after_mode INTEGER,"),
        (
            "diff_lines INTEGER DEFAULT 0 NOT NULL,",
            (
                "diff_lines INTEGER DEFAULT 0 NOT NULL, lines_added INTEGER DEFAULT 0 NOT NULL,"
                " is_binary BOOLEAN DEFAULT false NOT NULL,"
            ),
        ),
        (
            "can_undo BOOLEAN DEFAULT false NOT NULL,",
            "can_undo BOOLEAN DEFAULT false NOT NULL, why_not VARCHAR,",
        ),
        (
            "CHECK (diff_lines >= 0),",
            "CHECK (diff_lines >= 0), CONSTRAINT ck_changes_lines_added_not_negative CHECK (lines_added >= 0),",
        ),
        ("'modify', 'delete')", "'modify', 'delete', 'rename', 'mode')"),
    ),
}
_INDEXES = (
    "DROP INDEX IF EXISTS ix_changes_execution_id_id",
    "CREATE INDEX IF NOT EXISTS ix_changes_execution_id_path ON changes (execution_id, path)",
)


def upgrade() -> None:
    """Add the tables, and the columns and words of the others."""
    connection = op.get_bind()
    for statement in (*_WORKTREES, _LOOKED_AT):
        connection.exec_driver_sql(statement)
    make_again(connection, _CHANGED)
    for statement in _INDEXES:
        connection.exec_driver_sql(statement)
