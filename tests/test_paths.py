from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agentmon.paths import find_paths, find_workspace_root

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_one_variable_puts_everything_below_one_folder(tmp_path: Path) -> None:
    paths = find_paths({"AGENTMON_HOME": str(tmp_path / "a b")})

    assert paths.database_path == tmp_path / "a b" / "agentmon.db"
    assert paths.executions_dir == tmp_path / "a b" / "executions"
    assert paths.settings_file == tmp_path / "a b" / "config.toml"


def test_without_it_the_folders_of_the_base_directory_rules_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    paths = find_paths()

    assert tmp_path in paths.database_path.parents
    assert tmp_path in paths.logs_dir.parents


def test_a_relative_home_becomes_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)

    assert find_paths({"AGENTMON_HOME": "here"}).data_dir == tmp_path / "here"


def test_another_database_has_a_worker_of_its_own(tmp_path: Path) -> None:
    home = {"AGENTMON_HOME": str(tmp_path)}
    moved = find_paths(home | {"AGENTMON_DATABASE_URL": f"sqlite:///{tmp_path}/other.db"})

    assert moved.database_path == tmp_path / "other.db"
    assert moved.worker_lock != find_paths(home).worker_lock


def test_sockets_have_short_paths_however_deep_the_home_lies(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 90) / ("y" * 90)

    paths = find_paths({"AGENTMON_HOME": str(deep)})

    assert len(os.fsencode(paths.worker_socket)) <= 100
    assert paths.run_dir == find_paths({"AGENTMON_HOME": str(deep)}).run_dir
    assert paths.run_dir != find_paths({"AGENTMON_HOME": str(deep) + "z"}).run_dir


def test_the_workspace_of_a_folder_is_its_git_root_or_itself(tmp_path: Path) -> None:
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    (tmp_path / "repository" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "repository" / "src").mkdir()
    (tmp_path / "plain").mkdir()
    # What a sandbox leaves behind.
    (tmp_path / ".git").mkdir()

    assert find_workspace_root(tmp_path / "repository" / "src") == tmp_path / "repository"
    assert find_workspace_root(tmp_path / "plain") == tmp_path / "plain"
