"""Real tmux servers on private sockets for tests, and how to look at them without the code under test."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.waiting import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class RawTmux:
    """A tmux command line against one socket."""

    socket_path: Path
    config_path: Path = Path("/dev/null")
    environ: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str, check: bool = True) -> str:
        answer = subprocess.run(
            ["tmux", "-u", "-S", self.socket_path, "-f", self.config_path, *arguments],
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", **self.environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        if check and answer.returncode != 0:
            raise AssertionError(f"tmux {arguments}: {answer.stderr}")
        return answer.stdout.rstrip("\n")

    def screen(self, target: str) -> str:
        return self("capture-pane", "-p", "-t", target)


@contextmanager
def short_folder() -> Iterator[Path]:
    """Give a folder whose sockets stay under the limit; every tmux server in it is ended with it."""
    folder = Path(tempfile.mkdtemp(prefix="am-", dir="/tmp"))
    try:
        yield folder
    finally:
        # A second round takes what a server that was just starting made during the first.
        for _ in range(2):
            _end_servers(folder)
            shutil.rmtree(folder, ignore_errors=True)


def _end_servers(folder: Path) -> None:
    with suppress(OSError, subprocess.SubprocessError):
        for path in folder.rglob("*"):
            if path.is_socket():
                subprocess.run(["tmux", "-S", path, "kill-server"], capture_output=True, check=False, timeout=10)
