"""Whether this process is part of an execution: by its own environment, or by that of a process it comes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.runners.host.spec import MARKER_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MOST_ANCESTORS: Final = 64
_PARENT: Final = 1
_HOST_MAIN: Final = b"/runners/host/__main__.py"


def find_executions_around(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ids of the executions that this process is part of, the nearest first.

    A program that takes the marker out of the environment of a command is still found above it, where the system
    shows the environment of other processes. So is one that left its parents behind: it becomes a child of the host.
    """
    found = [environ.get(MARKER_VARIABLE, "")]
    for pid in _ancestors():
        found += [_marker_of(pid), _hosted_by(pid)]
    return tuple(dict.fromkeys(one for one in found if one))


def is_below_tmux(socket: Path) -> bool:
    """Return whether the tmux server of that socket started this process, or one that it comes from."""
    wanted = os.path.realpath(socket)
    return any(named and os.path.realpath(named) == wanted for named in map(_socket_of, _ancestors()))


def _ancestors() -> Iterator[int]:
    """Yield the processes above this one, the nearest first."""
    pid = os.getppid()
    for _ in range(_MOST_ANCESTORS):
        if pid <= 1:
            return
        yield pid
        pid = _parent_of(pid)


def _marker_of(pid: int) -> str:
    wanted = f"{MARKER_VARIABLE}=".encode()
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    return next((one[len(wanted) :].decode("utf-8", "replace") for one in variables if one.startswith(wanted)), "")


def _hosted_by(pid: int) -> str:
    """Return whose host the process is; the host itself carries no marker."""
    words = _command_line(pid)
    is_host = len(words) > 1 and words[-2].endswith(_HOST_MAIN)
    return words[-1].rpartition(b"/")[2].decode("utf-8", "replace") if is_host else ""


def _socket_of(pid: int) -> str:
    """Return the socket that a tmux server was told by ``-S``; its command line is that of the client that started it.

    Source: tmux(1) and server.c of tmux 3.3a, which forks the server and names it by ``setproctitle``.
    """
    words = _command_line(pid)
    if not words[0].rpartition(b"/")[2].startswith(b"tmux"):
        return ""
    for place, word in enumerate(words[1:], 1):
        if word.startswith(b"-S"):
            return os.fsdecode(word[2:] or b"".join(words[place + 1 : place + 2]))
    return ""


def _command_line(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return [b""]


def _parent_of(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return 0
    return int(stat.rpartition(b")")[2].split()[_PARENT])
