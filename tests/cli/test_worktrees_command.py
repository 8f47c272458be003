from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.workspaces.worktree_place import a_repository, commit, git, write

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


def _repository(cli: CommandLine) -> Path:
    """Return the repository that the tests of this file share."""
    if not (cli.workspace / ".git").exists():
        a_repository(cli.workspace)
    return cli.workspace


def _states(cli: CommandLine, *numbers: str) -> list[Any]:
    """Return what is told of the worktrees of these tasks."""
    told = cli("worktrees", "--json").document()
    return [one for one in told if str(one["worktree"]["task_number"]) in numbers]


def _made(cli: CommandLine, *argv: str, title: str = "Mend the door") -> str:
    """Return the number of a task that has run in a worktree of its own."""
    _repository(cli)
    number = cli.add(title, "--isolation", "worktree", "--command", " ".join(argv) or "true")
    ran = cli("run", number, "--wait")
    assert ran.code == 0, ran.stderr
    return number


@pytest.mark.proof
def test_worktrees_are_listed_opened_and_removed(cli: CommandLine) -> None:
    assert cli("worktrees", "--json").document() == []
    number = _made(cli)
    shown = cli("task", "show", number, "--json").document()
    (state,) = _states(cli, number)
    listed = cli("worktrees").stdout
    path = cli("worktrees", "open", number).stdout.strip()
    removed = cli("worktrees", "remove", number, "--json").document()

    assert state["worktree"]["path"] == path == shown["worktree"]["path"] == removed["worktree"]["path"]
    assert (state["ahead"], state["behind"], state["losses"], state["is_in_use"]) == (0, 0, [], False)
    assert state["size_bytes"] > 0
    assert f"#{number}" in listed
    assert state["worktree"]["branch"] in listed
    assert shown["input_context"]["isolation"] == "worktree"
    assert not Path(path).exists()
    assert _states(cli, number) == []
    assert cli("worktrees", "open", number).code == 2


@pytest.mark.proof
def test_what_would_be_lost_is_named_and_confirmed_by_the_name_of_the_branch(cli: CommandLine) -> None:
    number = _made(cli)
    tree = Path(cli("worktrees", "open", number).stdout.strip())
    write(tree, work="1")
    commit(tree, "the work")
    write(tree, notes="2")
    branch = git(tree, "rev-parse", "--abbrev-ref", "HEAD")

    refused = cli("worktrees", "remove", number)
    wrong = cli("worktrees", "remove", number, "--confirm", "yes")
    pruned = cli("worktrees", "prune", "--json").document()
    kept = (tree / "notes").exists()
    removed = cli("worktrees", "remove", number, "--confirm", branch, "--json").document()

    assert (refused.code, wrong.code, pruned) == (1, 1, [])
    assert "notes" in refused.stderr
    assert "the work" in refused.stderr
    assert kept
    assert git(cli.workspace, "log", "--format=%s", "-1", removed["kept_ref"]) == "the work"


@pytest.mark.proof
def test_a_deleted_task_and_a_reset_board_keep_its_work(cli: CommandLine) -> None:
    number = _made(cli)
    tree = Path(cli("worktrees", "open", number).stdout.strip())
    write(tree, work="1")
    commit(tree, "one")
    write(tree, work="2")

    cli("task", "delete", number, "--yes")
    cli("task", "delete", number)
    pruned = cli("worktrees", "prune", "--json").document()

    assert pruned == []
    assert (tree / "work").read_text() == "2"
    (state,) = _states(cli, number)
    assert {loss["kind"] for loss in state["losses"]} == {"uncommitted", "commits"}


@pytest.mark.proof
def test_prune_takes_what_is_closed_and_has_nothing_of_its_own(cli: CommandLine) -> None:
    clean, dirty = _made(cli), _made(cli, title="Paint it")
    write(Path(cli("worktrees", "open", dirty).stdout.strip()), work="1")
    gone = _made(cli, title="Sell it")
    shutil.rmtree(cli("worktrees", "open", gone).stdout.strip())

    planned = cli("worktrees", "prune", "--dry-run", "--json").document()
    pruned = cli("worktrees", "prune", "--json").document()
    left = _states(cli, clean, dirty, gone)

    assert [str(one["worktree"]["task_number"]) for one in planned] == [clean, gone]
    assert [one["worktree"]["id"] for one in pruned] == [one["worktree"]["id"] for one in planned]
    assert [str(one["worktree"]["task_number"]) for one in left] == [dirty]
    assert f"{gone}-sell-it" not in git(cli.workspace, "worktree", "list", "--porcelain")


@pytest.mark.proof
def test_a_command_in_a_worktree_is_about_the_workspace_of_its_task(cli: CommandLine) -> None:
    number = _made(cli)
    tree = cli("worktrees", "open", number).stdout.strip()

    shown = cli("task", "show", number, "-C", tree, "--json").document()

    assert shown["title"] == "Mend the door"
    assert len(cli("workspaces", "--json").document()) == 1


@pytest.mark.proof
def test_the_base_and_the_place_of_a_run_can_be_chosen_for_it_alone(cli: CommandLine) -> None:
    git(_repository(cli), "tag", "v1")
    write(cli.workspace, more="1")
    commit(cli.workspace, "second")
    number = cli.add("It", "--command", "ls")

    ran = cli("run", number, "--isolation", "worktree", "--base", "v1", "--wait")
    (state,) = _states(cli, number)
    wrong = cli("run", number, "--base=--all")
    plain = cli.add("Plain", "--command", "ls")
    (cli.workspace / "elsewhere").mkdir()
    nowhere = cli("run", cli.add("No", "--command", "ls", "--dir", "/"), "--isolation", "worktree")

    assert ran.code == 0
    assert state["worktree"]["base_commit"] == git(cli.workspace, "rev-parse", "v1")
    assert not Path(state["worktree"]["path"], "more").exists()
    assert (wrong.code, nowhere.code) == (2, 2)
    assert cli("run", plain, "--wait").code == 0
    assert _states(cli, plain) == []


@pytest.mark.proof
def test_one_whose_folder_vanished_is_restored_with_the_files_that_were_seen_there(cli: CommandLine) -> None:
    number = _made(cli, "sh", "-c", "'echo kept > kept'", title="Vanish")
    path = Path(cli("worktrees", "open", number).stdout.strip())
    there = cli("worktrees", "restore", number)
    shutil.rmtree(path)
    gone = cli("worktrees").stdout
    restored = cli("worktrees", "restore", number, "--json").document()
    told = [event["event_type"] for event in cli("audit", "--json").document()]

    assert there.code == 1
    assert "folder gone" in gone
    assert (restored["paths"], restored["left_alone"], restored["has_snapshot"]) == (["kept"], [], True)
    assert (path / "kept").read_text() == "kept\n"
    assert "worktree_restored" in told


def test_one_is_opened_in_a_shell_or_an_editor(cli: CommandLine) -> None:
    number = _made(cli, title="Open")
    path = Path(cli("worktrees", "open", number).stdout.strip())
    program = cli.workspace.parent / "where"
    program.write_text('#!/bin/sh\necho "$PWD $*"\n')
    program.chmod(0o700)
    shell = cli("worktrees", "open", number, "--shell", environ={"SHELL": str(program)})
    editor = cli("worktrees", "open", number, "--editor", environ={"VISUAL": str(program)})

    assert shell.stdout.split() == [str(path)]
    assert editor.stdout.split() == [str(path), "."]
    assert cli("worktrees", "open", number, "--shell", "--editor").code == 2
