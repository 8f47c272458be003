from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Final

import pytest
from sqlalchemy import CheckConstraint, UniqueConstraint, create_engine, create_mock_engine, make_url, select
from sqlalchemy.exc import IntegrityError, StatementError
from sqlalchemy.sql import ClauseElement

from agentmon.domain.board import BoardSort
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import CommandType
from agentmon.domain.task_status import TaskStatus
from agentmon.store import tables
from agentmon.store.board_setting import ORDERS
from agentmon.store.card_states import ON_BOARD
from agentmon.store.column_types import json_text
from agentmon.store.moments import moment_text, parse_moment
from agentmon.store.upgrade import prepare_database

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sqlalchemy import Engine
    from sqlalchemy.sql.base import Executable

NOW: Final = datetime(2026, 3, 1, 12, 0, 0, 123000, tzinfo=UTC)
_STAMP: Final = "2026-03-01T12:00:00.123Z"
_BOTH: Final = {"created_at": _STAMP, "updated_at": _STAMP}
_OPERATION: Final = {
    "session_id": "session",
    "tool_name": "Bash",
    "type": "execute",
    "target": "ls",
    "status": "pending",
}

VALID_ROWS: Final[Mapping[str, Mapping[str, object]]] = {
    "users": {"id": "user", "name": "Ada", **_BOTH},
    "workspaces": {"id": "workspace", "owner_id": "user", "name": "w", "root_path": "/w", **_BOTH},
    "settings": {"key": "theme", "value": '"dark"', **_BOTH},
    "agents": {
        "id": "agent",
        "owner_id": "user",
        "workspace_id": "workspace",
        "name": "make",
        "slug": "make",
        "kind": "builtin",
        "tool_type": "cli-tool",
        "binary_path": "make",
        "discovery_method": "preset",
        "model_tier": 2,
        "temperature": 0.5,
        **_BOTH,
    },
    "agent_tools": {"agent_id": "agent", "tool_name": "Bash", **_BOTH},
    "agent_capabilities": {
        "id": "capability",
        "agent_id": "agent",
        "key": "build",
        "label": "Build",
        "source": "preset",
        "interaction_mode": "template",
        "command_tokens": '["all"]',
        **_BOTH,
    },
    "tasks": {
        "id": "task",
        "number": 1,
        "owner_id": "user",
        "workspace_id": "workspace",
        "title": "t",
        "status": "todo",
        "sort_order": 1000,
        "assignee_agent_id": "agent",
        **_BOTH,
    },
    "looked_at": {"digest": "00", "created_at": _STAMP},
    "task_dependencies": {"task_id": "task", "depends_on_task_id": "other-task", "created_at": _STAMP},
    "task_labels": {"task_id": "task", "label": "auth"},
    "task_events": {"task_id": "task", "actor_type": "user", "event_type": "task_created", "created_at": _STAMP},
    "sessions": {
        "id": "session",
        "user_id": "user",
        "agent_id": "agent",
        "task_id": "task",
        "workspace": "/w",
        "status": "running",
        "model_tier": 1,
        "temperature": 0,
        "started_at": _STAMP,
        **_BOTH,
    },
    "executions": {
        "id": "execution",
        "task_id": "task",
        "agent_id": "agent",
        "capability_id": "capability",
        "session_id": "session",
        "requested_by": "user",
        "status": "queued",
        "mode": "template",
        "cost_nano": 0,
        "queued_at": _STAMP,
        **_BOTH,
    },
    "execution_commands": {
        "id": "command",
        "execution_id": "execution",
        "actor_type": "user",
        "cause": "person",
        "type": "stop",
        "created_at": _STAMP,
    },
    "idempotency_keys": {
        "actor_id": "user",
        "key": "key",
        "action": "run",
        "digest": "digest",
        "result_id": "execution",
        "created_at": _STAMP,
    },
    "worker_heartbeats": {"worker_id": "worker", "last_seen_at": _STAMP, "created_at": _STAMP},
    "agent_registry": {
        "session_id": "session",
        "status": "active",
        "last_heartbeat_at": _STAMP,
        "worker_id": "worker",
        "host": "here",
        "created_at": _STAMP,
    },
    "messages": {
        "id": "message",
        "session_id": "session",
        "execution_id": "execution",
        "message_ref": "0:1",
        "role": "user",
        "content": "hi",
        "created_at": _STAMP,
    },
    "events": {
        "session_id": "session",
        "execution_id": "execution",
        "user_id": "user",
        "trace_id": "execution",
        "type": "log",
        "level": "info",
        "timestamp_ms": 1,
    },
    "operations": {
        "id": "operation",
        **_OPERATION,
        "execution_id": "execution",
        "operation_ref": "0:1",
        "started_at": _STAMP,
        **_BOTH,
    },
    "approval_rules": {"id": "rule", "workspace_id": "workspace", "agent_id": "agent", "decision": "allow", **_BOTH},
    "approvals": {
        "id": "approval",
        "execution_id": "execution",
        "session_id": "session",
        "operation_id": "operation",
        "request_ref": "0:1",
        "request_id": "1",
        "ask_kind": "permission",
        "title": "Run ls",
        "status": "allowed",
        "rule_id": "rule",
        "asked_at": _STAMP,
        **_BOTH,
    },
    "worktrees": {
        "id": "worktree",
        "workspace_id": "workspace",
        "task_id": "task",
        "source": "/src/api",
        "path": "/data/worktrees/api-0/1-it",
        "branch": "agentmon/1-it",
        "status": "ready",
        **_BOTH,
    },
    "verifications": {
        "id": "verification",
        "execution_id": "execution",
        "attempt": 1,
        "command": "make test",
        "status": "passed",
        "log_path": "/data/executions/execution/verification-1.log",
        "started_at": _STAMP,
        **_BOTH,
    },
    "pull_requests": {
        "id": "pull-request",
        "task_id": "task",
        "program": "gh",
        "folder": "/src/api",
        "branch": "agentmon/1-it",
        "base": "main",
        "url": "https://example.org/pull/1",
        "state": "open",
        **_BOTH,
    },
    "overlaps": {"execution_id": "execution", "other_id": "execution", "kind": "folder", "created_at": _STAMP},
    "changes": {
        "id": "change",
        "operation_id": "operation",
        "execution_id": "execution",
        "path": "a.txt",
        "change_type": "modify",
        **_BOTH,
    },
    "review_comments": {
        "id": "comment",
        "execution_id": "execution",
        "path": "app.py",
        "side": "new",
        "first_line": 3,
        "last_line": 4,
        "quoted": "a\nb",
        "text": "why?",
        "digest": "00",
        **_BOTH,
    },
    "llm_interactions": {
        "id": "interaction",
        "key": "message-1",
        "session_id": "session",
        "agent_id": "agent",
        "model": "m",
        "provider": "p",
        "latency_ms": 1,
        "success": 1,
        "cost_nano": 1,
        "cost_source": "reported",
        "price_version": "1",
        "at_ms": 1,
        "day_local": "2026-03-01",
        "created_at": _STAMP,
    },
    "usage_files": {
        "id": "file",
        "agent_slug": "claude",
        "path": "/home/a.jsonl",
        "thread_key": "a",
        "inode": 1,
        "size_bytes": 1,
        "mtime_ns": 1,
        "read_offset": 1,
        "head_hash": "0",
        "parser_version": 1,
        **_BOTH,
    },
    "budgets": {
        "id": "budget",
        "scope": "all",
        "period": "day",
        "unit": "money",
        "amount": 1,
        "action": "stop",
        **_BOTH,
    },
    "daily_usage": {
        "day_local": "2026-03-01",
        "agent_id": "agent",
        "model": "m",
        "project": "/p",
        "answers": 1,
        "prompt_tokens": 1,
        "cache_read_tokens": 1,
        "cache_write_5m_tokens": 1,
        "cache_write_1h_tokens": 1,
        "response_tokens": 1,
        "reasoning_tokens": 1,
        "web_searches": 1,
        "cost_nano": 1,
        "unpriced_answers": 0,
        "reported_answers": 0,
    },
    "daily_model_usage": {
        "day_local": "2026-03-01",
        "agent_id": "agent",
        "model": "m",
        "answers": 1,
        "prompt_tokens": 1,
        "cache_read_tokens": 1,
        "cache_write_5m_tokens": 1,
        "cache_write_1h_tokens": 1,
        "response_tokens": 1,
        "reasoning_tokens": 1,
        "web_searches": 1,
        "cost_nano": 1,
        "unpriced_answers": 0,
        "reported_answers": 0,
    },
    "monthly_usage": {
        "month_local": "2026-03",
        "agent_id": "agent",
        "model": "m",
        "project": "/p",
        "answers": 1,
        "prompt_tokens": 1,
        "cache_read_tokens": 1,
        "cache_write_5m_tokens": 1,
        "cache_write_1h_tokens": 1,
        "response_tokens": 1,
        "reasoning_tokens": 1,
        "web_searches": 1,
        "cost_nano": 1,
        "unpriced_answers": 0,
        "reported_answers": 0,
    },
    "session_usage": {
        "day_local": "2026-03-01",
        "session_id": "session",
        "execution_id": "execution",
        "agent_id": "agent",
        "model": "m",
        "project": "/p",
        "answers": 1,
        "prompt_tokens": 1,
        "cache_read_tokens": 1,
        "cache_write_5m_tokens": 1,
        "cache_write_1h_tokens": 1,
        "response_tokens": 1,
        "reasoning_tokens": 1,
        "web_searches": 1,
        "cost_nano": 1,
        "unpriced_answers": 0,
        "reported_answers": 0,
    },
    "programs": {
        "path": "/usr/bin/git",
        "name": "git",
        "real_path": "/usr/bin/git",
        "kind": "binary",
        "first_seen_at": _STAMP,
        "last_seen_at": _STAMP,
        **_BOTH,
    },
    "trusted_agent_files": {
        "workspace_id": "workspace",
        "path": "/home/ada/shop/.agentmon/agents.toml",
        "digest": "0" * 64,
        "trusted_by": "user",
        **_BOTH,
    },
    "board_counts": {"status": "done", "workspace_id": "workspace", "cards": 1},
    "daily_sessions": {
        "day_local": "2026-03-01",
        "user_id": "user",
        "agent_id": "agent",
        "project": "/p",
        "sessions": 1,
    },
    "daily_operations": {
        "day_local": "2026-03-01",
        "user_id": "user",
        "agent_id": "agent",
        "project": "/p",
        "type": "read",
        "operations": 1,
        "successes": 1,
        "failures": 0,
        "blocked": 0,
    },
    "limit_snapshots": {
        "id": "snapshot",
        "agent_id": "agent",
        "window": "five_hour",
        "used_percent": 12.5,
        "captured_at_ms": 1,
        "seen_at_ms": 1,
        "source": "transcript",
        "created_at": _STAMP,
    },
    "history_files": {
        "id": "file",
        "agent_slug": "claude",
        "path": "/home/a.jsonl",
        "thread_key": "a",
        "inode": 1,
        "size_bytes": 1,
        "mtime_ns": 1,
        "read_offset": 1,
        "head_hash": "0",
        "parser_version": 1,
        **_BOTH,
    },
    "artifacts": {"id": "artifact", "session_id": "session", "path": "a", "kind": "code", "created_at": _STAMP},
    "documents": {
        "id": "document",
        "session_id": "session",
        "title": "t",
        "content": "c",
        "content_type": "text/plain",
        **_BOTH,
    },
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one valid row in every table, copied by each test."""
    folder = tmp_path_factory.mktemp("template")
    path = prepare_database(folder / "agentmon.db", backups_dir=folder / "backups", release="1").path
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        for table, row in VALID_ROWS.items():
            if table == "task_dependencies":
                _insert(connection, "tasks", {**VALID_ROWS["tasks"], "id": "other-task", "number": 2})
            _insert(connection, table, row)
    return path


@pytest.fixture
def connection(template: Path, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with (
        closing(sqlite3.connect(template)) as source,
        closing(sqlite3.connect(tmp_path / "copy.db", isolation_level=None)) as copy,
    ):
        source.backup(copy)
        copy.execute("PRAGMA foreign_keys = ON")
        yield copy


@pytest.fixture
def engine(connection: sqlite3.Connection, tmp_path: Path) -> Iterator[Engine]:
    del connection
    engine = create_engine(f"sqlite:///{tmp_path / 'copy.db'}")
    yield engine
    engine.dispose()


def _insert(connection: sqlite3.Connection, table: str, row: Mapping[str, object]) -> None:
    columns = ", ".join(f'"{column}"' for column in row)
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(row.values()))


def _checks() -> list[tuple[str, str]]:
    return sorted(
        (table.name, str(rule.name))
        for table in tables.metadata.tables.values()
        for rule in table.constraints
        if isinstance(rule, CheckConstraint)
    )


_SPECIAL: Final[Mapping[str, Mapping[str, object]]] = {
    "ck_agents_model_tier": {"model_tier": 5},
    "ck_sessions_model_tier": {"model_tier": 0},
    "ck_agent_capabilities_template_has_command_tokens": {"command_tokens": None},
    "ck_agent_capabilities_danger_level": {"danger_level": 4},
    "ck_tasks_priority": {"priority": 6},
    "ck_tasks_number_from_one": {"number": 0},
    "ck_tasks_version_from_one": {"version": 0},
    "ck_verifications_attempt_from_one": {"attempt": 0},
    "ck_tasks_no_parent_of_itself": {"parent_task_id": "task"},
    "ck_tasks_cron_with_zone": {"cron": "@daily"},
    "ck_budgets_amount_positive": {"amount": 0},
    "ck_task_dependencies_not_on_itself": {"depends_on_task_id": "task"},
}


@pytest.mark.parametrize(("table", "rule"), _checks())
def test_every_check_refuses_a_row_that_breaks_it(connection: sqlite3.Connection, table: str, rule: str) -> None:
    column = rule.removeprefix(f"ck_{table}_").removesuffix("_not_negative")
    broken = _SPECIAL.get(rule) or {column: -1 if rule.endswith("_not_negative") else "nonsense"}
    assignments = ", ".join(f'"{name}" = ?' for name in broken)
    _drop_triggers(connection)

    with pytest.raises(sqlite3.IntegrityError, match=f"CHECK constraint failed: {rule}$"):
        connection.execute(f"UPDATE {table} SET {assignments}", tuple(broken.values()))


@pytest.mark.parametrize(
    ("column", "low", "high", "table"), [("priority", 1, 5, "tasks"), ("danger_level", 0, 3, "agent_capabilities")]
)
def test_a_scale_takes_its_ends_and_nothing_beyond(
    connection: sqlite3.Connection, column: str, low: int, high: int, table: str
) -> None:
    for number in range(low, high + 1):
        connection.execute(f"UPDATE {table} SET {column} = ?", (number,))

    for number in (low - 1, high + 1):
        with pytest.raises(sqlite3.IntegrityError, match=column):
            connection.execute(f"UPDATE {table} SET {column} = ?", (number,))


def _unique_rules() -> list[tuple[str, str, tuple[str, ...]]]:
    found: list[tuple[str, str, tuple[str, ...]]] = []
    for table in tables.metadata.tables.values():
        for rule in table.constraints:
            if isinstance(rule, UniqueConstraint):
                found += [(table.name, str(rule.name), tuple(rule.columns.keys()))]
        for index in table.indexes:
            if index.unique:
                found += [(table.name, str(index.name), tuple(index.columns.keys()))]
    return sorted(found)


def test_the_unique_rules_are_the_ones_that_were_meant() -> None:
    assert {name for _, name, _ in _unique_rules()} == {
        "uq_workspaces_root_path",
        "uq_agents_slug",
        "uq_agent_capabilities_agent_id_key",
        "uq_tasks_workspace_id_number",
        "uq_executions_open_task_id",
        "uq_messages_execution_id_message_ref",
        "uq_operations_execution_id_operation_ref",
        "uq_approvals_execution_id_request_ref",
        "uq_llm_interactions_agent_id_key",
        "uq_llm_interactions_key_without_agent",
        "uq_usage_files_path",
        "uq_history_files_path",
        "uq_limit_snapshots_agent_id_account_window_captured_at_ms",
        "uq_budgets_scope_scope_id_period_unit",
        "uq_worktrees_path",
        "uq_verifications_execution_id_attempt",
        "uq_pull_requests_task_id_url",
    }


@pytest.mark.parametrize(("table", "rule", "columns"), _unique_rules())
def test_every_unique_rule_refuses_a_second_row(
    connection: sqlite3.Connection, table: str, rule: str, columns: tuple[str, ...]
) -> None:
    row = dict(VALID_ROWS[table])
    if rule == "uq_llm_interactions_key_without_agent":
        row["agent_id"] = None
        _insert(connection, table, {**row, "id": "first without an agent"})
    named = ", ".join(f"{table}.{column}" for column in columns)

    with pytest.raises(sqlite3.IntegrityError, match=f"UNIQUE constraint failed: {named}$"):
        _insert(connection, table, {**row, "id": "another"})


@pytest.mark.parametrize(
    "table", ["agent_tools", "task_dependencies", "settings", "agent_registry", "worker_heartbeats"]
)
def test_a_natural_key_refuses_a_second_row(connection: sqlite3.Connection, table: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE constraint failed"):
        _insert(connection, table, VALID_ROWS[table])


@pytest.mark.parametrize("open_status", ["queued", "running", "cancelling", "finalizing"])
def test_a_task_has_one_open_execution_and_any_number_of_ended_ones(
    connection: sqlite3.Connection, open_status: str
) -> None:
    connection.execute("UPDATE executions SET status = ?", (open_status,))
    with pytest.raises(sqlite3.IntegrityError, match=r"executions\.task_id"):
        _insert(connection, "executions", {**VALID_ROWS["executions"], "id": "second"})

    connection.execute("UPDATE executions SET status = 'succeeded'")
    _insert(connection, "executions", {**VALID_ROWS["executions"], "id": "second", "status": "failed"})
    _insert(connection, "executions", {**VALID_ROWS["executions"], "id": "third"})

    assert connection.execute("SELECT count(*) FROM executions").fetchone() == (3,)


def _references() -> list[tuple[str, str]]:
    return sorted(
        (table.name, key.parent.name) for table in tables.metadata.tables.values() for key in table.foreign_keys
    )


@pytest.mark.parametrize(("table", "column"), _references())
def test_every_reference_refuses_a_row_that_is_not_there(
    connection: sqlite3.Connection, table: str, column: str
) -> None:
    _drop_triggers(connection)

    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY constraint failed"):
        connection.execute(f"UPDATE {table} SET {column} = 'nowhere'")


@pytest.mark.parametrize(
    ("table", "row_id"),
    [
        ("tasks", "task"),
        ("agents", "agent"),
        ("agent_capabilities", "capability"),
        ("users", "user"),
        ("workspaces", "workspace"),
        ("sessions", "session"),
    ],
)
def test_what_a_record_needs_cannot_be_deleted(connection: sqlite3.Connection, table: str, row_id: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY constraint failed"):
        connection.execute(f"DELETE FROM {table} WHERE id = ?", (row_id,))


def test_the_parts_of_an_execution_go_with_it(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM executions")

    for table in ("execution_commands", "events", "changes", "approvals", "verifications"):
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table


def _drop_triggers(connection: sqlite3.Connection) -> None:
    """Take away what refuses any change of the audit trail, so that its other rules are reached."""
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")


@pytest.mark.parametrize("change", ["UPDATE task_events SET event_type = 'x'", "DELETE FROM task_events"])
def test_nothing_changes_or_removes_a_line_of_the_audit_trail(connection: sqlite3.Connection, change: str) -> None:
    before = connection.execute("SELECT * FROM task_events").fetchall()

    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(change)

    assert connection.execute("SELECT * FROM task_events").fetchall() == before != []


def test_an_id_of_the_stream_is_never_used_twice(connection: sqlite3.Connection) -> None:
    _drop_triggers(connection)
    for table in ("events", "task_events"):
        newest = connection.execute(f"SELECT max(id) FROM {table}").fetchone()[0]
        connection.execute(f"DELETE FROM {table}")

        _insert(connection, table, VALID_ROWS[table])

        assert connection.execute(f"SELECT max(id) FROM {table}").fetchone()[0] > newest


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (
            "SELECT id FROM executions WHERE status = 'queued' AND id <> ? ORDER BY priority, queued_at, id",
            "ix_executions_queued",
        ),
        ("SELECT id FROM executions WHERE task_id = ? ORDER BY created_at DESC", "ix_executions_task_id_created_at"),
        ("SELECT id FROM executions WHERE heartbeat_at < ?", "ix_executions_heartbeat_at"),
        ("SELECT count(*) FROM executions WHERE agent_id = ? AND status = 'running'", "ix_executions_agent_id_status"),
        (
            (
                "SELECT id FROM tasks WHERE workspace_id = ? AND status = 'todo' AND deleted_at IS NULL"
                " AND archived_at IS NULL ORDER BY sort_order, id"
            ),
            "COVERING INDEX ix_tasks_board ",
        ),
        *(
            (
                (
                    f"SELECT t.id FROM tasks t WHERE t.workspace_id = ? AND t.status = 'todo' AND {ON_BOARD}"
                    f" ORDER BY {ORDERS[sort]} LIMIT 60 OFFSET 1000"
                ),
                f"COVERING INDEX {index} ",
            )
            for sort, index in (
                (BoardSort.ORDER, "ix_tasks_board"),
                (BoardSort.PRIORITY, "ix_tasks_board_priority"),
                (BoardSort.DUE, "ix_tasks_board_due"),
                (BoardSort.CHANGED, "ix_tasks_board_changed"),
            )
        ),
        ("SELECT id FROM tasks WHERE parent_task_id = ?", "ix_tasks_parent_task_id"),
        ("SELECT id FROM events WHERE session_id = ? AND id > 5 ORDER BY id", "ix_events_session_id_id"),
        ("SELECT id FROM events WHERE execution_id = ? AND id > 5 ORDER BY id", "ix_events_execution_id_id"),
        ("SELECT id FROM events WHERE type = ? AND timestamp_ms > 5", "ix_events_type_timestamp_ms"),
        (
            "SELECT id FROM execution_commands WHERE delivered_at IS NULL AND id > ? ORDER BY id",
            "ix_execution_commands_undelivered",
        ),
        (
            "SELECT id FROM execution_commands WHERE execution_id = ? ORDER BY id",
            "ix_execution_commands_execution_id_id",
        ),
        (
            "SELECT id FROM executions WHERE agent_id = ? ORDER BY created_at DESC, id DESC LIMIT 200",
            "ix_executions_agent_id_created_at_id",
        ),
    ],
)
def test_the_frequent_queries_use_their_index_without_sorting(
    connection: sqlite3.Connection, query: str, index: str
) -> None:
    plan = " ".join(str(step[3]) for step in connection.execute(f"EXPLAIN QUERY PLAN {query}", ("queued",)))

    assert index in plan
    assert "TEMP B-TREE" not in plan


def test_a_time_is_kept_as_sortable_text_in_utc(engine: Engine, connection: sqlite3.Connection) -> None:
    east = NOW.astimezone(timezone(timedelta(hours=9)))

    with engine.begin() as writer:
        writer.execute(tables.tasks.update().values(due_at=east))

    assert connection.execute("SELECT DISTINCT due_at FROM tasks").fetchall() == [(_STAMP,)]
    with engine.connect() as reader:
        assert reader.scalar(select(tables.tasks.c.due_at).where(tables.tasks.c.due_at == NOW)) == NOW


def test_a_time_without_a_zone_is_refused(engine: Engine) -> None:
    with engine.begin() as writer, pytest.raises(StatementError, match="needs a time zone"):
        writer.execute(tables.tasks.update().values(due_at=NOW.replace(tzinfo=None)))


def test_a_time_is_cut_to_milliseconds_and_reads_back() -> None:
    moment = NOW.replace(microsecond=999_999)

    assert moment_text(moment) == "2026-03-01T12:00:00.999Z"
    assert parse_moment(moment_text(moment)) == NOW.replace(microsecond=999_000)


def test_json_is_kept_readable_with_sorted_keys(engine: Engine, connection: sqlite3.Connection) -> None:
    with engine.begin() as writer:
        writer.execute(tables.tasks.update().values(input_context={"b": 1, "a": "zoë"}))

    assert connection.execute("SELECT DISTINCT input_context FROM tasks").fetchall() == [('{"a":"zoë","b":1}',)]
    with engine.connect() as reader:
        assert reader.scalar(select(tables.tasks.c.input_context)) == {"a": "zoë", "b": 1}


def test_json_that_is_absent_is_null(engine: Engine, connection: sqlite3.Connection) -> None:
    with engine.begin() as writer:
        writer.execute(tables.executions.update().values(output_data={}))
        writer.execute(tables.executions.update().values(output_data=None))

    assert connection.execute("SELECT output_data FROM executions").fetchone() == (None,)


def test_json_takes_any_text_and_refuses_what_is_no_number() -> None:
    assert json.loads(json_text({"line": "a\ud800b\x00é"})) == {"line": "a?b\x00é"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"cost": float("nan")})


def test_a_word_reads_back_as_its_member(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(tables.tasks.update().values(status=TaskStatus.IN_PROGRESS))
        connection.execute(tables.executions.update().values(status="running"))

        assert connection.scalar(select(tables.tasks.c.status)) is TaskStatus.IN_PROGRESS
        assert connection.scalar(select(tables.executions.c.status)) is ExecutionStatus.RUNNING
        assert connection.scalar(select(tables.execution_commands.c.type)) is CommandType.STOP


def test_a_word_that_is_none_of_the_set_is_refused_by_the_database(engine: Engine) -> None:
    with engine.begin() as connection, pytest.raises(IntegrityError, match="ck_tasks_status"):
        connection.execute(tables.tasks.update().values(status="lost"))


def test_every_rule_and_index_has_a_stable_name() -> None:
    for table in tables.metadata.tables.values():
        names = [*(rule.name for rule in table.constraints), *(index.name for index in table.indexes)]
        assert None not in names, table.name


def test_the_schema_can_be_written_for_postgresql() -> None:
    dialect = make_url("postgresql+asyncpg://").get_dialect()()
    statements: list[str] = []

    def note(statement: Executable, *_: object, **__: object) -> None:
        assert isinstance(statement, ClauseElement)
        statements.append(str(statement.compile(dialect=dialect)))

    tables.metadata.create_all(create_mock_engine("postgresql://", note), checkfirst=False)

    schema = "\n".join(statements)
    assert "created_at TIMESTAMP WITH TIME ZONE NOT NULL" in schema
    assert "payload JSONB DEFAULT '{}' NOT NULL" in schema
    assert "id BIGSERIAL NOT NULL" in schema


def test_what_the_first_frame_imports_is_light() -> None:
    heavy = ("sqlalchemy", "sqlmodel", "alembic", "aiosqlite", "pydantic")
    script = (
        "import sys, agentmon.store.revision, agentmon.store.inspection, agentmon.store.upgrade\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )

    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30)

    assert shown.stdout == "[]\n"
