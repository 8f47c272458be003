"""Whether this process is part of an execution: by its own environment, or by that of a process it comes from."""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.private_folders import is_left_by_another
from agentmon.runners.host.spec import MARKER_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_INIT: Final = 1
_asked_by: list[tuple[int, int]] = []
_PARENT: Final = 1
_UNSEEN: Final = 0
"""The number of a process that lives outside of this one's namespace. Source: pid_namespaces(7)."""
_HOST_MAIN: Final = b"/runners/host/__main__.py"
_CREDENTIALS: Final = struct.Struct("3i")
"""``struct ucred`` of unix(7): pid, uid, gid."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The processes above this one."""

    executions: tuple[str, ...]
    """Ids of the executions that it is part of, the nearest first."""
    is_below_tmux: bool
    """Whether agentmon's tmux server started it, or one that it comes from."""
    is_whole: bool
    """Whether all processes above it were seen."""


def asked_by(pid: int, pid_fd: int) -> None:
    """Let another process count as the one that this one comes from: it asked, and this one carries it out.

    Args:
        pid: That process.
        pid_fd: Readable once that is over, after which nobody knows any more where it came from.
    """
    _asked_by[:] = [(pid, pid_fd)]


def look_around(environ: Mapping[str, str], tmux_sockets: Iterable[Path]) -> Surroundings:
    """Look at the processes above this one.

    A program that takes the marker out of the environment of a command is still found above it, where the system
    shows the environment of other processes. So is one that left its parents behind: it becomes a child of the host.
    From inside a namespace of processes that is not the tmux server's, nothing above can be seen.

    Args:
        environ: The environment of this process.
        tmux_sockets: Of agentmon's tmux servers, in whose sessions all executions run.
    """
    above = list(_ancestors())
    servers = {_server_of(one) for one in tmux_sockets}
    return Surroundings(
        executions=_named((environ.get(MARKER_VARIABLE, ""), *_executions_of(above))),
        is_below_tmux=not servers.isdisjoint(above),
        is_whole=_UNSEEN not in servers and _shows_processes() and _is_asker_there(),
    )


def executions_around(pid: int) -> tuple[str, ...]:
    """Return the ids of the executions that a process is part of, the nearest first; none where no system says so."""
    return _named(_executions_of((pid, *_ancestors(_parent_of(pid)))))


def _executions_of(pids: Iterable[int]) -> Iterator[str]:
    for pid in pids:
        yield _marker_of(pid)
        yield _hosted_by(pid)


def _named(executions: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for one in executions if one))


def _ancestors(pid: int | None = None) -> Iterator[int]:
    """Yield the process, this one's parent when it is None, and those above it, the nearest first."""
    if pid is None:
        pid = _asked_by[0][0] if _asked_by else os.getppid()
    seen = set[int]()
    while pid > _INIT and pid not in seen:
        yield pid
        seen.add(pid)
        pid = _parent_of(pid)


def _is_asker_there() -> bool:
    """Return whether who asks lived while the processes above it were looked at."""
    return not any(select.select([pid_fd], [], [], 0)[0] for _, pid_fd in _asked_by)


def _shows_processes() -> bool:
    """Return whether the system shows processes as this one needs it; where no system does, the marker has to do."""
    return sys.platform != "linux" or Path(f"/proc/{os.getpid()}/stat").exists()


def _server_of(tmux_socket: Path) -> int | None:
    """Return the process that listens there, as this one numbers processes; 0 for one it may not see, None for none.

    Source: unix(7), ``SO_PEERCRED``.
    """
    if sys.platform != "linux":
        return None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as client:
            client.connect(str(tmux_socket))
            told = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except PermissionError:
        # A sandbox forbids it, and a person's terminal is in none. What another user left has started nothing here.
        return None if is_left_by_another(tmux_socket) else _UNSEEN
    except OSError:
        return None
    pid: int = _CREDENTIALS.unpack(told)[0]
    return pid


def _marker_of(pid: int) -> str:
    wanted = f"{MARKER_VARIABLE}=".encode()
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    return next((one[len(wanted) :].decode("utf-8", "replace") for one in variables if one.startswith(wanted)), "")


def _hosted_by(pid: int) -> str:
    """Return whose host the process is; the host itself carries no marker."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    is_host = len(words) > 1 and words[-2].endswith(_HOST_MAIN)
    return words[-1].rpartition(b"/")[2].decode("utf-8", "replace") if is_host else ""


def _parent_of(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return 0
    return int(stat.rpartition(b")")[2].split()[_PARENT])
