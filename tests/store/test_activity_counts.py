"""Counts of sessions and tool calls by day follow their rows, whoever writes these."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

import pytest

from agentmon.domain.clock import FakeClock
from agentmon.store.upgrade import prepare_database
from tests.store.recounts import counted_anew, kept_counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_AT: Final = "2026-03-01T12:00:00.000Z"
_STAMPS: Final = {"created_at": _AT, "updated_at": _AT}


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A database with two users, two agents and no session, whose references are enforced."""
    path = tmp_path / "a.db"
    prepare_database(path, backups_dir=tmp_path / "backups", release="1", clock=FakeClock())
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        opened.row_factory = sqlite3.Row
        opened.execute("PRAGMA foreign_keys = ON")
        for name in ("ada", "bob"):
            insert(opened, "users", {"id": name, "name": name})
        for name in ("claude", "codex"):
            row = {"id": name, "name": name, "slug": name, "binary_path": name, "owner_id": "ada"}
            insert(opened, "agents", row | {"kind": "builtin", "tool_type": "ai-agent", "discovery_method": "preset"})
        yield opened


def insert(connection: sqlite3.Connection, table: str, row: Mapping[str, object], verb: str = "INSERT") -> None:
    columns = {**row, **_STAMPS}
    marks = ", ".join("?" for _ in columns)
    connection.execute(f"{verb} INTO {table} ({', '.join(columns)}) VALUES ({marks})", list(columns.values()))


def add_session(connection: sqlite3.Connection, session_id: str, *, project: str = "/w") -> None:
    row = {"id": session_id, "user_id": "ada", "agent_id": "claude", "workspace": "/w", "status": "completed"}
    insert(connection, "sessions", row | {"project": project, "day_local": "2026-03-01", "started_at": _AT})


def add_call(
    connection: sqlite3.Connection,
    call_id: str,
    session_id: str,
    status: str,
    *,
    verb: str = "INSERT",
    day: str = "2026-03-01",
) -> None:
    row = {"id": call_id, "session_id": session_id, "status": status, "day_local": day, "started_at": _AT}
    insert(connection, "operations", row | {"tool_name": "Bash", "type": "execute", "target": "ls"}, verb)


def test_each_call_counts_on_its_day_and_by_how_it_ended(connection: sqlite3.Connection) -> None:
    add_session(connection, "s")
    for place, status in enumerate(["success", "success", "failed", "blocked", "cancelled", "pending"]):
        add_call(connection, str(place), "s", status)

    (row,) = connection.execute("SELECT * FROM daily_operations").fetchall()

    assert tuple(row) == ("2026-03-01", "ada", "claude", "/w", "execute", 6, 2, 1, 1)
    assert kept_counts(connection) == counted_anew(connection)


def test_a_call_that_ends_or_is_decided_otherwise_counts_anew(connection: sqlite3.Connection) -> None:
    add_session(connection, "s")
    add_call(connection, "c", "s", "pending")

    for status in ("success", "failed", "blocked", "cancelled"):
        connection.execute("UPDATE operations SET status = ?", (status,))
        assert kept_counts(connection) == counted_anew(connection), status

    connection.execute("UPDATE operations SET status = 'success', type = 'read', day_local = '2026-03-02'")
    (row,) = connection.execute("SELECT * FROM daily_operations").fetchall()
    assert (row["day_local"], row["type"], row["successes"], row["blocked"]) == ("2026-03-02", "read", 1, 0)


def test_the_calls_of_a_session_go_where_it_goes(connection: sqlite3.Connection) -> None:
    add_session(connection, "s")
    add_session(connection, "t")
    for place, status in enumerate(["success", "failed", "blocked"]):
        add_call(connection, f"s{place}", "s", status, day=f"2026-03-0{place + 1}")
        add_call(connection, f"t{place}", "t", status)

    for change in ("project = '/other'", "user_id = 'bob'", "agent_id = 'codex'", "day_local = '2026-02-01'"):
        connection.execute(f"UPDATE sessions SET {change} WHERE id = 's'")
        assert kept_counts(connection) == counted_anew(connection), change

    whose = connection.execute("SELECT DISTINCT user_id, agent_id, project FROM daily_operations ORDER BY 1").fetchall()
    assert [tuple(row) for row in whose] == [("ada", "claude", "/w"), ("bob", "codex", "/other")]


def test_a_call_that_moves_to_another_session_counts_there(connection: sqlite3.Connection) -> None:
    add_session(connection, "s")
    add_session(connection, "t", project="/other")
    add_call(connection, "c", "s", "success")

    connection.execute("UPDATE operations SET session_id = 't'")

    (row,) = connection.execute("SELECT * FROM daily_operations").fetchall()
    assert row["project"] == "/other"
    assert kept_counts(connection) == counted_anew(connection)


def test_a_session_that_is_removed_takes_its_calls_out_of_the_counts(connection: sqlite3.Connection) -> None:
    for name in ("s", "t"):
        add_session(connection, name)
        add_call(connection, name, name, "success")

    connection.execute("DELETE FROM sessions WHERE id = 's'")

    assert connection.execute("SELECT sum(sessions) FROM daily_sessions").fetchone()[0] == 1
    assert connection.execute("SELECT sum(operations) FROM daily_operations").fetchone()[0] == 1
    assert kept_counts(connection) == counted_anew(connection)

    connection.execute("DELETE FROM sessions")
    assert connection.execute("SELECT * FROM daily_sessions").fetchall() == []
    assert connection.execute("SELECT * FROM daily_operations").fetchall() == []


@pytest.mark.parametrize("verb", ["INSERT", "INSERT OR IGNORE", "INSERT OR ABORT"])
def test_rows_that_are_written_twice_count_once(connection: sqlite3.Connection, verb: str) -> None:
    add_session(connection, "s")
    add_call(connection, "c", "s", "success", verb=verb)
    add_call(connection, "d", "s", "success", verb=verb)

    if verb == "INSERT OR IGNORE":
        add_call(connection, "d", "s", "failed", verb=verb)
    else:
        with pytest.raises(sqlite3.IntegrityError):
            add_call(connection, "d", "s", "failed", verb=verb)

    assert connection.execute("SELECT operations, successes FROM daily_operations").fetchone()[:] == (2, 2)
    assert kept_counts(connection) == counted_anew(connection)


def test_an_upsert_of_a_call_counts_it_as_it_then_is(connection: sqlite3.Connection) -> None:
    add_session(connection, "s")
    for status in ("pending", "failed", "success"):
        connection.execute(
            "INSERT INTO operations (id, session_id, tool_name, type, target, status, started_at, day_local, "
            "created_at, updated_at) VALUES ('c', 's', 'Bash', 'execute', 'ls', ?, ?, '2026-03-01', ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET status = excluded.status, day_local = excluded.day_local",
            (status, _AT, _AT, _AT),
        )
        assert kept_counts(connection) == counted_anew(connection), status
