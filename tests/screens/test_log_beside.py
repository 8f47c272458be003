from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.conversation import DiffNews, MessageNews, ToolFinishedNews, ToolStartedNews
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.operations import MessageRole
from agentmon.runners.host.rendering import Rendering
from agentmon.screens.frame import StoreChanged
from agentmon.screens.tasks.task_page import TaskPage
from agentmon.screens.tasks.task_places import TalkSpot
from agentmon.widgets.conversation_blocks import MessageBlock
from agentmon.widgets.conversation_pane import ConversationPane
from agentmon.widgets.log_pane import LogPane
from tests.screen_stage import screen_text, until
from tests.screens.scenes import NOW
from tests.screens.talks import a_talk, talks

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from agentmon.domain.executions import Execution
    from tests.screen_stage import Stage
    from tests.screens.talks import Talks

KINDS = {
    MessageNews: "message",
    ToolStartedNews: "tool_started",
    ToolFinishedNews: "tool_finished",
    DiffNews: "diff",
}
BETWEEN = 200
"""Lines of other output between two things that are said."""


async def talked(place: Talks) -> Execution:
    """Store a conversation, and its log with a report of its host every second."""
    run = await place.begin()
    news = a_talk()
    await place.tell(run, *news)
    log = place.services.executions.log_path(run)
    rendering = Rendering(place.workspace.root_path)
    begun_ms = int((NOW - timedelta(minutes=4)).timestamp() * 1000)
    entries = []
    written = b""
    for at, one in enumerate(news):
        payload = {name: getattr(one, name) for name in one.__dataclass_fields__}
        event = {name: getattr(value, "value", value) for name, value in payload.items()}
        written += rendering.render({"kind": KINDS.get(type(one), ""), **event}).encode()
        written += b"".join(b"chatter %d of %d\n" % (line, at) for line in range(BETWEEN))
        report = {"bytes": len(written), "lines": written.count(b"\n"), "left_out_bytes": 0, "last_line": ""}
        entries.append({"n": at + 1, "at_ms": begun_ms + 1000 * at + 300, "type": "output", **report})
    log.write_bytes(written)
    (log.parent / "journal.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    return run


async def opened(
    stage: Stage, pilot: Pilot[None], place: Talks, run: Execution, *, at: TalkSpot | None = None
) -> TaskPage:
    page = TaskPage(
        task_id=run.task_id, services=place.get_services, workspace=place.get_workspace, tab="conversation", at=at
    )
    stage.show(page)  # type: ignore[arg-type] # a screen ends with its own type
    await until(pilot, lambda: stage.screen is page and page._shown is not None)
    await pilot.pause()
    return page


async def sees(stage: Stage, pilot: Pilot[None], *words: str) -> None:
    await until(pilot, lambda: all(word in screen_text(stage) for word in words))


def said_at_cursor(stage: Stage) -> str:
    view = stage.screen.query_one(ConversationPane).view
    block = next((one for one in view.blocks if one.key == view.selected_key), None)
    return block.message.content if isinstance(block, MessageBlock) else type(block).__name__


@pytest.mark.proof
async def test_conversation_and_log_stand_side_by_side_and_follow_each_other(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(170, 40)) as pilot:
        run = await talked(place)
        await opened(stage, pilot, place, run)
        log = stage.screen.query_one(LogPane).view
        await until(pilot, lambda: "now; I run the tests" in screen_text(stage))

        await pilot.press("b")
        await until(pilot, lambda: "● Edit" in log.shown_text or "The clock is frozen now" in log.shown_text)
        assert log.size.width > 70
        assert stage.screen.query_one(ConversationPane).view.size.width > 70

        await pilot.press("g")
        await until(pilot, lambda: "› Mend the login. It fails" in log.shown_text)
        await pilot.press("j", "j", "j")
        await until(pilot, lambda: "● Read  src/login.py" in log.shown_text)

        await pilot.press("L", "g")
        await until(pilot, lambda: "Mend the login. It fails" in said_at_cursor(stage))
        log.go_to_offset(run_log_offset(place, run, b"The clock is frozen") + 200)
        await until(pilot, lambda: "The clock is frozen now" in said_at_cursor(stage))

        await pilot.press("A")
        await until(pilot, lambda: not log.is_on_screen)
        await pilot.press("C")
        await until(pilot, lambda: log.is_on_screen)
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: not log.is_on_screen)
        assert stage.failures == []


def run_log_offset(place: Talks, run: Execution, words: bytes) -> int:
    return place.services.executions.log_path(run).read_bytes().index(words)


async def test_where_it_is_narrow_one_key_changes_over_at_the_same_place(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(100, 30)) as pilot:
        run = await talked(place)
        (session,) = await place.services.sessions.of_task(run.task_id)
        messages = await place.services.conversations.messages(session.id, after=None, limit=9)
        thought = next(one for one in messages if one.role is MessageRole.ASSISTANT and not one.is_thinking)
        await opened(stage, pilot, place, run, at=TalkSpot(key=str(thought.id)))
        await until(pilot, lambda: "I look at how" in said_at_cursor(stage))
        log = stage.screen.query_one(LogPane).view

        await pilot.press("b")
        await until(pilot, lambda: log.is_on_screen and "I look at how the session" in log.shown_text)
        log.go_to_offset(run_log_offset(place, run, b"\x1b[36m\xe2\x97\x8f\x1b[0m Read"))
        await pilot.press("b")

        await until(pilot, lambda: not log.is_on_screen and said_at_cursor(stage) == "OperationBlock")


async def test_times_stand_beside_the_lines_and_streams_are_told_apart(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(100, 30)) as pilot:
        run = await talked(place)
        folder = place.services.executions.log_path(run).parent
        await opened(stage, pilot, place, run)
        await pilot.press("L", "g", "t")
        begun = (NOW - timedelta(minutes=4)).astimezone()
        await sees(stage, pilot, f"{begun:%H:%M:%S} chatter 0 of 0")
        await pilot.press("s")
        await until(pilot, lambda: "one stream: a terminal mixes" in screen_text(stage))

        (folder / "errors.log").write_bytes(b"a warning of the agent\n")
        (folder / "protocol.jsonl").write_bytes(b'{"at_ms": 1, "dir": "start", "line": ""}\n')
        await pilot.press("s")
        await sees(stage, pilot, "a warning of the agent", "errors only")

        await pilot.press("s")
        await sees(stage, pilot, '"dir": "start"', "protocol only")
        stage.screen.post_message(StoreChanged())
        await pilot.press("s")
        await until(pilot, lambda: "chatter" in screen_text(stage) and "protocol" not in screen_text(stage))
        await pilot.press("t")
        await until(pilot, lambda: not stage.screen.query_one(LogPane).view.has_times)


async def test_all_that_was_said_unfolds_at_once(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(100, 50)) as pilot:
        run = await place.begin()
        await place.tell(run, *a_talk(), ending=ExecutionStatus.SUCCEEDED)
        await opened(stage, pilot, place, run)
        await until(pilot, lambda: "now; I run the tests" in screen_text(stage))
        assert "return check(user, clock.now())" not in screen_text(stage)

        await pilot.press("z")
        await until(pilot, lambda: "return check(user, clock.now())" in screen_text(stage))
        assert "def login(user): …" in screen_text(stage)
        await pilot.press("z")
        await until(pilot, lambda: "return check(user, clock.now())" not in screen_text(stage))
