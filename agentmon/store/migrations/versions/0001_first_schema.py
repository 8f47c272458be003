"""The schema of the first release.

Revision ID: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _moment() -> sa.types.TypeEngine[str]:
    return sa.String(24).with_variant(sa.DateTime(timezone=True), "postgresql")


def _json() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(postgresql.JSONB(), "postgresql")


def _growing_id() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _one_of(column: str, *words: str) -> str:
    listed = ", ".join(f"'{word}'" for word in words)
    return f"{column} IN ({listed})"


def upgrade() -> None:  # noqa: PLR0915 - one statement a table and index, each table after those it refers to
    op.create_table(
        "settings",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", _json(), nullable=False),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("updated_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_settings"),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("updated_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
    )
    op.create_table(
        "worker_heartbeats",
        sa.Column("worker_id", sa.String(), nullable=False),
        sa.Column("last_seen_at", _moment(), nullable=False),
        sa.Column("current_executions", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("metadata", _json(), nullable=False, server_default=sa.text("'{}'")),
        sa.Column("created_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("worker_id", name="pk_worker_heartbeats"),
        sa.CheckConstraint("current_executions >= 0", name="ck_worker_heartbeats_current_executions_not_negative"),
    )
    op.create_table(
        "workspaces",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("owner_id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("root_path", sa.String(), nullable=False),
        sa.Column("settings", _json(), nullable=False, server_default=sa.text("'{}'")),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("updated_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workspaces"),
        sa.UniqueConstraint("root_path", name="uq_workspaces_root_path"),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name="fk_workspaces_owner_id", ondelete="RESTRICT"),
    )
    op.create_index("ix_workspaces_owner_id", "workspaces", ["owner_id"])
    op.create_table(
        "agents",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("owner_id", sa.String(36), nullable=False),
        sa.Column("workspace_id", sa.String(36)),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("slug", sa.String(), nullable=False),
        sa.Column("kind", sa.String(7), nullable=False),
        sa.Column("tool_type", sa.String(10), nullable=False),
        sa.Column("binary_path", sa.String(), nullable=False),
        sa.Column("base_args", _json(), nullable=False, server_default=sa.text("'[]'")),
        sa.Column("working_dir", sa.String()),
        sa.Column("env_allowlist", _json(), nullable=False, server_default=sa.text("'[]'")),
        sa.Column("is_active", sa.Boolean(), nullable=False, server_default=sa.text("true")),
        sa.Column("max_concurrent", sa.Integer(), nullable=False, server_default=sa.text("1")),
        sa.Column("discovery_method", sa.String(9), nullable=False),
        sa.Column("version", sa.String()),
        sa.Column("package_name", sa.String()),
        sa.Column("package_section", sa.String()),
        sa.Column("mcp_enabled", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        sa.Column("session_config", _json()),
        sa.Column("role", sa.String()),
        sa.Column("model", sa.String()),
        sa.Column("model_tier", sa.Integer()),
        sa.Column("temperature", sa.Float()),
        sa.Column("instructions", sa.String()),
        sa.Column("last_scanned_at", _moment()),
        sa.Column("metadata", _json(), nullable=False, server_default=sa.text("'{}'")),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("updated_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_agents"),
        sa.UniqueConstraint("slug", name="uq_agents_slug"),
        sa.CheckConstraint("model_tier BETWEEN 1 AND 4", name="ck_agents_model_tier"),
        sa.CheckConstraint("max_concurrent >= 0", name="ck_agents_max_concurrent_not_negative"),
        sa.CheckConstraint("temperature >= 0", name="ck_agents_temperature_not_negative"),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name="fk_agents_owner_id", ondelete="RESTRICT"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.id"], name="fk_agents_workspace_id", ondelete="CASCADE"),
        sa.CheckConstraint(_one_of("kind", "builtin", "custom"), name="ck_agents_kind"),
        sa.CheckConstraint(
            _one_of("tool_type", "cli-tool", "ai-agent", "daemon", "shell-util"), name="ck_agents_tool_type"
        ),
        sa.CheckConstraint(
            _one_of("discovery_method", "preset", "path_scan", "manual"), name="ck_agents_discovery_method"
        ),
    )
    op.create_index("ix_agents_workspace_id_is_active", "agents", ["workspace_id", "is_active"])
    op.create_table(
        "agent_capabilities",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("description", sa.String()),
        sa.Column("source", sa.String(15), nullable=False),
        sa.Column("interaction_mode", sa.String(8), nullable=False),
        sa.Column("command_tokens", _json()),
        sa.Column("prompt_template", sa.String()),
        sa.Column("args_schema", _json(), nullable=False, server_default=sa.text("'{}'")),
        sa.Column("requires_approval", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        sa.Column("is_enabled", sa.Boolean(), nullable=False, server_default=sa.text("true")),
        sa.Column("danger_level", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("timeout_s", sa.Integer(), nullable=False, server_default=sa.text("300")),
        sa.Column("max_output_bytes", sa.BigInteger(), nullable=False, server_default=sa.text("10485760")),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("updated_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_agent_capabilities"),
        sa.UniqueConstraint("agent_id", "key", name="uq_agent_capabilities_agent_id_key"),
        sa.CheckConstraint(
            "interaction_mode <> 'template' OR command_tokens IS NOT NULL",
            name="ck_agent_capabilities_template_has_command_tokens",
        ),
        sa.CheckConstraint("danger_level BETWEEN 0 AND 3", name="ck_agent_capabilities_danger_level"),
        sa.CheckConstraint("timeout_s >= 0", name="ck_agent_capabilities_timeout_s_not_negative"),
        sa.CheckConstraint("max_output_bytes >= 0", name="ck_agent_capabilities_max_output_bytes_not_negative"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_agent_capabilities_agent_id", ondelete="CASCADE"),
        sa.CheckConstraint(
            _one_of(
                "source",
                "manual",
                "builtin",
                "preset",
                "scan_help",
                "scan_completion",
                "scan_fig",
                "scan_mcp",
                "scan_man",
                "llm_generated",
            ),
            name="ck_agent_capabilities_source",
        ),
        sa.CheckConstraint(
            _one_of("interaction_mode", "template", "prompt"), name="ck_agent_capabilities_interaction_mode"
        ),
    )
    op.create_table(
        "agent_tools",
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("tool_name", sa.String(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False, server_default=sa.text("true")),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("updated_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("agent_id", "tool_name", name="pk_agent_tools"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_agent_tools_agent_id", ondelete="CASCADE"),
    )
    op.create_table(
        "tasks",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("owner_id", sa.String(36), nullable=False),
        sa.Column("workspace_id", sa.String(36), nullable=False),
        sa.Column("parent_task_id", sa.String(36)),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("description", sa.String()),
        sa.Column("status", sa.String(11), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False, server_default=sa.text("3")),
        sa.Column("sort_order", sa.BigInteger(), nullable=False),
        sa.Column("assignee_agent_id", sa.String(36)),
        sa.Column("input_context", _json(), nullable=False, server_default=sa.text("'{}'")),
        sa.Column("due_at", _moment()),
        sa.Column("version", sa.Integer(), nullable=False, server_default=sa.text("1")),
        sa.Column("deleted_at", _moment()),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("updated_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tasks"),
        sa.UniqueConstraint("workspace_id", "number", name="uq_tasks_workspace_id_number"),
        sa.CheckConstraint("priority BETWEEN 1 AND 5", name="ck_tasks_priority"),
        sa.CheckConstraint("number >= 1", name="ck_tasks_number_from_one"),
        sa.CheckConstraint("version >= 1", name="ck_tasks_version_from_one"),
        sa.CheckConstraint("parent_task_id <> id", name="ck_tasks_no_parent_of_itself"),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name="fk_tasks_owner_id", ondelete="RESTRICT"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.id"], name="fk_tasks_workspace_id", ondelete="RESTRICT"),
        sa.ForeignKeyConstraint(["parent_task_id"], ["tasks.id"], name="fk_tasks_parent_task_id", ondelete="SET NULL"),
        sa.CheckConstraint(
            _one_of("status", "todo", "in_progress", "blocked", "done", "cancelled"), name="ck_tasks_status"
        ),
        sa.ForeignKeyConstraint(
            ["assignee_agent_id"], ["agents.id"], name="fk_tasks_assignee_agent_id", ondelete="SET NULL"
        ),
    )
    op.create_index("ix_tasks_assignee_agent_id", "tasks", ["assignee_agent_id"])
    op.create_index("ix_tasks_parent_task_id", "tasks", ["parent_task_id"])
    op.create_index(
        "ix_tasks_workspace_id_status_sort_order",
        "tasks",
        ["workspace_id", "status", "sort_order"],
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("user_id", sa.String(36), nullable=False),
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("task_id", sa.String(36)),
        sa.Column("title", sa.String()),
        sa.Column("workspace", sa.String(), nullable=False),
        sa.Column("session_ref", sa.String()),
        sa.Column("status", sa.String(17), nullable=False),
        sa.Column("model", sa.String()),
        sa.Column("model_tier", sa.Integer()),
        sa.Column("temperature", sa.Float()),
        sa.Column("initial_prompt", sa.String(), nullable=False, server_default=sa.text("''")),
        sa.Column("started_at", _moment(), nullable=False),
        sa.Column("ended_at", _moment()),
        sa.Column("total_tokens", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("total_cost_nano", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("operation_count", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("metadata", _json(), nullable=False, server_default=sa.text("'{}'")),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("updated_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.CheckConstraint("model_tier BETWEEN 1 AND 4", name="ck_sessions_model_tier"),
        sa.CheckConstraint("temperature >= 0", name="ck_sessions_temperature_not_negative"),
        sa.CheckConstraint("total_tokens >= 0", name="ck_sessions_total_tokens_not_negative"),
        sa.CheckConstraint("total_cost_nano >= 0", name="ck_sessions_total_cost_nano_not_negative"),
        sa.CheckConstraint("operation_count >= 0", name="ck_sessions_operation_count_not_negative"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_sessions_user_id", ondelete="RESTRICT"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_sessions_agent_id", ondelete="RESTRICT"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_sessions_task_id", ondelete="SET NULL"),
        sa.CheckConstraint(
            _one_of("status", "planning", "running", "waiting_for_input", "paused", "completed", "failed", "cancelled"),
            name="ck_sessions_status",
        ),
    )
    op.create_index("ix_sessions_agent_id_started_at", "sessions", ["agent_id", "started_at"])
    op.create_index("ix_sessions_status_started_at", "sessions", ["status", "started_at"])
    op.create_index("ix_sessions_task_id", "sessions", ["task_id"])
    op.create_table(
        "task_dependencies",
        sa.Column("task_id", sa.String(36), nullable=False),
        sa.Column("depends_on_task_id", sa.String(36), nullable=False),
        sa.Column("created_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("task_id", "depends_on_task_id", name="pk_task_dependencies"),
        sa.CheckConstraint("task_id <> depends_on_task_id", name="ck_task_dependencies_not_on_itself"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_task_dependencies_task_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["depends_on_task_id"], ["tasks.id"], name="fk_task_dependencies_depends_on_task_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_task_dependencies_depends_on_task_id", "task_dependencies", ["depends_on_task_id"])
    op.create_table(
        "task_events",
        sa.Column("id", _growing_id(), nullable=False),
        sa.Column("task_id", sa.String(36), nullable=False),
        sa.Column("actor_type", sa.String(6), nullable=False),
        sa.Column("actor_id", sa.String()),
        sa.Column("event_type", sa.String(), nullable=False),
        sa.Column("payload", _json(), nullable=False, server_default=sa.text("'{}'")),
        sa.Column("created_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_task_events"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_task_events_task_id", ondelete="CASCADE"),
        sa.CheckConstraint(_one_of("actor_type", "user", "agent", "system"), name="ck_task_events_actor_type"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_task_events_task_id_id", "task_events", ["task_id", "id"])
    op.create_table(
        "agent_registry",
        sa.Column("session_id", sa.String(36), nullable=False),
        sa.Column("status", sa.String(9), nullable=False),
        sa.Column("last_heartbeat_at", _moment(), nullable=False),
        sa.Column("worker_id", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("created_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", name="pk_agent_registry"),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name="fk_agent_registry_session_id", ondelete="CASCADE"
        ),
        sa.CheckConstraint(
            _one_of("status", "active", "paused", "completed", "error"), name="ck_agent_registry_status"
        ),
    )
    op.create_index("ix_agent_registry_status_last_heartbeat_at", "agent_registry", ["status", "last_heartbeat_at"])
    op.create_table(
        "documents",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("session_id", sa.String(36), nullable=False),
        sa.Column("agent_id", sa.String(36)),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("content", sa.String(), nullable=False),
        sa.Column("content_type", sa.String(), nullable=False),
        sa.Column("source_url", sa.String()),
        sa.Column("metadata", _json(), nullable=False, server_default=sa.text("'{}'")),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("updated_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_documents"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_documents_session_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_documents_agent_id", ondelete="SET NULL"),
    )
    op.create_index("ix_documents_session_id_id", "documents", ["session_id", "id"])
    op.create_table(
        "executions",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("task_id", sa.String(36), nullable=False),
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("capability_id", sa.String(36), nullable=False),
        sa.Column("session_id", sa.String(36)),
        sa.Column("requested_by", sa.String(36), nullable=False),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("mode", sa.String(11), nullable=False),
        sa.Column("args", _json(), nullable=False, server_default=sa.text("'{}'")),
        sa.Column("prompt", sa.String()),
        sa.Column("pid", sa.Integer()),
        sa.Column("session_ref", sa.String()),
        sa.Column("tmux_session_name", sa.String()),
        sa.Column("parent_execution_id", sa.String(36)),
        sa.Column("started_at", _moment()),
        sa.Column("ended_at", _moment()),
        sa.Column("exit_code", sa.Integer()),
        sa.Column("error", sa.String()),
        sa.Column("worker_id", sa.String()),
        sa.Column("heartbeat_at", _moment()),
        sa.Column("log_file_path", sa.String()),
        sa.Column("log_byte_size", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("log_line_count", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("log_updated_at", _moment()),
        sa.Column("last_line", sa.String()),
        sa.Column("journal_offset", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("retry_count", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("max_retries", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("not_before", _moment()),
        sa.Column("output_data", _json()),
        sa.Column("tokens_used", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("cost_nano", sa.BigInteger()),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("updated_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_executions"),
        sa.CheckConstraint("log_byte_size >= 0", name="ck_executions_log_byte_size_not_negative"),
        sa.CheckConstraint("log_line_count >= 0", name="ck_executions_log_line_count_not_negative"),
        sa.CheckConstraint("journal_offset >= 0", name="ck_executions_journal_offset_not_negative"),
        sa.CheckConstraint("retry_count >= 0", name="ck_executions_retry_count_not_negative"),
        sa.CheckConstraint("max_retries >= 0", name="ck_executions_max_retries_not_negative"),
        sa.CheckConstraint("tokens_used >= 0", name="ck_executions_tokens_used_not_negative"),
        sa.CheckConstraint("cost_nano >= 0", name="ck_executions_cost_nano_not_negative"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_executions_task_id", ondelete="RESTRICT"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_executions_agent_id", ondelete="RESTRICT"),
        sa.ForeignKeyConstraint(
            ["capability_id"], ["agent_capabilities.id"], name="fk_executions_capability_id", ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_executions_session_id", ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["requested_by"], ["users.id"], name="fk_executions_requested_by", ondelete="RESTRICT"),
        sa.CheckConstraint(
            _one_of("status", "queued", "running", "cancelling", "succeeded", "failed", "cancelled", "timed_out"),
            name="ck_executions_status",
        ),
        sa.CheckConstraint(
            _one_of("mode", "template", "stream-json", "app-server", "acp", "tmux"), name="ck_executions_mode"
        ),
        sa.ForeignKeyConstraint(
            ["parent_execution_id"], ["executions.id"], name="fk_executions_parent_execution_id", ondelete="SET NULL"
        ),
    )
    op.create_index("ix_executions_agent_id_status", "executions", ["agent_id", "status"])
    op.create_index("ix_executions_created_at", "executions", ["created_at"])
    op.create_index("ix_executions_heartbeat_at", "executions", ["heartbeat_at"])
    op.create_index(
        "ix_executions_queued",
        "executions",
        ["status", "created_at"],
        sqlite_where=sa.text("status = 'queued'"),
        postgresql_where=sa.text("status = 'queued'"),
    )
    op.create_index("ix_executions_session_id", "executions", ["session_id"])
    op.create_index("ix_executions_task_id_created_at", "executions", ["task_id", "created_at"])
    op.create_index(
        "uq_executions_open_task_id",
        "executions",
        ["task_id"],
        unique=True,
        sqlite_where=sa.text("status IN ('cancelling', 'queued', 'running')"),
        postgresql_where=sa.text("status IN ('cancelling', 'queued', 'running')"),
    )
    op.create_table(
        "artifacts",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("session_id", sa.String(36), nullable=False),
        sa.Column("execution_id", sa.String(36)),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("created_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_artifacts"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_artifacts_session_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["execution_id"], ["executions.id"], name="fk_artifacts_execution_id", ondelete="SET NULL"
        ),
        sa.CheckConstraint(_one_of("kind", "code", "note", "log", "attachment", "other"), name="ck_artifacts_kind"),
    )
    op.create_index("ix_artifacts_execution_id", "artifacts", ["execution_id"])
    op.create_index("ix_artifacts_session_id_id", "artifacts", ["session_id", "id"])
    op.create_table(
        "events",
        sa.Column("id", _growing_id(), nullable=False),
        sa.Column("session_id", sa.String(36)),
        sa.Column("execution_id", sa.String(36)),
        sa.Column("user_id", sa.String(36), nullable=False),
        sa.Column("trace_id", sa.String(), nullable=False),
        sa.Column("type", sa.String(13), nullable=False),
        sa.Column("level", sa.String(5)),
        sa.Column("timestamp_ms", sa.BigInteger(), nullable=False),
        sa.Column("payload", _json(), nullable=False, server_default=sa.text("'{}'")),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_events_session_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["execution_id"], ["executions.id"], name="fk_events_execution_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_events_user_id", ondelete="RESTRICT"),
        sa.CheckConstraint(
            _one_of(
                "type",
                "log",
                "plan_update",
                "tool_started",
                "tool_finished",
                "diff",
                "status_change",
                "message",
                "usage",
                "approval",
                "error",
            ),
            name="ck_events_type",
        ),
        sa.CheckConstraint(_one_of("level", "info", "warn", "error"), name="ck_events_level"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_execution_id_id", "events", ["execution_id", "id"])
    op.create_index("ix_events_session_id_id", "events", ["session_id", "id"])
    op.create_index("ix_events_type_timestamp_ms", "events", ["type", "timestamp_ms"])
    op.create_table(
        "execution_commands",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("execution_id", sa.String(36), nullable=False),
        sa.Column("actor_type", sa.String(6), nullable=False),
        sa.Column("actor_id", sa.String()),
        sa.Column("type", sa.String(4), nullable=False),
        sa.Column("payload", _json(), nullable=False, server_default=sa.text("'{}'")),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("delivered_at", _moment()),
        sa.PrimaryKeyConstraint("id", name="pk_execution_commands"),
        sa.ForeignKeyConstraint(
            ["execution_id"], ["executions.id"], name="fk_execution_commands_execution_id", ondelete="CASCADE"
        ),
        sa.CheckConstraint(_one_of("actor_type", "user", "agent", "system"), name="ck_execution_commands_actor_type"),
        sa.CheckConstraint(_one_of("type", "stop", "kill"), name="ck_execution_commands_type"),
    )
    op.create_index(
        "ix_execution_commands_undelivered",
        "execution_commands",
        ["execution_id", "id"],
        sqlite_where=sa.text("delivered_at IS NULL"),
        postgresql_where=sa.text("delivered_at IS NULL"),
    )
    op.create_table(
        "llm_interactions",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(36), nullable=False),
        sa.Column("execution_id", sa.String(36)),
        sa.Column("agent_id", sa.String(36)),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("prompt", sa.String()),
        sa.Column("response", sa.String()),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("cache_read_tokens", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("cache_write_5m_tokens", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("cache_write_1h_tokens", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("response_tokens", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("reasoning_tokens", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("latency_ms", sa.BigInteger()),
        sa.Column("success", sa.Boolean(), nullable=False),
        sa.Column("error_message", sa.String()),
        sa.Column("cost_nano", sa.BigInteger()),
        sa.Column("cost_source", sa.String(), nullable=False),
        sa.Column("price_version", sa.String(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("day_local", sa.String(10), nullable=False),
        sa.Column("created_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_llm_interactions"),
        sa.UniqueConstraint("agent_id", "key", name="uq_llm_interactions_agent_id_key"),
        sa.CheckConstraint("prompt_tokens >= 0", name="ck_llm_interactions_prompt_tokens_not_negative"),
        sa.CheckConstraint("cache_read_tokens >= 0", name="ck_llm_interactions_cache_read_tokens_not_negative"),
        sa.CheckConstraint("cache_write_5m_tokens >= 0", name="ck_llm_interactions_cache_write_5m_tokens_not_negative"),
        sa.CheckConstraint("cache_write_1h_tokens >= 0", name="ck_llm_interactions_cache_write_1h_tokens_not_negative"),
        sa.CheckConstraint("response_tokens >= 0", name="ck_llm_interactions_response_tokens_not_negative"),
        sa.CheckConstraint("reasoning_tokens >= 0", name="ck_llm_interactions_reasoning_tokens_not_negative"),
        sa.CheckConstraint("latency_ms >= 0", name="ck_llm_interactions_latency_ms_not_negative"),
        sa.CheckConstraint("cost_nano >= 0", name="ck_llm_interactions_cost_nano_not_negative"),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name="fk_llm_interactions_session_id", ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(
            ["execution_id"], ["executions.id"], name="fk_llm_interactions_execution_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_llm_interactions_agent_id", ondelete="RESTRICT"),
    )
    op.create_index("ix_llm_interactions_at_ms", "llm_interactions", ["at_ms"])
    op.create_index("ix_llm_interactions_day_local", "llm_interactions", ["day_local"])
    op.create_index("ix_llm_interactions_execution_id", "llm_interactions", ["execution_id"])
    op.create_index("ix_llm_interactions_session_id_at_ms", "llm_interactions", ["session_id", "at_ms"])
    op.create_index(
        "uq_llm_interactions_key_without_agent",
        "llm_interactions",
        ["key"],
        unique=True,
        sqlite_where=sa.text("agent_id IS NULL"),
        postgresql_where=sa.text("agent_id IS NULL"),
    )
    op.create_table(
        "messages",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("session_id", sa.String(36), nullable=False),
        sa.Column("execution_id", sa.String(36)),
        sa.Column("role", sa.String(9), nullable=False),
        sa.Column("content", sa.String(), nullable=False),
        sa.Column("created_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_messages"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_messages_session_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["execution_id"], ["executions.id"], name="fk_messages_execution_id", ondelete="SET NULL"
        ),
        sa.CheckConstraint(_one_of("role", "user", "assistant", "system", "tool"), name="ck_messages_role"),
    )
    op.create_index("ix_messages_execution_id", "messages", ["execution_id"])
    op.create_index("ix_messages_session_id_id", "messages", ["session_id", "id"])
    op.create_table(
        "operations",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("session_id", sa.String(36), nullable=False),
        sa.Column("execution_id", sa.String(36)),
        sa.Column("tool_name", sa.String(), nullable=False),
        sa.Column("type", sa.String(7), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("input_summary", sa.String(), nullable=False, server_default=sa.text("''")),
        sa.Column("output_summary", sa.String(), nullable=False, server_default=sa.text("''")),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("cost_nano", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("status", sa.String(9), nullable=False),
        sa.Column("result", _json()),
        sa.Column("error", sa.String()),
        sa.Column("approved", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        sa.Column("approved_by", sa.String(36)),
        sa.Column("started_at", _moment(), nullable=False),
        sa.Column("finished_at", _moment()),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("updated_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_operations"),
        sa.CheckConstraint("input_tokens >= 0", name="ck_operations_input_tokens_not_negative"),
        sa.CheckConstraint("output_tokens >= 0", name="ck_operations_output_tokens_not_negative"),
        sa.CheckConstraint("cost_nano >= 0", name="ck_operations_cost_nano_not_negative"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_operations_session_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["execution_id"], ["executions.id"], name="fk_operations_execution_id", ondelete="SET NULL"
        ),
        sa.CheckConstraint(_one_of("type", "read", "write", "execute", "query"), name="ck_operations_type"),
        sa.CheckConstraint(
            _one_of("status", "pending", "success", "failed", "blocked", "cancelled"), name="ck_operations_status"
        ),
        sa.ForeignKeyConstraint(["approved_by"], ["users.id"], name="fk_operations_approved_by", ondelete="SET NULL"),
    )
    op.create_index("ix_operations_execution_id", "operations", ["execution_id"])
    op.create_index(
        "ix_operations_pending",
        "operations",
        ["started_at"],
        sqlite_where=sa.text("status = 'pending'"),
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index("ix_operations_session_id_id", "operations", ["session_id", "id"])
    op.create_table(
        "changes",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("operation_id", sa.String(36)),
        sa.Column("execution_id", sa.String(36), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("change_type", sa.String(6), nullable=False),
        sa.Column("before_ref", sa.String()),
        sa.Column("after_ref", sa.String()),
        sa.Column("diff_lines", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("can_undo", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        sa.Column("undo_operation_id", sa.String(36)),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("updated_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_changes"),
        sa.CheckConstraint("diff_lines >= 0", name="ck_changes_diff_lines_not_negative"),
        sa.ForeignKeyConstraint(
            ["operation_id"], ["operations.id"], name="fk_changes_operation_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["execution_id"], ["executions.id"], name="fk_changes_execution_id", ondelete="CASCADE"
        ),
        sa.CheckConstraint(_one_of("change_type", "create", "modify", "delete"), name="ck_changes_change_type"),
        sa.ForeignKeyConstraint(
            ["undo_operation_id"], ["operations.id"], name="fk_changes_undo_operation_id", ondelete="SET NULL"
        ),
    )
    op.create_index("ix_changes_execution_id_id", "changes", ["execution_id", "id"])
    op.create_index("ix_changes_operation_id", "changes", ["operation_id"])
