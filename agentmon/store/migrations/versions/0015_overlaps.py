"""Live runs that get into each other's way.

Revision ID: 0015
Revises: 0014
"""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_OVERLAPS = """
CREATE TABLE IF NOT EXISTS overlaps (
    execution_id VARCHAR(36) NOT NULL,
    other_id VARCHAR(36) NOT NULL,
    kind VARCHAR(9) NOT NULL,
    paths TEXT DEFAULT '[]' NOT NULL,
    path_count INTEGER DEFAULT 0 NOT NULL,
    is_own_doing BOOLEAN,
    detail VARCHAR DEFAULT '' NOT NULL,
    created_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_overlaps PRIMARY KEY (execution_id, other_id, kind),
    CONSTRAINT ck_overlaps_path_count_not_negative CHECK (path_count >= 0),
    CONSTRAINT fk_overlaps_execution_id FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE CASCADE,
    CONSTRAINT fk_overlaps_other_id FOREIGN KEY(other_id) REFERENCES executions (id) ON DELETE CASCADE,
    CONSTRAINT ck_overlaps_kind CHECK (kind IN ('discarded', 'checkout', 'folder', 'worktrees'))
)"""


def upgrade() -> None:
    """Add the table."""
    connection = op.get_bind()
    connection.exec_driver_sql(_OVERLAPS)
    connection.exec_driver_sql("CREATE INDEX IF NOT EXISTS ix_overlaps_other_id ON overlaps (other_id)")
