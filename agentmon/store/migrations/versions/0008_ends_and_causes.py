"""An end phase of executions, causes of commands, and names by which clients repeat a request safely.

Revision ID: 0008
Revises: 0007
"""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_REBUILT = {
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
    ending TEXT,
    journal_problem VARCHAR,
    working_dir VARCHAR,
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
    CONSTRAINT ck_executions_status CHECK (status IN ('queued', 'running', 'cancelling', 'finalizing', 'succeeded', 'failed', 'cancelled', 'timed_out')),
    CONSTRAINT ck_executions_mode CHECK (mode IN ('template', 'stream-json', 'app-server', 'acp', 'tmux')),
    CONSTRAINT fk_executions_parent_execution_id FOREIGN KEY(parent_execution_id) REFERENCES executions (id) ON DELETE SET NULL,
    CONSTRAINT ck_executions_wait_reason CHECK (wait_reason IN ('retry', 'usage_limit', 'rate_limit', 'failures', 'scheduled', 'budget')),
    CONSTRAINT ck_executions_end_reason CHECK (end_reason IN ('exited', 'finished', 'stopped', 'timed_out', 'start_failed', 'terminated', 'lost', 'refused')),
    CONSTRAINT ck_executions_activity CHECK (activity IN ('working', 'waiting', 'unknown'))
)
""",
        """CREATE INDEX ix_executions_agent_id_created_at_id ON executions (agent_id, created_at, id)""",
        """CREATE INDEX ix_executions_agent_id_status ON executions (agent_id, status)""",
        """CREATE INDEX ix_executions_created_at ON executions (created_at)""",
        """CREATE INDEX ix_executions_heartbeat_at ON executions (heartbeat_at)""",
        """CREATE INDEX ix_executions_queued ON executions (priority, queued_at, id) WHERE status = 'queued'""",
        """CREATE INDEX ix_executions_session_id ON executions (session_id)""",
        """CREATE INDEX ix_executions_task_id_created_at ON executions (task_id, created_at)""",
        """CREATE INDEX ix_executions_unsuccessful ON executions (task_id, created_at, id) WHERE status IN ('failed', 'timed_out')""",
        """CREATE UNIQUE INDEX uq_executions_open_task_id ON executions (task_id) WHERE status IN ('cancelling', 'finalizing', 'queued', 'running')""",
        """CREATE TRIGGER tr_executions_log_came AFTER INSERT ON executions WHEN NEW.log_byte_size > 0 BEGIN INSERT INTO unindexed_logs (execution_id) VALUES (NEW.id) ON CONFLICT DO NOTHING; END""",
        """CREATE TRIGGER tr_executions_log_changed AFTER UPDATE OF log_byte_size, log_file_path, log_removed_at, ended_at ON executions WHEN NEW.log_byte_size IS NOT OLD.log_byte_size OR NEW.log_file_path IS NOT OLD.log_file_path OR NEW.log_removed_at IS NOT OLD.log_removed_at OR (NEW.ended_at IS NOT OLD.ended_at AND NEW.log_byte_size > 0) BEGIN INSERT INTO unindexed_logs (execution_id) VALUES (NEW.id) ON CONFLICT DO NOTHING; END""",
    ),
    "execution_commands": (
        """
CREATE TABLE execution_commands (
    id VARCHAR(36) NOT NULL,
    execution_id VARCHAR(36) NOT NULL,
    actor_type VARCHAR(6) NOT NULL,
    actor_id VARCHAR,
    cause VARCHAR(6) DEFAULT 'person' NOT NULL,
    attempt INTEGER DEFAULT 0 NOT NULL,
    type VARCHAR(19) NOT NULL,
    payload TEXT DEFAULT '{}' NOT NULL,
    created_at VARCHAR(24) NOT NULL,
    delivered_at VARCHAR(24),
    is_queued BOOLEAN DEFAULT false NOT NULL,
    obeyed_at VARCHAR(24),
    error VARCHAR,
    CONSTRAINT pk_execution_commands PRIMARY KEY (id),
    CONSTRAINT ck_execution_commands_attempt_not_negative CHECK (attempt >= 0),
    CONSTRAINT fk_execution_commands_execution_id FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE CASCADE,
    CONSTRAINT ck_execution_commands_actor_type CHECK (actor_type IN ('user', 'agent', 'system')),
    CONSTRAINT ck_execution_commands_cause CHECK (cause IN ('person', 'agent', 'rule', 'budget', 'system')),
    CONSTRAINT ck_execution_commands_type CHECK (type IN ('stop', 'kill', 'pause', 'resume', 'message', 'answer', 'interrupt', 'finish', 'set_model', 'set_permission_mode', 'type'))
)
""",
        """CREATE INDEX ix_execution_commands_execution_id_id ON execution_commands (execution_id, id)""",
        """CREATE INDEX ix_execution_commands_undelivered ON execution_commands (id) WHERE delivered_at IS NULL""",
    ),
}
"""Tables that are made again, since SQLite cannot change a constraint, with their indexes and triggers."""

_ADDED = (
    """
CREATE TABLE idempotency_keys (
    actor_id VARCHAR NOT NULL,
    "key" VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    result_id VARCHAR NOT NULL,
    created_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_idempotency_keys PRIMARY KEY (actor_id, "key")
)
""",
    "CREATE INDEX ix_idempotency_keys_created_at ON idempotency_keys (created_at)",
    "DROP TRIGGER tr_task_events_no_delete",
    """CREATE TRIGGER tr_task_events_no_delete BEFORE DELETE ON task_events
    WHEN OLD.created_at >= coalesce((SELECT trim(value, '"') FROM settings WHERE key = 'audit.thinned_before'), '')
    BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END""",
    "ALTER TABLE agents ADD COLUMN parked_at VARCHAR(24)",
    "UPDATE agents SET parked_at = updated_at WHERE parked_until IS NOT NULL",
)

_CAUSES = """
CASE WHEN actor_type = 'agent' THEN 'agent' WHEN actor_type = 'user' THEN 'person'
    WHEN type = 'answer' THEN 'rule' ELSE 'budget' END
"""
"""Up to now the worker alone wrote commands as the system: answers by rules, and the ends that budgets ask for."""


def upgrade() -> None:
    """Make the two tables again with all their rows, and add the new one.

    Their text is what a fresh database gets. References from other tables are by name, and stay.
    """
    connection = op.get_bind()
    connection.exec_driver_sql("PRAGMA legacy_alter_table = ON")
    for table, statements in _REBUILT.items():
        for (index,) in connection.exec_driver_sql(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?", (table,)
        ).fetchall():
            connection.exec_driver_sql(f"DROP INDEX {index}")
        for (trigger,) in connection.exec_driver_sql(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", (table,)
        ).fetchall():
            connection.exec_driver_sql(f"DROP TRIGGER {trigger}")
        connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO old")
        connection.exec_driver_sql(statements[0])
        kept = ", ".join(row[1] for row in connection.exec_driver_sql("PRAGMA table_info(old)").fetchall())
        into, taken = kept, kept
        if table == "execution_commands":
            into, taken = f"{kept}, cause", f"{kept}, {_CAUSES}"
        connection.exec_driver_sql(f"INSERT INTO {table} ({into}) SELECT {taken} FROM old ORDER BY rowid")
        connection.exec_driver_sql("DROP TABLE old")
        for statement in statements[1:]:
            connection.exec_driver_sql(statement)
    connection.exec_driver_sql("PRAGMA legacy_alter_table = OFF")
    connection.exec_driver_sql(
        "UPDATE execution_commands SET attempt = (SELECT attempt FROM executions WHERE id = execution_id) "
        "WHERE delivered_at IS NULL OR execution_id IN "
        "(SELECT id FROM executions WHERE status IN ('cancelling', 'running'))"
    )
    for statement in _ADDED:
        connection.exec_driver_sql(statement)
