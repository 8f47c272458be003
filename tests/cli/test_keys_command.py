from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.paths import find_paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.command_lines import CommandLine


@pytest.fixture
def keymap(cli: CommandLine) -> Iterator[Path]:
    file = Path(cli("keys", "--json").document()["file"])
    assert file == find_paths({**os.environ, **cli.environ}).keymap_file
    file.parent.mkdir(parents=True, exist_ok=True)
    yield file
    file.unlink(missing_ok=True)


def test_every_key_is_listed_with_its_id_and_what_it_does(cli: CommandLine) -> None:
    told = cli("keys", "board")

    assert told.code == 0
    assert "  n                      board.new                Make a task in the Todo column." in told.stdout
    assert "Executions" not in told.stdout


def test_what_the_file_changes_is_marked_and_what_is_wrong_in_it_is_told(cli: CommandLine, keymap: Path) -> None:
    keymap.write_text('[keys]\nboard.new = "ctrl+b"\nboard.edit = "r"\n')

    told = cli("keys", "board")
    document = json.loads(cli("keys", "board", "--json").stdout)

    assert told.code == 1
    assert "* ctrl+b                 board.new" in told.stdout
    assert f"warning: {keymap}: board.edit: r is that of board.run already" in told.stderr
    changed = [one for one in document["keys"] if one["is_changed"]]
    assert [(one["id"], one["keys"]) for one in changed] == [("board.new", ["ctrl+b"])]


def test_an_unknown_screen_names_the_known_ones(cli: CommandLine) -> None:
    refused = cli("keys", "cellar")

    assert refused.code == 2
    assert "screens are: Everywhere, Board" in refused.stderr
