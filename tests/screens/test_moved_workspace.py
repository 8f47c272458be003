"""The app opened where a project was moved to offers its board, and shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.task_status import TaskStatus
from agentmon.screens.dialogs.confirm import ConfirmDialog
from tests.cli.test_moved_projects import make_repository
from tests.idle_worker import idle_worker
from tests.screens.boards import Place, make_place, open_board

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.proof


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = make_place(tmp_path)
    place.root.rmdir()
    make_repository(place.root)
    with idle_worker(place.paths):
        yield place


async def test_a_moved_board_is_offered_and_comes_along(place: Place) -> None:
    await place.fill("kept")
    later = replace(place, root=place.root.parent / "renamed")
    place.root.rename(later.root)

    async with open_board(later) as board:
        await board.until(lambda: isinstance(board.app.screen, ConfirmDialog), "the offer")
        await board.press("y")
        await board.until(lambda: board.shown(TaskStatus.TODO) == ["kept"], "its board")

    async with later.services() as (services, workspace):
        assert [one.root_path for one in await services.workspaces.list()] == [str(later.root)]
        assert workspace.name == "renamed"


async def test_a_board_that_is_refused_stays_where_it_was(place: Place) -> None:
    await place.fill("kept")
    later = replace(place, root=place.root.parent / "renamed")
    place.root.rename(later.root)

    async with open_board(later) as board:
        await board.until(lambda: isinstance(board.app.screen, ConfirmDialog), "the offer")
        await board.press("n")
        await board.until(lambda: not isinstance(board.app.screen, ConfirmDialog), "the empty board")
        assert board.shown(TaskStatus.TODO) == []

    async with later.services() as (services, _):
        assert {one.root_path for one in await services.workspaces.list()} == {str(place.root), str(later.root)}
