"""Conversations: what agents say, do and ask for, and the decisions on it.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_REBUILT: dict[str, tuple[str, ...]] = {
    "agent_capabilities": (
        """
CREATE TABLE agent_capabilities (
    id VARCHAR(36) NOT NULL,
    agent_id VARCHAR(36) NOT NULL,
    "key" VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    description VARCHAR,
    source VARCHAR(15) NOT NULL,
    interaction_mode VARCHAR(8) NOT NULL,
    command_tokens TEXT,
    prompt_template VARCHAR,
    mode VARCHAR(11),
    args_schema TEXT DEFAULT '{}' NOT NULL,
    requires_approval BOOLEAN DEFAULT false NOT NULL,
    is_enabled BOOLEAN DEFAULT true NOT NULL,
    danger_level INTEGER DEFAULT 0 NOT NULL,
    timeout_s INTEGER DEFAULT 300 NOT NULL,
    max_output_bytes BIGINT DEFAULT 10485760 NOT NULL,
    created_at VARCHAR(24) NOT NULL,
    updated_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_agent_capabilities PRIMARY KEY (id),
    CONSTRAINT uq_agent_capabilities_agent_id_key UNIQUE (agent_id, "key"),
    CONSTRAINT ck_agent_capabilities_template_has_command_tokens CHECK (interaction_mode <> 'template' OR command_tokens IS NOT NULL),
    CONSTRAINT ck_agent_capabilities_danger_level CHECK (danger_level BETWEEN 0 AND 3),
    CONSTRAINT ck_agent_capabilities_timeout_s_not_negative CHECK (timeout_s >= 0),
    CONSTRAINT ck_agent_capabilities_max_output_bytes_not_negative CHECK (max_output_bytes >= 0),
    CONSTRAINT fk_agent_capabilities_agent_id FOREIGN KEY(agent_id) REFERENCES agents (id) ON DELETE CASCADE,
    CONSTRAINT ck_agent_capabilities_source CHECK (source IN ('manual', 'builtin', 'preset', 'scan_help', 'scan_completion', 'scan_fig', 'scan_mcp', 'scan_man', 'llm_generated')),
    CONSTRAINT ck_agent_capabilities_interaction_mode CHECK (interaction_mode IN ('template', 'prompt')),
    CONSTRAINT ck_agent_capabilities_mode CHECK (mode IN ('template', 'stream-json', 'app-server', 'acp', 'tmux'))
)
""",
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
    activity VARCHAR(7),
    activity_note VARCHAR,
    activity_source VARCHAR,
    activity_at VARCHAR(24),
    is_held BOOLEAN DEFAULT false NOT NULL,
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
    CONSTRAINT ck_executions_end_reason CHECK (end_reason IN ('exited', 'finished', 'stopped', 'timed_out', 'start_failed', 'terminated', 'lost', 'refused')),
    CONSTRAINT ck_executions_activity CHECK (activity IN ('working', 'waiting', 'unknown'))
)
""",
        "CREATE INDEX ix_executions_agent_id_status ON executions (agent_id, status)",
        "CREATE INDEX ix_executions_created_at ON executions (created_at)",
        "CREATE INDEX ix_executions_heartbeat_at ON executions (heartbeat_at)",
        "CREATE INDEX ix_executions_queued ON executions (priority, queued_at, id) WHERE status = 'queued'",
        "CREATE INDEX ix_executions_session_id ON executions (session_id)",
        "CREATE INDEX ix_executions_task_id_created_at ON executions (task_id, created_at)",
        "CREATE UNIQUE INDEX uq_executions_open_task_id ON executions (task_id) WHERE status IN ('cancelling', 'queued', 'running')",
    ),
    "execution_commands": (
        """
CREATE TABLE execution_commands (
    id VARCHAR(36) NOT NULL,
    execution_id VARCHAR(36) NOT NULL,
    actor_type VARCHAR(6) NOT NULL,
    actor_id VARCHAR,
    type VARCHAR(19) NOT NULL,
    payload TEXT DEFAULT '{}' NOT NULL,
    created_at VARCHAR(24) NOT NULL,
    delivered_at VARCHAR(24),
    is_queued BOOLEAN DEFAULT false NOT NULL,
    obeyed_at VARCHAR(24),
    error VARCHAR,
    CONSTRAINT pk_execution_commands PRIMARY KEY (id),
    CONSTRAINT fk_execution_commands_execution_id FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE CASCADE,
    CONSTRAINT ck_execution_commands_actor_type CHECK (actor_type IN ('user', 'agent', 'system')),
    CONSTRAINT ck_execution_commands_type CHECK (type IN ('stop', 'kill', 'pause', 'resume', 'message', 'answer', 'interrupt', 'finish', 'set_model', 'set_permission_mode', 'type'))
)
""",
        "CREATE INDEX ix_execution_commands_undelivered ON execution_commands (execution_id, id) WHERE delivered_at IS NULL",
    ),
    "messages": (
        """
CREATE TABLE messages (
    id VARCHAR(36) NOT NULL,
    session_id VARCHAR(36) NOT NULL,
    execution_id VARCHAR(36),
    message_ref VARCHAR,
    role VARCHAR(9) NOT NULL,
    content VARCHAR NOT NULL,
    is_thinking BOOLEAN DEFAULT false NOT NULL,
    parent_ref VARCHAR,
    created_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_messages PRIMARY KEY (id),
    CONSTRAINT uq_messages_execution_id_message_ref UNIQUE (execution_id, message_ref),
    CONSTRAINT fk_messages_session_id FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE,
    CONSTRAINT fk_messages_execution_id FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE SET NULL,
    CONSTRAINT ck_messages_role CHECK (role IN ('user', 'assistant', 'system', 'tool'))
)
""",
        "CREATE INDEX ix_messages_session_id_id ON messages (session_id, id)",
    ),
    "operations": (
        """
CREATE TABLE operations (
    id VARCHAR(36) NOT NULL,
    session_id VARCHAR(36) NOT NULL,
    execution_id VARCHAR(36),
    operation_ref VARCHAR,
    parent_ref VARCHAR,
    answer_key VARCHAR,
    tool_name VARCHAR NOT NULL,
    type VARCHAR(7) NOT NULL,
    target VARCHAR NOT NULL,
    input_summary VARCHAR DEFAULT '' NOT NULL,
    output_summary VARCHAR DEFAULT '' NOT NULL,
    input_tokens BIGINT DEFAULT 0 NOT NULL,
    output_tokens BIGINT DEFAULT 0 NOT NULL,
    cost_nano BIGINT DEFAULT 0 NOT NULL,
    status VARCHAR(9) NOT NULL,
    result TEXT,
    error VARCHAR,
    approved BOOLEAN DEFAULT false NOT NULL,
    approved_by VARCHAR(36),
    started_at VARCHAR(24) NOT NULL,
    finished_at VARCHAR(24),
    duration_ms BIGINT,
    created_at VARCHAR(24) NOT NULL,
    updated_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_operations PRIMARY KEY (id),
    CONSTRAINT ck_operations_input_tokens_not_negative CHECK (input_tokens >= 0),
    CONSTRAINT ck_operations_output_tokens_not_negative CHECK (output_tokens >= 0),
    CONSTRAINT ck_operations_cost_nano_not_negative CHECK (cost_nano >= 0),
    CONSTRAINT uq_operations_execution_id_operation_ref UNIQUE (execution_id, operation_ref),
    CONSTRAINT ck_operations_duration_ms_not_negative CHECK (duration_ms >= 0),
    CONSTRAINT fk_operations_session_id FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE,
    CONSTRAINT fk_operations_execution_id FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE SET NULL,
    CONSTRAINT ck_operations_type CHECK (type IN ('read', 'write', 'execute', 'query')),
    CONSTRAINT ck_operations_status CHECK (status IN ('pending', 'success', 'failed', 'blocked', 'cancelled')),
    CONSTRAINT fk_operations_approved_by FOREIGN KEY(approved_by) REFERENCES users (id) ON DELETE SET NULL
)
""",
        "CREATE INDEX ix_operations_pending ON operations (started_at) WHERE status = 'pending'",
        "CREATE INDEX ix_operations_execution_id_answer_key ON operations (execution_id, answer_key)",
        "CREATE INDEX ix_operations_session_id_id ON operations (session_id, id)",
    ),
    "llm_interactions": (
        """
CREATE TABLE llm_interactions (
    id VARCHAR(36) NOT NULL,
    "key" VARCHAR NOT NULL,
    session_id VARCHAR(36) NOT NULL,
    execution_id VARCHAR(36),
    agent_id VARCHAR(36),
    model VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    prompt VARCHAR,
    response VARCHAR,
    prompt_tokens BIGINT DEFAULT 0 NOT NULL,
    cache_read_tokens BIGINT DEFAULT 0 NOT NULL,
    cache_write_5m_tokens BIGINT DEFAULT 0 NOT NULL,
    cache_write_1h_tokens BIGINT DEFAULT 0 NOT NULL,
    response_tokens BIGINT DEFAULT 0 NOT NULL,
    reasoning_tokens BIGINT DEFAULT 0 NOT NULL,
    latency_ms BIGINT,
    success BOOLEAN NOT NULL,
    error_message VARCHAR,
    cost_nano BIGINT,
    cost_source VARCHAR NOT NULL,
    price_version VARCHAR NOT NULL,
    is_provisional BOOLEAN DEFAULT false NOT NULL,
    at_ms BIGINT NOT NULL,
    day_local VARCHAR(10) NOT NULL,
    created_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_llm_interactions PRIMARY KEY (id),
    CONSTRAINT uq_llm_interactions_agent_id_key UNIQUE (agent_id, "key"),
    CONSTRAINT ck_llm_interactions_prompt_tokens_not_negative CHECK (prompt_tokens >= 0),
    CONSTRAINT ck_llm_interactions_cache_read_tokens_not_negative CHECK (cache_read_tokens >= 0),
    CONSTRAINT ck_llm_interactions_cache_write_5m_tokens_not_negative CHECK (cache_write_5m_tokens >= 0),
    CONSTRAINT ck_llm_interactions_cache_write_1h_tokens_not_negative CHECK (cache_write_1h_tokens >= 0),
    CONSTRAINT ck_llm_interactions_response_tokens_not_negative CHECK (response_tokens >= 0),
    CONSTRAINT ck_llm_interactions_reasoning_tokens_not_negative CHECK (reasoning_tokens >= 0),
    CONSTRAINT ck_llm_interactions_latency_ms_not_negative CHECK (latency_ms >= 0),
    CONSTRAINT ck_llm_interactions_cost_nano_not_negative CHECK (cost_nano >= 0),
    CONSTRAINT fk_llm_interactions_session_id FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE RESTRICT,
    CONSTRAINT fk_llm_interactions_execution_id FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE SET NULL,
    CONSTRAINT fk_llm_interactions_agent_id FOREIGN KEY(agent_id) REFERENCES agents (id) ON DELETE RESTRICT
)
""",
        "CREATE INDEX ix_llm_interactions_at_ms ON llm_interactions (at_ms)",
        "CREATE INDEX ix_llm_interactions_day_local ON llm_interactions (day_local)",
        "CREATE INDEX ix_llm_interactions_execution_id ON llm_interactions (execution_id)",
        "CREATE INDEX ix_llm_interactions_session_id_at_ms ON llm_interactions (session_id, at_ms)",
        'CREATE UNIQUE INDEX uq_llm_interactions_key_without_agent ON llm_interactions ("key") WHERE agent_id IS NULL',
    ),
}
"""Tables that are made again beside the old ones, since SQLite cannot change their constraints."""

_ADDED: dict[str, tuple[str, ...]] = {
    "approval_rules": (
        """
CREATE TABLE approval_rules (
    id VARCHAR(36) NOT NULL,
    workspace_id VARCHAR(36),
    agent_id VARCHAR(36),
    decision VARCHAR(5) NOT NULL,
    tool VARCHAR DEFAULT '*' NOT NULL,
    path VARCHAR,
    command_prefix VARCHAR,
    note VARCHAR DEFAULT '' NOT NULL,
    is_enabled BOOLEAN DEFAULT true NOT NULL,
    created_at VARCHAR(24) NOT NULL,
    updated_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_approval_rules PRIMARY KEY (id),
    CONSTRAINT fk_approval_rules_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE,
    CONSTRAINT fk_approval_rules_agent_id FOREIGN KEY(agent_id) REFERENCES agents (id) ON DELETE CASCADE,
    CONSTRAINT ck_approval_rules_decision CHECK (decision IN ('allow', 'ask', 'deny'))
)
""",
        "CREATE INDEX ix_approval_rules_agent_id ON approval_rules (agent_id)",
        "CREATE INDEX ix_approval_rules_workspace_id ON approval_rules (workspace_id)",
    ),
    "approvals": (
        """
CREATE TABLE approvals (
    id VARCHAR(36) NOT NULL,
    execution_id VARCHAR(36) NOT NULL,
    session_id VARCHAR(36),
    operation_id VARCHAR(36),
    request_ref VARCHAR NOT NULL,
    request_id VARCHAR NOT NULL,
    ask_kind VARCHAR(10) NOT NULL,
    tool_name VARCHAR DEFAULT '' NOT NULL,
    type VARCHAR(7),
    target VARCHAR DEFAULT '' NOT NULL,
    title VARCHAR NOT NULL,
    detail VARCHAR DEFAULT '' NOT NULL,
    reason VARCHAR DEFAULT '' NOT NULL,
    tool_input TEXT DEFAULT '{}' NOT NULL,
    input_digest VARCHAR DEFAULT '' NOT NULL,
    can_allow_for_session BOOLEAN DEFAULT false NOT NULL,
    can_edit_input BOOLEAN DEFAULT false NOT NULL,
    questions TEXT DEFAULT '[]' NOT NULL,
    status VARCHAR(9) NOT NULL,
    scope VARCHAR(7),
    decided_by_type VARCHAR(6),
    decided_by_id VARCHAR,
    decision_reason VARCHAR,
    rule_id VARCHAR(36),
    command_id VARCHAR(36),
    asked_at VARCHAR(24) NOT NULL,
    decided_at VARCHAR(24),
    closed_at VARCHAR(24),
    created_at VARCHAR(24) NOT NULL,
    updated_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_approvals PRIMARY KEY (id),
    CONSTRAINT uq_approvals_execution_id_request_ref UNIQUE (execution_id, request_ref),
    CONSTRAINT fk_approvals_execution_id FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE CASCADE,
    CONSTRAINT fk_approvals_session_id FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE,
    CONSTRAINT fk_approvals_operation_id FOREIGN KEY(operation_id) REFERENCES operations (id) ON DELETE SET NULL,
    CONSTRAINT ck_approvals_ask_kind CHECK (ask_kind IN ('permission', 'question', 'plan', 'start', 'dialog')),
    CONSTRAINT ck_approvals_type CHECK (type IN ('read', 'write', 'execute', 'query')),
    CONSTRAINT ck_approvals_status CHECK (status IN ('pending', 'allowed', 'denied', 'answered', 'withdrawn', 'expired')),
    CONSTRAINT ck_approvals_scope CHECK (scope IN ('once', 'session', 'always')),
    CONSTRAINT ck_approvals_decided_by_type CHECK (decided_by_type IN ('user', 'agent', 'system')),
    CONSTRAINT fk_approvals_rule_id FOREIGN KEY(rule_id) REFERENCES approval_rules (id) ON DELETE SET NULL
)
""",
        "CREATE INDEX ix_approvals_asked_at ON approvals (asked_at)",
        "CREATE INDEX ix_approvals_pending ON approvals (asked_at) WHERE status = 'pending'",
        "CREATE INDEX ix_approvals_session_id ON approvals (session_id)",
    ),
}

_INDEXES = (
    "CREATE INDEX ix_sessions_session_ref ON sessions (session_ref)",
    "CREATE INDEX ix_sessions_started_at ON sessions (started_at)",
)
"""New indexes of tables that stay as they are."""


def upgrade() -> None:
    """Make each changed table again beside the old one, copy all rows, and drop the old one; then add the new tables.

    Their text is what a fresh database gets. References from other tables are by name, and stay.
    """
    connection = op.get_bind()
    connection.exec_driver_sql("PRAGMA legacy_alter_table = ON")
    for table, statements in _REBUILT.items():
        for (index,) in connection.exec_driver_sql(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?", (table,)
        ).fetchall():
            connection.exec_driver_sql(f"DROP INDEX {index}")
        connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO old")
        connection.exec_driver_sql(statements[0])
        kept = ", ".join(row[1] for row in connection.exec_driver_sql("PRAGMA table_info(old)").fetchall())
        connection.exec_driver_sql(f"INSERT INTO {table} ({kept}) SELECT {kept} FROM old ORDER BY rowid")
        connection.exec_driver_sql("DROP TABLE old")
        for statement in statements[1:]:
            connection.exec_driver_sql(statement)
    connection.exec_driver_sql("PRAGMA legacy_alter_table = OFF")
    for statements in _ADDED.values():
        for statement in statements:
            connection.exec_driver_sql(statement)
    for statement in _INDEXES:
        connection.exec_driver_sql(statement)
