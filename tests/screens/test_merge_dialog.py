"""Merging from the changes of a run."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input, Select, TextArea

from agentmon.domain.merges import MergeHow
from agentmon.domain.task_status import TaskStatus
from agentmon.screens.changes.merge_dialog import MergeDialog
from agentmon.screens.changes.screen import ChangesScreen
from agentmon.screens.dialogs.text_dialog import TextDialog
from tests.screens.boards import Board, make_place, open_board
from tests.stored_runs import Stored
from tests.workspaces.worktree_place import WorktreePlace, a_repository, commit, git, write

if TYPE_CHECKING:
    from tests.screens.boards import Place

_STAMP = "2026-03-01T12:00:00.123Z"


@pytest.fixture
async def place(tmp_path: Path) -> tuple[Place, Path]:
    """A board whose one card has a branch with a commit, and its worktree."""
    place = make_place(tmp_path)
    a_repository(place.root, a="1\n2\n3\n")
    git(place.root, "config", "user.name", "Ann")
    git(place.root, "config", "user.email", "ann@example.org")
    made = await asyncio.to_thread(WorktreePlace(place.paths.worktrees_dir).made, place.root, number=1)
    tree = Path(made.path)
    write(tree, a="1\nagent\n3\n")
    commit(tree, "work")
    async with place.services() as (services, workspace):
        stored = Stored(services, workspace)
        task = await stored.add_task("Mend the door")
        await stored.add_run(task.id)
        made = replace(made, task_id=task.id, workspace_id=workspace.id)
    with closing(sqlite3.connect(place.paths.database_path)) as connection, connection:
        connection.execute(
            "INSERT INTO worktrees (id, workspace_id, task_id, source, repository, path, branch, base_branch,"
            " base_commit, status, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'ready', ?, ?)",
            (
                *(made.id, made.workspace_id, made.task_id, made.source, made.repository, made.path),
                *(made.branch, made.base_branch, made.base_commit, _STAMP, _STAMP),
            ),
        )
    return place, tree


async def _dialog(board: Board, to_changes: str, to_dialog: str) -> MergeDialog:
    await board.press(to_changes)
    await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "the changes")
    await board.settled()
    await board.press(to_dialog)
    await board.until(lambda: isinstance(board.app.screen, MergeDialog), "the dialog")
    dialog = board.app.screen
    assert isinstance(dialog, MergeDialog)
    return dialog


async def test_a_branch_is_merged_with_the_message_that_was_edited(place: tuple[Place, Path]) -> None:
    shown, tree = place
    async with open_board(shown) as board:
        dialog = await _dialog(board, "d", "M")
        await board.until(lambda: dialog.check_action("save", ()) is True, "what would come of it")
        chosen = (dialog.query_one("#how", Select).value, dialog.query_one("#into", Input).value)
        proposed = dialog.query_one(TextArea).text
        dialog.query_one(TextArea).load_text("Mend it\n")
        await board.press("ctrl+s")
        await board.told("Merged #1 into main")

    assert (chosen, proposed) == ((MergeHow.SQUASH, "main"), "Mend the door\n")
    assert git(shown.root, "log", "--format=%s", "-1") == "Mend it"
    assert (shown.root / "a").read_text() == "1\nagent\n3\n"
    assert not tree.exists()
    assert await shown.titles(TaskStatus.DONE) == ["Mend the door"]


async def test_conflicts_can_be_given_to_the_agent_and_are_not_merged(place: tuple[Place, Path]) -> None:
    shown, tree = place
    write(shown.root, a="1\nperson\n3\n")
    commit(shown.root, "meanwhile")
    async with open_board(shown) as board:
        dialog = await _dialog(board, "d", "M")
        await board.until(lambda: dialog.check_action("solve", ()) is True, "the conflicts")
        assert dialog.check_action("save", ()) is False
        await board.press("ctrl+g")
        await board.until(lambda: isinstance(board.app.screen, TextDialog), "the message")
        message = board.app.screen.query_one(TextArea).text

    assert "- a (contents)" in message
    assert "main" in message
    assert git(shown.root, "log", "--format=%s", "-1") == "meanwhile"
    assert tree.exists()


async def test_another_branch_is_looked_at_while_it_is_typed(place: tuple[Place, Path]) -> None:
    shown, _ = place
    git(shown.root, "branch", "release")
    async with open_board(shown) as board:
        dialog = await _dialog(board, "d", "M")
        dialog.query_one("#into", Input).value = "nowhere"
        await board.until(lambda: dialog.check_action("save", ()) is False, "no such branch")
        dialog.query_one("#into", Input).value = "release"
        dialog.query_one("#how", Select).value = MergeHow.REBASE
        await board.until(lambda: dialog.check_action("save", ()) is True, "another branch")
        await board.press("ctrl+s")
        await board.told("Merged #1 into release")

    assert git(shown.root, "log", "--format=%s", "release").splitlines() == ["work", "first"]
    assert git(shown.root, "log", "--format=%s", "main") == "first"


async def test_leaving_merges_nothing(place: tuple[Place, Path]) -> None:
    shown, tree = place
    async with open_board(shown) as board:
        await _dialog(board, "d", "M")
        await board.press("escape")
        await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "the changes")

    assert git(shown.root, "log", "--format=%s") == "first"
    assert tree.exists()


async def test_a_task_without_a_branch_says_so(tmp_path: Path) -> None:
    shown = make_place(tmp_path)
    await shown.fill("Plain")
    async with open_board(shown) as board:
        await board.press("d")
        await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "the changes")
        await board.settled()
        await board.press("M")
        await board.told("no branch of its own")
