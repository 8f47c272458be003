"""``agentmon search``: what was found with the command that shows it, quickly, with grep's exit codes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


@pytest.fixture(scope="module")
def searched(cli: CommandLine) -> CommandLine:
    """A home with two tasks, one of which has run."""
    assert cli("task", "add", "mend the zebra crossing").code == 0
    command = "printf 'one\\ntwo\\na \\033[1mze\\033[0mbra ran\\n'"
    assert cli("task", "add", "stripes", "--command", command).code == 0
    ran = cli("run", "2", "--wait")
    assert ran.code == 0, ran.stderr
    return cli


def test_hits_come_by_kind_with_the_command_that_shows_them(searched: CommandLine) -> None:
    lines = searched("search", "zebra").stdout.splitlines()

    assert lines[0] == "tasks (1)"
    assert lines[1].startswith("  agentmon task show 1  todo, ")
    assert lines[3] == "logs (1)"
    assert lines[4].split("  ")[1].startswith("agentmon log 2 --execution ")
    assert "line 3, byte 8, " in lines[4]
    assert lines[4].endswith("a zebra ran")
    assert searched(*lines[1].split("  ")[1].split()[1:]).code == 0
    assert "a zebra ran" in searched(*lines[4].split("  ")[1].split()[1:]).stdout


def test_the_document_has_the_same(searched: CommandLine) -> None:
    document = searched("search", "--json", "zebra ran", "--in", "logs").document()

    assert document["found"] == 1
    (group,) = document["kinds"]
    (hit,) = group["hits"]
    assert (group["kind"], hit["line"], hit["offset"], hit["text"]) == ("logs", 3, 8, "a zebra ran")
    assert [hit["text"][start:end] for start, end in hit["marks"]] == ["zebra", "ran"]
    assert hit["execution_id"] in hit["command"]


def test_nothing_found_is_exit_code_1_and_wrong_usage_2(searched: CommandLine) -> None:
    nothing = searched("search", "quagga")

    assert (nothing.code, nothing.stdout) == (1, "")
    assert "--all" in nothing.stderr
    assert searched("search", "zebra", "--in", "tasks,foo").code == 2
    assert searched("search", "zebra", "-n", "0").code == 2
    assert searched("search", "  ").code == 2
    assert searched("search", "zebra", "-C", "/no/such/folder").code == 2


def test_other_workspaces_are_searched_when_asked_for(searched: CommandLine) -> None:
    elsewhere = searched.folder / "elsewhere"
    elsewhere.mkdir()

    assert searched("search", "zebra", folder=elsewhere).code == 1
    found = searched("search", "--all", "zebra", folder=elsewhere)
    assert f"agentmon task show 1 -C {searched.workspace}" in found.stdout
    assert searched("search", "zebra", "-C", str(searched.workspace), folder=elsewhere).code == 0


def test_the_worker_takes_up_rows_and_the_log(searched: CommandLine) -> None:
    def has_taken_up() -> bool:
        with closing(sqlite3.connect(searched.paths.database_path)) as connection:
            questions = ("FROM log_pieces", "WHERE NOT EXISTS (SELECT 1 FROM unindexed_tasks)")
            return all(connection.execute(f"SELECT EXISTS (SELECT 1 {one})").fetchone()[0] for one in questions)

    assert searched("worker", "--status").code == 0
    wait_for(has_taken_up)

    assert "line 3, byte 8" in searched("search", "zebra").stdout
