"""What a sandbox consists of, for each place in which agentmon and a run may be."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import RunnerError
from agentmon.domain.sandboxes import Sandbox, stricter
from agentmon.paths import Paths, find_paths
from agentmon.runners.sandbox.plan import calls_environment, plan_sandbox
from agentmon.settings import SandboxSettings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return find_paths({"AGENTMON_HOME": str(tmp_path / "home")})


def home_of(paths: Paths) -> Path:
    return paths.data_dir.parent / "ann"


def plan(
    paths: Paths,
    working_dir: Path,
    sandbox: Sandbox = Sandbox.AGENTMON,
    *,
    program: str = "sh",
    environ: dict[str, str] | None = None,
    **settings: object,
) -> dict[str, list[str]]:
    planned = plan_sandbox(
        sandbox,
        paths=paths,
        environ={"HOME": str(home_of(paths)), **(environ or {})},
        working_dir=str(working_dir),
        program=program,
        settings=SandboxSettings.model_validate(settings),
        folder=paths.executions_dir / "one",
    )
    assert planned is not None
    return planned  # type: ignore[return-value]  # what tests look at are lists


def test_off_is_no_sandbox(paths: Paths, tmp_path: Path) -> None:
    settings = SandboxSettings.model_validate({})

    assert (
        plan_sandbox(
            Sandbox.OFF,
            paths=paths,
            environ={},
            working_dir=str(tmp_path),
            program="sh",
            settings=settings,
            folder=None,
        )
        is None
    )


def test_what_it_hides_is_made_so_that_no_run_makes_it(tmp_path: Path) -> None:
    paths = find_paths({"AGENTMON_HOME": str(tmp_path / "home")})._replace(config_dir=tmp_path / "config" / "agentmon")

    layout = plan(paths, tmp_path)

    assert paths.config_dir.is_dir()
    assert {str(paths.data_dir), str(paths.config_dir)} <= set(layout["hidden"])


def test_a_database_with_a_folder_of_its_own_is_hidden_with_that(tmp_path: Path) -> None:
    database = tmp_path / "team" / "board.db"
    database.parent.mkdir()
    (tmp_path / "team" / "board.db.lock").touch()
    paths = find_paths({"AGENTMON_HOME": str(tmp_path / "home"), "AGENTMON_DATABASE_URL": f"sqlite:///{database}"})

    assert str(database.parent) in plan(paths, tmp_path)["hidden"]
    (tmp_path / "team" / "notes").touch()
    assert str(database.parent) not in plan(paths, tmp_path)["hidden"]


def test_a_database_elsewhere_is_hidden_with_what_stands_beside_it(tmp_path: Path) -> None:
    database = tmp_path / "team" / "board.db"
    paths = find_paths({"AGENTMON_HOME": str(tmp_path / "home"), "AGENTMON_DATABASE_URL": f"sqlite:///{database}"})

    hidden = plan(paths, tmp_path)["hidden"]

    assert {str(database), f"{database}-wal", f"{database}-shm"} <= set(hidden)


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "real")
    paths = find_paths({"AGENTMON_HOME": str(tmp_path / "home")})

    assert str(tmp_path / "real") in plan(paths, tmp_path)["hidden"]


def test_a_run_in_a_folder_of_agentmon_is_refused_but_not_one_in_a_worktree(paths: Paths) -> None:
    worktree = paths.worktrees_dir / "repository" / "1-title"
    worktree.mkdir(parents=True)

    assert str(paths.worktrees_dir) in plan(paths, worktree)["kept"]
    with pytest.raises(RunnerError, match="folder of agentmon itself"):
        plan(paths, paths.config_dir)
    with pytest.raises(RunnerError, match="folder of agentmon itself"):
        plan(paths, paths.executions_dir / "one")


def test_a_project_in_the_home_of_agentmon_is_kept_and_nothing_else(paths: Paths) -> None:
    project = paths.data_dir / "projects" / "one"
    (project / ".git" / "refs").mkdir(parents=True)
    (project / ".git" / "HEAD").touch()

    layout = plan(paths, project / ".git" / "refs")

    assert str(paths.data_dir) in layout["hidden"]
    assert str(project) in layout["kept"]


def worktree_of(git: Path, tree: Path) -> Path:
    own = git / "worktrees" / tree.name
    for folder in (own, git / "objects", git / "refs", tree):
        folder.mkdir(parents=True)
    (git / "HEAD").touch()
    (own / "commondir").write_text("../..\n")
    (own / "gitdir").write_text(f"{tree}/.git\n")
    (tree / ".git").write_text(f"gitdir: {own}\n")
    return own


def test_a_worktree_writes_in_its_repository_too(paths: Paths, tmp_path: Path) -> None:
    git, tree = tmp_path / "repository" / ".git", tmp_path / "tree"
    worktree_of(git, tree)
    (tree / "below").mkdir()

    writable = plan(paths, tree / "below", Sandbox.PROJECT)["writable"]

    assert {str(tree), str(tree / "below"), str(git)} <= set(writable)
    assert str(git.parent) not in writable


@pytest.mark.parametrize("lie", ["another worktree", "no repository", "elsewhere", "common folder elsewhere"])
def test_a_file_that_only_says_to_belong_to_a_repository_opens_nothing(paths: Paths, tmp_path: Path, lie: str) -> None:
    git, tree, target = tmp_path / "repository" / ".git", tmp_path / "tree", tmp_path / "target"
    own = worktree_of(git, tree)
    target.mkdir()
    match lie:
        case "another worktree":
            (own / "gitdir").write_text("/nowhere/other/.git\n")
        case "no repository":
            (git / "HEAD").unlink()
        case "elsewhere":
            (tree / ".git").write_text(f"gitdir: {target}\n")
        case _:
            (own / "commondir").write_text(f"{target}\n")

    writable = plan(paths, tree, Sandbox.PROJECT)["writable"]

    assert not {str(git), str(own), str(target)} & set(writable)


def test_a_place_that_is_told_to_be_writable_uncovers_nothing(paths: Paths) -> None:
    worktree = paths.worktrees_dir / "repository" / "1-title"
    worktree.mkdir(parents=True)
    environ = {"TMPDIR": str(paths.database_path), "CODEX_HOME": str(paths.executions_dir)}

    layout = plan(paths, worktree, Sandbox.PROJECT, environ=environ, writable=f"{paths.data_dir} ~/.ssh")

    hidden = {str(paths.database_path), str(paths.executions_dir), str(paths.data_dir)}
    assert not hidden & set(layout["writable"])
    assert str(worktree) in layout["writable"]


def test_an_agent_writes_where_it_keeps_its_conversations(paths: Paths, tmp_path: Path) -> None:
    environ = {"CODEX_HOME": str(tmp_path / "codex"), "TMPDIR": str(tmp_path / "tmp")}

    layout = plan(paths, tmp_path, Sandbox.PROJECT, program="/usr/bin/claude", environ=environ)

    home = home_of(paths)
    assert (home / ".claude").is_dir()
    assert (home / ".cache").is_dir()
    assert not (home / ".claude.json").exists()
    own = {f"{home}/.claude", f"{home}/.claude.json", f"{home}/.cache"}
    assert own | {str(tmp_path / "codex"), str(tmp_path / "tmp")} <= set(layout["writable"])
    assert f"{home}/.ssh" in layout["hidden"]
    assert layout["has_network"]


def test_settings_say_what_else_it_writes_and_what_it_does_not_find(paths: Paths, tmp_path: Path) -> None:
    layout = plan(
        paths, tmp_path, Sandbox.PROJECT, writable="~/.npm '/srv/two words'", hidden="~/secrets", network=False
    )

    home = home_of(paths)
    assert {f"{home}/.npm", "/srv/two words"} <= set(layout["writable"])
    assert f"{home}/secrets" in layout["hidden"]
    assert f"{home}/.ssh" not in layout["hidden"]
    assert not layout["has_network"]


@pytest.mark.parametrize("text", ["relative/place", "~other/place", "'open", "/nul\0"])
def test_a_place_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="writable"):
        SandboxSettings.model_validate({"writable": text})


def test_a_call_is_about_the_same_board_wherever_it_comes_from() -> None:
    environ = {"AGENTMON_HOME": "home", "AGENTMON_CALLS": "x", "AGENTMON_EXECUTION_ID": "y", "LD_PRELOAD": "z"}
    paths = find_paths(environ)

    assert calls_environment(paths, environ) == {"AGENTMON_HOME": os.path.abspath("home")}  # noqa: PTH100


def test_the_stricter_one_is_chosen() -> None:
    assert stricter(None, None) is None
    assert stricter(Sandbox.OFF, None) is Sandbox.OFF
    assert stricter(Sandbox.PROJECT, Sandbox.AGENTMON) is Sandbox.PROJECT
