"""What a person says of lines that a run changed.

Revision ID: 0013
Revises: 0012
"""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_STATEMENTS = (
    """
CREATE TABLE IF NOT EXISTS review_comments (
    id VARCHAR(36) NOT NULL,
    execution_id VARCHAR(36) NOT NULL,
    path VARCHAR NOT NULL,
    side VARCHAR(3) NOT NULL,
    first_line INTEGER NOT NULL,
    last_line INTEGER NOT NULL,
    quoted VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    digest VARCHAR(64) NOT NULL,
    sent_at VARCHAR(24),
    created_at VARCHAR(24) NOT NULL,
    updated_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_review_comments PRIMARY KEY (id),
    CONSTRAINT fk_review_comments_execution_id FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE CASCADE,
    CONSTRAINT ck_review_comments_side CHECK (side IN ('old', 'new'))
)""",
    "CREATE INDEX IF NOT EXISTS ix_review_comments_execution_id ON review_comments (execution_id)",
)


def upgrade() -> None:
    """Add the table."""
    connection = op.get_bind()
    for statement in _STATEMENTS:
        connection.exec_driver_sql(statement)
