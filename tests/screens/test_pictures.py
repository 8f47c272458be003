"""What every screen looks like; ``pytest -n 0 tests/screens/test_pictures.py --snapshot-update`` takes new pictures."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pytest_textual_snapshot import SVGImageExtension  # type: ignore[import-untyped] # it has no types
from textual.command import CommandPalette
from textual.screen import Screen
from textual.widgets import Input

import agentmon.screens
from agentmon.domain.background_loops import LoopState
from agentmon.domain.diffs import DiffSide, LineSpan
from agentmon.domain.ids import TaskId, WorkspaceId, WorktreeId
from agentmon.domain.merges import FileConflict, Forecast, MergeHow
from agentmon.domain.review_comments import ReviewComment
from agentmon.domain.worktrees import Loss, LossKind, Worktree, WorktreeStatus
from agentmon.screens.background_dialog import BackgroundDialog, BackgroundPicture
from agentmon.screens.board.quick_add import QuickAddDialog
from agentmon.screens.board.screen import BoardScreen
from agentmon.screens.changes.merge_dialog import MergeDialog
from agentmon.screens.changes.screen import ChangesScreen
from agentmon.screens.changes.undo_dialog import UndoDialog
from agentmon.screens.dialogs.choice import ChoiceDialog
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.screens.dialogs.form_dialog import FormDialog
from agentmon.screens.dialogs.menu_dialog import MenuDialog
from agentmon.screens.dialogs.name_dialog import NameDialog
from agentmon.screens.dialogs.text_dialog import TextDialog
from agentmon.screens.executions.columns_dialog import ColumnsDialog
from agentmon.screens.executions.screen import ExecutionsScreen
from agentmon.screens.failure import FailureScreen
from agentmon.screens.frame import ServiceScreen
from agentmon.screens.help import HelpScreen
from agentmon.screens.inbox import request_dialog, request_screen
from agentmon.screens.inbox.request_dialog import RequestDialog
from agentmon.screens.inbox.request_screen import RequestScreen
from agentmon.screens.inbox.rule_dialog import RuleDialog
from agentmon.screens.inbox.screen import InboxScreen
from agentmon.screens.paced_screen import PacedScreen
from agentmon.screens.sessions.conversation_page import ConversationPage
from agentmon.screens.sessions.screen import SessionsScreen
from agentmon.screens.settings.screen import SettingsScreen
from agentmon.screens.settings.setting_dialog import SettingDialog
from agentmon.screens.settings.themes import HIGH_CONTRAST
from agentmon.screens.tasks.operation_dialog import OperationDialog
from agentmon.screens.tasks.run_dialog import RunDialog
from agentmon.screens.tasks.task_editor import TaskEditor
from agentmon.screens.tasks.task_log import TaskLogScreen
from agentmon.screens.tasks.task_page import TaskPage
from agentmon.screens.tasks.template_menu import TemplateMenu
from agentmon.screens.welcome import WelcomeScreen
from agentmon.screens.worktrees.dialog import WorktreesDialog
from agentmon.services.actors import USER_ACTOR
from agentmon.services.background import Trouble, WorkerHealth
from agentmon.services.merges import MergePlan
from agentmon.services.worktrees import WorktreeState
from agentmon.store.changes import ChangeRepository
from agentmon.store.look_setting import USUAL_LOOK
from agentmon.widgets.card_preview import CardPreview
from agentmon.widgets.log_view import LogView
from agentmon.workspaces.snapshots import Snapshot, SnapshotStore
from agentmon.workspaces.three_way import UndoAction, UndoStep
from agentmon.workspaces.undoing import UndoPlan
from tests.screen_stage import screen_text
from tests.screens import test_agent_dialog_pictures, test_agent_pictures, test_cost_pictures, test_search_pictures
from tests.screens.pictures import MIDDLE, SMALL, Picture, compare_pictures
from tests.screens.scenes import DEEDS, NOW, WAITING_DEEDS, picture, scene
from tests.screens.talks import a_talk, asks_questions, make_talks, wants_command, wants_edit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from syrupy.assertion import SnapshotAssertion

    from tests.screens.boards import Board
    from tests.screens.pictures import Ready
    from tests.screens.scenes import Deed

pytestmark = pytest.mark.proof

_CART = """import math


RATES = {"summer": 10}

def discounted(price, percent):
    return price * (100 - percent) // 100
"""
_ROUNDING = """def round_half_up(value, unit):
    return (value + unit // 2) // unit
"""

BASES = {FormDialog, PacedScreen, ServiceScreen, RequestScreen, TaskLogScreen}
"""Screens that are never shown themselves."""


def sees(*words: str) -> Ready:
    """Return whether the screen shows these words."""
    return lambda board: all(word in screen_text(board.app) for word in words)


async def reach(board: Board, kind: type[object], *keys: str) -> None:
    await board.press(*keys)
    try:
        await board.until(lambda: isinstance(board.app.screen, kind))
    except AssertionError as error:
        raise AssertionError(f"{keys} led to no {kind.__name__}; shown is:\n{screen_text(board.app)}") from error
    await board.pilot.pause()


# Cards at work.


async def on_running(board: Board) -> None:
    await board.press("h", "h", "l")
    await board.until(lambda: board.selected is not None and board.selected.startswith("Fix"), "the running card")


def has_preview(board: Board) -> bool:
    previews = board.screen.query(CardPreview)
    if not board.screen._has_preview:
        return True
    return bool(previews) and "test_case_48" in previews.first().query_one(LogView).shown_text


async def filtering(board: Board) -> None:
    await board.press("slash", *"th")


async def run_dialog(board: Board) -> None:
    await on_running(board)
    await reach(board, RunDialog, "R")


async def editor(board: Board) -> None:
    await reach(board, TaskEditor, "e")


async def confirm(board: Board) -> None:
    await on_running(board)
    await reach(board, ConfirmDialog, "X")


async def menu(board: Board) -> None:
    await reach(board, MenuDialog, "f")


async def templates(board: Board) -> None:
    await reach(board, TemplateMenu, "N")


async def help_of_board(board: Board) -> None:
    await reach(board, HelpScreen, "question_mark")


async def palette(board: Board) -> None:
    await reach(board, CommandPalette, "ctrl+p")
    await board.until(lambda: not board.app.screen.query_one("SearchIcon").disabled)


async def welcome(board: Board) -> None:
    found = (
        ("Agents", "Claude Code, Codex, Gemini CLI"),
        ("Tools", "cargo, docker, git, make, npm, pytest, ruff"),
        ("History", "what they wrote down is being read, for costs and conversations"),
    )
    await board.app.push_screen(WelcomeScreen(found))


async def toasts(board: Board) -> None:
    board.app.notify("#7 Upgrade the dependencies is done: 2m41s, $0.38", timeout=60)
    board.app.notify("#3 needs you: rm -r build/cache", severity="warning", timeout=60)
    board.app.notify(
        "there is no program 'make'\ninstall it, or press e to choose another", severity="error", timeout=60
    )


async def quick_add(board: Board) -> None:
    await reach(board, QuickAddDialog, "plus")
    board.app.screen.query_one(Input).value = "Fix the login !1 @command #auth after:2"


async def worktrees(board: Board) -> None:
    tree = Worktree(
        id=WorktreeId("1"),
        workspace_id=WorkspaceId("1"),
        task_id=TaskId("1"),
        task_number=12,
        task_title="Mend the door",
        source="/src/shop",
        path="/data/worktrees/shop-1f/12-mend-the-door",
        branch="agentmon/12-mend-the-door",
        status=WorktreeStatus.READY,
        created_at=NOW,
    )
    other = replace(tree, task_number=14, task_title="Oil it", branch="agentmon/14-oil-it")
    loss = Loss(kind=LossKind.UNTRACKED, count=2, names=("notes.md", "out/"))
    states = (
        WorktreeState(worktree=tree, is_in_use=False, ahead=2, behind=0, losses=(loss,), size_bytes=2_400_000),
        WorktreeState(worktree=other, is_in_use=True, ahead=0, behind=1, size_bytes=2_100_000),
        WorktreeState(worktree=replace(other, task_number=15), is_in_use=False, is_missing=True, ahead=1, behind=0),
    )

    async def find(_: object) -> tuple[WorktreeState, ...]:
        return states

    services = SimpleNamespace(worktrees=SimpleNamespace(states=find))
    await board.app.push_screen(WorktreesDialog(services, None))  # type: ignore[arg-type] # all that it asks for


async def background(board: Board) -> None:
    fine = LoopState(name="changes", ok_at=NOW)
    failing = LoopState(
        name="usage import",
        failures=2,
        failed_at=NOW,
        problem="the disk is full",
        hint="make room; it goes on by itself",
        next_try_at=NOW + timedelta(seconds=30),
    )
    trouble = Trouble(what="the disk is full", text="usage import fails: the disk is full", hint=failing.hint)
    health = WorkerHealth(is_running=True, pid=4711, loops=(fine, failing))

    async def look() -> BackgroundPicture:
        return BackgroundPicture(of_app=(fine,), health=health, troubles=(trouble,), now=NOW)

    await board.app.push_screen(BackgroundDialog(look))


async def details(board: Board) -> None:
    await on_running(board)
    await reach(board, TaskPage, "enter")


async def log(board: Board) -> None:
    await details(board)
    await board.press("L")


async def audit(board: Board) -> None:
    await details(board)
    await board.press("A")


async def change_files(board: Board) -> None:
    """Let the run of the first card have changed two files of a folder, and a comment on it be written."""
    services = await board.app.services()
    tasks = await services.tasks.list(await board.screen.workspace())
    run = await services.executions.newest(next(task.id for task in tasks if task.number == 1))
    assert run is not None
    store, folder = SnapshotStore(services.paths.snapshots_dir), services.paths.data_dir.parent / "shop-files"
    if run.before_snapshot is None:
        (folder / "shop").mkdir(parents=True)
        (folder / "shop" / "cart.py").write_text(_CART)
        before = await asyncio.to_thread(store.take, folder)
        await ChangeRepository(services.database).begin(run.id, snapshot_id=before.id, note="", at=NOW)
        span = LineSpan("shop/cart.py", DiffSide.NEW, 7, 7)
        await services.changes.write_comment(
            ReviewComment(
                id="1", execution_id=run.id, span=span, quoted="", text="Half of what?", digest="", sent_at=None
            ),
            actor=USER_ACTOR,
        )
    (folder / "shop" / "cart.py").write_text(
        _CART.replace("price * (100 - percent) // 100", "round_half_up(price * (100 - percent), 100)")
    )
    (folder / "shop" / "rounding.py").write_text(_ROUNDING)


async def changes(board: Board) -> None:
    await change_files(board)
    await on_running(board)
    await reach(board, ChangesScreen, "d")


async def changed_files(board: Board) -> None:
    await change_files(board)
    await details(board)
    await board.press("F")


async def undo(board: Board) -> None:
    await on_running(board)
    place = Path("/project")
    now = Snapshot(id="", root=place, tree="", head=None, nested=(), empty_folders=(), uncovered=(), limit="")
    steps = [
        UndoStep(path=path, action=action, before=None, now=None, result=None, reason=reason)
        for path, action, reason in (
            ("src/cart.py", UndoAction.CONFLICT, "the same lines were changed since"),
            ("src/new.py", UndoAction.REMOVE, ""),
            ("tests/test_cart.py", UndoAction.MERGE, ""),
        )
    ]
    store: Any = None
    plan = UndoPlan(store=store, root=place, now=now, steps=tuple(steps), new_folders=(), old_folders=())

    async def same(**_: object) -> UndoPlan:
        return plan

    async def patch_of(_plan: UndoPlan, step: UndoStep) -> bytes:
        head = f"diff --git a/{step.path} b/{step.path}\n--- a/{step.path}\n+++ b/{step.path}\n"
        lines = (
            " def discounted(price, percent):\n-    return round(price * percent)\n+    return price * percent // 100\n"
        )
        return f"{head}@@ -6,2 +6,2 @@ import math\n{lines}".encode()

    await board.app.push_screen(UndoDialog(plan, heading="Undo run 2 of 3?", replan=same, patch_of=patch_of))


async def merge(board: Board) -> None:
    await on_running(board)
    services, workspace = await board.screen.services(), await board.screen.workspace()
    task = next(one for one in await services.tasks.list(workspace) if one.title == board.selected)
    worktree = Worktree(
        id=WorktreeId("w"),
        workspace_id=task.workspace_id,
        task_id=task.id,
        task_number=task.number,
        source="/src/shop",
        path="/data/shop/3",
        branch="agentmon/3-fix-the-flaky-login-test",
        base_branch="main",
        created_at=NOW,
    )
    conflicts = (FileConflict(path="src/login.py", kind="contents"), FileConflict(path="docs", kind="modify/delete"))
    forecast = Forecast(
        into="main",
        base_commit="0" * 40,
        how=MergeHow.SQUASH,
        commits=("Wait for the form", "Fix the test"),
        uncommitted=("tests/login_test.py",),
        files=4,
        conflicts=conflicts,
        checkout="/src/shop",
    )
    message = "Fix the flaky login test\n\nThe form was not ready; the test waits for it now.\n"

    async def plan(*_: object) -> MergePlan:
        return MergePlan(worktree=worktree, forecast=forecast, message=message)

    board.app.push_screen(MergeDialog(task, how=MergeHow.SQUASH, into="main", message=message, plan=plan))
    await board.until(lambda: isinstance(board.app.screen, MergeDialog), "the dialog")


async def columns(board: Board) -> None:
    await executions(board)
    await board.until(lambda: "6 in all" in screen_text(board.app), "the rows")
    await reach(board, ColumnsDialog, "c")


async def executions(board: Board) -> None:
    await reach(board, ExecutionsScreen, "2")


async def settings(board: Board) -> None:
    await reach(board, SettingsScreen, "7")


def has_theme(board: Board) -> bool:
    """Return whether the settings have read which theme was chosen just now, also below a dialog."""
    (shown,) = (screen for screen in board.app.screen_stack if isinstance(screen, SettingsScreen))
    return "app.theme" in shown._known and shown._known["app.theme"].value == board.app.theme


async def setting(board: Board) -> None:
    await settings(board)
    await board.until(lambda: "worker.max_running" in screen_text(board.app), "the settings")
    await board.press("slash", *"worker.max_running", "enter")
    await reach(board, SettingDialog, "enter")


async def failure(board: Board) -> None:
    message = "the database was made by a newer agentmon (revision 0042)"
    await board.app.push_screen(FailureScreen(message, "Install the newer release; the database was left as it is."))


BOARD = (
    Picture("board", BoardScreen, on_running, has_preview, has_large=True),
    Picture("filter", BoardScreen, filtering, lambda board: "Rate limit per key" not in screen_text(board.app)),
    Picture("toasts", BoardScreen, toasts, sees("#3 needs you"), keeps_toasts=True),
    Picture("menu", MenuDialog, menu),
    Picture("templates", TemplateMenu, templates),
    Picture("confirm", ConfirmDialog, confirm),
    Picture("run-dialog", RunDialog, run_dialog),
    Picture("quick-add", QuickAddDialog, quick_add, sees("after #2 Index")),
)
DIALOGS = (
    Picture("editor", TaskEditor, editor),
    Picture("help", HelpScreen, help_of_board),
    Picture("palette", CommandPalette, palette),
    Picture("welcome", WelcomeScreen, welcome),
    Picture("worktrees", WorktreesDialog, worktrees, sees("folder gone")),
    Picture("background", BackgroundDialog, background, sees("4711")),
    Picture("failure", FailureScreen, failure),
)
PAGES = (
    Picture("details", TaskPage, details, sees("Fix the flaky login test", "It fails about", "3.1 KB")),
    Picture("log", TaskPage, log, sees("test_case_48")),
    Picture("audit", TaskPage, audit, sees("made the task")),
    Picture("executions", ExecutionsScreen, executions, sees("6 in all")),
    Picture("changes", ChangesScreen, changes, sees("discounted", "1 comment to send", "+3 −1"), has_large=True),
    Picture("changed-files", TaskPage, changed_files, sees("discounted", "1 comment to send", "+3 −1"), has_large=True),
    Picture("undo", UndoDialog, undo, sees("left alone", "discounted")),
    Picture("columns", ColumnsDialog, columns),
    Picture("merge", MergeDialog, merge, sees("conflict (modify/delete)")),
    Picture("settings", SettingsScreen, settings, has_theme),
    Picture("setting", SettingDialog, setting, has_theme),
)


# What keeps a run from starting or from going on.


async def question(board: Board) -> None:
    await reach(board, ChoiceDialog, "P")


async def paused(board: Board) -> None:
    await question(board)
    await board.press("enter")
    await board.until(lambda: board.screen.is_queue_paused, "the pause")


async def parked_details(board: Board) -> None:
    await reach(board, TaskPage, "enter")


WAITING = (
    Picture("question", ChoiceDialog, question),
    Picture("waiting-details", TaskPage, parked_details, sees("Summarise the night")),
    Picture("waiting-executions", ExecutionsScreen, executions, sees("7 in all")),
    Picture("waiting-board", BoardScreen, paused, has_large=True),
)


# Conversations.


async def fill_talks(board: Board) -> None:
    services, workspace = await board.app.services(), await board.app.workspace()
    place = await make_talks(services, workspace)
    talking = await place.begin("Mend the login of the admins")
    await place.tell(talking, *a_talk(), wants_command("rm -r build/cache"))
    await place.ask("Rename the billing module", ask=wants_edit())
    await place.ask("Choose a clock for sessions", ask=asks_questions())
    watch = board.app._needs
    await board.until(lambda: watch is not None and len(watch._known or ()) == 3, "they were told")


async def inbox(board: Board) -> None:
    await reach(board, InboxScreen, "6")
    shown = board.app.screen
    assert isinstance(shown, InboxScreen)
    await board.until(lambda: len(shown._items) == 3, "the requests")
    await board.press("g")


async def answering(board: Board) -> None:
    await inbox(board)
    await board.press("j")
    await reach(board, RequestDialog, "enter")
    await board.press("j", "space")


async def rule(board: Board) -> None:
    await inbox(board)
    await reach(board, RuleDialog, "G", "A")


async def naming(board: Board) -> None:
    danger = "level 3, destroys things: git push: replaces what others have pushed"
    board.app.push_screen(NameDialog("git push", command="git push --force origin main", danger=danger))
    await board.until(lambda: isinstance(board.app.screen, NameDialog), "the dialog")


async def decided(board: Board) -> None:
    await inbox(board)
    await board.press("h")


async def sessions(board: Board) -> None:
    await reach(board, SessionsScreen, "5")
    shown = board.app.screen
    assert isinstance(shown, SessionsScreen)
    await board.until(lambda: len(shown._known) == 3, "the conversations")


async def conversation(board: Board) -> None:
    await sessions(board)
    await board.press("G")
    await reach(board, ConversationPage, "enter")


async def message_box(board: Board) -> None:
    await sessions(board)
    await board.press("G")
    await reach(board, TextDialog, "m")
    await board.press("g", "o")


async def talking_board(board: Board) -> None:
    await board.press("h", "h", "l", "G")
    await board.until(lambda: board.selected == "Mend the login of the admins", "the card")


async def page_of_talk(board: Board) -> None:
    await talking_board(board)
    await reach(board, TaskPage, "enter")


async def talk_of_task(board: Board) -> None:
    await page_of_talk(board)
    await board.press("C")


async def operations(board: Board) -> None:
    await page_of_talk(board)
    await board.press("O")
    await board.until(lambda: "2 tool calls" in screen_text(board.app), "the calls")


async def operation(board: Board) -> None:
    await operations(board)
    await reach(board, OperationDialog, "enter")


def has_difference(board: Board) -> bool:
    shown = board.app.screen
    return isinstance(shown, InboxScreen) and "clock.now()" in shown.request_view.shown_text


def is_read(board: Board) -> bool:
    shown = board.app.screen
    return isinstance(shown, ConversationPage) and shown.is_loaded


TALKS = (
    Picture("talking-board", BoardScreen, talking_board, sees("needs you")),
    Picture("inbox", InboxScreen, inbox, has_difference),
    Picture("request", RequestDialog, answering, sees("Which clock should")),
    Picture("rule", RuleDialog, rule),
    Picture("name", NameDialog, naming),
    Picture("sessions", SessionsScreen, sessions),
    Picture("conversation", ConversationPage, conversation, is_read),
    Picture("message", TextDialog, message_box),
    Picture("talk-of-task", TaskPage, talk_of_task, sees("I look at how")),
    Picture("operations", TaskPage, operations, sees("2 tool calls")),
    Picture("operation", OperationDialog, operation),
)


# Nothing at all.


async def stay(_board: Board) -> None:
    pass


async def no_inbox(board: Board) -> None:
    await reach(board, InboxScreen, "6")


async def no_history(board: Board) -> None:
    await no_inbox(board)
    await board.press("h")


async def no_sessions(board: Board) -> None:
    await reach(board, SessionsScreen, "5")


EMPTY = (
    Picture("empty-board", BoardScreen, stay, sees("No tasks yet")),
    Picture("empty-inbox", InboxScreen, no_inbox, sees("Nothing waits for you")),
    Picture("empty-executions", ExecutionsScreen, executions, sees("Nothing")),
    Picture("empty-sessions", SessionsScreen, no_sessions, sees("No ")),
)


PICTURES = {"board": BOARD, "dialogs": DIALOGS, "pages": PAGES, "waiting": WAITING, "talks": TALKS, "empty": EMPTY}
CARDS_OF = {"board": DEEDS, "dialogs": DEEDS, "pages": DEEDS, "waiting": WAITING_DEEDS}


@pytest.mark.parametrize("name", PICTURES)
async def test_screens_look_as_they_did(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setattr(request_screen, "GUARD_S", 0.0)
    monkeypatch.setattr(request_dialog, "OPENING_GUARD_S", 0.0)
    deeds: Sequence[Deed] = CARDS_OF.get(name, ())

    async with scene(tmp_path, monkeypatch, size=SMALL, deeds=deeds, has_toasts=name == "board") as board:
        if name == "talks":
            await fill_talks(board)
        await compare_pictures(board, PICTURES[name], snapshot)


@pytest.mark.parametrize("name", ["contrast", "ascii"])
async def test_the_board_looks_as_it_did_for_who_wants_other_colours_or_letters(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    look = USUAL_LOOK._replace(theme=HIGH_CONTRAST.name)
    if name == "ascii":
        look = USUAL_LOOK._replace(ascii=True)
        monkeypatch.setenv("NO_COLOR", "1")

    async with scene(tmp_path, monkeypatch, size=MIDDLE, look=look) as board:
        await on_running(board)
        await board.until(lambda: has_preview(board), "its log")
        svg = await picture(board)

    assert svg == snapshot(extension_class=SVGImageExtension)


def test_every_screen_and_dialog_has_its_picture() -> None:
    for module in pkgutil.iter_modules(agentmon.screens.__path__):
        importlib.import_module(f"agentmon.screens.{module.name}")
    found: set[type[Screen[Any]]] = set()
    wanted: list[type[Screen[Any]]] = [Screen]
    while wanted:
        kind = wanted.pop()
        wanted += kind.__subclasses__()
        if kind.__module__.startswith("agentmon.") and kind not in BASES:
            found.add(kind)
    pictured = {
        one.shows
        for pictures in (
            *PICTURES.values(),
            test_agent_dialog_pictures.PICTURES,
            test_agent_pictures.PICTURES,
            test_cost_pictures.PICTURES,
            test_search_pictures.PICTURES,
        )
        for one in pictures
    }

    assert {kind.__name__ for kind in found - pictured} == set()
