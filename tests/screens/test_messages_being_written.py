"""A message in the Conversation tab while its agent writes it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.clock import FakeClock
from agentmon.domain.conversation import MessageNews, ToolStartedNews
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.operations import MessageRole, OperationType
from agentmon.runners.drafts import DraftReader
from agentmon.runners.host.draft_log import INTERVAL_S, DraftLog
from agentmon.screens.frame import ServiceScreen, StoreChanged
from agentmon.screens.sessions.conversation_page import ConversationPage
from agentmon.screens.tasks.task_page import TaskPage
from agentmon.widgets.conversation_blocks import DraftBlock, MessageBlock
from agentmon.widgets.conversation_pane import ConversationPane
from tests.screen_stage import screen_text, until
from tests.screens.scenes import NOW
from tests.screens.talks import a_talk, talks

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from textual.pilot import Pilot

    from agentmon.domain.executions import Execution
    from agentmon.widgets.block_view import BlockView
    from tests.screen_stage import Stage
    from tests.screens.talks import Talks


class Writer:
    """What a run's host does with the messages that are written."""

    def __init__(self, place: Talks, run: Execution) -> None:
        self._log = DraftLog(str(place.services.executions.log_path(run).with_name("drafts.jsonl")))
        self._now = 0.0

    def write(self, ref: str, text: str, **fields: object) -> None:
        self._log.add({"kind": "delta", "message_ref": ref, "text": text, **fields})
        self._now += INTERVAL_S
        self._log.write(self._now)

    def settle(self, journal_bytes: int, ref: str | None = None) -> None:
        self._log.settle(journal_bytes, ref)


async def opened(stage: Stage, pilot: Pilot[None], place: Talks, run: Execution, *, tab: str) -> BlockView:
    screen: ServiceScreen[None]
    if tab == "sessions":
        listing = (await place.services.sessions.list(place.workspace.id))[0]
        screen = ConversationPage(
            listing, services=place.get_services, workspace=place.get_workspace, clock=FakeClock(NOW)
        )
    else:
        screen = TaskPage(
            task_id=run.task_id,
            services=place.get_services,
            workspace=place.get_workspace,
            tab=tab,
            clock=FakeClock(NOW),
        )
    stage.show(screen)  # type: ignore[arg-type] # a screen ends with its own type
    await until(pilot, lambda: any(pane.view.blocks for pane in stage.screen.query(ConversationPane)))
    return screen.query_one(ConversationPane).view


def said(text: str, ref: str = "d1") -> MessageNews:
    return MessageNews(message_ref=ref, role=MessageRole.ASSISTANT, text=text)


def row_of(view: BlockView, word: str) -> int:
    return next(at for at, line in enumerate(view.shown_text.splitlines()) if word in line)


@pytest.mark.parametrize("tab", ["conversation", "sessions"])
async def test_a_message_grows_in_its_place_and_becomes_the_whole_one(tmp_path: Path, tab: str) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(80, 24)) as pilot:
        run = await place.begin()
        await place.tell(run, *a_talk())
        writer = Writer(place, run)
        view = await opened(stage, pilot, place, run, tab=tab)
        count = len(view.blocks)

        writer.write("d1", "Each session is\nfro")
        await until(pilot, lambda: "Each session is" in screen_text(stage))
        draft = view.blocks[-1]
        assert isinstance(draft, DraftBlock)
        await pilot.press("G")
        place_of_text = row_of(view, "Each session is")
        writer.write("d1", "zen for\nall ")
        await until(pilot, lambda: "frozen for" in screen_text(stage))
        assert view.selected_key == draft.key
        writer.settle(place.offsets[run.id] + 10, "d1")
        await place.tell(run, said("Each session is\nfrozen for\nall tests."))
        stage.screen.post_message(StoreChanged())
        await until(pilot, lambda: "all tests." in screen_text(stage))

        assert (len(view.blocks), view.blocks[-1].key, view.selected_key) == (count + 1, draft.key, draft.key)
        assert isinstance(view.blocks[-1], MessageBlock)
        assert screen_text(stage).count("Each session is") == 1
        assert (view.following, row_of(view, "all tests.") - row_of(view, "Each session is")) == (True, 2)
        assert row_of(view, "Each session is") <= place_of_text


async def test_who_reads_above_stays_there_while_a_message_grows_and_is_stored(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(80, 24)) as pilot:
        run = await place.begin()
        await place.tell(run, *a_talk())
        writer = Writer(place, run)
        text = "".join(f"line {number} of it\n" for number in range(60))
        writer.write("d1", text)
        view = await opened(stage, pilot, place, run, tab="conversation")
        await until(pilot, lambda: "line 59" in screen_text(stage))

        view.scroll_rows(-20)
        await pilot.pause()
        seen = view.shown_text
        more = "".join(f"more {number} of it\n" for number in range(60))
        writer.write("d1", more)
        await until(pilot, lambda: "more 59" in view.blocks[-1].draft.text)  # type: ignore[attr-defined] # a draft
        while_written = view.shown_text
        writer.settle(place.offsets[run.id] + 10, "d1")
        await place.tell(run, said(text + more + "The end."))
        stage.screen.post_message(StoreChanged())
        await until(pilot, lambda: isinstance(view.blocks[-1], MessageBlock))

        assert "line 30" in seen
        assert while_written == view.shown_text == seen
        assert not view.following


async def test_a_message_that_is_stored_shorter_than_it_was_written_is_whole(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(80, 24)) as pilot:
        run = await place.begin()
        await place.tell(run, *a_talk())
        writer = Writer(place, run)
        writer.write("d1", "All the thoughts, word by word, ")
        writer.write("d2", "And now ")
        view = await opened(stage, pilot, place, run, tab="conversation")
        await until(pilot, lambda: "word by word" in screen_text(stage) and "And now" in screen_text(stage))

        writer.settle(place.offsets[run.id] + 10, "d1")
        await place.tell(run, said("Thoughts."))
        stage.screen.post_message(StoreChanged())
        await until(pilot, lambda: "Thoughts." in screen_text(stage))

        assert "word by word" not in screen_text(stage)
        assert [type(block) for block in view.blocks].count(DraftBlock) == 1


async def test_a_message_that_came_to_nothing_goes_and_comes_back_as_what_was_stored(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(80, 24)) as pilot:
        run = await place.begin()
        await place.tell(run, *a_talk())
        writer = Writer(place, run)
        writer.write("d1", "Half of it ")
        writer.write("d2", "A thought ", is_thinking=True)
        view = await opened(stage, pilot, place, run, tab="conversation")
        await until(pilot, lambda: "Half of it" in screen_text(stage) and "∴ A thought" in screen_text(stage))

        writer.settle(place.offsets[run.id] + 10)
        await pilot.pause(0.3)
        assert sum(isinstance(block, DraftBlock) for block in view.blocks) == 2
        await place.tell(run, said("Half of it", ref="d1"))
        stage.screen.post_message(StoreChanged())
        await until(pilot, lambda: not any(isinstance(block, DraftBlock) for block in view.blocks))

        assert screen_text(stage).count("Half of it") == 1
        assert "A thought" not in screen_text(stage)


async def test_a_message_that_is_stored_in_parts_is_one(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(80, 24)) as pilot:
        run = await place.begin()
        await place.tell(run, *a_talk(), said("The first part, "))
        writer = Writer(place, run)
        writer.write("d1", "The first part, and the second ")
        view = await opened(stage, pilot, place, run, tab="conversation")
        await until(pilot, lambda: "and the second" in screen_text(stage))
        call = ToolStartedNews(tool_ref="t9", tool_name="Bash", type=OperationType.EXECUTE, target="make")
        await place.tell(run, call)
        stage.screen.post_message(StoreChanged())
        await until(pilot, lambda: "◌ Bash make" in screen_text(stage))

        assert screen_text(stage).count("The first part") == 1
        assert [type(block) for block in view.blocks].count(DraftBlock) == 1
        assert row_of(view, "The first part") < row_of(view, "Bash make")


async def test_nothing_is_read_of_a_conversation_that_is_not_shown_or_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    polls: list[DraftReader] = []
    poll = DraftReader.poll

    def counted(reader: DraftReader) -> bool:
        polls.append(reader)
        return poll(reader)

    async with talks(tmp_path) as (place, stage), stage.run_test(size=(80, 24)) as pilot:
        run = await place.begin()
        await place.tell(run, *a_talk())
        view = await opened(stage, pilot, place, run, tab="details")
        screen = stage.screen
        assert isinstance(screen, TaskPage)
        assert screen._draft_poll is not None
        monkeypatch.setattr(DraftReader, "poll", counted)

        clock: asyncio.Event = screen._draft_poll._active
        assert [clock.is_set()] == [False]
        screen.action_show_tab("conversation")
        await until(pilot, lambda: len(polls) > 2)
        Writer(place, run).write("d1", "Half of it ")
        await until(pilot, lambda: "Half of it" in screen_text(stage))
        await place.tell(run, ending=ExecutionStatus.FAILED)
        screen.post_message(StoreChanged())
        await until(pilot, lambda: not clock.is_set())

        assert not any(isinstance(block, DraftBlock) for block in view.blocks)


async def test_a_run_in_its_own_screen_says_where_its_text_is_written(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(80, 24)) as pilot:
        run = await place.begin()
        await place.tell(run, *a_talk())
        with closing(sqlite3.connect(place.services.paths.database_path)) as connection, connection:
            connection.execute("UPDATE executions SET mode = ?", (ExecutionMode.TMUX.value,))
        await opened(stage, pilot, place, run, tab="conversation")
        pane = stage.screen.query_one(ConversationPane)

        await until(pilot, lambda: pane.has_class("-own-screen") and "Press a to watch" in screen_text(stage))
        await place.tell(run, ending=ExecutionStatus.SUCCEEDED)
        stage.screen.post_message(StoreChanged())
        await until(pilot, lambda: not pane.has_class("-own-screen"))
