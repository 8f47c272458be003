"""What a scan finds, what a person changed of agents, and the files of agents that are trusted.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_STATEMENTS = (
    "ALTER TABLE agents ADD COLUMN edited_fields TEXT DEFAULT '[]' NOT NULL",
    "ALTER TABLE agents ADD COLUMN missing_since VARCHAR(24)",
    "ALTER TABLE agents ADD COLUMN removed_at VARCHAR(24)",
    "ALTER TABLE agent_capabilities ADD COLUMN edited_fields TEXT DEFAULT '[]' NOT NULL",
    "ALTER TABLE agent_capabilities ADD COLUMN removed_at VARCHAR(24)",
    "ALTER TABLE approvals ADD COLUMN danger_level INTEGER DEFAULT 0 NOT NULL",
    "ALTER TABLE approvals ADD COLUMN danger_name VARCHAR DEFAULT '' NOT NULL",
    "ALTER TABLE approvals ADD COLUMN danger_reason VARCHAR DEFAULT '' NOT NULL",
    # A limit was the one field that a person could change before.
    (
        "UPDATE agents SET edited_fields = '[\"max_concurrent\"]' WHERE id IN (SELECT json_extract(payload, "
        "'$.agent_id') FROM task_events WHERE event_type = 'agent_changed' AND json_type(payload, "
        "'$.max_concurrent') IS NOT NULL)"
    ),
    (
        "CREATE TABLE programs ( path VARCHAR NOT NULL, name VARCHAR NOT NULL, real_path VARCHAR NOT NULL, "
        "kind VARCHAR(7) NOT NULL, shadowed_by VARCHAR, size_bytes BIGINT DEFAULT 0 NOT NULL, modified_ms "
        "BIGINT DEFAULT 0 NOT NULL, package_manager VARCHAR, package_name VARCHAR, package_section VARCHAR, "
        "package_version VARCHAR, first_seen_at VARCHAR(24) NOT NULL, last_seen_at VARCHAR(24) NOT NULL, "
        "changed_at VARCHAR(24), missing_since VARCHAR(24), created_at VARCHAR(24) NOT NULL, updated_at "
        "VARCHAR(24) NOT NULL, CONSTRAINT pk_programs PRIMARY KEY (path), CONSTRAINT ck_programs_kind CHECK "
        "(kind IN ('binary', 'script', 'wrapper', 'shim', 'alias', 'broken')) )"
    ),
    ("CREATE INDEX ix_programs_name ON programs (name)"),
    (
        "CREATE TABLE trusted_agent_files ( workspace_id VARCHAR(36) NOT NULL, path VARCHAR NOT NULL, digest "
        "VARCHAR NOT NULL, trusted_by VARCHAR(36) NOT NULL, created_at VARCHAR(24) NOT NULL, updated_at "
        "VARCHAR(24) NOT NULL, CONSTRAINT pk_trusted_agent_files PRIMARY KEY (workspace_id), CONSTRAINT "
        "fk_trusted_agent_files_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE "
        "CASCADE, CONSTRAINT fk_trusted_agent_files_trusted_by FOREIGN KEY(trusted_by) REFERENCES users (id) "
        "ON DELETE RESTRICT )"
    ),
)


def upgrade() -> None:
    """Add the columns and tables."""
    connection = op.get_bind()
    for statement in _STATEMENTS:
        connection.exec_driver_sql(statement)
