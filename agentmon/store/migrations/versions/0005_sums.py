"""Sums of usage by session and month, of sessions and tool calls by day, limits of vendors, and read history.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from alembic import op

from agentmon.schedule import local_zone_name

if TYPE_CHECKING:
    from sqlalchemy import Connection

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_ADDED = (
    """
CREATE TABLE daily_model_usage (
    day_local VARCHAR(10) NOT NULL,
    agent_id VARCHAR(36) NOT NULL,
    model VARCHAR NOT NULL,
    answers BIGINT NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    cache_read_tokens BIGINT NOT NULL,
    cache_write_5m_tokens BIGINT NOT NULL,
    cache_write_1h_tokens BIGINT NOT NULL,
    response_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    web_searches BIGINT NOT NULL,
    cost_nano BIGINT NOT NULL,
    unpriced_answers BIGINT NOT NULL,
    reported_answers BIGINT NOT NULL,
    CONSTRAINT pk_daily_model_usage PRIMARY KEY (day_local, agent_id, model),
    CONSTRAINT ck_daily_model_usage_answers_not_negative CHECK (answers >= 0),
    CONSTRAINT ck_daily_model_usage_unpriced_answers_not_negative CHECK (unpriced_answers >= 0),
    CONSTRAINT ck_daily_model_usage_reported_answers_not_negative CHECK (reported_answers >= 0)
)
 WITHOUT ROWID
""",
    """
CREATE TABLE monthly_usage (
    month_local VARCHAR(7) NOT NULL,
    agent_id VARCHAR(36) NOT NULL,
    model VARCHAR NOT NULL,
    project VARCHAR NOT NULL,
    answers BIGINT NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    cache_read_tokens BIGINT NOT NULL,
    cache_write_5m_tokens BIGINT NOT NULL,
    cache_write_1h_tokens BIGINT NOT NULL,
    response_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    web_searches BIGINT NOT NULL,
    cost_nano BIGINT NOT NULL,
    unpriced_answers BIGINT NOT NULL,
    reported_answers BIGINT NOT NULL,
    CONSTRAINT pk_monthly_usage PRIMARY KEY (month_local, agent_id, model, project),
    CONSTRAINT ck_monthly_usage_answers_not_negative CHECK (answers >= 0),
    CONSTRAINT ck_monthly_usage_unpriced_answers_not_negative CHECK (unpriced_answers >= 0),
    CONSTRAINT ck_monthly_usage_reported_answers_not_negative CHECK (reported_answers >= 0)
)
 WITHOUT ROWID
""",
    """
CREATE TABLE session_usage (
    day_local VARCHAR(10) NOT NULL,
    session_id VARCHAR(36) NOT NULL,
    execution_id VARCHAR(36) NOT NULL,
    agent_id VARCHAR(36) NOT NULL,
    model VARCHAR NOT NULL,
    project VARCHAR NOT NULL,
    answers BIGINT NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    cache_read_tokens BIGINT NOT NULL,
    cache_write_5m_tokens BIGINT NOT NULL,
    cache_write_1h_tokens BIGINT NOT NULL,
    response_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    web_searches BIGINT NOT NULL,
    cost_nano BIGINT NOT NULL,
    unpriced_answers BIGINT NOT NULL,
    reported_answers BIGINT NOT NULL,
    CONSTRAINT pk_session_usage PRIMARY KEY (day_local, session_id, execution_id, agent_id, model, project),
    CONSTRAINT ck_session_usage_answers_not_negative CHECK (answers >= 0),
    CONSTRAINT ck_session_usage_unpriced_answers_not_negative CHECK (unpriced_answers >= 0),
    CONSTRAINT ck_session_usage_reported_answers_not_negative CHECK (reported_answers >= 0)
)
 WITHOUT ROWID
""",
    "CREATE INDEX ix_session_usage_execution_id ON session_usage (execution_id) WHERE execution_id <> ''",
    "CREATE INDEX ix_session_usage_session_id ON session_usage (session_id)",
    """
CREATE TABLE daily_sessions (
    day_local VARCHAR(10) NOT NULL,
    user_id VARCHAR(36) NOT NULL,
    agent_id VARCHAR(36) NOT NULL,
    project VARCHAR NOT NULL,
    sessions BIGINT NOT NULL,
    CONSTRAINT pk_daily_sessions PRIMARY KEY (day_local, user_id, agent_id, project),
    CONSTRAINT ck_daily_sessions_sessions_not_negative CHECK (sessions >= 0)
)
 WITHOUT ROWID
""",
    """
CREATE TABLE daily_operations (
    day_local VARCHAR(10) NOT NULL,
    user_id VARCHAR(36) NOT NULL,
    agent_id VARCHAR(36) NOT NULL,
    project VARCHAR NOT NULL,
    type VARCHAR(7) NOT NULL,
    operations BIGINT NOT NULL,
    successes BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    blocked BIGINT NOT NULL,
    CONSTRAINT pk_daily_operations PRIMARY KEY (day_local, user_id, agent_id, project, type),
    CONSTRAINT ck_daily_operations_operations_not_negative CHECK (operations >= 0),
    CONSTRAINT ck_daily_operations_successes_not_negative CHECK (successes >= 0),
    CONSTRAINT ck_daily_operations_failures_not_negative CHECK (failures >= 0),
    CONSTRAINT ck_daily_operations_blocked_not_negative CHECK (blocked >= 0),
    CONSTRAINT ck_daily_operations_type CHECK (type IN ('read', 'write', 'execute', 'query'))
)
 WITHOUT ROWID
""",
    """
CREATE TABLE limit_snapshots (
    id VARCHAR(36) NOT NULL,
    agent_id VARCHAR(36) NOT NULL,
    account VARCHAR DEFAULT '' NOT NULL,
    window VARCHAR NOT NULL,
    window_minutes INTEGER,
    used_percent FLOAT NOT NULL,
    resets_at_ms BIGINT,
    captured_at_ms BIGINT NOT NULL,
    seen_at_ms BIGINT NOT NULL,
    source VARCHAR NOT NULL,
    created_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_limit_snapshots PRIMARY KEY (id),
    CONSTRAINT uq_limit_snapshots_agent_id_account_window_captured_at_ms UNIQUE (agent_id, account, window, captured_at_ms),
    CONSTRAINT ck_limit_snapshots_used_percent_not_negative CHECK (used_percent >= 0),
    CONSTRAINT fk_limit_snapshots_agent_id FOREIGN KEY(agent_id) REFERENCES agents (id) ON DELETE CASCADE
)
""",
    """
CREATE TABLE task_labels (
    task_id VARCHAR(36) NOT NULL,
    label VARCHAR NOT NULL,
    CONSTRAINT pk_task_labels PRIMARY KEY (task_id, label),
    CONSTRAINT fk_task_labels_task_id FOREIGN KEY(task_id) REFERENCES tasks (id) ON DELETE CASCADE
)
 WITHOUT ROWID
""",
    "CREATE INDEX ix_task_labels_label ON task_labels (label)",
    """
CREATE TABLE history_files (
    id VARCHAR(36) NOT NULL,
    agent_slug VARCHAR NOT NULL,
    path VARCHAR NOT NULL,
    thread_key VARCHAR NOT NULL,
    inode BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    mtime_ns BIGINT NOT NULL,
    read_offset BIGINT NOT NULL,
    head_hash VARCHAR NOT NULL,
    parser_version INTEGER NOT NULL,
    state TEXT DEFAULT '{}' NOT NULL,
    created_at VARCHAR(24) NOT NULL,
    updated_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_history_files PRIMARY KEY (id),
    CONSTRAINT uq_history_files_path UNIQUE (path),
    CONSTRAINT ck_history_files_size_bytes_not_negative CHECK (size_bytes >= 0),
    CONSTRAINT ck_history_files_read_offset_not_negative CHECK (read_offset >= 0)
)
""",
)

_REBUILT = {
    "sessions": (
        """
CREATE TABLE sessions (
    id VARCHAR(36) NOT NULL,
    user_id VARCHAR(36) NOT NULL,
    agent_id VARCHAR(36) NOT NULL,
    task_id VARCHAR(36),
    title VARCHAR,
    workspace VARCHAR NOT NULL,
    session_ref VARCHAR,
    status VARCHAR(17) NOT NULL,
    model VARCHAR,
    model_tier INTEGER,
    temperature FLOAT,
    initial_prompt VARCHAR DEFAULT '' NOT NULL,
    started_at VARCHAR(24) NOT NULL,
    ended_at VARCHAR(24),
    total_tokens BIGINT DEFAULT 0 NOT NULL,
    total_cost_nano BIGINT DEFAULT 0 NOT NULL,
    operation_count INTEGER DEFAULT 0 NOT NULL,
    metadata TEXT DEFAULT '{}' NOT NULL,
    created_at VARCHAR(24) NOT NULL,
    updated_at VARCHAR(24) NOT NULL,
    project VARCHAR DEFAULT '' NOT NULL,
    day_local VARCHAR(10) DEFAULT '' NOT NULL,
    context_tokens BIGINT,
    context_limit_tokens BIGINT,
    context_at_ms BIGINT,
    CONSTRAINT pk_sessions PRIMARY KEY (id),
    CONSTRAINT ck_sessions_model_tier CHECK (model_tier BETWEEN 1 AND 4),
    CONSTRAINT ck_sessions_temperature_not_negative CHECK (temperature >= 0),
    CONSTRAINT ck_sessions_total_tokens_not_negative CHECK (total_tokens >= 0),
    CONSTRAINT ck_sessions_total_cost_nano_not_negative CHECK (total_cost_nano >= 0),
    CONSTRAINT ck_sessions_operation_count_not_negative CHECK (operation_count >= 0),
    CONSTRAINT ck_sessions_context_tokens_not_negative CHECK (context_tokens >= 0),
    CONSTRAINT ck_sessions_context_limit_tokens_not_negative CHECK (context_limit_tokens >= 0),
    CONSTRAINT fk_sessions_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE RESTRICT,
    CONSTRAINT fk_sessions_agent_id FOREIGN KEY(agent_id) REFERENCES agents (id) ON DELETE RESTRICT,
    CONSTRAINT fk_sessions_task_id FOREIGN KEY(task_id) REFERENCES tasks (id) ON DELETE SET NULL,
    CONSTRAINT ck_sessions_status CHECK (status IN ('planning', 'running', 'waiting_for_input', 'paused', 'completed', 'failed', 'cancelled'))
)
""",
        "CREATE INDEX ix_sessions_started_at ON sessions (started_at)",
        "CREATE INDEX ix_sessions_agent_id_started_at ON sessions (agent_id, started_at)",
        "CREATE INDEX ix_sessions_status_started_at ON sessions (status, started_at)",
        "CREATE INDEX ix_sessions_task_id ON sessions (task_id)",
        "CREATE INDEX ix_sessions_session_ref ON sessions (session_ref)",
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
    day_local VARCHAR(10) DEFAULT '' NOT NULL,
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
        "CREATE INDEX ix_operations_session_id_id ON operations (session_id, id)",
        "CREATE INDEX ix_operations_pending ON operations (started_at) WHERE status = 'pending'",
        "CREATE INDEX ix_operations_execution_id_answer_key ON operations (execution_id, answer_key)",
    ),
}
"""Tables that get columns, made again beside the old ones, with their indexes."""

_TRIGGERS = (
    (
        "CREATE TRIGGER tr_sessions_added AFTER INSERT ON sessions BEGIN INSERT INTO daily_sessions (day_local, "
        "user_id, agent_id, project, sessions) VALUES (NEW.day_local, NEW.user_id, NEW.agent_id, NEW.project, 1) ON "
        "CONFLICT (day_local, user_id, agent_id, project) DO UPDATE SET sessions = sessions + 1; END"
    ),
    (
        "CREATE TRIGGER tr_sessions_changed AFTER UPDATE OF day_local, user_id, agent_id, project ON sessions WHEN "
        "NEW.day_local IS NOT OLD.day_local OR NEW.user_id IS NOT OLD.user_id OR NEW.agent_id IS NOT OLD.agent_id OR "
        "NEW.project IS NOT OLD.project BEGIN INSERT INTO daily_sessions (day_local, user_id, agent_id, project, "
        "sessions) VALUES (NEW.day_local, NEW.user_id, NEW.agent_id, NEW.project, 1) ON CONFLICT (day_local, user_id, "
        "agent_id, project) DO UPDATE SET sessions = sessions + 1; UPDATE daily_sessions SET sessions = sessions - 1 "
        "WHERE day_local = OLD.day_local AND user_id = OLD.user_id AND agent_id = OLD.agent_id AND project = "
        "OLD.project; DELETE FROM daily_sessions WHERE day_local = OLD.day_local AND user_id = OLD.user_id AND "
        "agent_id = OLD.agent_id AND project = OLD.project AND sessions = 0; END"
    ),
    (
        "CREATE TRIGGER tr_sessions_moved AFTER UPDATE OF user_id, agent_id, project ON sessions WHEN NEW.user_id IS "
        "NOT OLD.user_id OR NEW.agent_id IS NOT OLD.agent_id OR NEW.project IS NOT OLD.project BEGIN INSERT INTO "
        "daily_operations (day_local, user_id, agent_id, project, type, operations, successes, failures, blocked) "
        "SELECT day_local, NEW.user_id, NEW.agent_id, NEW.project, type, count(*), sum(status = 'success'), "
        "sum(status = 'failed'), sum(status = 'blocked') FROM operations WHERE session_id = NEW.id GROUP BY "
        "day_local, type ON CONFLICT (day_local, user_id, agent_id, project, type) DO UPDATE SET operations = "
        "operations + excluded.operations, successes = successes + excluded.successes, failures = failures + "
        "excluded.failures, blocked = blocked + excluded.blocked; UPDATE daily_operations SET operations = "
        "daily_operations.operations - moved.operations, successes = daily_operations.successes - moved.successes, "
        "failures = daily_operations.failures - moved.failures, blocked = daily_operations.blocked - moved.blocked "
        "FROM (SELECT day_local, type, count(*) AS operations, sum(status = 'success') AS successes, sum(status = "
        "'failed') AS failures, sum(status = 'blocked') AS blocked FROM operations WHERE session_id = NEW.id GROUP BY "
        "day_local, type) AS moved WHERE daily_operations.day_local = moved.day_local AND daily_operations.type = "
        "moved.type AND user_id = OLD.user_id AND agent_id = OLD.agent_id AND project = OLD.project; DELETE FROM "
        "daily_operations WHERE user_id = OLD.user_id AND agent_id = OLD.agent_id AND project = OLD.project AND "
        "operations = 0 AND (day_local, type) IN (SELECT day_local, type FROM operations WHERE session_id = NEW.id); "
        "END"
    ),
    (
        "CREATE TRIGGER tr_sessions_going BEFORE DELETE ON sessions BEGIN DELETE FROM operations WHERE session_id = "
        "OLD.id; END"
    ),
    (
        "CREATE TRIGGER tr_sessions_removed AFTER DELETE ON sessions BEGIN UPDATE daily_sessions SET sessions = "
        "sessions - 1 WHERE day_local = OLD.day_local AND user_id = OLD.user_id AND agent_id = OLD.agent_id AND "
        "project = OLD.project; DELETE FROM daily_sessions WHERE day_local = OLD.day_local AND user_id = OLD.user_id "
        "AND agent_id = OLD.agent_id AND project = OLD.project AND sessions = 0; END"
    ),
    (
        "CREATE TRIGGER tr_operations_added AFTER INSERT ON operations BEGIN INSERT INTO daily_operations (day_local, "
        "user_id, agent_id, project, type, operations, successes, failures, blocked) SELECT NEW.day_local, user_id, "
        "agent_id, project, NEW.type, 1, NEW.status = 'success', NEW.status = 'failed', NEW.status = 'blocked' FROM "
        "sessions WHERE id = NEW.session_id ON CONFLICT (day_local, user_id, agent_id, project, type) DO UPDATE SET "
        "operations = operations + excluded.operations, successes = successes + excluded.successes, failures = "
        "failures + excluded.failures, blocked = blocked + excluded.blocked; END"
    ),
    (
        "CREATE TRIGGER tr_operations_ended AFTER UPDATE OF status ON operations WHEN NEW.status IS NOT OLD.status "
        "AND NOT (NEW.session_id IS NOT OLD.session_id OR NEW.type IS NOT OLD.type OR NEW.day_local IS NOT "
        "OLD.day_local) BEGIN UPDATE daily_operations SET successes = successes + (NEW.status = 'success') - "
        "(OLD.status = 'success'), failures = failures + (NEW.status = 'failed') - (OLD.status = 'failed'), blocked = "
        "blocked + (NEW.status = 'blocked') - (OLD.status = 'blocked') WHERE day_local = NEW.day_local AND type = "
        "NEW.type AND (user_id, agent_id, project) = (SELECT user_id, agent_id, project FROM sessions WHERE id = "
        "NEW.session_id); END"
    ),
    (
        "CREATE TRIGGER tr_operations_moved AFTER UPDATE OF session_id, type, day_local ON operations WHEN "
        "NEW.session_id IS NOT OLD.session_id OR NEW.type IS NOT OLD.type OR NEW.day_local IS NOT OLD.day_local BEGIN "
        "INSERT INTO daily_operations (day_local, user_id, agent_id, project, type, operations, successes, failures, "
        "blocked) SELECT NEW.day_local, user_id, agent_id, project, NEW.type, 1, NEW.status = 'success', NEW.status = "
        "'failed', NEW.status = 'blocked' FROM sessions WHERE id = NEW.session_id ON CONFLICT (day_local, user_id, "
        "agent_id, project, type) DO UPDATE SET operations = operations + excluded.operations, successes = successes "
        "+ excluded.successes, failures = failures + excluded.failures, blocked = blocked + excluded.blocked; UPDATE "
        "daily_operations SET operations = operations - 1, successes = successes - (OLD.status = 'success'), failures "
        "= failures - (OLD.status = 'failed'), blocked = blocked - (OLD.status = 'blocked') WHERE day_local = "
        "OLD.day_local AND type = OLD.type AND (user_id, agent_id, project) = (SELECT user_id, agent_id, project FROM "
        "sessions WHERE id = OLD.session_id); DELETE FROM daily_operations WHERE day_local = OLD.day_local AND type = "
        "OLD.type AND (user_id, agent_id, project) = (SELECT user_id, agent_id, project FROM sessions WHERE id = "
        "OLD.session_id) AND operations = 0; END"
    ),
    (
        "CREATE TRIGGER tr_operations_removed AFTER DELETE ON operations BEGIN UPDATE daily_operations SET operations "
        "= operations - 1, successes = successes - (OLD.status = 'success'), failures = failures - (OLD.status = "
        "'failed'), blocked = blocked - (OLD.status = 'blocked') WHERE day_local = OLD.day_local AND type = OLD.type "
        "AND (user_id, agent_id, project) = (SELECT user_id, agent_id, project FROM sessions WHERE id = "
        "OLD.session_id); DELETE FROM daily_operations WHERE day_local = OLD.day_local AND type = OLD.type AND "
        "(user_id, agent_id, project) = (SELECT user_id, agent_id, project FROM sessions WHERE id = OLD.session_id) "
        "AND operations = 0; END"
    ),
)
"""Keep the counts of sessions and tool calls."""

_AGENT_TITLES = """
UPDATE sessions SET metadata = json_set(metadata, '$.agent_title', title)
WHERE json_extract(metadata, '$.origin') = 'history' AND title IS NOT NULL
"""
"""Up to now every title of a conversation of history was its agent's."""

_WITH_DAYS = (
    """
UPDATE sessions SET day_local = local_day(started_at), project = coalesce(
    (SELECT project FROM llm_interactions WHERE session_id = sessions.id AND project <> '' ORDER BY at_ms LIMIT 1),
    workspace
)
""",
    "UPDATE operations SET day_local = local_day(started_at)",
)

_COUNTED = (
    """
INSERT INTO daily_sessions (day_local, user_id, agent_id, project, sessions)
SELECT day_local, user_id, agent_id, project, count(*) FROM sessions GROUP BY day_local, user_id, agent_id, project
""",
    """
INSERT INTO daily_operations (day_local, user_id, agent_id, project, type, operations, successes, failures, blocked)
SELECT o.day_local, s.user_id, s.agent_id, s.project, o.type, count(*),
    sum(o.status = 'success'), sum(o.status = 'failed'), sum(o.status = 'blocked')
FROM operations o JOIN sessions s ON s.id = o.session_id GROUP BY 1, 2, 3, 4, 5
""",
)

_SUMMED = """answers, prompt_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens,
    response_tokens, reasoning_tokens, web_searches, cost_nano, unpriced_answers, reported_answers"""
_SUMS = ", ".join(f"sum({name.strip()})" for name in _SUMMED.split(","))

_FILLED = (
    f"""
INSERT INTO daily_model_usage (day_local, agent_id, model, {_SUMMED})
SELECT day_local, agent_id, model, {_SUMS} FROM daily_usage GROUP BY day_local, agent_id, model
""",
    f"""
INSERT INTO monthly_usage (month_local, agent_id, model, project, {_SUMMED})
SELECT substr(day_local, 1, 7), agent_id, model, project, {_SUMS} FROM daily_usage
GROUP BY substr(day_local, 1, 7), agent_id, model, project
""",
    f"""
INSERT INTO session_usage (day_local, session_id, execution_id, agent_id, model, project, {_SUMMED})
SELECT day_local, session_id, coalesce(execution_id, ''), coalesce(agent_id, ''), model, project, count(*),
    sum(prompt_tokens), sum(cache_read_tokens), sum(cache_write_5m_tokens), sum(cache_write_1h_tokens),
    sum(response_tokens), sum(reasoning_tokens), sum(web_searches), coalesce(sum(cost_nano), 0),
    sum(cost_nano IS NULL), sum(cost_source = 'reported')
FROM llm_interactions
GROUP BY day_local, session_id, coalesce(execution_id, ''), coalesce(agent_id, ''), model, project
""",
    """
UPDATE sessions SET metadata = json_set(metadata, '$.cost_said_of', json((
    SELECT json_group_object(e.id, e.cost_nano) FROM executions e
    WHERE e.session_id = sessions.id AND e.cost_nano IS NOT NULL)))
WHERE id IN (SELECT session_id FROM executions WHERE cost_nano IS NOT NULL)
""",
    """
UPDATE executions SET cost_nano = (
    SELECT sum(u.cost_nano) FROM session_usage u WHERE u.execution_id <> '' AND u.execution_id = executions.id)
WHERE id IN (SELECT execution_id FROM session_usage WHERE answers > unpriced_answers)
""",
    """
UPDATE sessions SET total_cost_nano = (
    SELECT coalesce(sum(u.cost_nano), 0) FROM session_usage u WHERE u.session_id = sessions.id) + (
    SELECT coalesce(sum(said.value), 0) FROM json_each(sessions.metadata, '$.cost_said_of') said
    WHERE said.key NOT IN (SELECT execution_id FROM session_usage WHERE answers > unpriced_answers))
WHERE id IN (SELECT session_id FROM session_usage WHERE answers > unpriced_answers)
""",
)


_MESSAGE_INDEX = (
    "CREATE TABLE unindexed_messages (message_row INTEGER NOT NULL PRIMARY KEY, indexed VARCHAR)",
    """CREATE VIRTUAL TABLE message_words USING fts5(content, content='messages', content_rowid='rowid', tokenize='unicode61', detail='none', columnsize=0)""",
    """CREATE TRIGGER tr_messages_added AFTER INSERT ON messages BEGIN INSERT INTO unindexed_messages (message_row) VALUES (NEW.rowid) ON CONFLICT DO NOTHING; END""",
    """CREATE TRIGGER tr_messages_changed AFTER UPDATE OF content ON messages WHEN NEW.content IS NOT OLD.content AND NOT EXISTS (SELECT 1 FROM unindexed_messages WHERE message_row = OLD.rowid) BEGIN INSERT INTO unindexed_messages (message_row, indexed) VALUES (OLD.rowid, OLD.content); END""",
    """CREATE TRIGGER tr_messages_removed AFTER DELETE ON messages BEGIN INSERT INTO unindexed_messages (message_row, indexed) VALUES (OLD.rowid, OLD.content) ON CONFLICT DO NOTHING; END""",
)


def upgrade() -> None:
    """Add the new tables, make those of the sessions and the tool calls again with all their rows, and sum up.

    Their text is what a fresh database gets. References from other tables are by name, and stay.
    """
    connection = op.get_bind()
    for statement in _ADDED:
        connection.exec_driver_sql(statement)
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
    for statement in _FILLED:
        connection.exec_driver_sql(statement)
    if connection.exec_driver_sql("SELECT EXISTS (SELECT 1 FROM sessions)").scalar():
        _fill_days(connection, _settled_zone(connection))
        for statement in _COUNTED:
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql(_AGENT_TITLES)
    for statement in (*_TRIGGERS, *_MESSAGE_INDEX):
        connection.exec_driver_sql(statement)
    # The worker takes them up in pieces.
    connection.exec_driver_sql("INSERT INTO unindexed_messages (message_row) SELECT rowid FROM messages")


def _settled_zone(connection: Connection) -> ZoneInfo:
    """Return the zone in which the days are kept; that of this machine from now on, when none was chosen yet."""
    stored = connection.exec_driver_sql("SELECT value FROM settings WHERE key = 'usage.zone'").scalar()
    if stored is not None:
        return ZoneInfo(json.loads(stored))
    zone_name = local_zone_name()
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    connection.exec_driver_sql(
        "INSERT INTO settings (key, value, created_at, updated_at) VALUES ('usage.zone', ?, ?, ?)",
        (json.dumps(zone_name), now, now),
    )
    return ZoneInfo(zone_name)


def _fill_days(connection: Connection, zone: ZoneInfo) -> None:
    """Write the days of sessions and tool calls, and the project of a session: that of its first answer."""

    def day_of(moment: str) -> str:
        try:
            return datetime.fromisoformat(moment).astimezone(zone).date().isoformat()
        except OverflowError:
            return date.max.isoformat()

    opened = connection.connection.driver_connection
    if opened is None:
        raise TypeError("the upgrade needs an open database")
    opened.create_function("local_day", 1, day_of, deterministic=True)
    for statement in _WITH_DAYS:
        connection.exec_driver_sql(statement)
