"""Starting workers as forks of one process that has imported everything, which saves each test the imports."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from agentmon.worker import launch

if TYPE_CHECKING:
    from agentmon.paths import Paths

SERVER = Path(__file__).with_name("worker_server.py")
DEADLINE_S = 40.0
start_alone = launch._start
"""The start as it is outside of tests."""


@dataclass
class WorkerStarts:
    """Takes the place of the start in ``agentmon.worker.launch``; ends with its server, not with its workers."""

    _server: subprocess.Popen[str] | None = field(default=None, init=False)
    _is_asked: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.communicate(timeout=DEADLINE_S)

    def __call__(self, paths: Paths, environ: dict[str, str]) -> None:
        """Start a worker and return once it is a process of its own."""
        paths.logs_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        paths.worker_log.touch(mode=0o600)
        for name in ("TMUX", "TMUX_PANE", "AGENTMON_EXECUTION_ID"):
            environ.pop(name, None)
        with self._is_asked:
            server = self._running_server()
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(json.dumps({"environ": environ, "log": str(paths.worker_log)}) + "\n")
            server.stdin.flush()
            assert server.stdout.readline() == "\n"

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
