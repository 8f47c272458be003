from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from agentmon.cli.demo_place import end_everything
from agentmon.cli.served import VARIABLE
from agentmon.paths import find_paths

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.forks import Fork, Forks

DEADLINE_S = 90.0


@dataclass(frozen=True, kw_only=True)
class Finished:
    code: int
    stdout: str
    stderr: str

    def document(self) -> Any:
        assert self.code == 0, self.stderr
        return json.loads(self.stdout)


class CommandLine:
    """Command lines over one home and one workspace."""

    def __init__(self, folder: Path, forks: Forks) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.workspace = folder / "project"
        self.workspace.mkdir()
        self.environ = {
            "AGENTMON_HOME": str(self.home),
            VARIABLE: "0",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "TZ": "UTC",
        }
        self.paths = find_paths(self.environ)
        self._forks = forks

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end_everything(self.paths)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __call__(
        self,
        *words: str,
        environ: Mapping[str, str] | None = None,
        folder: Path | None = None,
        standard_input: str = "",
    ) -> Finished:
        """Run a command line in a process that is forked from one that has imported everything."""
        streams = [self.folder / name for name in ("stdin", "stdout", "stderr")]
        streams[0].write_text(standard_input)
        code = self._forks.run(
            words, folder=folder or self.workspace, environ={**self.environ, **(environ or {})}, streams=streams
        )
        stdout, stderr = (stream.read_text("utf-8", "surrogateescape") for stream in streams[1:])
        return Finished(code=code, stdout=stdout, stderr=stderr)

    def start(self, *words: str, environ: Mapping[str, str] | None = None) -> Fork:
        """Start a command line with pipes, as such a fork."""
        return self._forks.start(words, folder=self.workspace, environ={**self.environ, **(environ or {})})

    def start_alone(self, *words: str, environ: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start ``python -m agentmon`` with pipes: for what concerns the start or the end of Python itself."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "agentmon", *words],
            cwd=self.workspace,
            env={**self.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def run_alone(self, *words: str, environ: Mapping[str, str] | None = None) -> Finished:
        """Run ``python -m agentmon`` to its end."""
        process = self.start_alone(*words, environ=environ)
        stdout, stderr = process.communicate(timeout=DEADLINE_S)
        return Finished(code=process.returncode, stdout=stdout.decode(), stderr=stderr.decode())

    def run_elsewhere(self, folder: Path, *command: str, environ: Mapping[str, str]) -> Finished:
        """Run any command to its end in another folder."""
        ended = subprocess.run(
            command,
            cwd=folder,
            env={**self.environ, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        return Finished(code=ended.returncode, stdout=ended.stdout, stderr=ended.stderr)

    def run_for_bytes(self, *words: str) -> bytes:
        """Run a command line to its end and return what it wrote, byte for byte."""
        return self.start(*words).communicate(timeout=DEADLINE_S)[0]

    def add(self, title: str, *options: str) -> str:
        """Add a task and return its number as people type it."""
        return str(self("task", "add", title, *options, "--json").document()["number"])
