"""How the branches of worktrees were merged, and the pull requests that were opened for them.

Revision ID: 0014
Revises: 0013
"""

from __future__ import annotations

from alembic import op

from agentmon.store.migrations.rebuilding import make_again

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_PULL_REQUESTS = """
CREATE TABLE IF NOT EXISTS pull_requests (
    id VARCHAR(36) NOT NULL,
    task_id VARCHAR(36) NOT NULL,
    program VARCHAR(4) NOT NULL,
    folder VARCHAR NOT NULL,
    branch VARCHAR NOT NULL,
    base VARCHAR NOT NULL,
    url VARCHAR NOT NULL,
    number INTEGER,
    state VARCHAR(6) NOT NULL,
    is_draft BOOLEAN DEFAULT false NOT NULL,
    checks VARCHAR(7),
    review VARCHAR(17),
    error VARCHAR,
    asked_at VARCHAR(24),
    created_at VARCHAR(24) NOT NULL,
    updated_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_pull_requests PRIMARY KEY (id),
    CONSTRAINT uq_pull_requests_task_id_url UNIQUE (task_id, url),
    CONSTRAINT fk_pull_requests_task_id FOREIGN KEY(task_id) REFERENCES tasks (id) ON DELETE RESTRICT,
    CONSTRAINT ck_pull_requests_program CHECK (program IN ('gh', 'glab', 'git')),
    CONSTRAINT ck_pull_requests_state CHECK (state IN ('open', 'merged', 'closed')),
    CONSTRAINT ck_pull_requests_checks CHECK (checks IN ('pending', 'passed', 'failed')),
    CONSTRAINT ck_pull_requests_review CHECK (review IN ('required', 'approved', 'changes requested'))
)"""
_CHANGED = {
    "worktrees": (
        (
            "slot INTEGER,",
            (
                "slot INTEGER, merge_how VARCHAR(6), merged_into VARCHAR, merged_from VARCHAR,"
                " merged_commit VARCHAR, reverted_by VARCHAR,"
            ),
        ),
        (
            "CHECK (status IN ('making', 'ready', 'failed', 'removed'))",
            (
                "CHECK (status IN ('making', 'ready', 'failed', 'removed')),"
                " CONSTRAINT ck_worktrees_merge_how CHECK (merge_how IN ('squash', 'merge', 'rebase'))"
            ),
        ),
    ),
}


def upgrade() -> None:
    """Add the table, and the columns of the other."""
    connection = op.get_bind()
    connection.exec_driver_sql(_PULL_REQUESTS)
    make_again(connection, _CHANGED)
