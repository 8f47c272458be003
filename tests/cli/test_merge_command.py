from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.workspaces.worktree_place import a_repository, commit, git, write

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine

_NUMBERS = iter(range(1, 1000))


@pytest.fixture
def repository(cli: CommandLine) -> Path:
    """A repository for one test, whose person git knows."""
    (cli.folder / ".gitconfig").write_text("[user]\nname = Ann\nemail = ann@example.org\n")
    return a_repository(cli.folder / f"repository-{next(_NUMBERS)}", a="1\n2\n3\n", b="b\n", gone="g\n")


def _worked(cli: CommandLine, repository: Path, title: str = "Mend the door") -> tuple[str, Path]:
    """Return a task that has run in a worktree, and the worktree."""
    added = cli("task", "add", title, "-C", str(repository), "--isolation", "worktree", "--command", "true", "--json")
    number = str(added.document()["number"])
    ran = cli("run", number, "-C", str(repository), "--wait")
    assert ran.code == 0, ran.stderr
    return number, Path(cli("worktrees", "open", number, "-C", str(repository)).stdout.strip())


def _with_conflict(cli: CommandLine, repository: Path) -> tuple[str, Path]:
    number, tree = _worked(cli, repository)
    write(tree, a="1\nagent\n3\n")
    commit(tree, "work")
    write(repository, a="1\nperson\n3\n")
    commit(repository, "meanwhile")
    return number, tree


def _events(cli: CommandLine, repository: Path, number: str) -> list[str]:
    return [one["event_type"] for one in cli("audit", number, "-C", str(repository), "--json").document()]


def _status(cli: CommandLine, repository: Path, number: str) -> str:
    return str(cli("task", "show", number, "-C", str(repository), "--json").document()["status"])


def _subjects(folder: Path, *words: str) -> list[str]:
    return git(folder, "log", "--format=%s", *words).splitlines()


@pytest.mark.proof
def test_a_branch_is_merged_with_what_is_uncommitted_and_its_card_is_done(cli: CommandLine, repository: Path) -> None:
    number, tree = _worked(cli, repository)
    write(tree, new__file="n\n")
    commit(tree, "the work")
    write(tree, a="1\n2\n3\n4\n")
    (tree / "gone").unlink()
    write(repository, b="local\n", notes="mine\n")
    before = git(repository, "rev-parse", "HEAD")

    planned = cli("merge", number, "-C", str(repository), "--dry-run", "--json").document()
    untouched = git(repository, "rev-parse", "HEAD")
    merged = cli("merge", number, "-C", str(repository), "--json").document()

    assert (planned["is_possible"], planned["files"], untouched) == (True, 3, before)
    assert set(planned["uncommitted"]) == {"a", "gone"}
    assert merged["commit"] == git(repository, "rev-parse", "main")
    assert _subjects(repository, f"{before}..main") == ["Mend the door"]
    assert (repository / "a").read_text() == "1\n2\n3\n4\n"
    assert (repository / "new/file").read_text() == "n\n"
    assert not (repository / "gone").exists()
    assert git(repository, "status", "--porcelain").splitlines() == ["M b", "?? notes"]
    assert (merged["cleaned_up"]["is_removed"], tree.exists()) == (True, False)
    assert _subjects(repository, merged["cleaned_up"]["kept_ref"])[:2] == ["Mend the door", "the work"]
    shown = cli("task", "show", number, "-C", str(repository), "--json").document()
    assert shown["status"] == "done"
    events = cli("audit", number, "-C", str(repository), "--json").document()
    told = next(event["payload"] for event in events if event["event_type"] == "branch_merged")
    assert (told["from"], told["commit"], told["how"]) == (before, merged["commit"], "squash")
    git(repository, "fsck", "--strict")
    assert [path.name for path in cli.paths.merges_dir.iterdir()] == ["lock"]
    assert len(git(repository, "worktree", "list").splitlines()) == 1


@pytest.mark.proof
def test_the_message_is_proposed_from_the_title_with_trailers_and_can_be_given(
    cli: CommandLine, repository: Path
) -> None:
    number, tree = _worked(cli, repository)
    write(tree, new="n\n")
    place = ("-C", str(repository))
    wrong = cli("settings", "merge.trailers", "no trailer")
    cli("settings", "merge.trailers", "Task: {number}; Reviewed-by: Ann <ann@example.org>")
    cli("settings", "merge.how", "merge")

    proposed = cli("merge", number, *place, "--dry-run", "--json").document()
    merged = cli("merge", number, *place, "--message", "Other words\n\nTask: 99", "--json").document()
    cli("settings", "merge.trailers", "--reset")
    cli("settings", "merge.how", "--reset")

    trailers = f"Task: {number}\nReviewed-by: Ann <ann@example.org>"
    assert wrong.code == 2
    assert (proposed["how"], proposed["message"]) == ("merge", f"Mend the door\n\n{trailers}\n")
    assert git(repository, "log", "-1", "--format=%B").startswith("Other words\n\nTask: 99\n\n" + trailers)
    assert len(git(repository, "log", "-1", "--format=%P", merged["commit"]).split()) == 2


@pytest.mark.proof
def test_conflicts_and_local_changes_are_refused_with_the_next_step(cli: CommandLine, repository: Path) -> None:
    number, tree = _with_conflict(cli, repository)
    other, other_tree = _worked(cli, repository, "Paint it")
    write(other_tree, b="painted\n")
    write(repository, b="mine\n")
    place = ("-C", str(repository))

    planned = cli("merge", number, *place, "--dry-run")
    refused = cli("merge", number, *place)
    blocked = cli("merge", other, *place)

    assert (planned.code, refused.code, blocked.code) == (1, 1, 1)
    assert "conflict (contents): a" in planned.stdout
    assert "--solve" in refused.stderr
    assert "b" in blocked.stderr
    assert tree.exists()
    assert (repository / "b").read_text() == "mine\n"
    assert (_status(cli, repository, number), git(other_tree, "status", "--porcelain")) != ("done", "")


@pytest.mark.proof
def test_ignored_files_keep_the_worktree_and_are_named(cli: CommandLine, repository: Path) -> None:
    write(repository, **{".gitignore": "*.log\n"})
    commit(repository, "ignore")
    number, tree = _worked(cli, repository)
    write(tree, new="n\n", **{"run.log": "only here\n"})

    merged = cli("merge", number, "-C", str(repository))

    assert merged.code == 0
    assert "run.log" in merged.stderr
    assert (tree / "run.log").read_text() == "only here\n"
    assert _status(cli, repository, number) == "done"


def test_an_agent_cannot_merge(cli: CommandLine, repository: Path) -> None:
    number, tree = _worked(cli, repository)
    write(tree, new="n\n")
    asked = cli("executions", "--task", number, "-C", str(repository), "--json").document()[0]["id"]
    command = f"agentmon merge {number} -C {repository}"
    assert asked
    refused = cli("merge", number, "-C", str(repository), environ={"AGENTMON_EXECUTION_ID": asked})

    assert refused.code == 1, (refused, command)
    assert (tree / "new").exists()
    assert _subjects(repository) == ["first"]


@pytest.mark.proof
def test_a_merge_is_taken_back_by_a_commit_once(cli: CommandLine, repository: Path) -> None:
    number, tree = _worked(cli, repository)
    write(tree, new="n\n")
    place = ("-C", str(repository))
    early = cli("merge", number, *place, "--undo")
    merged = cli("merge", number, *place, "--json").document()
    twice = cli("merge", number, *place)
    files = cli("undo", number, *place)
    planned = cli("merge", number, *place, "--undo", "--dry-run")
    undone = cli("merge", number, *place, "--undo", "--json").document()
    again = cli("merge", number, *place, "--undo")

    assert (early.code, planned.code, twice.code, again.code) == (2, 0, 2, 1)
    assert "--undo" in twice.stderr
    assert (files.code, f"agentmon merge {number} --undo" in files.stderr) == (1, True)
    assert not (repository / "new").exists()
    assert _subjects(repository) == ['Revert "Mend the door"', "Mend the door", "first"]
    assert merged["commit"] in git(repository, "log", "-1", "--format=%B")
    assert undone["commit"] == git(repository, "rev-parse", "main")
    assert _events(cli, repository, number).count("merge_undone") == 1


@pytest.mark.proof
def test_a_task_without_a_branch_and_one_that_works_are_refused(cli: CommandLine, repository: Path) -> None:
    place = ("-C", str(repository))
    plain = str(cli("task", "add", "Plain", *place, "--command", "true", "--json").document()["number"])
    added = cli("task", "add", "Long", *place, "--isolation", "worktree", "--command", "sleep 600", "--json")
    busy = str(added.document()["number"])
    cli("run", plain, *place, "--wait")
    cli("run", busy, *place)

    refused = [cli("merge", number, *place, *more) for number in (plain, busy) for more in ((), ("--dry-run",))]
    cli("stop", busy, *place)

    assert [one.code for one in refused] == [2, 2, 1, 1]
    assert f"agentmon stop {busy}" in refused[2].stderr
    assert cli("merge", "9999", *place).code == 2
    assert cli("merge", plain, *place, "--undo", "--how", "squash").code == 2


@pytest.mark.proof
def test_a_killed_merge_is_finished_at_the_next_start_and_said(cli: CommandLine, repository: Path) -> None:
    number, tree = _worked(cli, repository)
    write(tree, new="n\n")
    hook = repository / ".git" / "hooks" / "reference-transaction"
    # Killed when the base has moved, and its files have not.
    hook.write_text(
        '#!/bin/sh\nread -r old new ref\n[ "$1 $ref" = "committed refs/heads/main" ] || exit 0\n'
        'rm "$0"; kill -9 $(ps -o ppid= -p $PPID)\n'
    )
    hook.chmod(0o755)

    killed = cli.run_alone("merge", number, "-C", str(repository))
    is_half = not (repository / "new").exists() and _subjects(repository)[0] == "Mend the door"
    other = cli("merge", number, "-C", str(repository))

    assert (killed.code, is_half) == (-9, True)
    assert other.code in {1, 2}
    assert (repository / "new").read_text() == "n\n"
    assert git(repository, "status", "--porcelain") == ""
    assert _status(cli, repository, number) == "done"
    events = cli("audit", number, "-C", str(repository), "--json").document()
    causes = [one["payload"].get("cause") for one in events if one["event_type"] == "branch_merged"]
    assert len(causes) == 1
    assert causes[0]
    assert not tree.exists()
