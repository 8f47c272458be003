"""The kernel's part of the sandbox: namespaces and mounts around a program that is about to start, on Linux.

Standard library only. A process that is about to become the program calls ``enter``; it keeps its number, its parent
and its signals, which a program in between, such as bubblewrap, would not give it: that one dies of a ctrl+c which the
program itself survives.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Source: linux/sched.h, linux/mount.h, linux/prctl.h, asm-generic/unistd.h.
NEW_MOUNTS, NEW_USER, NEW_PIDS, NEW_NETWORK = 0x00020000, 0x10000000, 0x20000000, 0x40000000
NO_SUID, NO_DEVICES, NO_EXEC = 2, 4, 8
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE, _SLAVE = 1, 32, 4096, 0x4000, 0x40000, 0x80000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_HERE, _CLONE, _CLOSE_ON_EXEC, _AT_RECURSIVE, _EMPTY_SOURCE = -100, 1, os.O_CLOEXEC, 0x8000, 4
_SET_SECCOMP, _DROP_BOUND, _SET_NO_NEW_PRIVILEGES = 22, 24, 38
_FILTER, _MOST_POWERS, _SETS_FILE_POWERS = 2, 64, 31

# Source: linux/if.h, linux/sockios.h.
_SET_FLAGS, _IS_UP = 0x8914, 1

# Source: linux/seccomp.h, linux/bpf_common.h, linux/audit.h, and the tables of system calls.
_LOAD, _IS, _RETURN = 0x20, 0x15, 0x06
_CALL_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_ALLOW, _REFUSE = 0x7FFF0000, 0x0005000D
"""Let a call through, or answer it with ``EACCES``."""
_UNIX_SOCKET = 1
_MAKES_SOCKETS = {
    0xC000003E: ((41, 0x40000029), (425, 0x400001A9)),
    0xC00000B7: ((198,), (425,)),
    0x40000003: ((359,), (102, 425)),
}
"""By architecture (x86-64, Arm, and 32 bits of x86): the calls whose first argument says which kind, and other ways."""

_EVERYTHING = b"/"
_NOTHING = b"/dev/null"


class Kernel:
    """Calls of the kernel that Python has no words for.

    Raises:
        OSError: Any of its methods, when the kernel refuses.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def control(self, option: int, *values: int) -> int:
        """Return what ``prctl`` says; a refusal is no error."""
        return int(self._libc.prctl(option, *values, *[0] * (4 - len(values))))

    def leave(self, spaces: int) -> None:
        """Have namespaces of one's own, as the same user and group."""
        user, group = os.getuid(), os.getgid()
        self._require(self._libc.unshare(NEW_USER | spaces))
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)

    def part_mounts(self, *, hears_others: bool = False) -> None:
        """Let no mount from here on be seen outside; ``hears_others`` lets those of the system come in."""
        self._mount(None, _EVERYTHING, None, _RECURSIVE | (_SLAVE if hears_others else _PRIVATE))

    def mount_processes(self) -> None:
        """Show the processes of this namespace alone."""
        self._mount(b"proc", b"/proc", b"proc", NO_SUID | NO_DEVICES | NO_EXEC)

    def mount_memory(self, place: str, options: str) -> None:
        """Put an empty folder in memory over one that is there."""
        self._mount(b"tmpfs", os.fsencode(place), b"tmpfs", NO_SUID | NO_DEVICES, options)

    def keep_from_writing(self, place: str) -> None:
        """Let nobody write what is mounted there."""
        self._mount(None, os.fsencode(place), None, _REMOUNT | _BIND | _READ_ONLY)

    def keep_all_from_writing(self) -> None:
        """Let nobody write anything that is mounted by now."""
        attributes = (ctypes.c_uint64 * 4)(_READ_ONLY, 0, 0, 0)
        size = ctypes.c_size_t(ctypes.sizeof(attributes))
        self._require(self._libc.syscall(_MOUNT_SETATTR, _HERE, _EVERYTHING, _AT_RECURSIVE, attributes, size))

    def take(self, place: str) -> int:
        """Return a file that stands for a folder or file with all that is mounted below, as it is now; see ``put``."""
        flags = _CLONE | _CLOSE_ON_EXEC | _AT_RECURSIVE
        return self._require(self._libc.syscall(_OPEN_TREE, _HERE, os.fsencode(place), flags))

    def put(self, taken: int, place: str) -> None:
        """Mount what was taken over what is there."""
        arguments = (taken, b"", _HERE, os.fsencode(place), _EMPTY_SOURCE)
        self._require(self._libc.syscall(_MOVE_MOUNT, *arguments))
        os.close(taken)

    def give_up_powers(self) -> None:
        """Let no program from here on have or gain the powers that a namespace of one's own gives."""
        for power in range(_MOST_POWERS):
            # Without this one root makes no namespace of its own, as the sandboxes of agents do.
            if power != _SETS_FILE_POWERS:
                self.control(_DROP_BOUND, power)
        self.control(_SET_NO_NEW_PRIVILEGES, 1)

    def refuse_sockets(self) -> None:
        """Let no process from here on make a socket by which it could speak to another on this machine."""
        self.control(_SET_NO_NEW_PRIVILEGES, 1)
        steps = [(_LOAD, 0, 0, _ARCHITECTURE_AT)]
        for architecture, (by_kind, others) in _MAKES_SOCKETS.items():
            calls = [(_LOAD, 0, 0, _CALL_AT)]
            calls += [step for call in others for step in ((_IS, 0, 1, call), (_RETURN, 0, 0, _REFUSE))]
            for call in by_kind:
                kind = [(_LOAD, 0, 0, _FIRST_ARGUMENT_AT), (_IS, 0, 1, _UNIX_SOCKET), (_RETURN, 0, 0, _REFUSE)]
                calls += [(_IS, 0, len(kind) + 1, call), *kind, (_RETURN, 0, 0, _ALLOW)]
            calls.append((_RETURN, 0, 0, _ALLOW))
            steps += [(_IS, 0, len(calls), architecture), *calls]
        steps.append((_RETURN, 0, 0, _ALLOW))
        code = b"".join(struct.pack("HBBI", *step) for step in steps)
        held = ctypes.create_string_buffer(code, len(code))
        program = struct.pack("@HP", len(steps), ctypes.addressof(held))
        self._libc.prctl(_SET_SECCOMP, _FILTER, ctypes.create_string_buffer(program, len(program)), 0, 0)

    def _mount(self, source: bytes | None, target: bytes, kind: bytes | None, flags: int, options: str = "") -> None:
        data = ctypes.c_char_p(options.encode()) if options else None
        self._require(self._libc.mount(source, target, kind, ctypes.c_ulong(flags), data))

    def _require(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result


def enter(layout: dict[str, object]) -> None:
    """Enter a sandbox, for good; the process has no other thread, and becomes the program next.

    Args:
        layout: All paths are absolute, without links, and may be missing. ``hidden`` are folders that look empty and
            files that read empty, ``emptied`` folders that are empty and may be filled, ``copied`` folders whose files
            belong to the user, ``kept`` what stays as it is below those. ``writable`` is what may be written, None for
            everything. ``socket`` is none, or a socket and where it is found. ``has_network`` says whether there is
            more of a network than this program itself.

    Raises:
        OSError: It cannot be had here; nothing is changed outside of this process.
    """
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "this system has no sandbox")
    kernel = Kernel()
    writable = None if layout["writable"] is None else _present(layout["writable"])
    kernel.leave(NEW_MOUNTS | (0 if layout["has_network"] else NEW_NETWORK))
    kernel.part_mounts(hears_others=True)
    socket = _socket_of(layout["socket"])
    listener = None if socket is None else kernel.take(socket[0])
    closed = _arrange(kernel, layout, writable)
    if socket is not None and listener is not None:
        _make_place(socket[1], is_folder=False)
        kernel.put(listener, socket[1])
    for place in closed:
        kernel.keep_from_writing(place)
    if not layout["has_network"]:
        _raise_loopback()
    kernel.give_up_powers()


def _arrange(kernel: Kernel, layout: dict[str, object], writable: list[str] | None) -> list[str]:
    """Mount what hides and what stays, from the root down; return what is still to be kept from writing."""
    hidden, emptied, copied = (_outermost(_unmoved(layout[name])) for name in ("hidden", "emptied", "copied"))
    staying = {*_present(layout["kept"]), *(writable or ()), *_renamable_above({*hidden, *emptied})}
    taken = {place: kernel.take(place) for place in staying}
    files = {place: kernel.take(os.fsdecode(_NOTHING)) for place in hidden if not os.path.isdir(place)}
    copies = {place: _contents(place) for place in copied}
    if writable is not None:
        kernel.keep_all_from_writing()
    for place in sorted({*hidden, *emptied, *copied, *taken}, key=_depth):
        if place in taken:
            _make_place(place, is_folder=stat.S_ISDIR(os.fstat(taken[place]).st_mode))
            kernel.put(taken[place], place)
            if writable is not None and not _is_below(place, writable):
                kernel.keep_from_writing(place)
        if place in files:
            kernel.put(files[place], place)
        elif place in hidden or place in emptied or place in copies:
            kernel.mount_memory(place, "size=64m,mode=700")
            _write(place, copies.get(place, {}))
    return [place for place in {*hidden, *copied} if place not in files]


def _present(places: object) -> list[str]:
    """Return those that are there; what has become a link since it was planned stands for nothing that was meant."""
    return [one for one in _texts(places) if os.path.lexists(one) and os.path.realpath(one) == one]


def _unmoved(places: object) -> list[str]:
    """Return those that are there, as ``_present`` does; what has become a link has put aside what is to be hidden.

    Raises:
        OSError: One has.
    """
    for place in _texts(places):
        if os.path.realpath(place) != place:
            raise OSError(errno.ELOOP, "what it hides was moved while it started", place)
    return _present(places)


def _texts(places: object) -> set[str]:
    return {place for place in places if isinstance(place, str)} if isinstance(places, list) else set()


def _outermost(places: list[str]) -> list[str]:
    return [one for one in places if not any(one.startswith(f"{up}/") for up in places)]


def _renamable_above(places: set[str]) -> set[str]:
    """Return the folders above these that the user could rename; one on which something is mounted cannot be."""
    above = set[str]()
    for place in places:
        at = os.path.dirname(place)
        while at != "/" and at not in above:
            if os.access(os.path.dirname(at), os.W_OK):
                above.add(at)
            at = os.path.dirname(at)
    return above - places


def _is_below(place: str, folders: Sequence[str]) -> bool:
    return any(place == folder or place.startswith(f"{folder}/") for folder in folders)


def _socket_of(told: object) -> Sequence[str] | None:
    return told if isinstance(told, list) and all(isinstance(one, str) for one in told) else None


def _depth(place: str) -> int:
    return place.count("/")


def _make_place(place: str, *, is_folder: bool) -> None:
    """Make what is mounted over, where a hidden folder has taken it away."""
    if not os.path.lexists(place):
        os.makedirs(place if is_folder else os.path.dirname(place), mode=0o700, exist_ok=True)
        if not is_folder:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o600))


def _contents(folder: str) -> dict[str, bytes]:
    contents = {}
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            if entry.is_file():
                with open(entry.path, "rb") as file:
                    contents[entry.name] = file.read()
    return contents


def _write(folder: str, contents: dict[str, bytes]) -> None:
    for name, content in contents.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
        os.chmod(os.path.join(folder, name), 0o644)


def _raise_loopback() -> None:
    import fcntl  # noqa: PLC0415 - seldom needed
    import socket  # noqa: PLC0415

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, _SET_FLAGS, struct.pack("16sH14x", b"lo", _IS_UP))
