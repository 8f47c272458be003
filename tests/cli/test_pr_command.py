from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.workspaces.worktree_place import a_repository, commit, git, write

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine

_NUMBERS = iter(range(1, 1000))
_FAKE = """#!/bin/sh
printf '%s\\n' "$@" --end-- >> {folder}/arguments
case "$2" in
view) [ -e {folder}/view ] || {{ echo 'no pull requests found' >&2; exit 1; }}; cat {folder}/view;;
create) echo 'Creating pull request' >&2; echo {url};;
esac
"""


class _Forge:
    """A program of a forge that writes down how it is called."""

    def __init__(self, folder: Path, name: str, url: str) -> None:
        self.folder = folder
        folder.mkdir()
        self.script = folder / "bin" / name
        self.script.parent.mkdir()
        self.write(_FAKE.format(folder=folder, url=url))

    def write(self, text: str) -> None:
        self.script.write_text(text)
        self.script.chmod(0o755)

    def calls(self, verb: str) -> list[list[str]]:
        told = (self.folder / "arguments").read_text() if (self.folder / "arguments").exists() else ""
        calls = [call.strip("\n").split("\n") for call in told.split("--end--\n") if call]
        return [call for call in calls if call[1] == verb]

    def says(self, **known: object) -> None:
        new = self.folder / "view.new"
        new.write_text(json.dumps(known))
        new.replace(self.folder / "view")

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": f"{self.script.parent}:{os.environ['PATH']}"}


@pytest.fixture
def repository(cli: CommandLine) -> Path:
    (cli.folder / ".gitconfig").write_text("[user]\nname = Ann\nemail = ann@example.org\n")
    folder = cli.folder / f"repository-{next(_NUMBERS)}"
    a_repository(folder, a="1\n")
    git(folder, "init", "--quiet", "--bare", str(folder) + ".git")
    git(folder, "remote", "add", "origin", f"../{folder.name}.git")
    git(folder, "push", "--quiet", "origin", "main")
    return folder


@pytest.fixture
def worked(cli: CommandLine, repository: Path) -> tuple[str, Path]:
    """A task with something uncommitted in its worktree."""
    added = cli(
        *("task", "add", "Mend the door", "-C", str(repository), "--isolation", "worktree", "--command", "true"),
        "--json",
    )
    number = str(added.document()["number"])
    assert cli("run", number, "-C", str(repository), "--wait").code == 0
    tree = Path(cli("worktrees", "open", number, "-C", str(repository)).stdout.strip())
    write(tree, new="n\n")
    return number, tree


def _row(cli: CommandLine, repository: Path, number: str) -> Any:
    return cli("task", "show", number, "-C", str(repository), "--json").document()["pull_request"]


@pytest.mark.proof
def test_a_pull_request_is_opened_once_and_pushed_to_again(
    cli: CommandLine, repository: Path, worked: tuple[str, Path], tmp_path: Path
) -> None:
    number, tree = worked
    url = "https://github.com/ann/api/pull/7"
    forge = _Forge(tmp_path / "gh", "gh", url)
    place = ("-C", str(repository))

    opened = cli("pr", number, *place, "--draft", "--json", environ=forge.environ).document()
    write(tree, more="m\n")
    commit(tree, "more")
    forge.says(number=7, url=url, state="OPEN", isDraft=True, statusCheckRollup=[], reviewDecision="")
    again = cli("pr", number, *place, "--json", environ=forge.environ).document()

    branch = opened["pull_request"]["branch"]
    assert (opened["is_new"], opened["has_committed"], again["is_new"]) == (True, True, False)
    (created,) = forge.calls("create")
    assert created[2:] == [
        *("--head", branch, "--base", "main", "--title", "Mend the door", "--body", "", "--draft"),
    ]
    assert git(Path(f"{repository}.git"), "log", "--format=%s", branch).splitlines() == [
        *("more", "Mend the door", "first"),
    ]
    assert (_row(cli, repository, number)["number"], _row(cli, repository, number)["url"]) == (7, url)
    cards = [
        card
        for column in cli("board", *place, "--json").document()["columns"]
        for card in column["cards"]
        if str(card["number"]) == number
    ]
    assert [card["pull_request"] for card in cards] == ["PR 7 · draft"]
    assert git(repository, "status", "--porcelain") == ""


def test_title_and_body_can_be_given_and_gitlab_is_spoken_to(
    cli: CommandLine, repository: Path, worked: tuple[str, Path], tmp_path: Path
) -> None:
    number, _ = worked
    forge = _Forge(tmp_path / "glab", "glab", "https://gitlab.com/ann/api/-/merge_requests/3")
    git(repository, "branch", "release")

    words = ("pr", number, "-C", str(repository), "--title", "T", "--body", "B", "--base", "release", "--json")
    opened = cli(*words, environ=forge.environ).document()

    (created,) = forge.calls("create")
    assert created[2:] == [
        *("--source-branch", opened["pull_request"]["branch"], "--target-branch", "release"),
        *("--title", "T", "--description", "B", "--yes"),
    ]
    assert (opened["pull_request"]["program"], opened["pull_request"]["number"]) == ("glab", 3)


@pytest.mark.proof
def test_without_a_program_it_is_pushed_and_what_the_server_said_is_told(
    cli: CommandLine, repository: Path, worked: tuple[str, Path]
) -> None:
    number, _ = worked
    hook = Path(f"{repository}.git") / "hooks" / "post-receive"
    hook.write_text("#!/bin/sh\necho 'Create a pull request: https://git.example.org/new/7'\n")
    hook.chmod(0o755)

    opened = cli("pr", number, "-C", str(repository))

    assert opened.code == 0, opened.stderr
    assert f"../{repository.name}.git" in opened.stdout
    assert "https://git.example.org/new/7" in opened.stdout
    row = _row(cli, repository, number)
    assert (row["program"], row["number"], row["url"]) == ("git", None, "https://git.example.org/new/7")


@pytest.mark.proof
def test_what_keeps_a_branch_from_being_pushed_is_told_and_nothing_is_forced(
    cli: CommandLine, repository: Path, worked: tuple[str, Path], tmp_path: Path
) -> None:
    number, tree = worked
    forge = _Forge(tmp_path / "gh", "gh", "https://github.com/ann/api/pull/8")
    place = ("-C", str(repository))
    branch = git(tree, "rev-parse", "--abbrev-ref", "HEAD")
    git(repository, "push", "--quiet", "origin", f"main:{branch}")
    foreign = git(repository, "commit-tree", "-m", "foreign", "-p", "main", "main^{tree}")
    git(repository, "push", "--quiet", "origin", f"{foreign}:refs/heads/{branch}")

    refused = cli("pr", number, *place, environ=forge.environ)
    git(repository, "remote", "remove", "origin")
    without = cli("pr", number, *place, environ=forge.environ)

    assert (refused.code, without.code) == (1, 1)
    assert git(Path(f"{repository}.git"), "rev-parse", branch) == foreign
    assert forge.calls("create") == []
    assert "remote add" in without.stderr


def test_a_program_that_is_not_logged_in_says_how(
    cli: CommandLine, repository: Path, worked: tuple[str, Path], tmp_path: Path
) -> None:
    number, tree = worked
    forge = _Forge(tmp_path / "gh", "gh", "")
    forge.write("#!/bin/sh\necho 'To get started with GitHub CLI, please run:  gh auth login' >&2\nexit 4\n")

    refused = cli("pr", number, "-C", str(repository), environ=forge.environ)
    branch = git(tree, "rev-parse", "--abbrev-ref", "HEAD")

    assert refused.code == 1
    assert "gh auth login" in refused.stderr
    assert _row(cli, repository, number) is None
    assert branch in git(Path(f"{repository}.git"), "branch", "--list", branch)


def test_an_agent_and_a_branch_without_commits_open_nothing(
    cli: CommandLine, repository: Path, worked: tuple[str, Path], tmp_path: Path
) -> None:
    number, tree = worked
    forge = _Forge(tmp_path / "gh", "gh", "https://github.com/ann/api/pull/9")
    place = ("-C", str(repository))
    run = cli("executions", "--task", number, *place, "--json").document()[0]["id"]

    agent = cli("pr", number, *place, environ={**forge.environ, "AGENTMON_EXECUTION_ID": run})
    (tree / "new").unlink()
    empty = cli("pr", number, *place, environ=forge.environ)

    assert (agent.code, empty.code) == (1, 1)
    assert forge.calls("create") == []
    assert git(repository, "ls-remote", "--heads", "origin").endswith("refs/heads/main")
