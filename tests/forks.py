"""Asking the process that forks commands and workers, which saves each test the imports; see ``tests.fork_server``."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


DEADLINE_S = 60.0


class Fork:
    """A process that the server has forked; used like the ``subprocess.Popen`` of a child."""

    def __init__(self, connection: socket.socket, stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self._connection = connection
        self._answers = connection.makefile()
        self.pid = int(self._answers.readline())
        self.returncode: int | None = None
        self.stdout = stdout
        self.stderr = stderr

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        self.stderr.close()
        self.wait()

    def wait(self, timeout: float = DEADLINE_S) -> int:
        """Return the exit code, the negative of the signal's number when one ended it; at most so many seconds."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            self.returncode = int(self._answers.readline())
            self._answers.close()
            self._connection.close()
        return self.returncode

    def communicate(self, timeout: float = DEADLINE_S) -> tuple[bytes, bytes]:
        """Return all that it wrote to its two streams, once it has ended; at most so many seconds."""
        written: dict[IO[bytes], bytes] = {self.stdout: b"", self.stderr: b""}
        with selectors.DefaultSelector() as selector:
            for stream in written:
                selector.register(stream, selectors.EVENT_READ, stream)
            while selector.get_map():
                ready = selector.select(timeout)
                assert ready, f"not within {timeout:g} s: the end of its output"
                for key, _ in ready:
                    if part := os.read(key.fd, 65536):
                        written[key.data] += part
                    else:
                        selector.unregister(key.data)
                        key.data.close()
        self.wait(timeout)
        return written[self.stdout], written[self.stderr]

    def send_signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        if self.returncode is None:
            self.send_signal(signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Forks:
    """What can be asked of the server that listens at a path."""

    path: Path

    def run(self, words: Sequence[str], *, folder: Path, environ: Mapping[str, str], streams: Sequence[Path]) -> int:
        """Run a command line with these files as its standard streams and return its exit code."""
        with streams[0].open("rb") as stdin, streams[1].open("wb") as stdout, streams[2].open("wb") as stderr:
            connection = self._ask(
                {"words": words, "folder": str(folder), "environ": environ},
                stdin.fileno(),
                stdout.fileno(),
                stderr.fileno(),
            )
        return _exit_code(connection)

    def start(self, words: Sequence[str], *, folder: Path, environ: Mapping[str, str]) -> Fork:
        """Start a command line that reads nothing and writes into pipes."""
        stdout, stdout_end = os.pipe()
        stderr, stderr_end = os.pipe()
        with Path(os.devnull).open("rb") as stdin:
            request = {"words": words, "folder": str(folder), "environ": environ}
            connection = self._ask(request, stdin.fileno(), stdout_end, stderr_end)
        os.close(stdout_end)
        os.close(stderr_end)
        return Fork(connection, os.fdopen(stdout, "rb"), os.fdopen(stderr, "rb"))

    def start_worker(self, environ: Mapping[str, str], log: IO[bytes]) -> int:
        """Start a worker with both its outputs in the log; return the exit code of the process that starts it."""
        with Path(os.devnull).open("rb") as stdin:
            request = {"words": None, "folder": "/", "environ": dict(environ)}
            return _exit_code(self._ask(request, stdin.fileno(), log.fileno(), log.fileno()))

    def _ask(self, request: Mapping[str, object], *streams: int) -> socket.socket:
        connection = self._connected()
        text = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(connection, [text], streams)
        if sent < len(text):
            # Nothing left is not sent: the command may have ended already.
            connection.sendall(text[sent:])
        return connection

    def _connected(self) -> socket.socket:
        """Return a connection; the server may have only been started."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(DEADLINE_S)
            try:
                connection.connect(str(self.path))
            except (FileNotFoundError, ConnectionRefusedError):
                connection.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return connection


def _exit_code(connection: socket.socket) -> int:
    with connection, connection.makefile() as answers:
        _pid, code = answers.readline(), answers.readline()
    return int(code)


class ForkServer:
    """A server that was started, and may not listen yet; it ends with ``close``, or with this process."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="amf-", dir="/tmp"))
        self.path = self._folder / "forks"
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("AGENTMON_", "TMUX"))}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.fork_server", str(self.path)],
            cwd=Path(__file__).parent.parent,
            env={**environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
