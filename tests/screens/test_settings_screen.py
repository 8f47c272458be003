from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input

from agentmon.screens.dialogs.menu_dialog import MenuDialog
from agentmon.screens.settings.screen import SettingsScreen
from agentmon.screens.settings.setting_dialog import SettingDialog
from agentmon.widgets.row_table import RowTable
from tests.screen_stage import screen_text
from tests.screens.scenes import scene

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.screens.boards import Board


@asynccontextmanager
async def _settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Board]:
    async with scene(tmp_path, monkeypatch, size=(120, 40)) as board:
        await board.press("7")
        await board.until(lambda: bool(_table(board).rows), "the settings")
        yield board


def _table(board: Board) -> RowTable:
    assert isinstance(board.app.screen, SettingsScreen)
    return board.app.screen.query_one("#settings", RowTable)


def _value(board: Board, key: str) -> tuple[str, str]:
    row = next(row for row in _table(board).rows if row.key == key)
    return row.cells[1].text, row.cells[2].text


async def _go(board: Board, key: str) -> None:
    await board.press("slash", *key, "enter")
    await board.until(lambda: _table(board).selected_key == key, key)


@pytest.mark.proof
async def test_what_is_true_or_false_turns_round_and_can_be_reset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _settings(tmp_path, monkeypatch) as board:
        await _go(board, "costs.import_history")

        await board.press("enter")
        await board.until(lambda: _value(board, "costs.import_history") == ("false", "set here"), "the change")
        assert "set here; d lets the file" in screen_text(board.app)
        await board.press("d")

        await board.until(lambda: _value(board, "costs.import_history") == ("true", "default"), "the reset")


@pytest.mark.proof
async def test_a_value_is_asked_for_and_a_wrong_one_stays_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _settings(tmp_path, monkeypatch) as board:
        await _go(board, "notifications.done")
        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, SettingDialog), "the dialog")
        await board.press("x", "enter")
        await board.until(lambda: "'toastx' is no channel" in screen_text(board.app), "what is wrong")
        board.app.screen.query_one(Input).value = "desktop, toast"
        await board.press("enter")

        await board.until(lambda: isinstance(board.app.screen, SettingsScreen), "the settings")
        await board.until(lambda: _value(board, "notifications.done")[0] == "toast desktop", "the change")


@pytest.mark.proof
async def test_leaving_the_dialog_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with _settings(tmp_path, monkeypatch) as board:
        await _go(board, "worker.max_running")
        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, SettingDialog), "the dialog")
        await board.press("9", "escape")

        await board.until(lambda: isinstance(board.app.screen, SettingsScreen), "the settings")
        assert _value(board, "worker.max_running") == ("4", "default")


async def test_a_search_narrows_the_rows_and_says_when_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _settings(tmp_path, monkeypatch) as board:
        await board.press("slash", *"quiet")
        await board.until(lambda: [row.key for row in _table(board).rows] == ["notifications.quiet_hours"], "the row")
        await board.press(*"zzz")
        await board.until(lambda: "nothing has these words" in screen_text(board.app), "the words")
        await board.press("escape")

        await board.until(lambda: len(_table(board).rows) > 20, "all rows")


async def test_a_settings_file_that_is_damaged_is_told_on_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch, size=(120, 40)) as board:
        file = board.app.paths.settings_file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("[worker")
        await board.press("7")

        await board.until(lambda: "they cannot be read" in screen_text(board.app), "what is wrong")


@pytest.mark.proof
async def test_a_theme_is_chosen_from_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with _settings(tmp_path, monkeypatch) as board:
        await _go(board, "app.theme")
        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, MenuDialog), "the list")
        await board.press("j", "enter")
        await board.until(lambda: _value(board, "app.theme") == ("agentmon-light", "set here"), "the theme")
