"""Runs commands and workers as forks of one process that has imported everything and has worked once already.

Listens on the Unix socket that the first argument names, and ends with its standard input. Each connection asks for one
command with one JSON line (``words``, ``folder`` and ``environ``), or for a worker (``words`` is null), and hands over
the files of its three standard streams. It is answered with two lines: the process's number, and its exit code once it
has ended.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import genai_prices  # noqa: F401 - imported late by those who need it, as the next two are
import jsonschema  # noqa: F401 - as above
import libtmux  # noqa: F401 - as above

import agentmon.__main__
import agentmon.cli.app
import agentmon.cli.names
import agentmon.runners.screens
import agentmon.store.upgrade
import agentmon.worker.__main__
import agentmon.worker.main
import agentmon.worker.usage_importing
from agentmon.worker import launch
from tests.compiled_statements import share_compiled_statements
from tests.forks import Forks

if TYPE_CHECKING:
    from collections.abc import Callable

REQUEST_BYTES = 65536
ONCE = (["task", "add", "a task", "--json"], ["task", "list"], ["task", "show", "1"], ["board"], ["executions"])


class ForkServer:
    """Answers with the exit code of a fork when it has ended, however many there are at the same time."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._woken, self._wake = socket.socketpair()
        self._wake.setblocking(False)
        self._asked: dict[int, socket.socket] = {}

    def serve(self) -> None:
        """Answer until nobody has the other end of the standard input any more."""
        signal.set_wakeup_fd(self._wake.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with selectors.DefaultSelector() as selector:
            for source in (sys.stdin, self._listener, self._woken):
                selector.register(source, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if self._woken in ready:
                    self._woken.recv(4096)
                    self._answer_for_ended()
                if self._listener in ready:
                    self._fork(self._listener.accept()[0])
                if sys.stdin in ready:
                    return

    def _fork(self, connection: socket.socket) -> None:
        text, streams, _, _ = socket.recv_fds(connection, REQUEST_BYTES, 3)
        while not text.endswith(b"\n"):
            text += connection.recv(REQUEST_BYTES)
        request = json.loads(text)
        pid = os.fork()
        if pid:
            for stream in streams:
                os.close(stream)
            self._asked[pid] = connection
            with contextlib.suppress(OSError):
                connection.sendall(b"%d\n" % pid)
            return
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for one in (self._listener, self._woken, self._wake, connection, *self._asked.values()):
            one.close()
        os.setsid()
        _use(request["environ"], streams)
        os.chdir(request["folder"])
        words = request["words"]
        _become(_run_worker if words is None else lambda: _run_command(words))

    def _answer_for_ended(self) -> None:
        for pid in list(self._asked):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                # Whoever asked may have stopped waiting.
                with self._asked.pop(pid) as connection, contextlib.suppress(OSError):
                    connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _become(run: Callable[[], int]) -> NoReturn:
    code = 1
    try:
        code = run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001 - the fork must never go on as the server
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run_command(words: list[str]) -> int:
    sys.argv = ["agentmon", *words]
    agentmon.__main__.main()
    return 0


def _run_worker() -> int:
    sys.argv = ["agentmon.worker", "--background"]
    return agentmon.worker.__main__.main()


def _use(environ: dict[str, str], streams: list[int]) -> None:
    """Take an environment and three files as the standard streams."""
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # Like those of any Python, they never close the descriptors: a database that is opened in place of one loses its
    # locks when SQLite moves it away from there.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the process's own
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115 - as above


def _work_once() -> None:
    """Run some commands here, since what the libraries make when they are first used is inherited by each fork."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="am-") as folder, Path(os.devnull).open("w") as nothing:
        os.environ.update(AGENTMON_HOME=folder, HOME=folder, TERM="dumb")
        os.chdir(folder)
        said, sys.stdout, sys.stderr = (sys.stdout, sys.stderr), nothing, nothing
        for words in ONCE:
            agentmon.__main__.run(words)
        sys.stdout, sys.stderr = said
        os.chdir("/")
    os.environ.clear()
    os.environ.update(before)


def main() -> None:
    # A process of its own, since some tests look at all the children of theirs.
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    path = Path(sys.argv[1])
    share_compiled_statements()
    _work_once()
    launch._launch = Forks(path).start_worker
    # A collection in a fork would copy the pages of everything that was made before.
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(str(path))
        except FileNotFoundError:
            # The tests were over before this was ready.
            return
        listener.listen()
        ForkServer(listener).serve()
    path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
