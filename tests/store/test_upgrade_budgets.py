"""What revision 0010 makes of rows that earlier releases wrote."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agentmon.store.migrations import run_migrations
from agentmon.store.upgrade import Migrations
from tests.store.test_tables import VALID_ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def add(connection: sqlite3.Connection, table: str, **changes: object) -> None:
    row: Mapping[str, object] = {**VALID_ROWS[table], **changes}
    names = ", ".join(f'"{name}"' for name in row)
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))


@pytest.fixture
def upgraded(tmp_path: Path) -> sqlite3.Connection:
    path = tmp_path / "a.db"
    path.touch()
    run_migrations(path, Migrations().folder, target="0009")
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in ("users", "workspaces", "agents", "agent_capabilities", "tasks", "sessions"):
            add(connection, table)
        add(connection, "tasks", id="other", number=2)
        for at, confidence in enumerate(("exact", "fallback_model")):
            add(connection, "llm_interactions", id=f"a{at}", key=f"k{at}", confidence=confidence, execution_id=None)
        ended = {"status": "cancelled", "end_reason": "stopped"}
        add(connection, "executions", **ended)
        add(connection, "executions", **ended | {"id": "other", "task_id": "other"})
        add(connection, "execution_commands", cause="budget", actor_type="system")
        add(connection, "execution_commands", id="c2", execution_id="other")
    run_migrations(path, Migrations().folder)
    return sqlite3.connect(path)


def test_what_was_assumed_and_what_a_budget_ended_get_their_words(upgraded: sqlite3.Connection) -> None:
    with closing(upgraded) as connection:
        assumed = connection.execute("SELECT id, confidence FROM llm_interactions ORDER BY id").fetchall()
        ends = connection.execute("SELECT id, end_reason FROM executions ORDER BY id").fetchall()
        with pytest.raises(sqlite3.IntegrityError, match="confidence"):
            add(connection, "llm_interactions", id="a9", key="k9", confidence="fallback_model")

    assert assumed == [("a0", "exact"), ("a1", "assumed")]
    assert ends == [("execution", "budget"), ("other", "stopped")]
