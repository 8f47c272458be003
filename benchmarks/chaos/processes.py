"""The processes of one home, found by what they are: workers, tmux servers, hosts."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_SERVER_NAME = b"tmux: server"
_WORKERS = frozenset({b"agentmon.worker", b"benchmarks.chaos.shifted_worker"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One living process."""

    pid: int
    parent_pid: int
    execution_id: str | None = None
    """Whose host it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeProcesses:
    """What of a home lives now, its programs aside."""

    workers: tuple[Found, ...]
    """Those that are only starting, too."""
    servers: tuple[Found, ...]
    hosts: tuple[Found, ...]
    gits: tuple[Found, ...]
    """Those that agentmon started."""

    @property
    def parents(self) -> tuple[int, ...]:
        """The parents of hosts: tmux starts a host without a shell between, so its server is the parent."""
        servers = {server.pid for server in self.servers}
        return tuple(sorted({host.parent_pid for host in self.hosts} & servers))


def find_processes(home: Path) -> HomeProcesses:
    """Look through ``/proc``; a process that ends meanwhile is left out."""
    workers, servers, hosts, gits = [], [], [], []
    marker = f"AGENTMON_HOME={home}".encode()
    executions = os.fsencode(home / "executions") + b"/"
    socket = os.fsencode(home / "run" / "tmux.sock")
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if _WORKERS.intersection(words) and marker in (folder / "environ").read_bytes().split(b"\0"):
                workers.append(Found(pid=int(folder.name), parent_pid=_parent(folder)))
            elif socket in words and (folder / "comm").read_bytes().startswith(_SERVER_NAME):
                servers.append(Found(pid=int(folder.name), parent_pid=_parent(folder)))
            elif words[-2].startswith(executions) and words[-3].endswith(b"host/__main__.py"):
                execution_id = words[-2].rpartition(b"/")[2].decode()
                hosts.append(Found(pid=int(folder.name), parent_pid=_parent(folder), execution_id=execution_id))
            elif is_git(words) and marker in (folder / "environ").read_bytes().split(b"\0"):
                gits.append(Found(pid=int(folder.name), parent_pid=_parent(folder)))
    return HomeProcesses(workers=tuple(workers), servers=tuple(servers), hosts=tuple(hosts), gits=tuple(gits))


def is_git(words: list[bytes]) -> bool:
    """Return whether this is a command line of git."""
    return words[0] == b"git" or words[0].endswith(b"/git")


def gits_of(pid: int) -> list[int]:
    """Return the gits that a process has started and that live; none of a process that is gone."""
    found = []
    with contextlib.suppress(OSError):
        for thread in (_PROC / str(pid) / "task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                with contextlib.suppress(OSError):
                    found += [child] if is_git((_PROC / str(child) / "cmdline").read_bytes().split(b"\0")) else []
    return found


def _parent(folder: Path) -> int:
    return int((folder / "stat").read_bytes().rpartition(b")")[2].split()[1])


def kill(pid: int) -> bool:
    """Kill without a word; False when it was gone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
