from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.store.moments import moment_text
from tests.cli.stored_rows import change_rows

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command_lines import CommandLine


def test_the_agents_are_listed_with_and_without_a_word(cli: CommandLine) -> None:
    plain = cli("agents")
    named = cli("agents", "list")

    assert plain.stdout == named.stdout
    assert cli("agents", "--json").document() == cli("agents", "list", "--json").document()
    assert plain.stdout.splitlines()[0].split() == ["SLUG", "NAME", "TYPE", "LIMIT", "CAPABILITIES"]


def test_a_limit_is_set_and_shown(cli: CommandLine) -> None:
    told = cli("agents", "limit", "sh", "2")
    listed = cli("agents").stdout
    without = cli("agents", "limit", "sh", "0", "--json").document()

    assert told.stdout == "sh: 2 at one time\n"
    assert "  2  " in next(line for line in listed.splitlines() if line.startswith("sh "))
    assert without["max_concurrent"] == 0


def test_a_parked_agent_says_until_when_and_why_and_is_released(cli: CommandLine) -> None:
    cli("agents")
    change_rows(
        cli,
        "UPDATE agents SET parked_until = ?, park_reason = 'failures', park_note = ? WHERE slug = 'sh'",
        moment_text(datetime.now(UTC) + timedelta(minutes=5)),
        "its last 5 runs failed",
    )
    number = cli.add("of a parked agent", "--agent", "sh", "--with", "script", "--arg", "script=true")

    listed = cli("agents").stdout
    queued = cli("run", number)
    released = cli("agents", "release", "sh")
    again = cli("agents", "release", "sh")

    assert "parked until " in next(line for line in listed.splitlines() if line.startswith("sh "))
    assert queued.stdout.startswith(f"{number} ⏸ parked until ")
    assert ": its last 5 runs failed" in queued.stdout
    assert released.stdout == "sh starts again\n"
    assert (again.code, again.stdout) == (1, "")
    assert "not parked" in again.stderr


def test_the_tools_of_an_ai_agent_are_set_shown_and_given_back(cli: CommandLine, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}

    untouched = cli("agents", "tools", "claude", environ=path)
    told = cli("agents", "tools", "claude", "--deny", "WebFetch", "--allow", "Bash(git log:*)", environ=path)
    back = cli("agents", "tools", "claude", "--reset", "WebFetch", "--json", environ=path).document()

    assert "as they are" in untouched.stdout
    assert [line.split(maxsplit=1)[0] for line in told.stdout.splitlines()[1:]] == ["Bash(git", "WebFetch"]
    assert back["tools"] == {"Bash(git log:*)": True}
    assert "changed claude" in cli("audit", "--all", environ=path).stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("release", "nobody"), "there is no agent nobody"),
        (("tools", "sh", "--deny", "Bash"), "cannot be told which of its tools"),
        (("tools", "sh", "--deny", "Bash", "--allow", "Bash"), "named twice"),
        (("limit", "nobody", "1"), "there is no agent nobody"),
        (("limit", "sh", "many"), "valid integer"),
        (("limit", "sh"), "N"),
        (("nonsense",), "nonsense"),
    ],
)
def test_wrong_words_about_agents_are_told(cli: CommandLine, words: tuple[str, ...], sentence: str) -> None:
    ended = cli("agents", *words)

    assert (ended.code, ended.stdout) == (2, "")
    assert sentence in ended.stderr
