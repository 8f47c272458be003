"""A home on a disk that takes no writing: a mount of its own, in a namespace of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command_lines import CommandLine

_MOUNT = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
_ADVICE = "read-only: mount that for writing, or set AGENTMON_HOME"


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    if shutil.which("unshare") is None or _on_read_only(folder, "true").returncode:
        pytest.skip("no namespace with a mount of its own can be made here")
    return folder


def _on_read_only(disk: Path, *argv: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", _MOUNT, str(disk), *argv]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ, cwd=disk.parent)


def _run(cli: CommandLine, disk: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {**cli.environ, "AGENTMON_HOME": str(disk / "home")}
    return _on_read_only(disk, sys.executable, "-m", "agentmon", *words, environ=environ)


@pytest.mark.proof
def test_a_home_that_cannot_be_made_says_that_its_disk_is_read_only(cli: CommandLine, disk: Path) -> None:
    ended = _run(cli, disk, "task", "list")

    assert ended.returncode == 1
    assert "cannot be made: Read-only file system" in ended.stderr
    assert _ADVICE in ended.stderr
    assert list(disk.iterdir()) == []


@pytest.mark.proof
@pytest.mark.parametrize("words", [("task", "list"), ("task", "add", "one"), ("search", "one"), ("doctor",)])
def test_a_database_on_a_read_only_disk_is_named_with_the_way_out(
    cli: CommandLine, disk: Path, words: tuple[str, ...]
) -> None:
    assert cli("task", "add", "one", environ={"AGENTMON_HOME": str(disk / "home")}).code == 0

    ended = _run(cli, disk, *words)

    assert ended.returncode == 1
    assert f"the database {disk / 'home' / 'agentmon.db'} cannot be written" in ended.stderr
    assert _ADVICE in ended.stderr
    assert "Traceback" not in ended.stderr
