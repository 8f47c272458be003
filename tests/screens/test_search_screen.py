"""Everything is searched from everywhere, while it is typed, and enter goes there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.widgets import OptionList

from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.search import SearchKind
from agentmon.screens.search.document_dialog import DocumentDialog
from agentmon.screens.search.screen import SearchScreen
from agentmon.screens.sessions.conversation_page import ConversationPage
from agentmon.screens.tasks.task_page import TaskPage
from agentmon.widgets.log_pane import LogPane
from agentmon.widgets.search_results import SearchResults
from tests.screens.boards import make_place, open_board
from tests.services.test_search_everything import talk
from tests.stored_runs import Stored

if TYPE_CHECKING:
    from pathlib import Path

    from tests.screens.boards import Board, Place

LOG = b"".join(b"line %d\n" % number for number in range(300)) + b"a zebra [bold]ran[/bold]\n" + b"more\n" * 300


async def fill(place: Place) -> None:
    async with place.services() as (services, workspace):
        stored = Stored(services, workspace)
        task = await stored.add_task("Mend the zebra crossing")
        run = await stored.add_run(task.id, ExecutionStatus.SUCCEEDED, output=LOG)
        talk(stored, run, title="a talk", message="No zebra was hurt", call="zebra found", document="On zebra care")
        await stored.add_task("Something else")


def results(board: Board) -> SearchResults:
    return board.app.screen.query_one(SearchResults)


def selected(board: Board) -> SearchKind | None:
    if not isinstance(board.app.screen, SearchScreen):
        return None
    hit = results(board).selected
    return None if hit is None else hit.kind


@pytest.mark.proof
async def test_what_is_typed_is_found_and_enter_goes_there(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    await fill(place)
    async with open_board(place) as board:
        app = board.app
        await board.press("ctrl+f")
        await board.until(lambda: isinstance(app.screen, SearchScreen))
        await board.until(lambda: app.screen.has_class("-empty"))

        await board.press(*"line")
        await board.until(lambda: "5+ found" in str(app.screen.query_one("#summary").render()), "more than is shown")
        await board.press(*["backspace"] * 4, *"zeb")
        await board.until(lambda: selected(board) is SearchKind.TASKS)
        await board.press(*"ra")
        await board.until(lambda: len(results(board).rows) == 10)
        await board.press("pagedown")
        assert selected(board) is SearchKind.DOCUMENTS
        await board.press("pageup")
        assert selected(board) is SearchKind.TASKS
        await board.press("tab")
        assert selected(board) is SearchKind.MESSAGES
        await board.press("down", "down")
        assert selected(board) is SearchKind.LOGS
        assert "[bold]ran" in str(app.screen.query_one("#preview").render())
        await board.press("enter")
        await board.until(lambda: isinstance(app.screen, TaskPage))
        await board.until(lambda: "a zebra [bold]ran[/bold]" in _log_text(board))

        await board.press("ctrl+f")
        await board.until(lambda: selected(board) is SearchKind.LOGS)
        await board.press("up", "up", "enter")
        await board.until(lambda: isinstance(app.screen, ConversationPage) and app.screen.is_loaded)
        assert isinstance(app.screen, ConversationPage)
        assert "No zebra was hurt" in app.screen._view.shown_text
        await board.press("escape")
        await board.until(lambda: selected(board) is SearchKind.MESSAGES)
        await board.press("shift+tab", "shift+tab", "enter")
        await board.until(lambda: isinstance(app.screen, DocumentDialog))
        await board.press("escape")
        await board.until(lambda: selected(board) is SearchKind.DOCUMENTS)

        await board.press("ctrl+o")
        await board.until(lambda: "all workspaces" in str(app.screen.query_one("#summary").render()))
        await board.press("escape")
        await board.until(lambda: app.screen is board.screen)
        await board.press("ctrl+f")
        await board.until(lambda: selected(board) is not None and len(results(board).rows) == 10)
        assert app.screen.query_one("#query").value == "zebra"  # type: ignore[attr-defined] # an input has one
        await board.press(*"quagga")
        await board.until(lambda: not results(board).rows)
        assert "nothing has these words" in str(app.screen.query_one("#summary").render())


async def test_a_dialog_keeps_the_key_for_its_fields(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    async with open_board(place) as board:
        await board.press("n")
        await board.until(lambda: board.app.screen.is_modal)

        await board.press("ctrl+f")

        assert board.app.screen.is_modal


async def test_it_searches_the_board_that_is_shown_and_opens_what_is_elsewhere_in_its_own_workspace(
    tmp_path: Path,
) -> None:
    place = make_place(tmp_path)
    (tmp_path / "web").mkdir()
    async with place.services() as (services, workspace):
        await Stored(services, workspace).add_task("A zebra at home")
        web = await services.workspaces.open(tmp_path / "web")
        await Stored(services, web).add_task("A zebra on the web")
    async with open_board(place) as board:
        app = board.app

        def found() -> list[str]:
            return [row.title for row in results(board).rows if row.hit is not None]

        async def show(name: str) -> None:
            await board.press("W")
            await board.until_menu()
            entries = app.screen._entries  # type: ignore[attr-defined] # the menu's
            at = next(at for at, entry in enumerate(entries) if entry.word.startswith(name))
            app.screen.query_one(OptionList).highlighted = at
            await board.press("enter")
            await board.until(lambda: app.screen is board.screen)
            await board.settled()

        await show("web")
        await board.press("ctrl+f", *"zebra")
        await board.until(lambda: found() == ["#1 A zebra on the web"])
        await board.press("escape")
        await show("All")
        await board.press("ctrl+f")
        await board.until(lambda: len(found()) == 2)
        await board.press(*["down"] * found().index("#1 A zebra on the web"), "enter")
        await board.until(lambda: isinstance(app.screen, TaskPage) and app.screen._shown is not None)
        assert isinstance(app.screen, TaskPage)
        assert app.screen._shown is not None
        assert app.screen._shown.workspace_root == str(tmp_path / "web")


def _log_text(board: Board) -> str:
    view = board.app.screen.query_one(LogPane).view
    return "\n".join(view.render_line(y).text for y in range(view.size.height))
