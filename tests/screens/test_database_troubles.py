"""A database that is held, missing or replaced while the app is open: it says so, and goes on by itself."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from agentmon.app import AgentmonApp
from agentmon.domain.task_status import TaskStatus
from agentmon.screens.board.screen import BoardScreen
from agentmon.widgets.status_line import StatusBar
from tests.idle_worker import idle_worker
from tests.screens.boards import Board, Place, make_place, open_board

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = make_place(tmp_path)
    with idle_worker(place.paths):
        yield place


@contextmanager
def held(database: Path) -> Iterator[None]:
    """Hold the database so that nobody else can even read it."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("UPDATE workspaces SET name = name")
        yield
        connection.execute("ROLLBACK")


@pytest.mark.proof
async def test_a_database_that_is_held_at_the_start_is_waited_for_and_the_screen_says_so(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.fill("a")
    monkeypatch.setattr("agentmon.store.untouched._TIMEOUT_S", 0.2)
    app = AgentmonApp(place.paths, place.root)

    with held(place.paths.database_path):
        async with app.run_test(size=(120, 40)) as pilot:
            board = Board(app, pilot)
            await board.told("held by another process")
            await pilot.press("question_mark")
            await board.until(lambda: not isinstance(app.screen, BoardScreen), "the help: keys are answered")
            await pilot.press("escape")
            assert not app._is_opened
            app.exit()
    async with open_board(place) as later:
        assert later.shown(TaskStatus.TODO) == ["a"]


@pytest.mark.proof
async def test_the_app_goes_on_with_a_database_that_took_the_place_of_its_own(place: Place) -> None:
    await place.fill("of the first")
    async with open_board(place) as board:
        bar = board.app.screen.query_one(StatusBar)
        away = place.paths.database_path.with_name("away.db")
        await board.press("L", "space")
        await board.settled()

        place.paths.database_path.rename(away)
        await board.until(lambda: "the database agentmon.db is missing" in bar.trouble, "the mark")
        await board.press("2", "1")
        for file in place.paths.data_dir.glob("agentmon.db-*"):
            file.unlink()
        await place.fill("of the second")
        await board.until(lambda: board.shown(TaskStatus.TODO) == ["of the second"], "the new board")
        await board.until(lambda: not bar.trouble, "no mark any more")
        await board.press("ctrl+z")
        await board.told("nothing to undo")
        board.column(TaskStatus.TODO).focus()
        await board.press("L")
        await board.settled()

    assert await place.titles(TaskStatus.IN_PROGRESS) == ["of the second"]
