"""Usage: files of agents that were read, what an answer tells beside its tokens, sums by day, and budgets.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_ADDED = (
    """
CREATE TABLE usage_files (
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
    CONSTRAINT pk_usage_files PRIMARY KEY (id),
    CONSTRAINT uq_usage_files_path UNIQUE (path),
    CONSTRAINT ck_usage_files_size_bytes_not_negative CHECK (size_bytes >= 0),
    CONSTRAINT ck_usage_files_read_offset_not_negative CHECK (read_offset >= 0)
)
""",
    """
CREATE TABLE daily_usage (
    day_local VARCHAR(10) NOT NULL,
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
    CONSTRAINT pk_daily_usage PRIMARY KEY (day_local, agent_id, model, project),
    CONSTRAINT ck_daily_usage_answers_not_negative CHECK (answers >= 0),
    CONSTRAINT ck_daily_usage_unpriced_answers_not_negative CHECK (unpriced_answers >= 0),
    CONSTRAINT ck_daily_usage_reported_answers_not_negative CHECK (reported_answers >= 0)
)
 WITHOUT ROWID
""",
    """
CREATE TABLE budgets (
    id VARCHAR(36) NOT NULL,
    scope VARCHAR(9) NOT NULL,
    scope_id VARCHAR(36) DEFAULT '' NOT NULL,
    period VARCHAR(5) NOT NULL,
    unit VARCHAR(6) NOT NULL,
    amount BIGINT NOT NULL,
    counts_cached BOOLEAN DEFAULT true NOT NULL,
    action VARCHAR(5) NOT NULL,
    told_percent INTEGER DEFAULT 0 NOT NULL,
    told_day VARCHAR(10) DEFAULT '' NOT NULL,
    spent_until VARCHAR(24),
    created_at VARCHAR(24) NOT NULL,
    updated_at VARCHAR(24) NOT NULL,
    CONSTRAINT pk_budgets PRIMARY KEY (id),
    CONSTRAINT uq_budgets_scope_scope_id_period_unit UNIQUE (scope, scope_id, period, unit),
    CONSTRAINT ck_budgets_amount_positive CHECK (amount > 0),
    CONSTRAINT ck_budgets_told_percent_not_negative CHECK (told_percent >= 0),
    CONSTRAINT ck_budgets_scope CHECK (scope IN ('task', 'execution', 'agent', 'workspace', 'all')),
    CONSTRAINT ck_budgets_period CHECK (period IN ('day', 'week', 'month', 'total')),
    CONSTRAINT ck_budgets_unit CHECK (unit IN ('money', 'tokens')),
    CONSTRAINT ck_budgets_action CHECK (action IN ('warn', 'block', 'stop'))
)
""",
)

_ANSWERS = (
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
    project VARCHAR DEFAULT '' NOT NULL,
    is_owner_marked BOOLEAN DEFAULT false NOT NULL,
    web_searches INTEGER DEFAULT 0 NOT NULL,
    speed VARCHAR DEFAULT 'standard' NOT NULL,
    geo VARCHAR DEFAULT '' NOT NULL,
    is_subagent BOOLEAN DEFAULT false NOT NULL,
    reported_cost_nano BIGINT,
    confidence VARCHAR(14) DEFAULT 'exact' NOT NULL,
    source_file_id VARCHAR(36),
    source_offset BIGINT,
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
    CONSTRAINT ck_llm_interactions_web_searches_not_negative CHECK (web_searches >= 0),
    CONSTRAINT ck_llm_interactions_reported_cost_nano_not_negative CHECK (reported_cost_nano >= 0),
    CONSTRAINT ck_llm_interactions_source_offset_not_negative CHECK (source_offset >= 0),
    CONSTRAINT fk_llm_interactions_session_id FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE RESTRICT,
    CONSTRAINT fk_llm_interactions_execution_id FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE SET NULL,
    CONSTRAINT fk_llm_interactions_agent_id FOREIGN KEY(agent_id) REFERENCES agents (id) ON DELETE RESTRICT,
    CONSTRAINT ck_llm_interactions_confidence CHECK (confidence IN ('exact', 'derived', 'fallback_model', 'incomplete')),
    CONSTRAINT fk_llm_interactions_source_file_id FOREIGN KEY(source_file_id) REFERENCES usage_files (id) ON DELETE SET NULL
)
""",
    "CREATE INDEX ix_llm_interactions_at_ms ON llm_interactions (at_ms)",
    "CREATE INDEX ix_llm_interactions_execution_id ON llm_interactions (execution_id) WHERE execution_id IS NOT NULL",
    "CREATE INDEX ix_llm_interactions_session_id_at_ms ON llm_interactions (session_id, at_ms)",
    "CREATE INDEX ix_llm_interactions_unlooked ON llm_interactions (at_ms) WHERE price_version = ''",
    'CREATE UNIQUE INDEX uq_llm_interactions_key_without_agent ON llm_interactions ("key") WHERE agent_id IS NULL',
)
"""The table of answers, made again beside the old one, since SQLite cannot change its constraints; with its indexes."""

_OLD_WAIT_REASONS = "'failures', 'scheduled')"
_NEW_WAIT_REASONS = "'failures', 'scheduled', 'budget')"

_SUMS = """
INSERT INTO daily_usage
SELECT i.day_local, coalesce(i.agent_id, ''), i.model, i.project, count(*),
    sum(i.prompt_tokens), sum(i.cache_read_tokens), sum(i.cache_write_5m_tokens), sum(i.cache_write_1h_tokens),
    sum(i.response_tokens), sum(i.reasoning_tokens), sum(i.web_searches), coalesce(sum(i.cost_nano), 0),
    sum(i.cost_nano IS NULL), sum(i.cost_source = 'reported')
FROM llm_interactions i
GROUP BY i.day_local, coalesce(i.agent_id, ''), i.model, i.project
"""

_PROJECTS = """
UPDATE llm_interactions
SET project = coalesce((SELECT workspace FROM sessions WHERE sessions.id = llm_interactions.session_id), '')
"""


def upgrade() -> None:
    """Add the new tables, make those of the executions and the answers again with all their rows, and sum these up.

    Their text is what a fresh database gets. References from other tables are by name, and stay.
    """
    connection = op.get_bind()
    for statement in _ADDED:
        connection.exec_driver_sql(statement)
    connection.exec_driver_sql("PRAGMA legacy_alter_table = ON")
    executions = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = 'executions'").scalar_one()
    indexes = connection.exec_driver_sql(
        "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = 'executions'"
    ).scalars()
    rebuilt = {
        "executions": (executions.replace(_OLD_WAIT_REASONS, _NEW_WAIT_REASONS), *indexes),
        "llm_interactions": _ANSWERS,
    }
    for table, statements in rebuilt.items():
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
    connection.exec_driver_sql(_PROJECTS)
    connection.exec_driver_sql(_SUMS)
