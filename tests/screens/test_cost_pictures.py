"""What the costs look like; ``pytest -n 0 …/test_cost_pictures.py --snapshot-update`` takes new pictures."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from pytest_textual_snapshot import SVGImageExtension  # type: ignore[import-untyped] # it has no types
from textual.widgets import Static

from agentmon.bootstrap import open_services
from agentmon.domain.budgets import BudgetPeriod, BudgetScope
from agentmon.domain.clock import FakeClock
from agentmon.paths import find_paths
from agentmon.screens.costs.answers_dialog import AnswersDialog
from agentmon.screens.costs.screen import CostsScreen
from agentmon.screens.dialogs.menu_dialog import MenuDialog
from agentmon.services.actors import USER_ACTOR
from agentmon.worker.import_progress import ImportProgress, write_progress
from tests.screens.cost_histories import write_histories
from tests.screens.pictures import MIDDLE, SMALL, Picture, compare_pictures
from tests.screens.scenes import NOW, picture, scene

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

    from agentmon.domain.agents import Agent
    from tests.screens.boards import Board

pytestmark = pytest.mark.proof

PRICES = """
[[price]]
model = "claude-opus-*"
input = 4
output = 20
cache_read = 0.4
cache_write = 5
[[price]]
model = "claude-*"
input = 1
output = 5
cache_read = 0.1
cache_write = 1.25
[[price]]
model = "gpt-*"
input = 2
output = 10
cache_read = 0.2
[[price]]
model = "gemini-*"
input = 1.5
output = 9
cache_read = 0.15
"""


@pytest.fixture(scope="module")
def known_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that has imported the histories of ten weeks, with two budgets."""
    folder = tmp_path_factory.mktemp("costs")
    write_histories(folder, NOW, days=70, per_day=2)
    paths = find_paths({"AGENTMON_HOME": str(folder / "agentmon")})
    paths.prices_file.parent.mkdir(parents=True)
    paths.prices_file.write_text(PRICES)

    async def fill() -> None:
        async with open_services(paths) as services:
            await services.costs.import_history()
            claude: Agent = await services.agents.by_slug("claude")
            for scope, scope_id, period, dollars in (
                (BudgetScope.ALL, "", BudgetPeriod.DAY, 20),
                (BudgetScope.AGENT, claude.id, BudgetPeriod.WEEK, 12),
            ):
                await services.budgets.set(
                    scope=scope, scope_id=scope_id, period=period, limit=dollars * 10**9, actor=USER_ACTOR
                )

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.setenv("AGENTMON_COSTS_TIMEZONE", "UTC")
        for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
            patch.delenv(name, raising=False)
        patch.setattr("agentmon.bootstrap.SystemClock", lambda: FakeClock(NOW))
        asyncio.run(fill())
    # Where a path is wrapped depends on its length.
    with closing(sqlite3.connect(paths.database_path)) as connection, connection:
        connection.execute("UPDATE usage_files SET path = replace(path, ?, '/home/ada')", (str(folder),))
    return folder / "agentmon"


async def costs(board: Board) -> None:
    await board.press("3")
    await board.until(lambda: isinstance(board.app.screen, CostsScreen), "the costs")
    screen = board.app.screen
    assert isinstance(screen, CostsScreen)
    await board.until(lambda: screen._shown is not None, "the sums")
    await board.pilot.pause()


async def filtering(board: Board) -> None:
    await costs(board)
    await board.press("f")
    await board.until_menu()


async def sorted_sessions(board: Board) -> None:
    await costs(board)
    screen = board.app.screen
    assert isinstance(screen, CostsScreen)
    await board.press("l", "enter", "s", "s", "s")
    await board.until(lambda: screen._read_for == screen._wanted and len(screen._trail) == 2, "the sessions")


async def answers(board: Board) -> None:
    await costs(board)
    await board.press("enter")
    await board.until(lambda: isinstance(board.app.screen, AnswersDialog), "the answers")


async def importing(board: Board) -> None:
    await costs(board)
    screen = board.app.screen
    assert isinstance(screen, CostsScreen)
    await board.press(*["escape"] * 5)
    progress = ImportProgress(files=1204, all_files=3400, read_bytes=1_204_000_000, all_bytes=28 * 10**8, elapsed_s=95)
    write_progress(board.app.paths.import_progress, progress)
    screen.request_refresh()
    await board.until(lambda: screen._read_for == screen._wanted and len(screen._trail) == 1, "all of the costs")


def tells_import(board: Board) -> bool:
    return board.app.screen.query_one("#import", Static).display


def tells_why(board: Board) -> bool:
    return "together" in str(board.app.screen.query_one("#explanation", Static).content)


PICTURES = (
    Picture("costs", CostsScreen, costs, has_large=True),
    Picture("filter", MenuDialog, filtering),
    Picture("sessions", CostsScreen, sorted_sessions),
    Picture("answers", AnswersDialog, answers, tells_why),
    Picture("importing", CostsScreen, importing, tells_import),
)
"""In this order: the last but one begins where the one before it ended."""


async def test_costs_look_as_they_did(
    known_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setenv("AGENTMON_COSTS_TIMEZONE", "UTC")
    shutil.copytree(known_home, tmp_path / "agentmon")

    async with scene(tmp_path, monkeypatch, size=SMALL, deeds=()) as board:
        await compare_pictures(board, PICTURES, snapshot)


@pytest.mark.parametrize("size", [SMALL, MIDDLE], ids=["80x24", "120x40"])
async def test_costs_without_colours_look_as_they_did(
    size: tuple[int, int],
    known_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.setenv("AGENTMON_COSTS_TIMEZONE", "UTC")
    monkeypatch.setenv("NO_COLOR", "1")
    shutil.copytree(known_home, tmp_path / "agentmon")

    async with scene(tmp_path, monkeypatch, size=size, deeds=()) as board:
        await costs(board)
        svg = await picture(board)

    assert svg == snapshot(extension_class=SVGImageExtension)


async def test_costs_without_usage_look_as_they_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setenv("AGENTMON_COSTS_TIMEZONE", "UTC")

    async with scene(tmp_path, monkeypatch, size=SMALL, deeds=()) as board:
        await compare_pictures(board, [Picture("no-costs", CostsScreen, costs)], snapshot)
