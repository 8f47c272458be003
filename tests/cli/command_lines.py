from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from agentmon.cli.demo_place import end_everything
from agentmon.paths import find_paths

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVER = Path(__file__).with_name("command_server.py")
DEADLINE_S = 40.0


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

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.workspace = folder / "project"
        self.workspace.mkdir()
        self.environ = {
            "AGENTMON_HOME": str(self.home),
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "TZ": "UTC",
        }
        self.paths = find_paths(self.environ)
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            assert self._server.stdin is not None
            assert self._server.stdout is not None
            self._server.stdin.close()
            self._server.wait(DEADLINE_S)
            self._server.stdout.close()
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
        streams = [str(self.folder / name) for name in ("stdin", "stdout", "stderr")]
        Path(streams[0]).write_text(standard_input)
        request = {
            "words": words,
            "folder": str(folder or self.workspace),
            "environ": {**self.environ, **(environ or {})},
            "streams": streams,
        }
        server = self._running_server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        return Finished(
            code=code,
            stdout=Path(streams[1]).read_text("utf-8", "surrogateescape"),
            stderr=Path(streams[2]).read_text("utf-8", "surrogateescape"),
        )

    def start(self, *words: str, environ: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start ``python -m agentmon`` with pipes, as a process of its own."""
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
        process = self.start(*words, environ=environ)
        stdout, stderr = process.communicate(timeout=DEADLINE_S)
        return Finished(code=process.returncode, stdout=stdout.decode(), stderr=stderr.decode())

    def run_alone_bytes(self, *words: str) -> bytes:
        """Run ``python -m agentmon`` to its end and return what it wrote, byte for byte."""
        return self.start(*words).communicate(timeout=DEADLINE_S)[0]

    def add(self, title: str, *options: str) -> str:
        """Add a task and return its number as people type it."""
        return str(self("task", "add", title, *options, "--json").document()["number"])

    def _running_server(self) -> subprocess.Popen[str]:
        if self._server is None:
            self._server = subprocess.Popen(
                [sys.executable, "-P", str(SERVER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        return self._server
