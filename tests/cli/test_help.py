"""The list of commands: in groups, each command once, with a sentence that is whole."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentmon.cli.app import _GROUPS
from agentmon.cli.names import COMMAND_NAMES

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


def test_every_command_is_listed_once_in_a_group_with_a_whole_sentence(cli: CommandLine) -> None:
    shown = cli("--help", environ={"COLUMNS": "80"}).stdout
    listed = re.findall(r"^  ([a-z][a-z-]*)  +([A-Z].*)$", shown, re.MULTILINE)

    assert sorted(name for name, _ in listed) == sorted(COMMAND_NAMES)
    assert [text for _, text in listed if not text.endswith(".") or text.endswith("...")] == []
    assert [name for names in _GROUPS.values() for name in names.split()] == [name for name, _ in listed]
    assert max(map(len, shown.splitlines())) <= 80


def test_a_shell_is_told_how_a_line_may_go_on(cli: CommandLine) -> None:
    def completed(line: str, place: int) -> list[str]:
        asked = {"_AGENTMON_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(place)}
        return cli(environ=asked).stdout.split()

    assert completed("agentmon ta", 1) == ["task"]
    assert {"add", "list", "show"} <= set(completed("agentmon task ", 2))
    assert "--wait" in completed("agentmon run --", 2)
