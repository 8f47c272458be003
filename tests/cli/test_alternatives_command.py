"""Several agents do one task: ``run --also``, ``diff --against-task`` and ``task let-go``."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.workspaces.worktree_place import a_repository

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


@pytest.fixture(scope="module")
def place(cli: CommandLine) -> tuple[str, str]:
    """A repository in which two agents may work, each in its own way."""
    (cli.folder / ".gitconfig").write_text("[user]\nname = Ann\nemail = ann@example.org\n")
    repository = a_repository(cli.folder / "repository")
    for slug in ("anna", "bert"):
        program = cli.folder / slug
        program.write_text(f"#!/bin/sh\necho {slug} > made\n")
        program.chmod(0o755)
        added = cli("agents", "add", str(program))
        assert added.code == 0, added.stderr
    with closing(sqlite3.connect(cli.paths.database_path)) as connection, connection:
        connection.execute("UPDATE agents SET tool_type = 'ai-agent' WHERE slug IN ('anna', 'bert')")
    return ("-C", str(repository))


def _added(cli: CommandLine, place: tuple[str, str], *words: str) -> str:
    return str(cli("task", "add", "Mend it", "--agent", "anna", *place, *words, "--json").document()["number"])


@pytest.mark.proof
def test_both_do_it_and_are_compared_and_one_is_taken(cli: CommandLine, place: tuple[str, str]) -> None:
    number = _added(cli, place)
    ran = cli("run", number, "--also", "bert", *place, "--wait", "--json")
    shown = cli("task", "show", number, *place, "--json").document()["alternatives"]
    other = str(shown[1]["number"])
    text = cli("task", "show", other, *place).stdout
    patch = cli("diff", number, "--against-task", other, *place).stdout
    stat = cli("diff", number, "--against-task", other, "--against", "1", *place, "--json").document()
    early = cli("task", "let-go", number, *place)
    merged = cli("merge", other, *place)
    left = cli("task", "let-go", other, *place, "--json")
    again = cli("task", "let-go", number, *place)

    assert ran.code == 0, ran.stderr
    assert [one["task_id"] for one in ran.document()] == [one["task_id"] for one in shown]
    assert [one["agent_slug"] for one in shown] == ["anna", "bert"]
    assert [one["status"] for one in shown] == ["review", "review"]
    assert [one["changed_files"] for one in shown] == [1, 1]
    assert text.count("Review") == 3, "its own column, and that of each"
    assert "-bert\n+anna\n" in patch
    assert (stat["lines_added"], stat["lines_removed"]) == (1, 1)
    assert early.code != 0
    assert f"merge {number}" in early.stderr
    assert f"task let-go {other}" in merged.stderr
    assert [(one["number"], one["status"]) for one in left.document()] == [(int(number), "cancelled")]
    assert again.code != 0
    assert Path(cli("worktrees", "open", number, *place).stdout.strip(), "made").exists()


def test_moving_one_to_done_says_what_lets_the_others_go(cli: CommandLine, place: tuple[str, str]) -> None:
    number = _added(cli, place)
    cli("run", number, "--also", "anna", *place, "--wait")
    moved = cli("task", "move", number, "done", *place)

    assert f"task let-go {number}" in moved.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--also", "git"),
        ("--also", "nobody"),
        ("--also", "bert", "--isolation", "folder"),
        ("--also", "bert", "--resume", "--message", "go on"),
        ("1", "--also", "bert"),
    ],
)
def test_what_several_cannot_do_is_refused_and_makes_no_card(
    cli: CommandLine, place: tuple[str, str], words: tuple[str, ...]
) -> None:
    number = _added(cli, place)
    refused = cli("run", number, *words, *place)
    shown = cli("task", "show", number, *place, "--json").document()

    assert refused.code != 0
    assert "hint:" in refused.stderr
    assert shown["alternatives"] == []
    assert shown["executions"] == []


@pytest.mark.usefixtures("place")
def test_outside_of_a_repository_the_next_step_is_named(cli: CommandLine) -> None:
    plain = cli.folder / "plain"
    plain.mkdir()
    number = _added(cli, ("-C", str(plain)))
    refused = cli("run", number, "--also", "bert", "-C", str(plain))

    assert refused.code != 0
    assert "git init" in refused.stderr


def test_a_request_under_a_key_is_done_once(cli: CommandLine, place: tuple[str, str]) -> None:
    number = _added(cli, place)
    first = cli("run", number, "--also", "bert", "--key", "k-1", *place, "--json").document()
    again = cli("run", number, "--also", "bert", "--key", "k-1", *place, "--wait", "--json").document()

    assert [one["id"] for one in again] == [one["id"] for one in first]
    assert len(cli("task", "show", number, *place, "--json").document()["alternatives"]) == 2
