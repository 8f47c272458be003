"""Conversations that agents had without agentmon, on the screen of the sessions."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.clock import FakeClock
from agentmon.domain.costs import FileCursor
from agentmon.domain.history import HistoryMessage, HistoryOperation
from agentmon.domain.operations import MessageRole, OperationStatus, OperationType
from agentmon.screens.sessions.conversation_page import ConversationPage
from agentmon.store.history_import import HistoryImport, HistoryPiece
from agentmon.widgets.row_table import RowTable
from tests.screens.scenes import NOW
from tests.screens.talks import talks
from tests.screens.test_conversation_screens import reach, sees, sessions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.screens.talks import Talks

BEGAN_MS = int(NOW.timestamp() * 1000) - 30 * 86_400_000


def import_conversations(place: Talks, count: int) -> None:
    """Let a file of Claude Code tell so many conversations, the later ones newer."""
    messages, operations = [], []
    for number in range(count):
        at_ms, ref = BEGAN_MS + number * 60_000, f"ref-{number}"
        asks = HistoryMessage(
            session_ref=ref, ref=f"{ref}:q", role=MessageRole.USER, text=f"Question {number}", at_ms=at_ms
        )
        answers = HistoryMessage(
            session_ref=ref,
            ref=f"{ref}:a",
            role=MessageRole.ASSISTANT,
            text=f"The zebra has {number} stripes.",
            at_ms=at_ms + 2,
        )
        messages += [asks, answers]
        operations.append(
            HistoryOperation(
                session_ref=ref,
                ref=f"{ref}:c",
                tool_name="Bash",
                type=OperationType.EXECUTE,
                target="ls zoo",
                status=OperationStatus.SUCCESS,
                started_at_ms=at_ms + 1,
                finished_at_ms=at_ms + 1,
            )
        )
    after = FileCursor(
        agent_slug="claude",
        path="/a.jsonl",
        thread_key="a",
        inode=1,
        size_bytes=1,
        mtime_ns=1,
        read_offset=1,
        head_hash="",
        parser_version=1,
    )
    with closing(HistoryImport(place.services.database.path, zone_name="UTC", clock=FakeClock(NOW))) as store:
        assert store.write(HistoryPiece(before=None, after=after, messages=messages, operations=operations))


async def test_an_imported_conversation_is_listed_found_and_read(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.begin("first", prompt="Mend the login")
        import_conversations(place, 3)
        screen = await sessions(stage, pilot, place, "4 in all", "Question 2", "Mend the login")

        await pilot.press("slash", *"1 strip")
        await sees(stage, pilot, "1 found", "Question 1 › The zebra")
        await pilot.press("enter")
        assert screen.check_action("send_message", ()) is None
        await reach(stage, pilot, ConversationPage, "enter")  # type: ignore[arg-type] # a screen ends with its own type

        await sees(stage, pilot, "Question 1", "Bash", "ls zoo", "The zebra has 1 stripes.")


async def test_without_conversations_the_import_is_named(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(80, 24)) as pilot:
        await sessions(stage, pilot, place, "No conversations yet.", "agentmon sessions import")


async def test_a_conversation_in_which_nothing_was_said_is_not_listed(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        import_conversations(place, 2)
        with closing(sqlite3.connect(place.services.database.path)) as connection, connection:
            connection.execute("DELETE FROM messages WHERE content LIKE '%1%'")
            connection.execute("DELETE FROM operations")
            connection.execute("UPDATE sessions SET operation_count = 0, initial_prompt = ''")

        await sessions(stage, pilot, place, "1 in all")


async def test_more_are_read_behind_the_last_row(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        import_conversations(place, 700)
        screen = await sessions(stage, pilot, place, "500+ in all")

        await pilot.press("G")
        await sees(stage, pilot, "700 in all")

        assert screen.query_one(RowTable).selected_key is not None


@pytest.mark.proof
async def test_ten_thousand_conversations_are_shown_as_quickly_as_few(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        import_conversations(place, 10_000)
        began = time.process_time()
        workspace = await place.get_workspace()
        listed = await place.services.sessions.list(workspace.id, with_history=True, limit=500)
        busy_s = time.process_time() - began

        await sessions(stage, pilot, place, "500+ in all", "Question 9999")

        assert len(listed) == 500
        assert busy_s < 1.0
