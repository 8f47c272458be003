"""A project whose folder was moved: named, offered, and brought along; looking leaves nothing behind."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command_lines import CommandLine

_LOOKS: Final = (
    "task list", "board", "executions", "inbox", "search word", "settings workspace.max_running", "audit", "sessions",
    "worktrees", "review", "rules", "rules try --tool Bash --command ls", "agents", "agents list", "template list",
    "budget", "budget check -C .", "task show 1", "run 1", "stop 1", "log 1", "attach 1", "costs", "workspaces",
)  # fmt: skip


def make_repository(folder: Path, remote: str = "https://me:secret@example.org/api.git", *, word: str = "") -> None:
    folder.mkdir(parents=True)
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    named = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    # The folder's name makes each first commit another one, unless a word stands in for it.
    made = (*named, "commit", "-q", "--allow-empty", "-m", word or str(folder))
    for words in (("init", "-q"), made, ("remote", "add", "origin", remote)):
        subprocess.run(["git", *words], cwd=folder, env=environ, check=True)


def listed(cli: CommandLine) -> dict[str, Any]:
    return {one["workspace"]["root_path"]: one for one in cli("workspaces", "--json").document()}


def test_looking_registers_no_workspace(cli: CommandLine, tmp_path: Path) -> None:
    cli("task", "add", "one that makes the database")
    before = listed(cli)
    (tmp_path / ".agentmon").mkdir()
    (tmp_path / ".agentmon" / "agents.toml").write_text("")

    for words in _LOOKS:
        finished = cli(*words.split(), folder=tmp_path)
        assert "unexpected" not in finished.stderr, (words, finished.stderr)
        assert listed(cli).keys() == before.keys(), words

    assert cli("task", "add", "now it is one", folder=tmp_path).code == 0
    assert str(tmp_path) in listed(cli)


def test_a_moved_repository_is_named_offered_and_brought_along(cli: CommandLine, tmp_path: Path) -> None:
    old, new = tmp_path / "api", tmp_path / "elsewhere" / "renamed"
    make_repository(old)
    (old / "sub").mkdir()
    number = cli("task", "add", "kept", "--dir", str(old / "sub"), "--json", folder=old).document()["number"]
    assert not listed(cli)[str(old)]["is_gone"]

    new.parent.mkdir()
    old.rename(new)
    looked = cli("task", "list", folder=new)
    assert str(old) in looked.stderr
    assert f"agentmon workspaces move {old} {new}" in looked.stderr
    assert listed(cli)[str(old)]["is_gone"]
    assert str(new) not in listed(cli)
    found = {one["name"]: one for one in cli("doctor", "--json").document()}["workspaces"]
    assert (found["level"], str(old) in found["text"]) == ("warn", True)

    moved = cli("workspaces", "move", str(old), str(new), "--json").document()
    assert [one["root_path"] for one in moved] == [str(new)]
    (task,) = cli("task", "list", "--json", folder=new).document()
    assert (task["number"], task["input_context"]["working_dir"]) == (number, str(new / "sub"))
    assert not listed(cli)[str(new)]["is_gone"]
    assert cli("task", "list", folder=new).stderr == ""
    assert {one["name"]: one for one in cli("doctor", "--json").document()}["workspaces"]["level"] == "ok"


def test_no_password_of_the_remote_is_kept(cli: CommandLine, tmp_path: Path) -> None:
    make_repository(tmp_path / "api")
    cli("task", "add", "one", folder=tmp_path / "api")

    with closing(sqlite3.connect(cli.paths.database_path)) as connection:
        kept = dict(connection.execute("SELECT root_path, remote FROM workspaces"))

    assert kept[str(tmp_path / "api")] == "https://example.org/api"


def test_a_fork_and_a_repository_with_another_beginning_are_not_offered(cli: CommandLine, tmp_path: Path) -> None:
    old, fork, other = tmp_path / "api", tmp_path / "fork", tmp_path / "other"
    make_repository(old)
    cli("task", "add", "one", folder=old)
    subprocess.run(["git", "clone", "-q", str(old), str(fork)], check=True)
    make_repository(other)
    old.rename(tmp_path / "api-2")

    assert str(old) in cli("board", folder=tmp_path / "api-2").stderr
    assert str(old) not in cli("board", folder=fork).stderr
    assert str(old) not in cli("board", folder=other).stderr


def test_a_folder_that_is_a_link_to_its_new_place_counts_as_moved(cli: CommandLine, tmp_path: Path) -> None:
    old, new = tmp_path / "api", tmp_path / "new"
    make_repository(old)
    cli("task", "add", "kept", folder=old)
    old.rename(new)
    old.symlink_to(new)

    assert str(old) in cli("task", "list", folder=old).stderr
    assert listed(cli)[str(old)]["is_gone"]
    assert cli("workspaces", "move", str(old), str(new)).code == 0
    assert [one["title"] for one in cli("task", "list", "--json", folder=old).document()] == ["kept"]


def test_the_parent_of_projects_is_moved_with_all_of_them(cli: CommandLine, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "src" / name).mkdir(parents=True)
        cli("task", "add", name, folder=tmp_path / "src" / name)
    (tmp_path / "src").rename(tmp_path / "work")

    assert cli("workspaces", "move", str(tmp_path / "src"), str(tmp_path / "work")).code == 0

    assert {str(tmp_path / "work" / "one"), str(tmp_path / "work" / "two")} <= listed(cli).keys()
    assert [one["title"] for one in cli("task", "list", "--json", folder=tmp_path / "work" / "two").document()] == [
        "two"
    ]


def test_an_empty_board_makes_room_and_one_in_use_does_not(cli: CommandLine, tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        cli("task", "add", name, folder=tmp_path / name)
    refused = cli("workspaces", "move", str(tmp_path / "old"), str(tmp_path / "new"))
    assert refused.code == 1
    assert "board of its own" in refused.stderr
    assert {str(tmp_path / "old"), str(tmp_path / "new")} <= listed(cli).keys()

    (tmp_path / "empty").mkdir()
    with closing(sqlite3.connect(cli.paths.database_path)) as connection:
        row = "SELECT 'empty-place', owner_id, 'empty', ?, '{}', created_at, updated_at FROM workspaces LIMIT 1"
        columns = "id, owner_id, name, root_path, settings, created_at, updated_at"
        connection.execute(f"INSERT INTO workspaces ({columns}) {row}", (str(tmp_path / "empty"),))
        connection.commit()
    assert cli("workspaces", "move", str(tmp_path / "old"), str(tmp_path / "empty")).code == 0
    assert [one["title"] for one in cli("task", "list", "--json", folder=tmp_path / "empty").document()] == ["old"]


def test_what_cannot_be_moved_is_refused_with_the_reason(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    assert cli("workspaces", "move", str(tmp_path / "nowhere"), str(tmp_path / "there")).code == 2
    assert cli("workspaces", "move", str(tmp_path / "there"), str(tmp_path / "missing")).code == 2
    assert cli("workspaces", "move", str(tmp_path / "there"), str(tmp_path / "there")).code == 2
