from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import UsageError
from agentmon.services.statusline_setup import SetupChange, claude_settings_file, install, remove

if TYPE_CHECKING:
    from pathlib import Path

OWN = "agentmon statusline"
ODD = """\ufeff{
\t"model" : "opus",  "number": 1.50e+3, "model": "haiku",
\t"statusLine": {"padding": 0, "type":"command",
\t\t"command": "~/.claude/line.sh --name 'it\\u00e9s'", "refreshInterval": 5 },
\t"hooks" : { "statusLine": {"command": "no"} }
}
"""


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    return tmp_path / "settings.json"


def command_in(settings_file: Path) -> str:
    told = json.loads(settings_file.read_text("utf-8-sig"))
    assert told["statusLine"]["type"] == "command"
    command: str = told["statusLine"]["command"]
    return command


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({"HOME": "/home/ada"}, "/home/ada/.claude/settings.json"),
        ({"HOME": "/home/ada", "CLAUDE_CONFIG_DIR": "/srv/claude"}, "/srv/claude/settings.json"),
    ],
)
def test_the_settings_are_those_of_claude_code(environ: dict[str, str], place: str) -> None:
    assert str(claude_settings_file(environ)) == place


def test_missing_settings_are_made(tmp_path: Path) -> None:
    settings_file = tmp_path / "deep" / "settings.json"

    outcome = install(settings_file, OWN)

    assert command_in(settings_file) == OWN
    assert (outcome.change, outcome.chained_command, outcome.backup_file) == (SetupChange.INSTALLED, "", "")
    assert settings_file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{ }\n",
        '{"model": "opus"}',
        '{\n  "model": "opus",\n  "env": {"A": "}"}\n}\n',
        '{\r\n    "model": "opus"\r\n}\r\n',
        ODD,
    ],
)
def test_taking_it_out_again_leaves_the_file_as_it_was(settings_file: Path, text: str) -> None:
    settings_file.write_bytes(text.encode())

    install(settings_file, OWN)
    between = settings_file.read_bytes()
    remove(settings_file)

    assert OWN in command_in_text(between)
    assert json.loads(settings_file.read_text("utf-8-sig")) == json.loads(text.removeprefix("\ufeff"))
    if "statusLine" not in text and text.strip("{} \n"):
        assert settings_file.read_bytes() == text.encode()


def command_in_text(content: bytes) -> str:
    command: str = json.loads(content.decode("utf-8-sig"))["statusLine"]["command"]
    return command


def test_the_line_that_was_there_is_chained_and_all_else_stays(settings_file: Path) -> None:
    settings_file.write_bytes(ODD.encode())

    outcome = install(settings_file, OWN)

    own = "~/.claude/line.sh --name 'ités'"
    assert outcome.chained_command == own
    assert command_in(settings_file) == OWN + " --then '~/.claude/line.sh --name '\"'\"'ités'\"'\"''"
    before, _, behind = ODD.partition(json.dumps(own))
    changed = settings_file.read_bytes().decode()
    assert changed.startswith(before)
    assert changed.endswith(behind)
    assert (settings_file.parent / "settings.json.before-agentmon").read_bytes() == ODD.encode()


def test_a_second_time_changes_nothing(settings_file: Path) -> None:
    settings_file.write_text(ODD.removeprefix("\ufeff"))
    install(settings_file, OWN)
    content = settings_file.read_bytes()

    outcome = install(settings_file, "/elsewhere/agentmon statusline")

    assert (outcome.change, outcome.backup_file) == (SetupChange.ALREADY_INSTALLED, "")
    assert settings_file.read_bytes() == content


def test_no_copy_is_written_over_another(settings_file: Path) -> None:
    settings_file.write_text("{}")
    first = install(settings_file, OWN).backup_file
    second = remove(settings_file).backup_file

    assert first != second
    assert (settings_file.parent / first).read_text() == "{}"


def test_links_and_modes_stay(settings_file: Path, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.json"
    target.write_text('{"model": "opus"}')
    target.chmod(0o640)
    settings_file.symlink_to(target)

    install(settings_file, OWN)

    assert settings_file.is_symlink()
    assert command_in(target) == OWN
    assert target.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "text",
    [
        '{"model": ',
        "[]",
        '"text"',
        '{"a": 1,}',
        '{"statusLine": {"type": "static"}}',
        '{"statusLine": 7}',
        '{"statusLine": null}',
        '{"statusLine": {"command": 5}}',
        "// comment\n{}",
        pytest.param("[" * 100_000, id="deep"),
    ],
)
def test_what_is_damaged_or_of_another_kind_is_refused_untouched(settings_file: Path, text: str) -> None:
    settings_file.write_text(text)

    with pytest.raises(UsageError, match=r"settings\.json"):
        install(settings_file, OWN)

    assert settings_file.read_text() == text
    assert list(settings_file.parent.glob("*settings*")) == [settings_file]


def test_settings_that_are_no_text_are_refused(settings_file: Path) -> None:
    settings_file.write_bytes(b'{"a": "\xff"}')

    with pytest.raises(UsageError, match="cannot be read"):
        install(settings_file, OWN)


def test_the_line_of_somebody_else_is_not_taken_out(settings_file: Path) -> None:
    text = '{"statusLine": {"type": "command", "command": "ccusage statusline"}}'
    settings_file.write_text(text)

    outcome = remove(settings_file)

    assert outcome.change is SetupChange.NOT_INSTALLED
    assert settings_file.read_text() == text
