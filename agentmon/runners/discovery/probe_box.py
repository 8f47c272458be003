"""The box of a question to a program: a process that starts the program and leaves nothing of it behind.

Standard library only, started with ``-I -S`` by ``probe``. On Linux the program finds a system that it can read but not
write, no network, no socket of others and no other process, as far as the kernel lets an ordinary user have that, and a
folder in memory as its home: of the person's home it finds what programs are installed in. Elsewhere it gets a scratch
folder, and what it started is found and killed.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
from pathlib import Path

# Isolated mode leaves out this folder; appended, so that nothing of the package's surroundings hides a standard module.
sys.path.append(os.path.abspath(__file__).rsplit(os.sep, 4)[0])  # noqa: PTH100 - as the host does

from agentmon.runners.sandbox.kernel import NEW_MOUNTS, NEW_NETWORK, NEW_PIDS, Kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_ORDERS = 0
"""Its end means that nobody wants to know any more, or that who asked is dead."""

# Source: linux/prctl.h.
_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36

_ALL, _NETWORK, _NOTHING = 2, 1, 0
"""How much of a box there is; what the kernel refuses is tried again with less."""
_UNBOXED = "unboxed"
_KILL_FOR_S = 2.0
_LOOK_EVERY_S = 0.02
_HOME_OPTIONS = "size=1g,mode=700"
_SHARED_FOLDERS = frozenset({(".local",), (".config",), (".cache",), ("Library",)})
"""Folders of a home in which each program has its own, two below."""
_OF_PROGRAMS = frozenset({"bin", "lib", "libexec"})
_OWN_DEPTH, _MOST_LINKS, _LONGEST_FIRST_LINE = 3, 10, 1000
_LARGEST_FILE_BYTES = 1024**3
"""Copilot CLI unpacks itself into its home before it says anything."""
_NICENESS = 10
"""Whoever asks has keys to answer."""


def main(words: list[str]) -> None:
    """Run a program in a box.

    Args:
        words: The descriptor that takes one JSON object about how it went, how much of a box there shall be at most
            (2 all, 1 no network, 0 a scratch home alone), the time limit in seconds, an empty folder that is removed at
            the end, the person's home, the path of the program, and its arguments.
    """
    news, most, deadline = int(words[0]), int(words[1]), time.monotonic() + float(words[2])
    os.set_inheritable(news, False)
    scratch = words[3]
    try:
        report = _see_through(scratch, Path(words[4]), words[5:], most, deadline)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    _tell(news, report)


def _see_through(scratch: str, home: Path, command: list[str], most: int, deadline: float) -> dict[str, object]:
    """Start the program, wait for its end, its time or the end of the orders, and kill what is left of it."""
    kernel = Kernel()
    is_linux = sys.platform == "linux"
    if is_linux:
        kernel.control(_SET_SUBREAPER, 1)
    wake, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    for level in range(most, _NOTHING - 1, -1) if is_linux else (_NOTHING,):
        told, telling = os.pipe()
        keeper = os.getpid()
        inner = os.fork()
        if inner == 0:
            _start_inside(kernel, keeper, level, scratch, home, command, telling)
        os.close(telling)
        end = _wait(inner, wake, deadline)
        _kill_family(inner)
        report = json.loads(_read_all(told) or "{}")
        os.close(told)
        if report.get("end") != _UNBOXED:
            return {"end": end} if end else report
    return {"end": "unstarted", "why": "no process could be made for it"}


def _wait(inner: int, wake: int, deadline: float) -> str:
    """Return why the program has to end before its time; empty when it ended by itself."""
    while True:
        rest_s = deadline - time.monotonic()
        if os.waitid(os.P_PID, inner, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return ""
        if rest_s <= 0:
            return "time"
        readable, _, _ = select.select([_ORDERS, wake], [], [], rest_s)
        if _ORDERS in readable:
            return "left"
        if readable:
            os.read(wake, 4096)


def _start_inside(
    kernel: Kernel, keeper: int, level: int, scratch: str, home: Path, command: list[str], telling: int
) -> NoReturn:
    """Become the leader of a session of its own, and the program or its first process; never returns."""
    try:
        os.setsid()
        _die_with_parent(kernel, keeper)
        if level == _NOTHING:
            _wait_for_program(kernel, scratch, command, telling)
        _leave_system(kernel, level)
        if level == _NETWORK:
            _wait_for_program(kernel, scratch, command, telling)
        first = os.fork()
        if first == 0:
            # Its parent is in another space of process numbers, where this one cannot look for it.
            _die_with_parent(kernel, 0)
            _make_room(kernel, scratch, home, _places_in(home, command[0]))
            _wait_for_program(kernel, scratch, command, telling)
        os.waitpid(first, 0)
    except OSError as error:
        is_box = level != _NOTHING
        _tell(telling, {"end": _UNBOXED} if is_box else {"end": "unstarted", "why": error.strerror or str(error)})
    os._exit(0)


def _die_with_parent(kernel: Kernel, parent: int) -> None:
    if sys.platform == "linux":
        kernel.control(_SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _leave_system(kernel: Kernel, level: int) -> None:
    """Have an own network, and with all of the box own processes and mounts; the user stays who they are."""
    kernel.leave(NEW_NETWORK | (NEW_PIDS | NEW_MOUNTS if level == _ALL else 0))


def _places_in(home: Path, program: str) -> list[Path]:
    """Return what of a home a program needs: where it and what it may start are installed.

    A home may be reached by a link; what is returned is below the folder that it leads to.
    """
    whole = home.resolve()
    found = [Path(program), *_interpreters_of(Path(program))]
    found += [Path(part) for text in os.environ.values() for part in text.split(os.pathsep) if part.startswith("/")]
    for place in found[:2]:
        at = place
        for _ in range(_MOST_LINKS):
            if not at.is_symlink():
                break
            at = Path(os.path.normpath(at.parent / at.readlink()))
            found.append(at)
    # A folder on the way may be a link as well.
    found += [place.resolve() for place in found]
    places = set[Path]()
    for place, top in itertools.product(found, {home, whole}):
        with contextlib.suppress(ValueError):
            parts = Path(os.path.normpath(place)).relative_to(top).parts
            is_shared = parts[:1] in _SHARED_FOLDERS
            if len(parts) == 1 and is_shared:
                places |= {whole / parts[0] / name for name in _OF_PROGRAMS}
            elif parts:
                depth = _OWN_DEPTH - (parts[1] in _OF_PROGRAMS) if is_shared else 1
                places.add(whole.joinpath(*parts[:depth]))
    return sorted(place for place in places if os.path.lexists(place) and places.isdisjoint(place.parents))


def _interpreters_of(program: Path) -> list[Path]:
    """Return the program that reads a script; none when it is no script."""
    with contextlib.suppress(OSError), program.open("rb") as file:
        line = file.readline(_LONGEST_FIRST_LINE)
        words = os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []
        if words:
            is_looked_up = len(words) > 1 and Path(words[0]).name == "env"
            return [Path(shutil.which(words[-1]) or words[0])] if is_looked_up else [Path(words[0])]
    return []


def _hide_home(kernel: Kernel, home: Path, places: list[Path], scratch: Path) -> None:
    """Put an empty folder in the place of a home, and in it what programs are installed in."""
    links = [(place, place.readlink()) for place in places if place.is_symlink()]
    taken = [(place, place.is_dir(), kernel.take(str(place))) for place in places if not place.is_symlink()]
    kernel.mount_memory(str(home), _HOME_OPTIONS)
    for place, is_folder, file in taken:
        (place if is_folder else place.parent).mkdir(parents=True, exist_ok=True)
        if not is_folder:
            place.touch()
        kernel.put(file, str(place))
    for place, linked in links:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(linked)
    if not scratch.exists():
        scratch.mkdir(parents=True)
    kernel.keep_from_writing(str(home))


def _make_room(kernel: Kernel, scratch: str, home: Path, places: list[Path]) -> None:
    """Mount the own processes, a home in memory, and everything else as it is, but not to be written."""
    kernel.part_mounts()
    kernel.mount_processes()
    with contextlib.suppress(OSError):
        kernel.keep_all_from_writing()
    whole = home.resolve()
    if whole.is_dir() and whole != Path("/"):
        _hide_home(kernel, whole, places, Path(scratch))
    kernel.mount_memory(scratch, _HOME_OPTIONS)


def _wait_for_program(kernel: Kernel, scratch: str, command: list[str], telling: int) -> NoReturn:
    """Start the program as a child, tell how it ended, and end; what it left is for others to kill."""
    failed, failing = os.pipe()
    parent = os.getpid()
    program = os.fork()
    if program == 0:
        try:
            _die_with_parent(kernel, parent)
            _become(kernel, scratch, command)
        except OSError as error:
            os.write(failing, (error.strerror or str(error)).encode())
        os._exit(1)
    os.close(failing)
    why = _read_all(failed).decode("utf-8", "replace")
    status = 0
    while True:
        # Whatever lost its parent is a child of the first process.
        pid, status = os.waitpid(-1, 0)
        if pid == program:
            break
    _tell(telling, {"end": "unstarted", "why": why} if why else {"end": "exit", "status": status})
    os._exit(0)


def _become(kernel: Kernel, scratch: str, command: list[str]) -> NoReturn:
    if sys.platform == "linux":
        kernel.refuse_sockets()
    os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE_BYTES, _LARGEST_FILE_BYTES))
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.chdir(scratch)
    os.execve(command[0], command, _environment(scratch))


def _environment(scratch: str) -> dict[str, str]:
    """Return the variables that were given, with a home and folders that nobody misses."""
    homes = dict.fromkeys(("HOME", "PWD"), scratch)
    for name, folder in (
        ("TMPDIR", "tmp"),
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_STATE_HOME", "state"),
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_RUNTIME_DIR", "run"),
    ):
        homes[name] = f"{scratch}/{folder}"
        Path(homes[name]).mkdir(mode=0o700)
    return {**os.environ, **homes, "TMP": homes["TMPDIR"], "TEMP": homes["TMPDIR"]}


def _kill_family(inner: int) -> None:
    """Kill what the inner process leads and whatever it left to this one, until there is none."""
    deadline = time.monotonic() + _KILL_FOR_S
    _kill(inner)
    while time.monotonic() < deadline:
        for pid in _children():
            _kill(pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(_LOOK_EVERY_S)


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _children() -> list[int]:
    own = str(os.getpid()).encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*") if sys.platform == "linux" else ():
        with contextlib.suppress(OSError):
            if (folder / "stat").read_bytes().rpartition(b")")[2].split()[1] == own:
                found.append(int(folder.name))
    return found


def _tell(telling: int, report: dict[str, object]) -> None:
    os.write(telling, json.dumps(report).encode())


def _read_all(file: int) -> bytes:
    content = b""
    while piece := os.read(file, 4096):
        content += piece
    return content


if __name__ == "__main__":
    main(sys.argv[1:])
