"""Every file that a person writes is read alike, whatever their editor leaves around the text."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from agentmon.cli.agent_argument import schema_from
from agentmon.domain.errors import AgentmonError
from agentmon.paths import find_paths
from agentmon.runners.agent_files import read_agents_text, read_workspace_file
from agentmon.runners.danger import read_danger_rules
from agentmon.runners.presets import load_library
from agentmon.runners.screens.rules import find_agent_rules
from agentmon.runners.text_editor import LentFile
from agentmon.screens.settings.keymap import read_keymap
from agentmon.screens.settings.own_themes import read_own_theme
from agentmon.settings import WorkerSettings, load_settings
from agentmon.store.look_setting import find_look
from agentmon.store.money_setting import find_money_words
from agentmon.usage.prices.book import PriceBook
from agentmon.workspaces.worktree_filling import bring_along

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.command_lines import CommandLine

_AGENT = (
    '[[agent]]\nslug = "mine"\nname = "Mine"\nbinary = "mine"\n'
    '[[agent.capability]]\nkey = "k"\nlabel = "K"\ncommand_tokens = ["a"]\n'
)
_RULE = '[[rule]]\nprograms = ["make"]\nlevel = 3\nreason = "builds the rocket"\n'


def _of_settings(file: Path) -> object:
    return load_settings(WorkerSettings, file, {}).max_running


def _of_keymap(file: Path) -> object:
    keymap = read_keymap(file)
    if keymap.problems:
        raise ValueError(f"{file}: {keymap.problems[0]}")
    return keymap.keys


def _of_presets(file: Path) -> object:
    library = load_library(file.parent)
    if library.problems:
        raise ValueError(library.problems[0].message)
    return [(one.slug, one.binary) for one in library.presets if one.is_own]


def _of_prices(file: Path) -> object:
    book = PriceBook(file)
    if book.problems:
        raise ValueError(f"{book.problems[0].where}: {book.problems[0].what}")
    return [entry.model for entry in book.sources.own.entries]


def _of_project(file: Path) -> object:
    found = read_workspace_file(str(file.parent.parent))
    assert found is not None
    return [agent.slug for agent in read_agents_text(found.text, place=str(file))]


def _of_worktree_include(file: Path) -> object:
    subprocess.run(["git", "init", "-q", str(file.parent)], check=True)
    (file.parent / ".gitignore").write_text("*.env\n")
    said: list[str] = []
    tree = file.parent / "tree"
    tree.mkdir()
    (file.parent / "data.env").write_text("KEY=1")
    bring_along(tree, file.parent, say=said.append)
    if any("warning" in line for line in said):
        raise ValueError(f"{file}: {said}")
    return [one.name for one in tree.iterdir()]


_FILES = {
    "config.toml": ("[worker]\nmax_running = 3\n", _of_settings),
    "keymap.toml": ('[keys]\n"board.new" = "ctrl+b"\n', _of_keymap),
    "danger.toml": (_RULE, lambda file: read_danger_rules(file, is_own=True)),
    "prices.toml": ('[[price]]\nmodel = "own"\ninput = 1\noutput = 2\n', _of_prices),
    "themes/pink.toml": (
        'base = "light"\nprimary = "#aa00aa"\n',
        lambda file: read_own_theme(file.parent, file.stem).primary,
    ),
    "presets/mine.toml": (_AGENT, _of_presets),
    "screens/mine.toml": (
        'agent = "mine"\nbox_hints = ["type here"]\n',
        lambda file: [hint.pattern for hint in find_agent_rules("mine", "mine", own_folder=file.parent).box_hints],
    ),
    ".agentmon/agents.toml": (_AGENT, _of_project),
    ".worktreeinclude": ("*.env\n", _of_worktree_include),
    "schema.json": ('{\n"type": "object"\n}\n', lambda file: schema_from(str(file))),
    "draft.md": ("One\nTwo\n", lambda file: LentFile(path=file, first_text="").read()),
}


@pytest.mark.parametrize("name", _FILES)
@pytest.mark.parametrize(
    "written",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.encode() + b"\0",
        lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() + b"\0\0",
    ],
    ids=["mark", "crlf", "zero", "all"],
)
def test_what_an_editor_leaves_around_the_text_changes_nothing(
    tmp_path: Path, name: str, written: Callable[[str], bytes]
) -> None:
    text, read = _FILES[name]
    plain, other = (tmp_path / place / name for place in ("plain", "other"))
    for file, content in ((plain, text.encode()), (other, written(text))):
        file.parent.mkdir(parents=True)
        file.write_bytes(content)

    expected = read(plain)

    assert expected
    assert read(other) == expected


@pytest.mark.parametrize("name", _FILES)
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-16-le", "utf-32"])
def test_another_encoding_is_named_with_the_file(tmp_path: Path, name: str, encoding: str) -> None:
    text, read = _FILES[name]
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode(encoding))

    with pytest.raises((AgentmonError, ValueError)) as refused:
        read(file)

    told = f"{refused.value} {getattr(refused.value, 'hint', '')}"
    assert encoding[:6].upper() in told
    assert file.name in told


def test_settings_with_a_mark_are_those_of_every_reader(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b'\xef\xbb\xbf[app]\r\nascii = true\r\n[costs]\r\ncurrency = "EUR"\r\nexchange_rate = "0.9"\r\n\0')

    assert find_look(tmp_path / "none.db", file, {}).ascii
    assert find_money_words(str(file), {})["currency"] == "EUR"


def test_commands_work_with_files_of_any_editor(cli: CommandLine) -> None:
    paths = find_paths(cli.environ)
    mark = b"\xef\xbb\xbf"
    (paths.config_dir / "templates").mkdir(parents=True)
    paths.settings_file.write_bytes(mark + b"[worker]\r\nmax_running = 3\r\n")
    paths.danger_rules_file.write_bytes(mark + _RULE.encode())
    (paths.config_dir / "templates" / "fix.toml").write_bytes(mark + b'title = "Fix it"\r\n\0')
    agents = cli.folder / "agents.toml"
    agents.write_bytes(mark + _AGENT.replace("\n", "\r\n").encode())

    assert cli("board").code == 0
    assert cli("costs").code == 0
    assert {one["key"]: one["value"] for one in cli("settings", "--json").document()}["worker.max_running"] == 3
    assert cli("danger", "make", "--json").document()["level"] == 3
    assert [one["name"] for one in cli("template", "list", "--json").document()["templates"]] == ["fix"]
    assert cli("agents", "import", str(agents), "--dry-run").code == 0


def test_what_is_piped_in_is_read_like_a_file(cli: CommandLine) -> None:
    imported = cli("agents", "import", "-", "--dry-run", standard_input="\ufeff" + _AGENT.replace("\n", "\r\n"))
    added = cli("add", "-", "--json", standard_input="\ufeffFix it\r\n\0")

    assert imported.code == 0
    assert json.loads(added.stdout)["title"] == "Fix it"
