from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import StoreError, UsageError
from agentmon.paths import find_paths
from agentmon.private_folders import NotOwnError, close_to_others, make_private_folder
from agentmon.store.upgrade import prepare_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOMEBODY = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what belongs to somebody else")


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder in which everybody may write, as the system's for temporary files."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.fixture(params=[0o000, 0o022, 0o277], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.usefixtures("umask")
def test_every_folder_on_the_way_is_private_whatever_the_umask(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "a" / "b" / "c")

    assert [mode(tmp_path / name) for name in ("a", "a/b", "a/b/c")] == [0o700] * 3


def test_a_folder_that_is_there_keeps_its_mode_until_it_is_closed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o775)

    make_private_folder(tmp_path / "a")
    assert mode(tmp_path / "a") == 0o775

    close_to_others(tmp_path / "a")
    assert mode(tmp_path / "a") == 0o700
    close_to_others(tmp_path / "missing")


@needs_root
def test_a_folder_of_somebody_else_is_taken_nowhere_where_everybody_may_write(shared: Path, tmp_path: Path) -> None:
    for parent in (shared, tmp_path):
        (parent / "home").mkdir()
        os.chown(parent / "home", SOMEBODY, SOMEBODY)

    make_private_folder(tmp_path / "home" / "below")
    with pytest.raises(NotOwnError):
        make_private_folder(shared / "home")
    with pytest.raises(NotOwnError):
        make_private_folder(shared / "home" / "below")
    assert list((shared / "home").iterdir()) == []


def test_an_own_folder_in_a_shared_place_is_taken_unless_everybody_may_write_in_it(shared: Path) -> None:
    home = shared / "home"
    home.mkdir()
    for allowed in (0o700, 0o755, 0o775):
        home.chmod(allowed)
        make_private_folder(home)

    home.chmod(0o777)
    with pytest.raises(NotOwnError):
        make_private_folder(home)


@needs_root
def test_a_database_that_somebody_else_put_into_a_shared_place_is_left_alone(shared: Path) -> None:
    database = shared / "a.db"
    database.touch()
    database.chmod(0o666)
    os.chown(database, SOMEBODY, SOMEBODY)

    with pytest.raises(StoreError) as refused:
        prepare_database(database, backups_dir=shared / "backups", release="1")

    assert refused.value.hint
    assert database.read_bytes() == b""


@pytest.fixture
def short(tmp_path: Path) -> Iterator[tuple[dict[str, str], Path]]:
    """A home whose path is too long for a socket, and the folder that is taken instead."""
    environ = {"AGENTMON_HOME": str(tmp_path / ("x" * 90) / "y")}
    folder = find_paths(environ).run_dir
    yield environ, folder
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        folder.rmdir()


def test_the_short_run_folder_is_taken_when_it_is_private(short: tuple[dict[str, str], Path]) -> None:
    environ, folder = short
    make_private_folder(folder)

    assert find_paths(environ).run_dir == folder


@pytest.mark.parametrize("wrong", ["open", "link", pytest.param("foreign", marks=needs_root)])
def test_a_short_run_folder_that_somebody_may_have_prepared_is_refused(
    short: tuple[dict[str, str], Path], tmp_path: Path, wrong: str
) -> None:
    environ, folder = short
    if wrong == "link":
        folder.symlink_to(tmp_path)
    else:
        folder.mkdir(mode=0o700)
        if wrong == "open":
            folder.chmod(0o777)
        else:
            os.chown(folder, SOMEBODY, SOMEBODY)

    with pytest.raises(UsageError) as refused:
        find_paths(environ)

    assert str(folder) in str(refused.value)
    assert "AGENTMON_HOME" in refused.value.hint
    assert not list(tmp_path.iterdir())


def test_the_short_run_folder_is_the_same_for_every_process(
    short: tuple[dict[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ, folder = short
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    assert find_paths(environ).run_dir == folder
