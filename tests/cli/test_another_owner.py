"""One run as root in the home of a user, who goes on afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import agentmon
from agentmon.cli.demo_place import end_everything
from agentmon.cli.served import VARIABLE
from agentmon.paths import Paths, find_paths
from agentmon.worker.presence import read_presence
from tests.cli.command_lines import DEADLINE_S, Finished

if TYPE_CHECKING:
    from collections.abc import Iterator

USER = 54321


def _find_python() -> str:
    """Return a Python of this version that another user may start, and that may start itself; empty without one."""
    code = (
        "import subprocess, sys; print(*sys.version_info[:2]); subprocess.run([sys.executable, '-c', ''], check=True)"
    )
    for program in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin") or ""):
        try:
            ended = subprocess.run(
                [program, "-I", "-c", code], user=USER, group=USER, extra_groups=[], capture_output=True, check=True
            )
        except (OSError, subprocess.SubprocessError):
            continue
        if ended.stdout.split() == [b"%d" % part for part in sys.version_info[:2]]:
            return program
    return ""


PYTHON = _find_python() if os.geteuid() == 0 else ""
pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user"),
    pytest.mark.skipif(PYTHON == "" and os.geteuid() == 0, reason="no other user may start a Python of this version"),
]


class Home:
    """The home of a user, in which commands run as that user or as root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.project.mkdir()
        for path in (folder, self.project):
            os.chown(path, USER, USER)
        self.home = folder / "agentmon"

    @property
    def paths(self) -> Paths:
        return find_paths({"AGENTMON_HOME": str(self.home)})

    def __call__(self, uid: int, *words: str) -> Finished:
        packages = [str(Path(agentmon.__file__).parents[1]), *(path for path in sys.path if "site-packages" in path)]
        environ = {
            "AGENTMON_HOME": str(self.home),
            VARIABLE: "0",
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(packages),
        }
        ended = subprocess.run(
            [PYTHON, "-m", "agentmon", *words],
            cwd=self.project,
            env=environ,
            user=uid,
            group=uid,
            extra_groups=[],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        return Finished(code=ended.returncode, stdout=ended.stdout, stderr=ended.stderr)


@pytest.fixture
def home() -> Iterator[Home]:
    folder = Path(tempfile.mkdtemp(prefix="am-", dir="/tmp"))
    folder.chmod(0o755)
    (folder / "home").mkdir()
    place = Home(folder / "home")
    yield place
    end_everything(place.paths)
    shutil.rmtree(folder, ignore_errors=True)


def test_a_dead_socket_of_root_is_replaced(home: Home) -> None:
    assert home(USER, "task", "add", "t", "--command", "id -u").code == 0
    assert home(USER, "run", "1", "--wait").code == 0
    assert home(USER, "worker", "--stop").code == 0
    assert home(0, "run", "1", "--wait").code == 0
    assert home(0, "worker", "--stop").code == 0
    assert home.paths.tmux_socket.lstat().st_uid == 0

    ended = home(USER, "run", "1", "--wait")

    assert ended.code == 0, ended.stderr
    assert home(USER, "log", "1").stdout == f"{USER}\n"
    assert home.paths.tmux_socket.lstat().st_uid in {0, USER}
    files = next(one for one in home(USER, "doctor", "--json").document() if one["name"] == "files")
    assert files["level"] == "warn"
    assert f"chown -R {USER}:{USER} {home.paths.executions_dir}" in files["hint"]


def test_a_home_that_root_made_is_said_at_once_with_the_way_out(home: Home) -> None:
    assert home(0, "task", "add", "t", "--command", "true").code == 0

    for words in (("status",), ("task", "list"), ("run", "1"), ("worker", "--stop"), ("worker",), ("doctor",)):
        refused = home(USER, *words)

        assert refused.code == 1, words
        assert "Traceback" not in refused.stderr
        assert words == ("status",) or f"sudo chown -R {USER}:{USER} {home.home}" in refused.stderr

    subprocess.run(["chown", "-R", f"{USER}:{USER}", str(home.home)], check=True)
    assert home(USER, "run", "1", "--wait").code == 0


def test_a_worker_of_root_is_named_with_the_command_that_ends_it(home: Home) -> None:
    assert home(USER, "task", "add", "t", "--command", "true").code == 0
    assert home(0, "run", "1", "--wait").code == 0
    pid = read_presence(home.paths.worker_lock).pid
    subprocess.run(["chown", "-R", f"{USER}:{USER}", str(home.home)], check=True)

    refused = home(USER, "worker", "--stop")

    assert refused.code == 1
    assert f"kill {pid}" in refused.stderr
    assert read_presence(home.paths.worker_lock).pid == pid
