from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


def _titles(cli: CommandLine, *options: str) -> list[str]:
    return [task["title"] for task in cli("task", "list", "--json", *options).document()]


@pytest.mark.proof
def test_tasks_are_archived_shown_and_brought_back(cli: CommandLine) -> None:
    first, second = cli.add("Archived first", "--command", "true"), cli.add("Archived second")

    told = cli("task", "archive", first, f"#{second}", "9999")

    assert told.code == 1
    assert f"archived #{first} Archived first" in told.stdout
    assert "#9999" in told.stderr
    assert _titles(cli, "--archived") == ["Archived first", "Archived second"]
    assert "Archived first" not in _titles(cli)
    assert "Archived first" not in cli("board").stdout
    assert "Archived first" in cli("board", "--archived").stdout
    assert "is archived" in cli("run", first).stderr
    assert f"agentmon task unarchive {second} brings it back" in cli("task", "move", second, "todo").stderr
    assert cli("task", "show", first, "--json").document()["archived_at"]

    document = cli("task", "unarchive", first, "--json").document()

    assert document["archived_at"] is None
    assert cli("task", "unarchive", second).stdout == f"brought back #{second} Archived second\n"
    assert "Archived first" in _titles(cli)
    assert "archived the task" in cli("task", "history", first).stdout


def test_closed_tasks_are_archived_by_their_age(cli: CommandLine) -> None:
    number, still_open = cli.add("Closed for good"), cli.add("Still open")
    cli("task", "move", number, "done")

    assert cli("task", "archive", "--closed-before", "1d").stderr == "nothing to archive\n"
    document = cli("task", "archive", "--closed-before", "0s", "--json").document()

    assert "Closed for good" in [task["title"] for task in document]
    assert "Still open" in _titles(cli)
    assert "(closed before 0s)" in cli("task", "history", number).stdout
    cli("task", "delete", still_open)


@pytest.mark.parametrize(
    "words", [("task", "archive"), ("task", "archive", "1", "--closed-before", "1d"), ("task", "unarchive")]
)
def test_what_is_archived_has_to_be_said(cli: CommandLine, words: tuple[str, ...]) -> None:
    assert cli(*words).code == 2
    assert "which tasks?" in cli(*words).stderr


@pytest.mark.parametrize(
    ("word", "known"), [("is:nonsense", "is:needs-you"), ("!9", "!1 to !5"), ("is:fai", "is:failed")]
)
def test_a_word_of_a_filter_that_means_nothing_is_told_with_those_that_do(
    cli: CommandLine, word: str, known: str
) -> None:
    told = cli("board", "--filter", f"login {word}")

    assert told.code == 2
    assert f"{word} is no " in told.stderr
    assert known in told.stderr
