"""``agentmon diff`` and ``undo`` over real runs in a repository."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.cli.changes import change_lines
from agentmon.domain.changes import Artifact, artifact_text
from agentmon.domain.operations import ArtifactKind
from agentmon.services.changes import RunChanges
from tests.workspaces.worktree_place import a_repository, commit, git, write

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


@pytest.mark.proof
def test_two_runs_of_a_task_are_compared(cli: CommandLine) -> None:
    if not (cli.workspace / ".git").exists():
        a_repository(cli.workspace)
    write(cli.workspace, compared="0\n", other="0\n")
    commit(cli.workspace, "files to be changed")
    number = cli.add("Write", "--command", "true")
    for text in ("echo 1 > compared", "echo 2 > compared; echo 2 > other"):
        ran = cli("run", number, "--command", f'sh -c "{text}"', "--wait")
        assert ran.code == 0, ran.stderr

    first = cli("diff", number, "--run", "1").stdout
    between = cli("diff", number, "--run", "2", "--against", "1")
    names = cli("diff", number, "--run", "2", "--against", "1", "--name-only").stdout.split()
    back = cli("diff", number, "--run", "1", "--against", "2", "--json").document()

    assert "-0\n+1\n" in first
    assert "-1\n+2\n" in between.stdout
    assert names == ["compared", "other"]
    assert (back["lines_added"], back["lines_removed"]) == (2, 2)
    assert "-2\n+1\n" in back["patch"]
    assert cli("diff", number, "--against", "9").code != 0

    assert cli("run", number, "--command", "true", "--wait").code == 0
    newest = cli("diff", number, "--name-only")
    assert newest.stdout.split() == names, "one that changed nothing hides no changes"
    assert newest.stderr, "which run it is"
    undone = cli("undo", number, "--dry-run", "--json").document()
    assert [step["path"] for step in undone["steps"]] == names
    git(cli.workspace, "checkout", "-q", ".")


def test_what_was_written_outside_of_git_is_listed_below() -> None:
    made = Artifact(path="/tmp/report.md", kind=ArtifactKind.NOTE, size_bytes=12_000)
    run = RunChanges(
        execution=None,  # type: ignore[arg-type] # not asked
        root=Path("/p"),
        files=(),
        note="",
        snapshots=None,
        is_alone=True,
        artifacts=(made, replace(made, path="/tmp/gone", size_bytes=None)),
    )

    lines = change_lines(run)

    assert len(lines) == 3
    assert all(artifact_text(one) in line for one, line in zip(run.artifacts, lines[1:], strict=True))
