"""Parking, pausing, schedules, and an audit trail that also tells of what concerns no single task.

Revision ID: 0002
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_NEW_TABLES: dict[str, tuple[str, ...]] = {
    "tasks": (
        """
CREATE TABLE tasks (
    id VARCHAR(36) NOT NULL,
    number INTEGER NOT NULL,
    owner_id VARCHAR(36) NOT NULL,
    workspace_id VARCHAR(36) NOT NULL,
    parent_task_id VARCHAR(36),
    title VARCHAR NOT NULL,
    description VARCHAR,
    status VARCHAR(11) NOT NULL,
    priority INTEGER DEFAULT 3 NOT NULL,
    sort_order BIGINT NOT NULL,
    assignee_agent_id VARCHAR(36),
    input_context TEXT DEFAULT '{}' NOT NULL,
    due_at VARCHAR(24),
    cron VARCHAR,
    cron_zone VARCHAR,
    next_run_at VARCHAR(24),
    version INTEGER DEFAULT 1 NOT NULL,
    deleted_at VARCHAR(24),
    created_at VARCHAR(24) NOT NULL,
    updated_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_tasks PRIMARY KEY (id),
    CONSTRAINT uq_tasks_workspace_id_number UNIQUE (workspace_id, number),
    CONSTRAINT ck_tasks_priority CHECK (priority BETWEEN 1 AND 5),
    CONSTRAINT ck_tasks_number_from_one CHECK (number >= 1),
    CONSTRAINT ck_tasks_version_from_one CHECK (version >= 1),
    CONSTRAINT ck_tasks_no_parent_of_itself CHECK (parent_task_id <> id),
    CONSTRAINT ck_tasks_cron_with_zone CHECK ((cron IS NULL) = (cron_zone IS NULL)),
    CONSTRAINT fk_tasks_owner_id FOREIGN KEY(owner_id) REFERENCES users (id) ON DELETE RESTRICT,
    CONSTRAINT fk_tasks_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE RESTRICT,
    CONSTRAINT fk_tasks_parent_task_id FOREIGN KEY(parent_task_id) REFERENCES tasks (id) ON DELETE SET NULL,
    CONSTRAINT ck_tasks_status CHECK (status IN ('todo', 'in_progress', 'blocked', 'done', 'cancelled')),
    CONSTRAINT fk_tasks_assignee_agent_id FOREIGN KEY(assignee_agent_id) REFERENCES agents (id) ON DELETE SET NULL
)
""",
        "CREATE INDEX ix_tasks_workspace_id_status_sort_order ON tasks (workspace_id, status, sort_order) WHERE deleted_at IS NULL",
        "CREATE INDEX ix_tasks_next_run_at ON tasks (next_run_at) WHERE next_run_at IS NOT NULL",
        "CREATE INDEX ix_tasks_assignee_agent_id ON tasks (assignee_agent_id)",
        "CREATE INDEX ix_tasks_parent_task_id ON tasks (parent_task_id)",
    ),
    "task_events": (
        """
CREATE TABLE task_events (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    task_id VARCHAR(36),
    actor_type VARCHAR(6) NOT NULL,
    actor_id VARCHAR,
    event_type VARCHAR NOT NULL,
    payload TEXT DEFAULT '{}' NOT NULL,
    created_at VARCHAR(24) NOT NULL,
    CONSTRAINT fk_task_events_task_id FOREIGN KEY(task_id) REFERENCES tasks (id) ON DELETE RESTRICT,
    CONSTRAINT ck_task_events_actor_type CHECK (actor_type IN ('user', 'agent', 'system'))
)
""",
        "CREATE INDEX ix_task_events_task_id_id ON task_events (task_id, id)",
        "CREATE TRIGGER tr_task_events_no_update BEFORE UPDATE ON task_events BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END",
        "CREATE TRIGGER tr_task_events_no_delete BEFORE DELETE ON task_events BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END",
    ),
    "executions": (
        """
CREATE TABLE executions (
    id VARCHAR(36) NOT NULL,
    task_id VARCHAR(36) NOT NULL,
    agent_id VARCHAR(36) NOT NULL,
    capability_id VARCHAR(36) NOT NULL,
    session_id VARCHAR(36),
    requested_by VARCHAR(36) NOT NULL,
    status VARCHAR(10) NOT NULL,
    mode VARCHAR(11) NOT NULL,
    args TEXT DEFAULT '{}' NOT NULL,
    prompt VARCHAR,
    pid INTEGER,
    session_ref VARCHAR,
    tmux_session_name VARCHAR,
    parent_execution_id VARCHAR(36),
    started_at VARCHAR(24),
    ended_at VARCHAR(24),
    exit_code INTEGER,
    error VARCHAR,
    worker_id VARCHAR,
    heartbeat_at VARCHAR(24),
    log_file_path VARCHAR,
    log_byte_size BIGINT DEFAULT 0 NOT NULL,
    log_line_count BIGINT DEFAULT 0 NOT NULL,
    log_updated_at VARCHAR(24),
    last_line VARCHAR,
    journal_offset BIGINT DEFAULT 0 NOT NULL,
    retry_count INTEGER DEFAULT 0 NOT NULL,
    max_retries INTEGER DEFAULT 0 NOT NULL,
    attempt INTEGER DEFAULT 0 NOT NULL,
    not_before VARCHAR(24),
    wait_reason VARCHAR(11),
    wait_count INTEGER DEFAULT 0 NOT NULL,
    priority INTEGER DEFAULT 3 NOT NULL,
    queued_at VARCHAR(24) NOT NULL,
    paused_at VARCHAR(24),
    end_reason VARCHAR(12),
    log_removed_at VARCHAR(24),
    output_data TEXT,
    tokens_used BIGINT DEFAULT 0 NOT NULL,
    cost_nano BIGINT,
    created_at VARCHAR(24) NOT NULL,
    updated_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_executions PRIMARY KEY (id),
    CONSTRAINT ck_executions_log_byte_size_not_negative CHECK (log_byte_size >= 0),
    CONSTRAINT ck_executions_log_line_count_not_negative CHECK (log_line_count >= 0),
    CONSTRAINT ck_executions_journal_offset_not_negative CHECK (journal_offset >= 0),
    CONSTRAINT ck_executions_retry_count_not_negative CHECK (retry_count >= 0),
    CONSTRAINT ck_executions_max_retries_not_negative CHECK (max_retries >= 0),
    CONSTRAINT ck_executions_attempt_not_negative CHECK (attempt >= 0),
    CONSTRAINT ck_executions_wait_count_not_negative CHECK (wait_count >= 0),
    CONSTRAINT ck_executions_tokens_used_not_negative CHECK (tokens_used >= 0),
    CONSTRAINT ck_executions_cost_nano_not_negative CHECK (cost_nano >= 0),
    CONSTRAINT ck_executions_priority CHECK (priority BETWEEN 1 AND 5),
    CONSTRAINT fk_executions_task_id FOREIGN KEY(task_id) REFERENCES tasks (id) ON DELETE RESTRICT,
    CONSTRAINT fk_executions_agent_id FOREIGN KEY(agent_id) REFERENCES agents (id) ON DELETE RESTRICT,
    CONSTRAINT fk_executions_capability_id FOREIGN KEY(capability_id) REFERENCES agent_capabilities (id) ON DELETE RESTRICT,
    CONSTRAINT fk_executions_session_id FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE SET NULL,
    CONSTRAINT fk_executions_requested_by FOREIGN KEY(requested_by) REFERENCES users (id) ON DELETE RESTRICT,
    CONSTRAINT ck_executions_status CHECK (status IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled', 'timed_out')),
    CONSTRAINT ck_executions_mode CHECK (mode IN ('template', 'stream-json', 'app-server', 'acp', 'tmux')),
    CONSTRAINT fk_executions_parent_execution_id FOREIGN KEY(parent_execution_id) REFERENCES executions (id) ON DELETE SET NULL,
    CONSTRAINT ck_executions_wait_reason CHECK (wait_reason IN ('retry', 'usage_limit', 'rate_limit', 'failures', 'scheduled')),
    CONSTRAINT ck_executions_end_reason CHECK (end_reason IN ('exited', 'stopped', 'timed_out', 'start_failed', 'terminated', 'lost', 'refused'))
)
""",
        "CREATE INDEX ix_executions_agent_id_status ON executions (agent_id, status)",
        "CREATE INDEX ix_executions_queued ON executions (priority, queued_at, id) WHERE status = 'queued'",
        "CREATE INDEX ix_executions_created_at ON executions (created_at)",
        "CREATE INDEX ix_executions_heartbeat_at ON executions (heartbeat_at)",
        "CREATE UNIQUE INDEX uq_executions_open_task_id ON executions (task_id) WHERE status IN ('cancelling', 'queued', 'running')",
        "CREATE INDEX ix_executions_task_id_created_at ON executions (task_id, created_at)",
        "CREATE INDEX ix_executions_session_id ON executions (session_id)",
    ),
    "execution_commands": (
        """
CREATE TABLE execution_commands (
    id VARCHAR(36) NOT NULL,
    execution_id VARCHAR(36) NOT NULL,
    actor_type VARCHAR(6) NOT NULL,
    actor_id VARCHAR,
    type VARCHAR(6) NOT NULL,
    payload TEXT DEFAULT '{}' NOT NULL,
    created_at VARCHAR(24) NOT NULL,
    delivered_at VARCHAR(24),
    CONSTRAINT pk_execution_commands PRIMARY KEY (id),
    CONSTRAINT fk_execution_commands_execution_id FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE CASCADE,
    CONSTRAINT ck_execution_commands_actor_type CHECK (actor_type IN ('user', 'agent', 'system')),
    CONSTRAINT ck_execution_commands_type CHECK (type IN ('stop', 'kill', 'pause', 'resume'))
)
""",
        "CREATE INDEX ix_execution_commands_undelivered ON execution_commands (execution_id, id) WHERE delivered_at IS NULL",
    ),
    "agents": (
        """
CREATE TABLE agents (
    id VARCHAR(36) NOT NULL,
    owner_id VARCHAR(36) NOT NULL,
    workspace_id VARCHAR(36),
    name VARCHAR NOT NULL,
    slug VARCHAR NOT NULL,
    kind VARCHAR(7) NOT NULL,
    tool_type VARCHAR(10) NOT NULL,
    binary_path VARCHAR NOT NULL,
    base_args TEXT DEFAULT '[]' NOT NULL,
    working_dir VARCHAR,
    env_allowlist TEXT DEFAULT '[]' NOT NULL,
    is_active BOOLEAN DEFAULT true NOT NULL,
    max_concurrent INTEGER DEFAULT 1 NOT NULL,
    discovery_method VARCHAR(9) NOT NULL,
    version VARCHAR,
    package_name VARCHAR,
    package_section VARCHAR,
    mcp_enabled BOOLEAN DEFAULT false NOT NULL,
    session_config TEXT,
    role VARCHAR,
    model VARCHAR,
    model_tier INTEGER,
    temperature FLOAT,
    instructions VARCHAR,
    last_scanned_at VARCHAR(24),
    failure_streak INTEGER DEFAULT 0 NOT NULL,
    parked_until VARCHAR(24),
    park_reason VARCHAR(11),
    park_note VARCHAR,
    metadata TEXT DEFAULT '{}' NOT NULL,
    created_at VARCHAR(24) NOT NULL,
    updated_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_agents PRIMARY KEY (id),
    CONSTRAINT uq_agents_slug UNIQUE (slug),
    CONSTRAINT ck_agents_model_tier CHECK (model_tier BETWEEN 1 AND 4),
    CONSTRAINT ck_agents_max_concurrent_not_negative CHECK (max_concurrent >= 0),
    CONSTRAINT ck_agents_temperature_not_negative CHECK (temperature >= 0),
    CONSTRAINT ck_agents_failure_streak_not_negative CHECK (failure_streak >= 0),
    CONSTRAINT fk_agents_owner_id FOREIGN KEY(owner_id) REFERENCES users (id) ON DELETE RESTRICT,
    CONSTRAINT fk_agents_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE,
    CONSTRAINT ck_agents_kind CHECK (kind IN ('builtin', 'custom')),
    CONSTRAINT ck_agents_tool_type CHECK (tool_type IN ('cli-tool', 'ai-agent', 'daemon', 'shell-util')),
    CONSTRAINT ck_agents_discovery_method CHECK (discovery_method IN ('preset', 'path_scan', 'manual')),
    CONSTRAINT ck_agents_park_reason CHECK (park_reason IN ('failures', 'usage_limit'))
)
""",
        "CREATE INDEX ix_agents_workspace_id_is_active ON agents (workspace_id, is_active)",
    ),
}
_FILLED: dict[str, dict[str, str]] = {
    "executions": {
        "attempt": "retry_count",
        "queued_at": "coalesce(not_before, created_at)",
        "priority": "(SELECT tasks.priority FROM tasks WHERE tasks.id = old.task_id)",
        "wait_reason": "CASE WHEN status = 'queued' AND not_before IS NOT NULL THEN 'retry' END",
        "end_reason": """CASE
            WHEN status = 'cancelled' THEN 'stopped'
            WHEN status = 'timed_out' THEN 'timed_out'
            WHEN status = 'failed' AND error LIKE 'lost: %' THEN 'lost'
            WHEN status IN ('failed', 'succeeded') THEN 'exited' END""",
    },
}
"""What a new column gets for the rows that are there, in terms of their old columns; others get their default."""


def upgrade() -> None:
    """Make each changed table again beside the old one, copy all rows, and drop the old one.

    Its own text is what a fresh database gets. References from other tables are by name, and stay.
    """
    connection = op.get_bind()
    connection.exec_driver_sql("PRAGMA legacy_alter_table = ON")
    for table, statements in _NEW_TABLES.items():
        for (index,) in connection.exec_driver_sql(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?", (table,)
        ).fetchall():
            connection.exec_driver_sql(f"DROP INDEX {index}")
        counted = connection.exec_driver_sql(
            "SELECT name, seq FROM sqlite_sequence WHERE name = ?", (table,)
        ).fetchall()
        connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO old")
        connection.exec_driver_sql(statements[0])
        kept = [row[1] for row in connection.exec_driver_sql("PRAGMA table_info(old)").fetchall()]
        filled = _FILLED.get(table, {})
        connection.exec_driver_sql(
            f"INSERT INTO {table} ({', '.join([*kept, *filled])}) "
            f"SELECT {', '.join([*kept, *filled.values()])} FROM old ORDER BY rowid"
        )
        connection.exec_driver_sql("DROP TABLE old")
        for name, last in counted:
            # Copying counts up to the last row only, and no id may be used twice.
            connection.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            connection.exec_driver_sql("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, last))
        for statement in statements[1:]:
            connection.exec_driver_sql(statement)
    connection.exec_driver_sql("PRAGMA legacy_alter_table = OFF")
