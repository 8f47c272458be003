from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input, OptionList, TextArea

from agentmon.domain.activity import Activity
from agentmon.domain.clock import FakeClock
from agentmon.domain.conversation import ActivityNews, MessageNews, SessionNews, ToolStartedNews
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import CommandType
from agentmon.domain.operations import MessageRole, OperationType
from agentmon.screens.dialogs.choice import ChoiceDialog
from agentmon.screens.dialogs.menu_dialog import MenuDialog
from agentmon.screens.dialogs.text_dialog import TextDialog
from agentmon.screens.frame import StoreChanged
from agentmon.screens.inbox import request_dialog
from agentmon.screens.inbox.request_dialog import RequestDialog
from agentmon.screens.sessions.conversation_page import ConversationPage
from agentmon.screens.sessions.screen import SessionsScreen
from agentmon.screens.tasks.operation_dialog import OperationDialog
from agentmon.screens.tasks.task_page import TaskPage
from agentmon.services.actors import USER_ACTOR
from agentmon.services.sessions import SessionService
from agentmon.store.execution_commands import CommandRepository
from agentmon.widgets.conversation_pane import ConversationPane
from tests.screen_stage import screen_text, until
from tests.screens.scenes import NOW
from tests.screens.talks import a_talk, talks, wants_command, wants_edit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.pilot import Pilot
    from textual.screen import Screen

    from agentmon.domain.executions import Execution, ExecutionCommand
    from tests.screen_stage import Stage
    from tests.screens.talks import Talks


async def sees(stage: Stage, pilot: Pilot[None], *words: str) -> None:
    await until(pilot, lambda: all(word in screen_text(stage) for word in words))


async def reach(stage: Stage, pilot: Pilot[None], kind: type[Screen[object]], *keys: str) -> None:
    await pilot.press(*keys)
    await until(pilot, lambda: isinstance(stage.screen, kind))
    await pilot.pause()


async def sessions(stage: Stage, pilot: Pilot[None], place: Talks, *words: str) -> SessionsScreen:
    screen = SessionsScreen(place.get_services, place.get_workspace, clock=FakeClock(NOW))
    stage.show(screen)  # type: ignore[arg-type] # a screen ends with its own type
    await until(pilot, lambda: stage.screen is screen and screen._is_loaded)
    await sees(stage, pilot, *words)
    return screen


async def task_page(stage: Stage, pilot: Pilot[None], place: Talks, execution: Execution, tab: str) -> TaskPage:
    screen = TaskPage(
        task_id=execution.task_id,
        services=place.get_services,
        workspace=place.get_workspace,
        tab=tab,
        clock=FakeClock(NOW),
    )
    stage.show(screen)  # type: ignore[arg-type] # a screen ends with its own type
    await until(pilot, lambda: stage.screen is screen and screen._shown is not None)
    await pilot.pause()
    return screen


async def commands(place: Talks, execution: Execution, kind: CommandType) -> Sequence[ExecutionCommand]:
    return await CommandRepository(place.services.database).of_execution(execution.id, types=(kind,))


async def send(stage: Stage, pilot: Pilot[None], text: str) -> None:
    stage.screen.query_one(TextArea).text = text
    await pilot.press("ctrl+s")
    await until(pilot, lambda: not isinstance(stage.screen, TextDialog))


async def test_sessions_without_a_row_say_where_they_come_from(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(80, 24)) as pilot:
        await sessions(stage, pilot, place, "No conversations yet.")


async def test_the_search_looks_into_messages_as_one_types(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.tell(await place.begin("first", prompt="Mend the login"), *a_talk())
        await place.begin("second", prompt="Write the notes")
        screen = await sessions(stage, pilot, place, "2 in all")

        await pilot.press("slash", *"thirty")
        await sees(stage, pilot, "1 found", "Mend the login")
        await pilot.press("enter", "escape")

        await sees(stage, pilot, "2 in all")
        assert screen.query_one("#search", Input).value == ""


async def test_enter_opens_the_conversation_and_escape_comes_back(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.tell(await place.begin(), *a_talk())
        screen = await sessions(stage, pilot, place, "1 in all")

        await reach(stage, pilot, ConversationPage, "enter")  # type: ignore[arg-type] # as above
        await sees(stage, pilot, "I look at how the session", "Plan 1 of 3 done", "Read src/login.py")
        await pilot.press("escape")

        await until(pilot, lambda: stage.screen is screen)


async def test_thoughts_calls_and_changes_are_one_row_until_they_are_unfolded(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.begin()
        await place.tell(execution, *a_talk())
        await task_page(stage, pilot, place, execution, "conversation")
        await sees(stage, pilot, "The clock is frozen now")
        assert "clock.now()" not in screen_text(stage)

        await pilot.press("k", "enter")
        await sees(stage, pilot, "Edit src/login.py +1 −1", "+    return check(user, clock.now())")
        await pilot.press("enter", "g", "j", "j", "j", "enter")

        await sees(stage, pilot, "In", "file_path: src/login.py", "Out")


async def test_a_conversation_is_followed_until_one_scrolls_away(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(80, 24)) as pilot:
        execution = await place.begin()
        many = [
            MessageNews(message_ref=f"n{number}", role=MessageRole.ASSISTANT, text=f"message {number}")
            for number in range(1_200)
        ]
        await place.tell(execution, SessionNews(session_ref="s"), *many)
        screen = await task_page(stage, pilot, place, execution, "conversation")
        view = screen.query_one(ConversationPane).view
        await sees(stage, pilot, "message 1199")

        await place.tell(execution, MessageNews(message_ref="x", role=MessageRole.ASSISTANT, text="the newest"))
        screen.post_message(StoreChanged())
        await sees(stage, pilot, "the newest")
        await pilot.press("g")
        await sees(stage, pilot, "message 1 ")
        await place.tell(execution, MessageNews(message_ref="y", role=MessageRole.ASSISTANT, text="even newer"))
        screen.post_message(StoreChanged())
        await until(pilot, lambda: len(view.blocks) == 1_202)
        assert "message 1 " in screen_text(stage)
        assert len(view._layouts) < 400
        await pilot.press("G")

        await sees(stage, pilot, "even newer")


async def test_operations_are_a_table_and_enter_shows_one_whole(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.begin()
        await place.tell(execution, *a_talk())
        screen = await task_page(stage, pilot, place, execution, "operations")
        await sees(stage, pilot, "2 tool calls", "✓ done", "340ms")

        await reach(stage, pilot, OperationDialog, "enter")  # type: ignore[arg-type] # as above
        await sees(stage, pilot, "def login(user)")
        await pilot.press("escape")

        await until(pilot, lambda: stage.screen is screen)


async def test_operations_tell_paths_from_the_folder_and_who_allowed_them(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(160, 40)) as pilot:
        execution = await place.begin()
        inside = f"{place.workspace.root_path}/src/login.py"
        call = ToolStartedNews(tool_ref="t", tool_name="Edit", type=OperationType.WRITE, target=inside)
        wish = replace(wants_edit(), tool_ref="t", target=inside)
        await place.tell(execution, SessionNews(session_ref="s"), call, wish)
        (request,) = await place.waiting()
        await place.services.approvals.allow(
            request.approval.id, actor=USER_ACTOR, seen_digest=request.approval.input_digest
        )
        await task_page(stage, pilot, place, execution, "operations")

        await sees(stage, pilot, "1 tool call")

        (line,) = (one for one in screen_text(stage).splitlines() if "login.py" in one)
        assert line.split()[-4:] == ["write", "Edit", "src/login.py", "you"]


async def test_a_message_reaches_the_running_agent_and_pastes_keep_their_lines(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.begin()
        await place.tell(execution, *a_talk())
        await task_page(stage, pilot, place, execution, "conversation")

        await reach(stage, pilot, TextDialog, "m")  # type: ignore[arg-type] # as above
        await sees(stage, pilot, "The agent works")
        stage.screen.query_one(TextArea).text = "\n".join(["also", "run", "the", "linter"])
        await sees(stage, pilot, "4 lines, 19 characters")
        await pilot.press("ctrl+enter")
        await until(pilot, lambda: not isinstance(stage.screen, TextDialog))

        await until(pilot, lambda: any("message sent" in one.message for one in stage._notifications))
        (command,) = await commands(place, execution, CommandType.MESSAGE)
        assert command.payload["text"] == "also\nrun\nthe\nlinter"


async def test_a_message_that_cannot_be_sent_says_why(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.begin()
        await place.tell(execution, ending=ExecutionStatus.FAILED)
        await task_page(stage, pilot, place, execution, "conversation")

        await reach(stage, pilot, TextDialog, "m")  # type: ignore[arg-type] # as above
        await sees(stage, pilot, "there is no conversation to go on with")
        stage.screen.query_one(TextArea).text = "hello"
        await pilot.press("ctrl+s")

        assert isinstance(stage.screen, TextDialog)


@pytest.mark.parametrize("mode", [ExecutionMode.STREAM_JSON, ExecutionMode.TMUX])
async def test_interrupt_asks_nothing_and_tells(tmp_path: Path, mode: ExecutionMode) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.begin()
        await place.tell(execution, *a_talk())
        with closing(sqlite3.connect(place.services.paths.database_path)) as connection, connection:
            connection.execute("UPDATE executions SET mode = ?", (mode.value,))
        await task_page(stage, pilot, place, execution, "conversation")

        await pilot.press("i")
        await until(pilot, lambda: any("stop and listen" in one.message for one in stage._notifications))

        assert len(await commands(place, execution, CommandType.INTERRUPT)) == 1


@pytest.mark.parametrize(
    ("told", "is_resumable"),
    [
        ((), False),
        ((SessionNews(session_ref="ref"),), True),
        ((SessionNews(session_ref="ref", cannot_resume="It keeps nothing."),), False),
    ],
)
async def test_a_stop_names_the_way_back_only_where_there_is_one(
    tmp_path: Path, told: tuple[SessionNews, ...], is_resumable: bool
) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.begin()
        await place.tell(execution, *told)
        await task_page(stage, pilot, place, execution, "details")

        await pilot.press("x")
        await until(pilot, lambda: any("Stopping" in one.message for one in stage._notifications))

        assert any("resumes" in one.message for one in stage._notifications) is is_resumable


async def test_model_and_permission_mode_are_chosen_from_a_menu_or_typed(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.begin()
        await place.tell(execution, *a_talk())
        screen = await task_page(stage, pilot, place, execution, "conversation")

        await reach(stage, pilot, MenuDialog, "M")  # type: ignore[arg-type] # as above
        assert stage.screen.query_one(OptionList).option_count == 4
        await pilot.press("j", "enter")
        await until(pilot, lambda: stage.screen is screen and len(stage._notifications) == 1)
        await reach(stage, pilot, MenuDialog, "M")  # type: ignore[arg-type] # as above
        await pilot.press("tab", *"haiku", "enter")
        await until(pilot, lambda: stage.screen is screen)
        await until(pilot, lambda: len(stage._notifications) > 1)

        models = [one.payload["model"] for one in await commands(place, execution, CommandType.SET_MODEL)]
        assert models == ["sonnet", "haiku"]


async def test_y_on_a_task_shows_the_request_before_anything_is_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_dialog, "OPENING_GUARD_S", 1000.0)
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.begin()
        await place.tell(execution, *a_talk(), wants_command())
        screen = await task_page(stage, pilot, place, execution, "details")

        await reach(stage, pilot, RequestDialog, "y")  # type: ignore[arg-type] # as above
        await sees(stage, pilot, "$ rm -r build")
        await pilot.press("y")
        assert len(await place.waiting()) == 1
        dialog = stage.screen
        assert isinstance(dialog, RequestDialog)
        assert dialog.is_guarded
        dialog._guarded_until = 0.0
        await pilot.press("y")
        await until(pilot, lambda: stage.screen is screen)

        assert await place.waiting() == ()


@pytest.mark.parametrize("is_own_screen", [False, True])
async def test_y_answers_what_waits_without_a_request_where_it_can_be_answered(
    is_own_screen: bool, tmp_path: Path
) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.begin()
        await place.tell(execution, *a_talk(), ActivityNews(activity=Activity.WAITING, note="seems to ask"))
        if is_own_screen:
            with closing(sqlite3.connect(place.services.paths.database_path)) as connection, connection:
                connection.execute("UPDATE executions SET mode = ?", (ExecutionMode.TMUX.value,))
        await task_page(stage, pilot, place, execution, "details")

        await pilot.press("y")
        if is_own_screen:
            await until(pilot, lambda: bool(stage.attach_requests))
            assert [asked.execution_id for asked in stage.attach_requests] == [execution.id]
        else:
            await until(pilot, lambda: isinstance(stage.screen, TextDialog))


async def test_enter_on_a_request_that_waits_shows_it_with_the_keys_that_decide(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.begin()
        await place.tell(execution, *a_talk(), wants_command())
        await task_page(stage, pilot, place, execution, "conversation")
        await sees(stage, pilot, "waits for you: enter shows it")

        await reach(stage, pilot, RequestDialog, "G", "enter")  # type: ignore[arg-type] # as above

        await sees(stage, pilot, "$ rm -r build")


async def test_a_conversation_goes_on_forks_restarts_and_is_renamed(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.begin()
        await place.tell(execution, *a_talk(), ending=ExecutionStatus.SUCCEEDED)
        screen = await sessions(stage, pilot, place, "Mend the login")

        await reach(stage, pilot, TextDialog, "e")  # type: ignore[arg-type] # as above
        await send(stage, pilot, "A better name")
        await sees(stage, pilot, "A better name")
        await reach(stage, pilot, ChoiceDialog, "R")  # type: ignore[arg-type] # as above
        await pilot.press("escape")
        await until(pilot, lambda: stage.screen is screen)
        await reach(stage, pilot, TextDialog, "F")  # type: ignore[arg-type] # as above
        await pilot.press("escape")
        await until(pilot, lambda: stage.screen is screen)
        await reach(stage, pilot, TextDialog, "m")  # type: ignore[arg-type] # as above

        await sees(stage, pilot, "A new run goes on with this conversation")


@pytest.mark.parametrize("place_of_key", ["sessions", "task"])
async def test_what_cannot_be_resumed_goes_on_in_a_fresh_conversation(
    tmp_path: Path, place_of_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    async def restart(_: SessionService, session_id: str, text: str, **_kept: object) -> None:
        begun.append((session_id, text))

    monkeypatch.setattr(SessionService, "restart", restart)  # no agent is installed here
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.begin()
        gone = SessionNews(session_ref="ref", cannot_resume="No such conversation.")
        await place.tell(execution, *a_talk(), gone, ending=ExecutionStatus.FAILED)
        if place_of_key == "sessions":
            screen = await sessions(stage, pilot, place, "Mend the login")
            await until(pilot, lambda: screen.check_action("fork", ()) is None)
        else:
            await task_page(stage, pilot, place, execution, "conversation")
        await reach(stage, pilot, TextDialog, "m")  # type: ignore[arg-type] # as above
        await sees(stage, pilot, "No such conversation. A fresh conversation")
        await send(stage, pilot, "Once more")

        await until(pilot, lambda: begun == [(execution.session_id, "Once more")])
