"""The commands that have to pass before a run counts, and the column of what a person looks at before it is done.

Revision ID: 0012
Revises: 0011
"""

from __future__ import annotations

from alembic import op

from agentmon.store.migrations.rebuilding import make_again

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_VERIFICATIONS = """
CREATE TABLE IF NOT EXISTS verifications (
    id VARCHAR(36) NOT NULL,
    execution_id VARCHAR(36) NOT NULL,
    attempt INTEGER NOT NULL,
    command VARCHAR NOT NULL,
    status VARCHAR(9) NOT NULL,
    exit_code INTEGER,
    log_path VARCHAR NOT NULL,
    started_at VARCHAR(24) NOT NULL,
    ended_at VARCHAR(24),
    created_at VARCHAR(24) NOT NULL,
    updated_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_verifications PRIMARY KEY (id),
    CONSTRAINT uq_verifications_execution_id_attempt UNIQUE (execution_id, attempt),
    CONSTRAINT ck_verifications_attempt_from_one CHECK (attempt >= 1),
    CONSTRAINT fk_verifications_execution_id FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE CASCADE,
    CONSTRAINT ck_verifications_status CHECK (status IN ('running', 'passed', 'failed', 'timed_out', 'stopped'))
)"""
_RUNNING = (
    "CREATE INDEX IF NOT EXISTS ix_verifications_running ON verifications (execution_id) WHERE status = 'running'"
)
_REVIEW = ("'in_progress', 'blocked', 'done', 'cancelled')", "'in_progress', 'blocked', 'review', 'done', 'cancelled')")
_CHANGED = {
    "tasks": (_REVIEW,),
    "board_counts": (_REVIEW,),
    "executions": (
        (
            "base VARCHAR,",
            (
                "base VARCHAR, verify_retry INTEGER DEFAULT 0 NOT NULL, verification_status VARCHAR(9),"
                " verification_command VARCHAR, verification_ms INTEGER,"
            ),
        ),
        ("'lost', 'refused', 'budget')", "'lost', 'refused', 'budget', 'unverified')"),
        (
            "CHECK (wait_count >= 0),",
            (
                "CHECK (wait_count >= 0), CONSTRAINT ck_executions_verify_retry_not_negative CHECK (verify_retry >= 0),"
                " CONSTRAINT ck_executions_verification_ms_not_negative CHECK (verification_ms >= 0),"
            ),
        ),
        (
            "CHECK (isolation IN ('auto', 'folder', 'worktree'))",
            (
                "CHECK (isolation IN ('auto', 'folder', 'worktree')), CONSTRAINT ck_executions_verification_status"
                " CHECK (verification_status IN ('running', 'passed', 'failed', 'timed_out', 'stopped'))"
            ),
        ),
    ),
}


def upgrade() -> None:
    """Add the table, the columns and the words."""
    connection = op.get_bind()
    connection.exec_driver_sql(_VERIFICATIONS)
    connection.exec_driver_sql(_RUNNING)
    make_again(connection, _CHANGED)
