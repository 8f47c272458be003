"""The system calls in which the threads of a process wait for input, read from /proc."""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_X86_64 = {
    0: "read", 19: "read", 23: "select", 270: "select", 7: "poll", 271: "ppoll",
    232: "epoll", 281: "epoll", 441: "epoll2",
}  # fmt: skip
_GENERIC = {63: "read", 65: "read", 72: "select", 73: "ppoll", 22: "epoll", 441: "epoll2"}
_CALLS = {"x86_64": _X86_64, "aarch64": _GENERIC, "riscv64": _GENERIC}
"""Numbers of system calls. Source: the tables of Linux 6.1."""
_MAX_FILES = 1024
_READABLE = 1
"""POLLIN and EPOLLIN."""
_FOR_EVER = 0xFFFF_FFFF
"""The timeout -1, of which registers may hold more than its 32 bits."""


class Wait:
    """A call that holds a thread until there is something to read."""

    __slots__ = ("is_endless", "is_read", "paths")

    def __init__(self, paths: list[str], *, is_read: bool, is_endless: bool) -> None:
        self.paths = paths
        """Of the files of which any ends it."""
        self.is_read = is_read
        """Whether it reads, and does not only look whether there is something to read."""
        self.is_endless = is_endless
        """Whether time alone does not end it."""


def find_waits(pid: int) -> list[Wait] | None:
    """Return what the threads of a process wait to read; None where the system does not tell."""
    names = _CALLS.get(os.uname().machine)
    if names is None:
        return None
    waits = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            fields = _read(f"/proc/{pid}/task/{thread}/syscall").split()
            name = names.get(int(fields[0])) if len(fields) > 1 else None  # one that runs is in no call
            if name is not None:
                waits.append(_wait(pid, name, [int(field, 16) for field in fields[1:7]]))
    except PermissionError:
        return None
    except (OSError, OverflowError, ValueError, struct.error):
        return [] if not os.path.exists(f"/proc/{pid}") else waits
    return waits


def _wait(pid: int, name: str, arguments: list[int]) -> Wait:
    if name == "read":
        files, is_endless = [arguments[0]], True
    elif name == "select":
        files, is_endless = list(_in_set(pid, arguments[0] & _FOR_EVER, arguments[1])), not arguments[4]
    elif name in {"poll", "ppoll"}:
        files = list(_in_list(pid, arguments[0], arguments[1] & _FOR_EVER))
        is_endless = not arguments[2] if name == "ppoll" else arguments[2] & _FOR_EVER == _FOR_EVER
    else:
        files = list(_in_epoll(pid, arguments[0]))
        is_endless = not arguments[3] if name == "epoll2" else arguments[3] & _FOR_EVER == _FOR_EVER
    paths = [os.readlink(f"/proc/{pid}/fd/{file}") for file in files]
    return Wait(paths, is_read=name == "read", is_endless=is_endless)


def _in_set(pid: int, count: int, address: int) -> Iterator[int]:
    """Yield the files of an ``fd_set``."""
    count = min(count, _MAX_FILES)
    bits = int.from_bytes(_memory(pid, address, (count + 7) // 8), "little") if address else 0
    return (file for file in range(count) if bits >> file & 1)


def _in_list(pid: int, address: int, count: int) -> Iterator[int]:
    """Yield the files of a list of ``struct pollfd`` that may become readable."""
    entries = struct.iter_unpack("=ihh", _memory(pid, address, 8 * min(count, _MAX_FILES)))
    return (file for file, events, _ in entries if file >= 0 and events & _READABLE)


def _in_epoll(pid: int, file: int) -> Iterator[int]:
    """Yield the files of an epoll that may become readable; source: proc(5), fdinfo."""
    for line in _read(f"/proc/{pid}/fdinfo/{file}").splitlines():
        fields = line.split()
        if fields[:1] == [b"tfd:"] and int(fields[3], 16) & _READABLE:
            yield int(fields[1])


def _memory(pid: int, address: int, size: int) -> bytes:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(size)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(65_536)
