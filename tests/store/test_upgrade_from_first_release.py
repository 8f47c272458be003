from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import pytest

from agentmon.domain.clock import FakeClock
from agentmon.domain.execution_status import WaitReason
from agentmon.domain.ids import LOCAL_USER_ID, WorkerId
from agentmon.store.claims import ClaimRepository
from agentmon.store.message_index import MESSAGES
from agentmon.store.migrations import run_migrations
from agentmon.store.revision import HEAD_REVISION
from agentmon.store.search_index import ROW_INDEXES
from agentmon.store.upgrade import Migrations, prepare_database
from agentmon.store.usage_days import ZONE_KEY
from tests.store.queue_place import opened_again

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    Row = Mapping[str, object]

_THEN: Final = "2026-03-01T12:00:00.000Z"
_LATER: Final = "2026-03-01T13:30:00.250Z"
_STAMPS: Final = {"created_at": _THEN, "updated_at": _LATER}

# Status, and what else stands in the row.
_RUNS: Final[Mapping[str, Row]] = {
    "waits": {"status": "queued", "max_retries": 1},
    "tries-again": {"status": "queued", "retry_count": 2, "max_retries": 3, "not_before": _LATER},
    "runs": {"status": "running", "started_at": _LATER, "worker_id": "w", "heartbeat_at": _LATER, "pid": 7},
    "is-stopped": {"status": "cancelling", "started_at": _LATER, "worker_id": "w", "journal_offset": 300},
    "succeeded": {"status": "succeeded", "exit_code": 0, "ended_at": _LATER, "cost_nano": 12, "tokens_used": 3},
    "failed": {
        "status": "failed",
        "exit_code": 3,
        "ended_at": _LATER,
        "error": "exit 3: lost: one file",
        "retry_count": 1,
    },
    "lost": {"status": "failed", "ended_at": _LATER, "error": "lost: its host ended without a word"},
    "cancelled": {"status": "cancelled", "exit_code": 143, "ended_at": _LATER},
    "timed-out": {"status": "timed_out", "exit_code": 137, "ended_at": _LATER},
}
_FILLED: Final[Mapping[str, tuple[object, ...]]] = {
    # Attempt, age in the queue, priority, why it waits, how it ended.
    "waits": (0, _THEN, 1, None, None),
    "tries-again": (2, _LATER, 2, "retry", None),
    "runs": (0, _THEN, 3, None, None),
    "is-stopped": (0, _THEN, 4, None, None),
    "succeeded": (0, _THEN, 5, None, "exited"),
    "failed": (1, _THEN, 1, None, "exited"),
    "lost": (0, _THEN, 2, None, "lost"),
    "cancelled": (0, _THEN, 3, None, "stopped"),
    "timed-out": (0, _THEN, 4, None, "timed_out"),
}


def _insert(connection: sqlite3.Connection, table: str, **columns: object) -> None:
    marks = ", ".join("?" for _ in columns)
    connection.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", list(columns.values()))


def _fill(connection: sqlite3.Connection) -> None:
    """Put rows into every table of the first schema, as that release wrote them."""
    _insert(connection, "users", id=LOCAL_USER_ID, name="local", **_STAMPS)
    _insert(connection, "settings", key="worker.max_running", value="3", **_STAMPS)
    _insert(
        connection,
        "worker_heartbeats",
        worker_id="w",
        last_seen_at=_LATER,
        current_executions=2,
        metadata='{"host":"h","pid":7}',
        created_at=_THEN,
    )
    _insert(connection, "workspaces", id="place", owner_id=LOCAL_USER_ID, name="p", root_path="/p", **_STAMPS)
    for agent_id, workspace_id in (("agent", None), ("own", "place")):
        _insert(
            connection,
            "agents",
            id=agent_id,
            owner_id=LOCAL_USER_ID,
            workspace_id=workspace_id,
            name="Any command",
            slug=agent_id,
            kind="builtin",
            tool_type="shell-util",
            binary_path="",
            max_concurrent=0,
            discovery_method="preset",
            temperature=0.5,
            metadata='{"icon":"$"}',
            **_STAMPS,
        )
    _insert(
        connection,
        "agent_capabilities",
        id="capability",
        agent_id="agent",
        key="run",
        label="Run",
        source="preset",
        interaction_mode="template",
        command_tokens='["{{args.argv}}"]',
        **_STAMPS,
    )
    _insert(connection, "agent_tools", agent_id="agent", tool_name="Bash", enabled=0, **_STAMPS)
    _fill_work(connection)
    _fill_sessions(connection)


def _fill_work(connection: sqlite3.Connection) -> None:
    for number, name in enumerate(_RUNS, 1):
        _insert(
            connection,
            "tasks",
            id=f"task-{name}",
            number=number,
            owner_id=LOCAL_USER_ID,
            workspace_id="place",
            parent_task_id="task-waits" if name == "runs" else None,
            title=f"“{name}” – ü 漢 🙂",
            status="in_progress" if name in {"runs", "is-stopped", "tries-again"} else "todo",
            priority=(number - 1) % 5 + 1,
            sort_order=number * 1000,
            assignee_agent_id="agent",
            input_context='{"args":{"argv":["true"]}}',
            version=number,
            **_STAMPS,
        )
    _insert(
        connection,
        "tasks",
        id="task-deleted",
        number=90,
        owner_id=LOCAL_USER_ID,
        workspace_id="place",
        title="gone",
        status="todo",
        sort_order=0,
        deleted_at=_LATER,
        **_STAMPS,
    )
    _insert(
        connection, "task_dependencies", task_id="task-failed", depends_on_task_id="task-succeeded", created_at=_THEN
    )
    limit_changed = '{"agent_id":"agent","max_concurrent":{"from":1,"to":0}}'
    for event_id, task in ((1, "task-waits"), (5, "task-waits"), (9, "task-deleted"), (12, "task-lost")):
        _insert(
            connection,
            "task_events",
            id=event_id,
            task_id=task,
            actor_type="user",
            actor_id=LOCAL_USER_ID,
            event_type="agent_changed" if event_id == 5 else "task_edited",
            payload=limit_changed if event_id == 5 else '{"changed":["title"]}',
            created_at=_THEN,
        )
    # The sequence has gone further than the lines that are there.
    connection.execute("UPDATE sqlite_sequence SET seq = 40 WHERE name = 'task_events'")
    for name, columns in _RUNS.items():
        _insert(
            connection,
            "executions",
            id=name,
            task_id=f"task-{name}",
            agent_id="agent",
            capability_id="capability",
            requested_by=LOCAL_USER_ID,
            mode="template",
            args='{"argv":["true"]}',
            log_file_path=f"/e/{name}/output.log",
            last_line="a line",
            parent_execution_id="failed" if name == "lost" else None,
            **columns,
            **dict.fromkeys(_STAMPS, _THEN),
        )
    _insert(
        connection,
        "execution_commands",
        id="command",
        execution_id="is-stopped",
        actor_type="user",
        actor_id=LOCAL_USER_ID,
        type="stop",
        created_at=_LATER,
    )


def _fill_sessions(connection: sqlite3.Connection) -> None:
    _insert(
        connection,
        "sessions",
        id="session",
        user_id=LOCAL_USER_ID,
        agent_id="agent",
        task_id="task-runs",
        workspace="/p",
        status="running",
        started_at=_THEN,
        **_STAMPS,
    )
    connection.execute("UPDATE executions SET session_id = 'session' WHERE id = 'runs'")
    of_session = {"session_id": "session"}
    of_run = of_session | {"execution_id": "runs"}
    _insert(
        connection,
        "agent_registry",
        status="active",
        last_heartbeat_at=_LATER,
        worker_id="w",
        host="h",
        created_at=_THEN,
        **of_session,
    )
    _insert(connection, "messages", id="message", role="user", content="hello", created_at=_THEN, **of_run)
    _insert(
        connection,
        "events",
        id=3,
        user_id=LOCAL_USER_ID,
        trace_id="runs",
        type="log",
        level="warn",
        timestamp_ms=1,
        payload='{"n":1}',
        **of_run,
    )
    _insert(
        connection,
        "operations",
        id="operation",
        tool_name="Edit",
        type="write",
        target="/p/a",
        status="pending",
        started_at=_THEN,
        **of_run,
        **_STAMPS,
    )
    _insert(
        connection,
        "changes",
        id="change",
        operation_id="operation",
        execution_id="runs",
        path="a",
        change_type="modify",
        **_STAMPS,
    )
    _insert(
        connection,
        "llm_interactions",
        id="answer",
        key="k",
        agent_id="agent",
        model="m",
        provider="p",
        success=1,
        cost_source="table",
        price_version="1",
        at_ms=1,
        day_local="2026-03-01",
        created_at=_THEN,
        **of_run,
    )
    _insert(connection, "artifacts", id="artifact", path="/p/b", kind="code", created_at=_THEN, **of_run)
    _insert(
        connection,
        "documents",
        id="document",
        title="t",
        content="c",
        content_type="text/plain",
        **of_session,
        **_STAMPS,
    )


def _all_rows(path: Path) -> dict[str, list[dict[str, object]]]:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' "
            "AND name NOT IN ('alembic_version', 'sqlite_sequence') AND name NOT GLOB 'unindexed_*' "
            "AND name NOT GLOB '*_words*'"
        ).fetchall()
        return {
            table["name"]: [dict(row) for row in connection.execute(f"SELECT * FROM {table['name']} ORDER BY 1, 2")]
            for table in tables
        }


@pytest.fixture
def before(tmp_path: Path) -> dict[str, list[dict[str, object]]]:
    """The rows of a database that the first release left."""
    path = tmp_path / "a.db"
    path.touch()
    run_migrations(path, Migrations().folder, target="0001")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = ON")
        _fill(connection)
    rows = _all_rows(path)
    assert all(rows.values()), "a table without a row"
    return rows


@pytest.fixture
def upgraded(tmp_path: Path, before: object) -> Path:
    del before
    path = tmp_path / "a.db"
    prepare_database(path, backups_dir=tmp_path / "backups", release="2", clock=FakeClock())
    return path


def test_every_row_of_every_table_keeps_what_it_had(before: dict[str, list[dict[str, object]]], upgraded: Path) -> None:
    after = _all_rows(upgraded)

    assert set(after) - set(before) == {
        *("approvals", "approval_rules", "usage_files", "daily_usage", "budgets"),
        *("daily_model_usage", "monthly_usage", "session_usage", "daily_sessions", "daily_operations"),
        *("limit_snapshots", "history_files", "task_labels", "log_indexes", "log_pieces", "board_counts"),
        *("programs", "trusted_agent_files", "idempotency_keys", "worktrees", "looked_at", "verifications"),
        *("review_comments", "pull_requests", "overlaps"),
    }
    after["settings"] = [row for row in after["settings"] if row["key"] != ZONE_KEY]
    for table, rows in before.items():
        kept = [{name: row[name] for name in earlier} for earlier, row in zip(rows, after[table], strict=True)]
        assert kept == rows, table


def test_new_columns_get_what_the_old_ones_tell(upgraded: Path) -> None:
    rows = _all_rows(upgraded)

    told = ("attempt", "queued_at", "priority", "wait_reason", "end_reason")
    assert {str(row["id"]): tuple(row[name] for name in told) for row in rows["executions"]} == _FILLED
    assert {row["wait_count"] for row in rows["executions"]} == {0}
    assert {(row["failure_streak"], row["parked_until"]) for row in rows["agents"]} == {(0, None)}
    assert {row["id"]: row["edited_fields"] for row in rows["agents"]} == {"agent": '["max_concurrent"]', "own": "[]"}
    assert {(row["cron"], row["next_run_at"]) for row in rows["tasks"]} == {(None, None)}
    assert {row["payload"] for row in rows["execution_commands"]} == {"{}"}


def test_the_answers_that_are_there_are_summed_up(upgraded: Path) -> None:
    (row,) = _all_rows(upgraded)["daily_usage"]

    named = ("day_local", "agent_id", "model", "project", "answers", "prompt_tokens", "cost_nano", "unpriced_answers")
    assert [row[name] for name in named] == ["2026-03-01", "agent", "m", "/p", 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("chosen", "machine", "day"),
    [(None, "America/Los_Angeles", "2026-02-28"), ("Pacific/Kiritimati", "America/Los_Angeles", "2026-03-01")],
)
def test_sessions_and_calls_get_their_days_and_are_counted(
    tmp_path: Path, before: object, monkeypatch: pytest.MonkeyPatch, chosen: str | None, machine: str, day: str
) -> None:
    del before
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in ("sessions", "operations"):
            connection.execute(f"UPDATE {table} SET started_at = '2026-03-01T07:00:00.000Z'")
        connection.execute("UPDATE llm_interactions SET day_local = ?", [day])
        if chosen is not None:
            _insert(connection, "settings", key=ZONE_KEY, value=json.dumps(chosen), **_STAMPS)
    monkeypatch.setenv("TZ", machine)

    prepare_database(path, backups_dir=tmp_path / "backups", release="2", clock=FakeClock())

    rows = _all_rows(path)
    whose = {"day_local": day, "user_id": LOCAL_USER_ID, "agent_id": "agent", "project": "/p"}
    ends = {"successes": 0, "failures": 0, "blocked": 0}
    assert rows["daily_sessions"] == [whose | {"sessions": 1}]
    assert rows["daily_operations"] == [whose | {"type": "write", "operations": 1} | ends]
    (session,) = rows["sessions"]
    assert (session["project"], session["day_local"]) == ("/p", day)
    zones = [json.loads(str(row["value"])) for row in rows["settings"] if row["key"] == ZONE_KEY]
    assert zones == [chosen or machine]


def test_runs_and_sessions_cost_what_their_answers_do_and_what_the_agent_said_where_none_has_a_price(
    tmp_path: Path, before: object
) -> None:
    del before
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        answer = {"agent_id": "agent", "model": "m", "provider": "p", "success": 1, "cost_source": "list"}
        answer |= {"price_version": "1", "at_ms": 1, "day_local": "2026-03-01", "created_at": _THEN}
        for key, execution_id, cost_nano in (("k1", "runs", 70), ("k2", "runs", 5), ("k3", "failed", None)):
            _insert(
                connection,
                "llm_interactions",
                **(answer | {"id": key, "key": key, "session_id": "session"}),
                execution_id=execution_id,
                cost_nano=cost_nano,
            )
        for execution_id, said in (("runs", 100), ("failed", 20)):
            connection.execute(
                "UPDATE executions SET session_id = 'session', cost_nano = ? WHERE id = ?", [said, execution_id]
            )
        connection.execute("UPDATE sessions SET total_cost_nano = 120")

    prepare_database(path, backups_dir=tmp_path / "backups", release="2", clock=FakeClock())

    rows = _all_rows(path)
    costs = {row["id"]: row["cost_nano"] for row in rows["executions"]}
    assert (costs["runs"], costs["failed"], costs["succeeded"], costs["lost"]) == (75, 20, 12, None)
    (session,) = rows["sessions"]
    assert session["total_cost_nano"] == 95
    assert json.loads(str(session["metadata"]))["cost_said_of"] == {"runs": 100, "failed": 20}
    (month,) = rows["monthly_usage"]
    assert (month["month_local"], month["answers"], month["cost_nano"]) == ("2026-03", 4, 75)


def test_all_references_are_whole_and_deletions_still_follow_them(upgraded: Path) -> None:
    with closing(sqlite3.connect(upgraded)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(HEAD_REVISION,)]
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            connection.execute("DELETE FROM tasks WHERE id = 'task-waits'")
        connection.execute("DELETE FROM executions WHERE id = 'is-stopped'")
        assert connection.execute("SELECT * FROM execution_commands").fetchall() == []
        assert not connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE '%\"old\"%'").fetchall()


def test_the_audit_trail_counts_on_and_stays_append_only(upgraded: Path) -> None:
    with closing(sqlite3.connect(upgraded)) as connection, connection:
        _insert(
            connection, "task_events", actor_type="system", event_type="queue_paused", payload="{}", created_at=_LATER
        )
        ids = [event_id for (event_id,) in connection.execute("SELECT id FROM task_events ORDER BY id")]
        assert ids == [1, 5, 9, 12, 41]
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute("DELETE FROM task_events WHERE id = 5")


async def test_a_worker_takes_what_was_queued(upgraded: Path) -> None:
    retry_due = datetime.fromisoformat(_LATER)
    before_it = datetime(2026, 3, 1, 13, 29, tzinfo=UTC)

    async with opened_again(upgraded) as database:
        claims = ClaimRepository(database)
        early = await claims.claim(worker_id=WorkerId("new"), max_running=9, park_after=5, limit=9, at=before_it)
        late = await claims.claim(worker_id=WorkerId("new"), max_running=9, park_after=5, limit=9, at=retry_due)

    assert [one.execution.id for one in early] == ["waits"]
    assert [(one.execution.id, one.execution.attempt, one.execution.retry_count) for one in late] == [
        ("tries-again", 2, 2)
    ]
    values = {row["key"]: json.loads(str(row["value"])) for row in _all_rows(upgraded)["settings"]}
    assert values["worker.max_running"] == 3


def test_every_reason_to_wait_may_be_written_and_no_other(upgraded: Path) -> None:
    with closing(sqlite3.connect(upgraded)) as connection, connection:
        for reason in WaitReason:
            connection.execute("UPDATE executions SET wait_reason = ? WHERE id = 'waits'", [reason.value])
        with pytest.raises(sqlite3.IntegrityError, match="ck_executions_wait_reason"):
            connection.execute("UPDATE executions SET wait_reason = 'boredom' WHERE id = 'waits'")


def test_all_that_is_searched_waits_for_its_index_of_words(upgraded: Path) -> None:
    with closing(sqlite3.connect(upgraded)) as connection:
        for index in (MESSAGES, *ROW_INDEXES):
            rows = connection.execute(f"SELECT rowid FROM {index.rows} ORDER BY rowid").fetchall()
            assert rows
            noted = connection.execute(f"SELECT {index.row_column} FROM {index.unindexed} ORDER BY 1").fetchall()
            assert noted == rows
