from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.store.moments import moment_text
from tests.cli.stored_rows import change_rows

if TYPE_CHECKING:
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


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("release", "nobody"), "there is no agent nobody"),
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
