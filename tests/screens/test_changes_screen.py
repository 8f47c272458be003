"""The changes of a run on their screen: read, looked at, commented on, taken back."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from textual.widgets import Static, TextArea

from agentmon.domain.changes import Artifact, artifact_text
from agentmon.domain.clock import SystemClock
from agentmon.domain.conversation import ToolStartedNews
from agentmon.domain.diffs import Diff, DiffSide, LineSpan
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import new_id
from agentmon.domain.operations import ArtifactKind, OperationType
from agentmon.domain.review_comments import ReviewComment
from agentmon.domain.task_status import TaskStatus
from agentmon.screens.board.screen import BoardScreen
from agentmon.screens.changes import pane as pane_module
from agentmon.screens.changes.pane import ChangesPane
from agentmon.screens.changes.screen import ChangesScreen
from agentmon.screens.changes.undo_dialog import UndoDialog
from agentmon.screens.dialogs.choice import ChoiceDialog
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.screens.dialogs.text_dialog import TextDialog
from agentmon.screens.executions.screen import ExecutionsScreen
from agentmon.screens.sessions.conversation_page import ConversationPage
from agentmon.screens.tasks.task_page import TaskPage
from agentmon.services.actors import USER_ACTOR
from agentmon.services.changes import ChangeService
from agentmon.services.demo_agent import make_demo_agent
from agentmon.store.changes import ChangeRepository
from agentmon.store.review_comments import note_comments_sent
from agentmon.widgets.block_view import BlockView
from agentmon.widgets.diff_text import DiffText
from agentmon.widgets.diff_view import DiffView
from agentmon.widgets.row_table import RowTable
from agentmon.widgets.search_results import SearchResults
from agentmon.workspaces.comparison import compare
from agentmon.workspaces.snapshots import SnapshotStore
from tests.conversing import Conversing
from tests.idle_worker import idle_worker
from tests.screens.boards import Board, make_place, open_board
from tests.store.queue_place import read_rows
from tests.stored_runs import Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from agentmon.screens.frame import ServiceScreen
    from tests.screens.boards import Place

_BEFORE = "".join(f"line {number}\n" for number in range(60))
_AFTER = _BEFORE.replace("line 2\n", "line two\n").replace("line 50\n", "line fifty  and more\n")


@pytest.fixture
async def place(tmp_path: Path) -> Place:
    """A board whose one card has a run that changed two files."""
    place = make_place(tmp_path)
    (place.root / "a.py").write_text(_BEFORE)
    await run_that_writes(place, {"a.py": _AFTER, "b.txt": "new\n"})
    return place


async def run_that_writes(place: Place, texts: Mapping[str, str], *, age: timedelta = timedelta(minutes=1)) -> None:
    """Store a run of the one card that left these files; the card is made when there is none."""
    async with place.services() as (services, workspace):
        stored = Stored(services, workspace)
        tasks = await services.tasks.list(workspace)
        task = tasks[0] if tasks else await stored.add_task("change it")
        run = await stored.add_run(task.id, age=age)
        store = SnapshotStore(services.paths.snapshots_dir)
        before = await asyncio.to_thread(store.take, place.root)
        for name, text in texts.items():
            (place.root / name).write_text(text)
        after = await asyncio.to_thread(store.take, place.root)
        found = await asyncio.to_thread(compare, store, before, after)
        changes, now = ChangeRepository(services.database), datetime.now(UTC)
        await changes.begin(run.id, snapshot_id=before.id, note="", at=now)
        await changes.record(run.id, snapshot_id=after.id, changes=found, at=now)


async def run_with_calls(place: Place, texts: Mapping[str, str]) -> None:
    """Store a run of a new card whose agent wrote each of these files by one tool call."""
    async with place.services() as (services, workspace):
        await services.agents.add(make_demo_agent(pace_s=0.0))
        talk = Conversing(services=services, workspace=workspace)
        run = await talk.begin((await talk.add_task("call it")).id)
        store, changes = SnapshotStore(services.paths.snapshots_dir), ChangeRepository(services.database)
        first = before = await asyncio.to_thread(store.take, place.root)
        await changes.begin(run.id, snapshot_id=first.id, note="", at=datetime.now(UTC))
        for number, (name, text) in enumerate(texts.items()):
            ref = f"call{number}"
            news = ToolStartedNews(tool_ref=ref, tool_name="Edit", type=OperationType.WRITE, target=name)
            await talk.tell(run.id, news)
            (place.root / name).write_text(text)
            after = await asyncio.to_thread(store.take, place.root)
            found = [(one, "") for one in await asyncio.to_thread(compare, store, before, after)]
            await changes.record_call(run.id, f"0:{ref}", found, note="", at=datetime.now(UTC))
            before = after
        await talk.end(run.id)
        whole = await asyncio.to_thread(compare, store, first, before)
        await changes.record(run.id, snapshot_id=before.id, changes=whole, at=datetime.now(UTC))


async def changes_of(board: Board) -> DiffView:
    await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "the changes")
    view = board.app.screen.query_one(DiffView)
    await board.until(lambda: len(view.diff.files) == 2, "both files")
    return view


@pytest.mark.proof
async def test_the_keys_move_through_the_files_and_their_lines(place: Place) -> None:
    async with open_board(place, size=(170, 50)) as board:
        await board.press("d")
        view = await changes_of(board)
        text = view.text
        seen = [text.row]
        for key in ("j", "J", "tab", "shift+tab", "G", "g", "J", "K", "ctrl+d", "ctrl+u", "k", "down", "up"):
            await board.press(key)
            assert text.row is not None
            if text.row != seen[-1]:
                seen.append(text.row)
        assert len(seen) > 8

        before = text.layout_of_diff
        for key in ("enter", "enter", "z", "z"):
            await board.press(key)
            assert text.layout_of_diff is not before
            before = text.layout_of_diff
            told = [(text.wants_sides, text.ignores_blanks)]
        for key in ("b", "I"):
            await board.press(key)
            told.append((text.wants_sides, text.ignores_blanks))
        sides = told[0][0]
        assert told == [(sides, False), (not sides, False), (not sides, True)]
        await board.press("l", "h", "right", "left")
        await board.press("v")
        assert view.has_something_open
        await board.press("escape")
        assert not view.has_something_open


async def test_enter_on_a_card_in_review_opens_its_changes_and_elsewhere_the_task(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, TaskPage), "the task")
        await board.press("escape")
        await board.until(lambda: isinstance(board.app.screen, BoardScreen), "the board")
        async with place.services() as (services, workspace):
            (task,) = await services.tasks.list(workspace)
            await services.tasks.move(task.id, TaskStatus.REVIEW, actor=USER_ACTOR)
        await board.until(lambda: board.column(TaskStatus.REVIEW).total == 1, "the card in Review")
        await board.press("h", "h", "h", "h", "l", "l", "l")
        assert board.selected == "change it"
        await board.press("enter")
        await changes_of(board)


async def test_a_later_run_that_changed_nothing_hides_no_changes(place: Place) -> None:
    await run_that_writes(place, {}, age=timedelta(0))
    async with open_board(place) as board:
        await board.press("d")
        await changes_of(board)


async def test_a_search_goes_from_match_to_match(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("d")
        view = await changes_of(board)
        await board.press("slash", *"fifty", "enter")
        await board.until(lambda: view.text.row is not None and view.text.row.place.part > 1, "a match")
        found = view.text.row
        await board.press("n", "N")
        assert view.text.row == found

        await board.press("escape", "escape")
        assert not view.has_something_open
        await board.press("escape")
        await board.until(lambda: not isinstance(board.app.screen, ChangesScreen), "the board")


async def test_what_was_written_outside_of_git_is_named(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [
        Artifact(path="/tmp/report.md", kind=ArtifactKind.NOTE, size_bytes=12_000),
        Artifact(path="/tmp/gone.log", kind=ArtifactKind.LOG, size_bytes=None),
    ]

    async def artifacts_of(*_: object) -> tuple[Artifact, ...]:
        return tuple(made)

    monkeypatch.setattr(ChangeService, "_artifacts_of", artifacts_of)
    async with open_board(place) as board:
        await board.press("d")
        await changes_of(board)
        state = board.app.screen.query_one("#changes-state", Static)
        await board.until(lambda: artifact_text(made[0]) in str(state.render()), "what it made")


async def test_what_was_looked_at_stays_so(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("d")
        view = await changes_of(board)
        await board.press("J", "space")
        await board.until(lambda: len(view.looked) == 1, "one looked at")
        looked = view.looked
        await board.until(lambda: bool(read_rows(place.paths.database_path, "SELECT digest FROM looked_at")), "kept")
        await board.press("escape")
        await board.press("d")
        view = await changes_of(board)
        assert view.looked == looked
        await board.press("J", "space")
        await board.until(lambda: not view.looked, "none")


async def test_comments_become_one_message(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("d")
        view = await changes_of(board)
        await board.press("J", "j", "j", "c")
        await board.until(lambda: isinstance(board.app.screen, TextDialog), "the comment")
        await board.press(*"why", "ctrl+s")
        await board.until(lambda: len(view.commented) == 1 and board.app.screen.is_current, "kept")
        await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "the changes again")
        await board.press("m")
        await board.until(lambda: isinstance(board.app.screen, TextDialog), "the message")
        text = board.app.screen.query_one(TextArea).text

        (span,) = view.commented
        assert text.startswith(f"a.py:{span.first_line}\n> ")
        assert text.endswith("\nwhy")
        await board.press("escape")
        await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "the changes again")


@pytest.mark.proof
async def test_comments_are_kept_until_they_are_sent_and_changed_or_removed_before(place: Place) -> None:
    async def comment(board: Board, *keys: str) -> None:
        await board.press("J", "j", "j", "c")
        await board.until(lambda: isinstance(board.app.screen, TextDialog), "the comment")
        await board.press(*keys, "ctrl+s")
        await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "the changes again")

    async with open_board(place) as board:
        await board.press("d")
        view = await changes_of(board)
        await comment(board, *"why")
        await board.until(lambda: len(view.commented) == 1, "kept")
    async with open_board(place) as board:
        await board.press("d")
        view = await changes_of(board)
        await board.until(lambda: len(view.commented) == 1, "kept by another app")
        before = view.text.row
        await board.press("o")
        assert view.text.row is not None
        assert view.text.row != before
        await board.press("g")
        await comment(board, *"!?")
        async with place.services() as (services, workspace):
            (task,) = await services.tasks.list(workspace)
            assert [one.text for one in await services.changes.comments_of(task.id)] == ["why!?"]
        await board.press("g")
        await comment(board, *["backspace"] * 5)
        await board.until(lambda: not view.commented, "removed")


@pytest.mark.parametrize("is_sure", [True, False])
async def test_lines_are_taken_back_when_one_is_sure(place: Place, is_sure: bool) -> None:
    async with open_board(place) as board:
        await board.press("d")
        await changes_of(board)
        await board.press("J", "u")
        await board.until(lambda: isinstance(board.app.screen, ConfirmDialog), "the question")
        await board.press("y" if is_sure else "n")
        await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "the changes again")
        wanted = _AFTER.replace("line two\n", "line 2\n") if is_sure else _AFTER
        await board.until(lambda: (place.root / "a.py").read_text() == wanted, "the file")


async def test_the_file_is_opened_at_its_line(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[list[str]] = []

    def note(argv: list[str], path: Path, _environ: object, *, line: int) -> None:
        opened.append([*argv, str(path), str(line)])

    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr("agentmon.runners.text_editor.open_file", note)
    async with open_board(place) as board:
        monkeypatch.setattr(board.app, "suspend", nullcontext)
        await board.press("d")
        await changes_of(board)
        await board.press("J", "e")
        await board.until(lambda: bool(opened), "the editor")
    ((_, path, line),) = opened
    assert (path, int(line) <= 3) == (str(place.root / "a.py"), True)


async def test_the_changes_are_shown_from_the_page_and_from_executions(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, TaskPage) and board.app.focused is not None, "the page")
        await board.press("d")
        await changes_of(board)
        await board.press("escape", "escape")
        await board.press("2")
        await board.until(
            lambda: isinstance(board.app.screen, ExecutionsScreen) and board.app.focused is not None, "the runs"
        )
        await board.settled()
        await board.press("d")
        await changes_of(board)


@pytest.mark.proof
async def test_the_tab_shows_the_same_with_the_same_keys_and_opens_the_whole(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, TaskPage) and board.app.focused is not None, "the page")
        page = board.app.screen
        assert isinstance(page, TaskPage)
        await board.press("F")
        view = page.query_one(DiffView)
        await board.until(lambda: len(view.diff.files) == 2 and board.app.focused is view.text, "the tab")
        first = view.text.row
        await board.press("J", "space")
        await board.until(lambda: len(view.looked) == 1, "looked at")
        assert view.text.row != first
        await board.press("v")
        assert view.text.has_mark
        await board.press("escape")
        await board.until(lambda: not view.has_something_open, "no selection")
        await board.press("tab")
        spot = page.query_one(ChangesPane).spot
        assert spot is not None
        await board.press("enter")
        whole = await changes_of(board)
        pane = board.app.screen.query_one(ChangesPane)
        assert whole is not view
        assert pane.spot == spot
        await board.press("escape")
        await board.until(lambda: board.app.screen is page, "the page again")
        await board.press("L")
        assert page._tab == "log"


async def test_the_keys_of_the_tab_do_not_reach_the_others(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, TaskPage) and board.app.focused is not None, "the page")
        await board.press("F", "slash", *"fifty", "enter")
        view = board.app.screen.query_one(DiffView)
        await board.until(lambda: view.has_something_open, "the search")
        assert view.text.row is not None


async def undo_dialog(board: Board) -> UndoDialog:
    await board.until(lambda: isinstance(board.app.screen, UndoDialog), "what it will do")
    dialog = board.app.screen
    assert isinstance(dialog, UndoDialog)
    await board.until(lambda: bool(dialog.query_one(RowTable).rows), "its files")
    return dialog


@pytest.mark.proof
async def test_a_run_is_undone_and_redone_by_one_key(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("d")
        view = await changes_of(board)
        assert not view.notes
        await board.press("U")
        dialog = await undo_dialog(board)
        assert [row.key for row in dialog.query_one(RowTable).rows] == ["a.py", "b.txt"]
        text = dialog.query_one(DiffText)
        await board.until(lambda: "line two" in text.shown_text, "its lines")
        await board.press("j")
        await board.until(lambda: "- new" in text.shown_text, "the other file")
        await board.press("k")
        await board.until(lambda: "line two" in text.shown_text, "the first one again")
        top = text.shown_text
        await board.press("ctrl+d", "ctrl+d")
        await board.until(lambda: text.shown_text != top, "further down")
        await board.press("ctrl+u", "ctrl+u")
        await board.until(lambda: text.shown_text == top, "further up")
        await board.press("escape")
        await changes_of(board)
        assert (place.root / "a.py").read_text() == _AFTER

        await board.press("U")
        await undo_dialog(board)
        await board.press("enter")
        await board.until(lambda: (place.root / "a.py").read_text() == _BEFORE, "undone")
        await board.until(lambda: not (place.root / "b.txt").exists(), "the new file is gone")
        await board.until(lambda: set(view.notes.values()) == {"undone"} and len(view.notes) == 3, "marked")

        await changes_of(board)
        await board.press("U")
        await undo_dialog(board)
        await board.press("enter")
        await board.until((place.root / "b.txt").exists, "redone")
        await board.until(lambda: (place.root / "a.py").read_text() == _AFTER, "the other file too")
        await board.until(lambda: not view.notes, "as it was")


@pytest.mark.proof
async def test_one_file_is_undone_from_its_head_and_the_rest_or_that_again(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("d")
        view = await changes_of(board)
        await board.press("u")
        dialog = await undo_dialog(board)
        assert [row.key for row in dialog.query_one(RowTable).rows] == ["a.py"]
        await board.press("enter")
        await board.until(lambda: (place.root / "a.py").read_text() == _BEFORE, "undone")
        assert (place.root / "b.txt").exists()
        await board.until(lambda: len(view.notes) == 2, "both hunks of it are marked")

        await changes_of(board)
        await board.press("U")
        await board.until(lambda: isinstance(board.app.screen, ChoiceDialog), "the rest, or that again")
        await board.press("right", "enter")
        dialog = await undo_dialog(board)
        assert [row.key for row in dialog.query_one(RowTable).rows] == ["b.txt"]
        await board.press("enter")
        await board.until(lambda: not (place.root / "b.txt").exists(), "all is undone")


async def test_all_runs_of_a_task_are_undone_and_redone_by_the_same_key(place: Place) -> None:
    await run_that_writes(place, {"a.py": "by the second run\n"}, age=timedelta(0))
    async with open_board(place) as board:
        await board.press("d")
        await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "the newest run")
        view = board.app.screen.query_one(DiffView)
        await board.until(lambda: len(view.diff.files) == 1, "its file")
        await board.press("U")
        await board.until(lambda: isinstance(board.app.screen, ChoiceDialog), "the run, or all")
        await board.press("right", "enter")
        dialog = await undo_dialog(board)
        assert [row.key for row in dialog.query_one(RowTable).rows] == ["a.py", "b.txt"]
        await board.press("enter")
        await board.until(lambda: (place.root / "a.py").read_text() == _BEFORE, "undone")
        assert not (place.root / "b.txt").exists()

        await board.until(lambda: bool(view.notes), "marked")
        await board.press("U")
        await board.until(lambda: isinstance(board.app.screen, ChoiceDialog), "that again, or all")
        await board.press("enter")
        await undo_dialog(board)
        await board.press("enter")
        await board.until((place.root / "b.txt").exists, "redone")
        assert (place.root / "a.py").read_text() == "by the second run\n"


@pytest.mark.proof
async def test_a_tool_call_is_undone_and_redone_where_it_is_shown(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    (place.root / "a.py").write_text("before\n")
    await run_with_calls(place, {"a.py": "after\n", "b.txt": "new\n"})

    async def go_through(board: Board, *keys: str, paths: list[str], holds: Callable[[], bool]) -> None:
        shown = cast("ServiceScreen[None]", board.app.screen)
        await board.press(*keys)
        dialog = await undo_dialog(board)
        assert [row.key for row in dialog.query_one(RowTable).rows] == paths
        await board.press("enter")
        await board.until(holds, "done")
        await board.until(lambda: board.app.screen is shown and board.is_answered(shown), "the calls again")

    async with open_board(place) as board:
        await board.until(lambda: board.column(TaskStatus.DONE).total == 1, "the card")
        while board.selected != "call it":
            await board.press("l")
        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, TaskPage), "the task")
        page = board.app.screen
        await board.press("O")
        await board.until(lambda: len(page.query_one("#operations-table", RowTable).rows) == 2, "the calls")
        a, b = place.root / "a.py", place.root / "b.txt"
        await go_through(board, "g", "u", paths=["a.py"], holds=lambda: a.read_text() == "before\n")
        assert b.exists()
        await go_through(board, "u", paths=["a.py"], holds=lambda: a.read_text() == "after\n")
        await go_through(board, "C", "G", "u", paths=["b.txt"], holds=lambda: not b.exists())
        await board.press("escape", "5", "enter")
        await board.until(lambda: isinstance(board.app.screen, ConversationPage), "the conversation alone")
        await board.until(lambda: bool(board.app.screen.query_one(BlockView).blocks), "what was done")
        await go_through(board, "G", "u", paths=["b.txt"], holds=b.exists)
        assert a.read_text() == "after\n"


@pytest.mark.parametrize(("presses", "wanted"), [(0, "mine"), (1, "line 2"), (2, "mine")])
async def test_a_conflict_shows_both_sides_and_is_left_alone_until_one_is_chosen(
    place: Place, presses: int, wanted: str
) -> None:
    (place.root / "a.py").write_text(_AFTER.replace("line two", "mine"))
    async with open_board(place) as board:
        await board.press("d")
        view = await changes_of(board)
        await board.until(lambda: list(view.notes.values()) == ["changed since"], "what somebody did since is marked")
        await board.press("U")
        dialog = await undo_dialog(board)
        text = dialog.query_one(DiffText)
        await board.until(lambda: "mine" in text.shown_text and "line 2" in text.shown_text, "both sides")
        table = dialog.query_one(RowTable)
        for _ in range(presses):
            before = table.rows
            await board.press("space")
            await board.until(lambda: table.rows != before, "the other side")  # noqa: B023 - awaited
        await board.press("enter")
        await board.until(lambda: not (place.root / "b.txt").exists(), "the other file is undone")
        await board.until(lambda: (place.root / "a.py").read_text().split("\n")[2] == wanted, "the side")


async def test_lines_that_were_taken_back_are_marked_and_gone_to(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("d")
        view = await changes_of(board)
        await board.press("J", "J", "u")
        await board.until(lambda: isinstance(board.app.screen, ConfirmDialog), "the question")
        await board.press("y")
        await board.until(lambda: list(view.notes.values()) == ["undone"], "marked")
        await changes_of(board)
        await board.press("g", "o")
        row = view.text.row
        assert row is not None
        assert row.hunk == view.diff.files[0].hunks[1]


@pytest.mark.proof
async def test_commented_lines_that_changed_since_are_marked_in_both_runs(place: Place) -> None:
    """A comment on the first hunk and one on the second were sent; the run that followed changed the second."""
    async with place.services() as (services, workspace):
        (task,) = await services.tasks.list(workspace)
        (run,) = await services.executions.of_task(task.id)
        found = await services.changes.of_run(run)
        diff = Diff(await services.changes.patch_of_run(found))
        names = diff.hunk_digests(diff.files[0])
        comments = [
            ReviewComment(
                id=new_id(),
                execution_id=run.id,
                span=LineSpan("a.py", DiffSide.NEW, line, line),
                quoted="",
                text="why",
                digest=name,
                sent_at=None,
            )
            for name, line in zip(names, (3, 51), strict=True)
        ]
        for comment in comments:
            await services.changes.write_comment(comment, actor=USER_ACTOR)
        async with services.database.writing() as connection:
            await note_comments_sent(connection, [one.id for one in comments], at=SystemClock().now())
    await run_that_writes(place, {"a.py": _AFTER.replace("fifty  and more", "50 again")}, age=timedelta(0))
    async with open_board(place) as board:
        await board.press("d")
        await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "the newest run")
        view = board.app.screen.query_one(DiffView)
        await board.until(lambda: list(view.notes.values()) == ["changed since your comment"], "its one hunk")
        await board.press("escape")
        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, TaskPage) and board.app.focused is not None, "the page")
        await board.press("j", "enter", "d")
        view = await changes_of(board)
        wanted = {names[0]: "commented", names[1]: "changed since your comment"}
        await board.until(lambda: view.notes == wanted, "both hunks of the run with the comments")
        await board.press("o", "o")
        assert view.text.row is not None
        assert view.text.row.hunk == view.diff.files[0].hunks[1]


async def test_two_runs_are_compared(place: Place) -> None:
    await run_that_writes(place, {"a.py": _AFTER.replace("fifty  and more", "50 again")}, age=timedelta(0))
    async with open_board(place) as board:
        await board.press("d")
        await board.until(lambda: isinstance(board.app.screen, ChangesScreen), "the newest run")
        view = board.app.screen.query_one(DiffView)
        await board.until(lambda: len(view.diff.files) == 1, "its file")
        await board.press("equals_sign")
        await board.until_menu()
        await board.press("enter")
        pane = board.app.screen.query_one(ChangesPane)
        await board.until(lambda: board.app.screen.is_current and pane.has_something_open, "the comparison")
        await board.until(lambda: view.diff.added == view.diff.removed == 1, "what differs")
        for key in ("u", "U", "c"):
            view.say("")
            await board.press("J", key)
            await board.until(lambda: "compared" in view._note, "that this is for one run")
        assert isinstance(board.app.screen, ChangesScreen)
        await board.press("escape")
        await board.until(lambda: not pane.has_something_open, "the run alone")
        await board.press("escape")
        await board.until(lambda: not isinstance(board.app.screen, ChangesScreen), "the board")


async def test_a_run_that_is_found_by_a_path_is_shown_at_that_file(place: Place) -> None:
    async with open_board(place) as board:
        await board.press("ctrl+f", *"b.txt")
        await board.until(
            lambda: any(table.rows for table in board.app.screen.query(SearchResults)), "the run that changed it"
        )
        await board.press("enter")
        view = await changes_of(board)
        await board.until(lambda: view.text.row is not None and view.text.row.file.path == "b.txt", "its file")


@pytest.mark.proof
async def test_the_tab_follows_a_run_that_works_and_rests_while_it_is_covered(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place.services() as (services, workspace):
        (task,) = await services.tasks.list(workspace)
        (run,) = await services.executions.of_task(task.id)
        Stored(services, workspace).set_status(run.id, ExecutionStatus.RUNNING)
    looks: list[object] = []
    usual = ChangeService.of_run

    async def counted(self: ChangeService, *args: Any, **named: Any) -> object:
        looks.append(args)
        return await usual(self, *args, **named)

    monkeypatch.setattr(ChangeService, "of_run", counted)
    monkeypatch.setattr(pane_module, "_LOOK_EVERY_S", 0.05)
    with idle_worker(place.paths):
        async with open_board(place) as board:
            await board.press("enter")
            await board.until(
                lambda: isinstance(board.app.screen, TaskPage) and board.app.focused is not None, "the page"
            )
            page = board.app.screen
            await board.press("F")
            view = page.query_one(DiffView)
            await board.until(lambda: len(view.diff.files) == 2, "what there is")
            (place.root / "c.txt").write_text("more\n")
            await board.until(lambda: len(view.diff.files) == 3, "what came since")
            before = len(looks)
            await board.until(lambda: len(looks) > before + 2, "it goes on")
            await board.press("L")
            clock = page.query_one(ChangesPane)._looks
            assert clock is not None
            await board.until(lambda: not clock._active.is_set(), "it rests")
            before = len(looks)
            await board.press("F")
            await board.until(lambda: len(looks) > before + 2, "it goes on again")
