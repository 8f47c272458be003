"""What every screen looks like; ``pytest -n 0 tests/screens/test_pictures.py --snapshot-update`` takes new pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pytest_textual_snapshot import SVGImageExtension  # type: ignore[import-untyped] # it has no types
from textual.command import CommandPalette

from agentmon.domain.task_status import TaskStatus
from agentmon.screens.choice import ChoiceDialog
from agentmon.screens.confirm import ConfirmDialog
from agentmon.screens.conversation_page import ConversationPage
from agentmon.screens.executions import ExecutionsScreen
from agentmon.screens.failure import FailureScreen
from agentmon.screens.help import HelpScreen
from agentmon.screens.inbox import InboxScreen
from agentmon.screens.run_dialog import RunDialog
from agentmon.screens.sessions import SessionsScreen
from agentmon.screens.task_editor import TaskEditor
from agentmon.screens.task_page import TaskPage
from agentmon.screens.text_dialog import TextDialog
from agentmon.screens.themes import LIGHT
from agentmon.widgets.log_view import LogView
from tests.screens.scenes import WAITING_DEEDS, picture, scene
from tests.screens.talks import a_talk, asks_questions, make_talks, wants_command, wants_edit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path
    from typing import TypeAlias

    from syrupy.assertion import SnapshotAssertion

    from tests.screens.boards import Board

    Way: TypeAlias = Callable[[Board], Awaitable[None]]

SMALL, MIDDLE, LARGE = (80, 24), (120, 40), (200, 60)


async def on_running(board: Board) -> None:
    await board.press("l")
    await board.until(lambda: board.selected is not None and board.selected.startswith("Fix"), "the running card")
    logs = board.screen.query(LogView)
    if logs and logs.first().display and board.screen._has_preview:
        await board.until(lambda: "test_case_48" in logs.first().shown_text, "its log")


async def light(board: Board) -> None:
    board.app.theme = LIGHT.name
    await on_running(board)


async def filtering(board: Board) -> None:
    await board.press("slash", *"th")
    await board.until(lambda: "Rate limit per key" not in board.shown(TaskStatus.TODO), "the filter works")
    await board.settled()


async def reach(board: Board, kind: type[object], *keys: str) -> None:
    await board.press(*keys)
    await board.until(lambda: isinstance(board.app.screen, kind), kind.__name__)
    await board.pilot.pause()


async def editor(board: Board) -> None:
    await reach(board, TaskEditor, "e")


async def run_dialog(board: Board) -> None:
    await reach(board, RunDialog, "R")


async def confirm(board: Board) -> None:
    await on_running(board)
    await reach(board, ConfirmDialog, "X")


async def help_of_board(board: Board) -> None:
    await reach(board, HelpScreen, "question_mark")


async def palette(board: Board) -> None:
    await reach(board, CommandPalette, "ctrl+p")
    await board.until(lambda: not board.app.screen.query_one("SearchIcon").disabled)


async def page(board: Board) -> TaskPage:
    await on_running(board)
    await reach(board, TaskPage, "enter")
    shown = board.app.screen
    assert isinstance(shown, TaskPage)
    await board.until(lambda: shown._shown is not None, "the task")
    await board.pilot.pause()
    return shown


async def details(board: Board) -> None:
    await page(board)


async def log(board: Board) -> None:
    shown = await page(board)
    await board.press("L")
    await board.until(lambda: "test_case_48" in shown.query_one("#log LogView", LogView).shown_text, "its log")


async def audit(board: Board) -> None:
    await page(board)
    await board.press("A")


async def executions(board: Board) -> None:
    await reach(board, ExecutionsScreen, "2")
    shown = board.app.screen
    assert isinstance(shown, ExecutionsScreen)
    await board.until(lambda: shown._is_loaded and len(shown._known) == 6, "the rows")


async def failure(board: Board) -> None:
    message = "the database was made by a newer agentmon (revision 0042)"
    await board.app.push_screen(FailureScreen(message, "Install the newer release; the database was left as it is."))


PICTURES: dict[str, tuple[Way, tuple[tuple[int, int], ...]]] = {
    "board": (on_running, (SMALL, MIDDLE, LARGE)),
    "board-light": (light, (SMALL, MIDDLE)),
    "filter": (filtering, (SMALL, MIDDLE)),
    "editor": (editor, (SMALL, MIDDLE)),
    "run-dialog": (run_dialog, (SMALL, MIDDLE)),
    "confirm": (confirm, (SMALL,)),
    "help": (help_of_board, (SMALL, MIDDLE)),
    "palette": (palette, (MIDDLE,)),
    "details": (details, (SMALL, MIDDLE)),
    "log": (log, (SMALL, MIDDLE)),
    "audit": (audit, (SMALL, MIDDLE)),
    "executions": (executions, (SMALL, MIDDLE)),
    "failure": (failure, (SMALL,)),
}


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(name, size, id=f"{name}-{size[0]}x{size[1]}")
        for name, (_way, sizes) in PICTURES.items()
        for size in sizes
    ],
)
async def test_a_screen_looks_as_it_did(
    name: str, size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    way, _sizes = PICTURES[name]

    async with scene(tmp_path, monkeypatch, size=size) as board:
        await way(board)
        svg = await picture(board)

    assert svg == snapshot(extension_class=SVGImageExtension)


async def waiting_board(board: Board) -> None:
    await question(board)
    await board.press("enter")
    await board.until(lambda: board.screen.is_queue_paused, "the pause")
    board.app.clear_notifications()
    await board.settled()


async def waiting_executions(board: Board) -> None:
    await reach(board, ExecutionsScreen, "2")
    shown = board.app.screen
    assert isinstance(shown, ExecutionsScreen)
    await board.until(lambda: shown._is_loaded and len(shown._known) == 7, "the rows")


async def question(board: Board) -> None:
    await board.press("P")
    await board.until(lambda: isinstance(board.app.screen, ChoiceDialog), "the question")
    await board.pilot.pause()


async def parked_details(board: Board) -> None:
    await reach(board, TaskPage, "enter")
    shown = board.app.screen
    assert isinstance(shown, TaskPage)
    await board.until(lambda: shown._shown is not None, "the task")
    await board.pilot.pause()


WAITING_PICTURES: dict[str, tuple[Way, tuple[tuple[int, int], ...]]] = {
    "board": (waiting_board, (SMALL, MIDDLE, LARGE)),
    "executions": (waiting_executions, (SMALL, MIDDLE)),
    "question": (question, (SMALL,)),
    "details": (parked_details, (SMALL, MIDDLE)),
}


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(name, size, id=f"{name}-{size[0]}x{size[1]}")
        for name, (_way, sizes) in WAITING_PICTURES.items()
        for size in sizes
    ],
)
async def test_what_waits_looks_as_it_did(
    name: str, size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    way, _sizes = WAITING_PICTURES[name]

    async with scene(tmp_path, monkeypatch, size=size, deeds=WAITING_DEEDS) as board:
        await way(board)
        svg = await picture(board)

    assert svg == snapshot(extension_class=SVGImageExtension)


@pytest.mark.parametrize("size", [SMALL, MIDDLE], ids=["80x24", "120x40"])
async def test_an_empty_board_looks_as_it_did(
    size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    async with scene(tmp_path, monkeypatch, size=size, deeds=()) as board:
        svg = await picture(board)

    assert svg == snapshot(extension_class=SVGImageExtension)


async def fill_talks(board: Board) -> None:
    services, workspace = await board.app.services(), await board.app.workspace()
    place = await make_talks(services, workspace)
    talking = await place.begin("Mend the login of the admins")
    await place.tell(talking, *a_talk(), wants_command("rm -r build/cache && make clean"))
    await place.ask("Rename the billing module", ask=wants_edit())
    await place.ask("Choose a clock for sessions", ask=asks_questions())
    watch = board.app._needs
    await board.until(lambda: watch is not None and len(watch._known or ()) == 3, "they were told")


async def inbox(board: Board) -> None:
    await reach(board, InboxScreen, "6")
    shown = board.app.screen
    assert isinstance(shown, InboxScreen)
    await board.until(lambda: len(shown._items) == 3, "the requests")
    await board.until(lambda: "clock.now()" in shown.request_view.shown_text, "the difference")


async def sessions(board: Board) -> None:
    await reach(board, SessionsScreen, "5")
    shown = board.app.screen
    assert isinstance(shown, SessionsScreen)
    await board.until(lambda: len(shown._known) == 3, "the conversations")


async def conversation(board: Board) -> None:
    await sessions(board)
    await board.press("G")
    await reach(board, ConversationPage, "enter")
    shown = board.app.screen
    assert isinstance(shown, ConversationPage)
    await board.until(lambda: shown.is_loaded, "what was said")


async def message_box(board: Board) -> None:
    await sessions(board)
    await board.press("G")
    await reach(board, TextDialog, "m")
    await board.press("g", "o")


TALK_PICTURES: dict[str, tuple[Way, tuple[tuple[int, int], ...]]] = {
    "inbox": (inbox, (SMALL, MIDDLE)),
    "sessions": (sessions, (SMALL,)),
    "conversation": (conversation, (SMALL, MIDDLE)),
    "message": (message_box, (SMALL,)),
}


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(name, size, id=f"{name}-{size[0]}x{size[1]}")
        for name, (_way, sizes) in TALK_PICTURES.items()
        for size in sizes
    ],
)
async def test_what_agents_say_looks_as_it_did(
    name: str, size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    way, _sizes = TALK_PICTURES[name]

    async with scene(tmp_path, monkeypatch, size=size, deeds=()) as board:
        await fill_talks(board)
        await way(board)
        board.app.clear_notifications()
        svg = await picture(board)

    assert svg == snapshot(extension_class=SVGImageExtension)
