from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input

from agentmon.screens.bindings import TABLES
from agentmon.screens.help import HelpScreen
from agentmon.screens.settings.keymap import Keymap, all_bindings, read_keymap
from agentmon.screens.tasks.task_editor import TaskEditor
from tests.screen_stage import screen_text
from tests.screens.scenes import scene

if TYPE_CHECKING:
    from pathlib import Path


def _read(tmp_path: Path, text: str) -> Keymap:
    file = tmp_path / "keymap.toml"
    file.write_text(text)
    return read_keymap(file)


def test_every_action_has_an_id_of_its_own() -> None:
    ids = [binding.id for table in TABLES.values() for binding in table]

    assert None not in ids
    assert len({str(binding.id) for binding in all_bindings()}) == len(list(all_bindings()))


def test_without_a_file_nothing_is_changed(tmp_path: Path) -> None:
    assert read_keymap(tmp_path / "keymap.toml") == Keymap()


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        ('"board.new" = "ctrl+n"', "ctrl+n"),
        ('board.new = ["f4", "f2", "ctrl + k"]', "f4,f2,ctrl+k"),
        ('board.new = "*"', "asterisk"),
        ('board.new = "ctrl++"', "ctrl+plus"),
        ('board.new = "$"', "dollar_sign"),
        ('board.new = "ins"', "insert"),
        ('board.new = "ф"', "ф"),
        ('board.new = "ctrl+α"', "ctrl+α"),
    ],
)
def test_keys_are_written_as_people_call_them(tmp_path: Path, written: str, keys: str) -> None:
    found = _read(tmp_path, f"[keys]\n{written}\n")

    assert found == Keymap(keys={"board.new": keys})


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ('[keys]\n"bord.new" = "z"', "bord.new is no action; board.new is"),
        ('[keys]\nboard.new = "ctrl+ctrl"', "board.new: 'ctrl+ctrl' is no key"),
        ('[keys]\nboard.new = "strg+n"', "board.new: 'strg+n' is no key; modifiers are ctrl, shift and alt"),
        ("[keys]\nboard.new = 3", "board.new: a key, or a list of keys, is expected, such as ctrl+n"),
        ("[keys]\nboard.new = []", "board.new: a key, or a list of keys, is expected, such as ctrl+n"),
        ('[keys]\nboard.new = "e"', "board.new: e is that of board.edit already"),
        ('[keys]\nboard.new = "q"', "board.new: q is that of app.quit already"),
        ('[keys]\napp.quit = "n"', "app.quit: n is that of board.new already"),
        ('[key]\nboard.new = "e"', "[key] is no table of it; keys stand in [keys]"),
        ("keys = 3", "keys is no table"),
        ("[keys", "it is no TOML"),
    ],
)
def test_what_is_wrong_is_told_and_leaves_the_key_as_it_is(tmp_path: Path, written: str, problem: str) -> None:
    found = _read(tmp_path, written)

    assert found.keys == {}
    assert found.problems[0].startswith(problem)


def test_two_actions_can_change_places(tmp_path: Path) -> None:
    found = _read(tmp_path, '[keys]\nboard.new = "e"\nboard.edit = "n"\n')

    assert found == Keymap(keys={"board.new": "e", "board.edit": "n"})


def test_of_two_changed_actions_on_one_key_one_keeps_it(tmp_path: Path) -> None:
    found = _read(tmp_path, '[keys]\nboard.new = "f4"\nboard.edit = "f4"\n')

    assert len(found.keys) == 1
    assert len(found.problems) == 1


async def test_a_changed_key_works_and_is_shown_in_footer_and_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "agentmon"
    home.mkdir()
    (home / "keymap.toml").write_text('[keys]\nboard.new = "f4"\nboard.nothing = "n"\n')
    async with scene(tmp_path, monkeypatch, size=(120, 40)) as board:
        assert "f4 New" in screen_text(board.app)
        await board.told("board.nothing is no action")
        await board.press("n")
        assert not isinstance(board.app.screen, TaskEditor)

        await board.press("f4")
        await board.until(lambda: isinstance(board.app.screen, TaskEditor), "the editor")
        await board.press("escape")
        await board.press("question_mark")
        await board.until(lambda: isinstance(board.app.screen, HelpScreen), "the help")
        assert "f4  Make a task" in screen_text(board.app)


async def test_a_key_of_another_layout_is_the_one_in_its_place_and_text_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch, size=(120, 40)) as board:
        await board.press("т")
        await board.until(lambda: isinstance(board.app.screen, TaskEditor), "the editor")
        await board.press(*"тут")
        field = board.app.focused
        assert isinstance(field, Input)
        await board.until(lambda: field.value == "тут", "what was typed")
