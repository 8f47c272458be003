"""What earlier releases took for history of an agent alone comes to the run in its own screen at the upgrade."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentmon.domain.billing import HistorySession
from agentmon.domain.clock import FakeClock
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.history import HistoryMessage
from agentmon.domain.operations import MessageRole
from agentmon.store import migrations
from agentmon.store.history_import import HistoryImport, HistoryPiece
from agentmon.store.migrations import run_migrations
from agentmon.store.revision import HEAD_REVISION
from agentmon.store.usage_import import FilePiece, UsageImport
from tests.store.conversation_place import NOON_MS, an_ending, opened_place
from tests.store.queue_place import NOON
from tests.store.test_history_import import a_cursor
from tests.store.test_usage_of_conversations import told

PROMPT = "Mend the login"


def history(path: Path, ref: str, *, prompt: str = PROMPT, begun_ms: int = NOON_MS + 500, **facts: Any) -> None:
    """Let an import of an earlier release have made a session of this conversation."""
    name = f"/{ref}.jsonl"
    session = HistorySession(session_ref=ref, first_at_ms=begun_ms, last_at_ms=begun_ms + 9, **{"cwd": "/w", **facts})
    with closing(UsageImport(path, zone_name="UTC", clock=FakeClock(NOON))) as store:
        answer = told(f"answer-{ref}", 30, at_ms=begun_ms, ref=ref)
        after = a_cursor(name, "claude", 9)
        assert store.write(FilePiece(before=None, after=after, answers=[answer], sessions=[session]))
    said = HistoryMessage(session_ref=ref, ref=f"m-{ref}", role=MessageRole.USER, text=prompt, at_ms=begun_ms)
    with closing(HistoryImport(path, zone_name="UTC", clock=FakeClock(NOON))) as store:
        assert store.write(HistoryPiece(before=None, after=a_cursor(name, "claude", 9), messages=[said], operations=()))


def upgrade(path: Path) -> None:
    """Open the database as one of the schema before, and let an import begin that finds no files."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP INDEX ix_sessions_former_refs")
        connection.execute("UPDATE alembic_version SET version_num = '0008'")
    # What the later steps make is there already.
    run_migrations(path, Path(migrations.__file__).parent, target="0009")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (HEAD_REVISION,))
    with closing(UsageImport(path, zone_name="UTC", clock=FakeClock(NOON))) as store:
        store.adopt_conversations()


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


async def a_run(folder: Path, *, mode: ExecutionMode = ExecutionMode.TMUX, times: int = 1) -> tuple[Path, list[str]]:
    """Return the database in which runs have ended without a word on their conversations, and their sessions."""
    async with opened_place(folder) as place:
        executions = [await place.begin(prompt=PROMPT, mode=mode) for _ in range(times)]
        for one in executions:
            await place.tell(one.id, ending=replace(an_ending(), ended_at=NOON + timedelta(seconds=10)))
        return place.database.path, [await place.session_id(one.id) for one in executions]


async def test_a_conversation_with_the_id_that_was_given_is_that_of_the_run(tmp_path: Path) -> None:
    path, (session_id,) = await a_run(tmp_path)
    history(path, session_id, prompt="typed by hand", cwd="/elsewhere")
    history(path, "another", prompt="typed by hand")

    upgrade(path)

    assert sorted(rows(path, "SELECT id, session_ref, total_tokens FROM sessions WHERE task_id > ''")) == [
        (session_id, session_id, 30)
    ]
    assert rows(path, "SELECT session_ref FROM sessions WHERE task_id IS NULL") == [("another",)]
    assert rows(path, "SELECT session_ref, tokens_used FROM executions") == [(session_id, 30)]
    assert rows(path, "SELECT count(*) FROM messages WHERE execution_id IN (SELECT id FROM executions)") == [(1,)]


async def test_the_only_conversation_that_fits_is_that_of_the_run(tmp_path: Path) -> None:
    path, (session_id,) = await a_run(tmp_path)
    history(path, "its", prompt="Mend  the\nlogin")
    history(path, "said something else", prompt="Mend the logout")
    history(path, "elsewhere", cwd="/v")
    history(path, "later", begun_ms=NOON_MS + 60_000)
    history(path, "copy", parent_ref="its")

    upgrade(path)

    assert rows(path, "SELECT id, session_ref FROM sessions WHERE task_id > ''") == [(session_id, "its")]
    assert rows(path, "SELECT count(*) FROM sessions") == [(5,)]


@pytest.mark.parametrize(("conversations", "runs"), [(["one", "other"], 1), (["one"], 2)])
async def test_what_fits_several_stays_where_it_is(tmp_path: Path, conversations: list[str], runs: int) -> None:
    path, session_ids = await a_run(tmp_path, times=runs)
    for ref in conversations:
        history(path, ref)
    before = rows(path, "SELECT id, session_ref, total_tokens FROM sessions ORDER BY id")

    upgrade(path)

    assert rows(path, "SELECT id, session_ref, total_tokens FROM sessions ORDER BY id") == before
    assert len(session_ids) == runs


async def test_a_conversation_in_a_protocol_is_left_alone(tmp_path: Path) -> None:
    path, _ = await a_run(tmp_path, mode=ExecutionMode.STREAM_JSON)
    history(path, "its")

    upgrade(path)

    assert rows(path, "SELECT session_ref FROM executions") == [(None,)]
