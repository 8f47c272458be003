"""Carries out commands for other processes: ``python -m agentmon command-server SOCKET``.

It imports what commands need once, and forks for each of them. A fork takes over what the process of its asker has:
words, environment, standard files, folder, umask, signals; who asks is who asked it.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import io
import json
import locale
import os
import selectors
import signal
import socket
import struct
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentmon.cli import served
from agentmon.runners.host.signals import reset_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_IDLE_S: Final = 300.0
_LOOK_EVERY_S: Final = 5.0
_REQUEST_WITHIN_S: Final = 10.0
_CREDENTIALS: Final = struct.Struct("3i")
"""``struct ucred`` of unix(7): pid, uid, gid."""
_MOST_WAITING: Final = 64


class _Asked(NamedTuple):
    line: socket.socket
    asker: int
    """The process that asked."""
    asker_fd: int
    """Readable once that process is over."""


class CommandServer:
    """Listens at one place."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._selector = selectors.DefaultSelector()
        self._running: dict[int, tuple[socket.socket, int, int]] = {}
        """By the process that carries a command out: who waits, and what is readable once it, or who waits, is over."""
        self._modules = _changed_at()
        self._used_at = time.monotonic()

    def serve(self) -> _Asked | None:
        """Fork for whoever asks, until nobody has asked for five minutes.

        Returns:
            What is to be carried out, in the process that is to do it; None in the server, whose end it is.
        """
        with contextlib.suppress(FileNotFoundError):
            Path(self._place).unlink()
        umask = os.umask(0o177)
        try:
            self._listener.bind(self._place)
        finally:
            os.umask(umask)
        self._listener.listen(_MOST_WAITING)
        inode = os.stat(self._place).st_ino  # noqa: PTH116 - beside the next line
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        while self._running or (self._is_wanted() and self._is_there(inode)):
            for chosen, _ in self._selector.select(_LOOK_EVERY_S):
                if chosen.data is not None:
                    chosen.data()
                elif (asked := self._accept()) is not None:
                    return asked
        if self._is_there(inode):
            Path(self._place).unlink(missing_ok=True)
        return None

    def _is_wanted(self) -> bool:
        return time.monotonic() - self._used_at < _IDLE_S and _changed_at() == self._modules

    def _is_there(self, inode: int) -> bool:
        """Return whether this server is what is found at its place."""
        try:
            return os.stat(self._place).st_ino == inode  # noqa: PTH116 - as above
        except OSError:
            return False

    def _accept(self) -> _Asked | None:
        """Fork for one that asks; return what it asks in the fork."""
        try:
            line, _ = self._listener.accept()
        except OSError:
            return None
        self._used_at = time.monotonic()
        asker, user, _ = _CREDENTIALS.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        try:
            if user != os.getuid() or asker <= 0 or _changed_at() != self._modules:
                raise ProcessLookupError
            asker_fd = os.pidfd_open(asker)
        except OSError:
            line.close()
            return None
        pid = os.fork()
        if not pid:
            # Its own group, so that a signal for the command reaches what that starts.
            os.setsid()
            self._forget()
            return _Asked(line, asker, asker_fd)
        over = os.pidfd_open(pid)
        self._running[pid] = (line, over, asker_fd)
        self._selector.register(over, selectors.EVENT_READ, partial(self._end, pid))
        self._selector.register(asker_fd, selectors.EVENT_READ, partial(self._leave, pid))
        return None

    def _end(self, pid: int) -> None:
        """Say how a command ended."""
        line, over, asker_fd = self._running.pop(pid)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with contextlib.suppress(OSError):
            line.sendall(b"%s %d\n" % (served.ENDED, code))
        for one in (over, asker_fd):
            with contextlib.suppress(KeyError):
                self._selector.unregister(one)
            os.close(one)
        line.close()

    def _leave(self, pid: int) -> None:
        """End a command whose asker is gone, as that was ended: at once."""
        self._selector.unregister(self._running[pid][2])
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _forget(self) -> None:
        """Close what belongs to the server, in a fork."""
        self._selector.close()
        self._listener.close()
        for line, *descriptors in self._running.values():
            line.close()
            for one in descriptors:
                os.close(one)
        self._running.clear()


def serve(place: str, run: Callable[[list[str]], int]) -> int:
    """Serve until nobody asks any more, or carry out what somebody asked; return the exit code.

    Args:
        place: Where the socket is made.
        run: Runs a command line and returns its exit code.
    """
    # Python has these ignored, and says what was broken, or too large.
    reset_signals(kept=frozenset({signal.SIGPIPE, signal.SIGXFSZ}))
    lock = os.open(f"{place}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0
    from agentmon.cli.app import prepare  # noqa: PLC0415 - a second server needs none of it

    prepare()
    gc.collect()
    gc.freeze()
    asked = CommandServer(place).serve()
    if asked is None:
        return 0
    os.close(lock)
    return _carry_out(asked, run)


def _carry_out(asked: _Asked, run: Callable[[list[str]], int]) -> int:
    from agentmon.runners import ancestry  # noqa: PLC0415 - a second server needs none of it

    request = _read(asked.line)
    if request is None or request["key"] != served.key():
        with contextlib.suppress(OSError):
            asked.line.sendall(served.REFUSED + b"\n")
        return 0
    files = _take_files(asked.line)
    if len(files) != served.FILES:
        return 0
    # Should the server die, whoever waits hears of it.
    asked.line.close()
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
    os.fchdir(files[3])
    for file in files:
        os.close(file)
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["variables"])
    time.tzset()
    with contextlib.suppress(locale.Error):
        locale.setlocale(locale.LC_CTYPE, "")
    sys.argv = ["agentmon", *request["words"]]
    _open_streams(request["streams"])
    ancestry.asked_by(asked.asker, asked.asker_fd)
    served.State.is_served = True
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in request["ignored"]:
        signal.signal(signal.Signals[name], signal.SIG_IGN)
    return run(request["words"])


def _read(line: socket.socket) -> Mapping[str, Any] | None:
    """Return the request; None for what is none, or does not come."""
    line.settimeout(_REQUEST_WITHIN_S)
    told = b""
    try:
        while len(told) < served.LENGTH_BYTES or len(told) < served.LENGTH_BYTES + int.from_bytes(
            told[: served.LENGTH_BYTES], "big"
        ):
            if not (piece := line.recv(1_048_576)):
                return None
            told += piece
        request: dict[str, Any] = json.loads(told[served.LENGTH_BYTES :])
    except (OSError, ValueError):
        return None
    return request


def _take_files(line: socket.socket) -> list[int]:
    """Say that all is ready, and return what the command works with; nothing when nobody waits for it any more."""
    try:
        line.sendall(b"%s %d\n" % (served.READY, os.getpid()))
        told, files, _, _ = socket.recv_fds(line, len(served.GO), served.FILES)
    except OSError:
        return []
    return files if told == served.GO else []


def _open_streams(streams: list[list[str]]) -> None:
    """Make the standard streams anew, as the asker has them."""
    for (number, name), (encoding, errors) in zip(enumerate(("stdin", "stdout", "stderr")), streams, strict=True):
        raw = os.fdopen(number, "rb" if number == 0 else "wb", closefd=False, buffering=-1)
        is_by_line = number == 2 or os.isatty(number)  # noqa: PLR2004 - standard error
        setattr(sys, name, io.TextIOWrapper(raw, encoding=encoding, errors=errors, line_buffering=is_by_line))


def _changed_at() -> float:
    """Return when the newest of agentmon's modules here was written; files that are gone count as changed."""
    newest = 0.0
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and name.partition(".")[0] == "agentmon":
            try:
                newest = max(newest, os.stat(file).st_mtime)  # noqa: PTH116 - some hundred of them for each command
            except OSError:
                return -1.0
    return newest
