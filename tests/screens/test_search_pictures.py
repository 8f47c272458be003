"""What the search looks like; ``pytest -n 0 …/test_search_pictures.py --snapshot-update`` takes new pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.screens.search.document_dialog import DocumentDialog
from agentmon.screens.search.screen import SearchScreen
from agentmon.widgets.search_results import SearchResults
from tests.screen_stage import screen_text
from tests.screens.pictures import SMALL, Picture, compare_pictures
from tests.screens.scenes import DEEDS, scene

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

    from tests.screens.boards import Board

pytestmark = pytest.mark.proof

MANUAL = "https://example.org/manual\n\n# Rate limits\n\nEvery key has [60] requests a minute.\n" + "More of it.\n" * 40


async def tips(board: Board) -> None:
    await board.press("ctrl+f")
    await board.until(lambda: isinstance(board.app.screen, SearchScreen) and board.app.screen.has_class("-empty"))


async def found(board: Board) -> None:
    await board.press("ctrl+f")
    await board.until(lambda: isinstance(board.app.screen, SearchScreen))
    await board.press(*"in:tasks,logs ", *"re")
    await board.until(lambda: len(board.app.screen.query_one(SearchResults).rows) > 4)
    await board.press("tab")


async def document(board: Board) -> None:
    await board.app.push_screen(DocumentDialog("The manual of the [limits]", MANUAL))
    await board.until(lambda: "Rate limits" in screen_text(board.app))


PICTURES = (
    Picture("search-tips", SearchScreen, tips),
    Picture("search", SearchScreen, found),
    Picture("document", DocumentDialog, document),
)


async def test_the_search_looks_as_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    async with scene(tmp_path, monkeypatch, size=SMALL, deeds=DEEDS) as board:
        await compare_pictures(board, PICTURES, snapshot)
