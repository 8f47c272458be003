"""Homes of opencode: a database made of real rows, and rows as a test wants them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

REAL = Path(__file__).parent / "opencode" / "three_runs_and_a_fork.sql"
REAL_SESSIONS = ("ses_dde124e17ffeV80n8pFp7YNHhe", "ses_dde122561ffel2dpPWyZZ0J9Pn", "ses_dde10ee68ffe4CHh5kv72tlqJI")
"""Two that were begun anew, and the fork of the second."""
BEGUN_MS = 1_795_900_000_000
HOUR_MS = 3_600_000


def database_path(home: Path) -> Path:
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def make_database(path: Path, *, rows: bool = True) -> Path:
    """Make a database with the real tables, and with the real rows unless there shall be none; it has no log."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(REAL.read_text())
        if not rows:
            connection.executescript("DELETE FROM message; DELETE FROM session")
        connection.commit()
    return path


def message_id(created_ms: int, number: int = 1) -> str:
    """Return an id as opencode makes it at that time."""
    return f"msg_{((created_ms << 12) + number) % (1 << 48):012x}{number:014d}"


def message(
    created_ms: int, *, took_ms: int | None = 1_000, tokens: dict[str, object] | None = None, **more: object
) -> dict[str, object]:
    """Return the record of an answer; without ``took_ms`` it has not ended."""
    times = {"created": created_ms} | ({} if took_ms is None else {"completed": created_ms + took_ms})
    counts = tokens or {"input": 10, "output": 20, "reasoning": 5, "cache": {"read": 300, "write": 40}}
    record: dict[str, object] = {"role": "assistant", "time": times, "tokens": counts, "cost": 0.25}
    return record | {"providerID": "anthropic", "modelID": "claude-sonnet-4-5", "path": {"cwd": "/p"}} | more


def write_message(path: Path, record: object, *, row_id: str, session: str = "ses_1", at_ms: int = 0) -> None:
    with closing(sqlite3.connect(path)) as connection:
        data = record if isinstance(record, (bytes, str, int)) else json.dumps(record)
        connection.execute("INSERT OR REPLACE INTO message VALUES (?, ?, ?, 0, ?)", (row_id, session, at_ms, data))
        connection.commit()


def part_id(created_ms: int, number: int = 1) -> str:
    return f"prt_{message_id(created_ms, number).removeprefix('msg_')}"


def write_part(path: Path, part: object, *, message: str, session: str = "ses_1", at_ms: int, number: int = 1) -> None:
    """Write a part of a message as it is at that time; the table comes with the first one."""
    data = part if isinstance(part, (bytes, str, int)) else json.dumps(part)
    row = (part_id(at_ms, number), message, session, at_ms, at_ms, data)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, "
            "time_created INTEGER, time_updated INTEGER, data TEXT)"
        )
        connection.execute(
            "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET data = ?", (*row, data)
        )


def write_session(path: Path, session: str, *, parent: str | None = None, title: str = "Cart", at_ms: int) -> None:
    columns = {
        "id": session,
        "project_id": "global",
        "parent_id": parent,
        "slug": "s",
        "directory": "/home/dev/shop",
        "title": title,
        "version": "1.18.33",
        "time_created": at_ms,
        "time_updated": at_ms,
    }
    with closing(sqlite3.connect(path)) as connection:
        marks = ", ".join("?" * len(columns))
        connection.execute(
            f"INSERT OR REPLACE INTO session ({', '.join(columns)}) VALUES ({marks})", tuple(columns.values())
        )
        connection.commit()
