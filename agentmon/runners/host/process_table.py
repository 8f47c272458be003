"""What processes there are: through ``/proc``, or ``ps`` where there is none."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_COMMAND_CHARACTERS = 200
# Positions among the fields after the name (source: proc_pid_stat(5)), and among the columns asked of ps.
_STATE, _PARENT, _GROUP, _SESSION, _START_TIME = 0, 1, 2, 3, 19
_PS_COMMAND = 10
_IN_DEBUGGER = "t"
_HALTED_STATES = "T" + _IN_DEBUGGER
_HAS_PROC = os.path.exists("/proc/self/stat")


class Process:
    """A living process; zombies are none."""

    __slots__ = ("command", "group", "has_marker", "parent", "pid", "session", "start_time", "state")

    def __init__(
        self,
        *,
        pid: int,
        state: str,
        parent: int,
        group: int,
        session: int,
        start_time: str,
        command: str,
        has_marker: bool,
    ) -> None:
        self.pid = pid
        self.state = state
        """One letter of the system's: ``R`` runs, ``S`` and ``D`` sleep, ``T`` and ``t`` are halted."""
        self.parent = parent
        self.group = group
        self.session = session
        self.start_time = start_time
        self.command = command
        self.has_marker = has_marker


def read_processes(marker: bytes) -> list[Process]:
    """Return all living processes; ``marker`` is the ``NAME=value`` whose presence in the environment is noted."""
    return list(_from_proc(marker) if _HAS_PROC else read_with_ps(marker))


def find_group(group: int) -> list[int]:
    """Return the living processes of a group; none where the system has no ``/proc``."""
    found = []
    for name in os.listdir("/proc") if _HAS_PROC else ():
        fields = _read_stat(int(name)) if name.isdigit() else None
        if fields is not None and fields[_GROUP] == str(group):
            found.append(int(name))
    return found


def find_start_time(pid: int) -> str | None:
    """Return when the process started, in the system's own form; ``None`` when there is none alive."""
    if _HAS_PROC:
        fields = _read_stat(pid)
        return None if fields is None else fields[_START_TIME]
    state, *start_time = _run_ps("-p", str(pid), "-o", "stat=,lstart=").split() or ["Z"]
    return None if state.startswith("Z") else " ".join(start_time)


def is_halted(pid: int) -> bool:
    """Return whether a signal has stopped the process, so that it does nothing until it is let go on."""
    return _find_state(pid) in _HALTED_STATES


def is_in_debugger(pid: int) -> bool:
    """Return whether a debugger has halted the process; macOS tells no difference from a signal."""
    return _find_state(pid) == _IN_DEBUGGER


def _find_state(pid: int) -> str:
    """Return the letter of the state of the process; a blank when there is none alive."""
    fields = _read_stat(pid) if _HAS_PROC else _run_ps("-p", str(pid), "-o", "stat=").split()
    return " " if fields is None or not fields[_STATE:] else fields[_STATE][0]


def find_boot_id() -> str:
    """Return what tells this boot of the machine from others; empty where the system does not say."""
    return _read("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()


def _from_proc(marker: bytes) -> Iterator[Process]:
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        pid = int(name)
        fields = _read_stat(pid)
        if fields is None:
            continue
        environment = _read(f"/proc/{name}/environ")
        yield Process(
            pid=pid,
            state=fields[_STATE],
            parent=int(fields[_PARENT]),
            group=int(fields[_GROUP]),
            session=int(fields[_SESSION]),
            start_time=fields[_START_TIME],
            command="",
            has_marker=marker in environment and marker in environment.split(b"\0"),
        )


def find_command(process: Process) -> str:
    """Return the command line of the process, cut to 200 characters; empty when it is gone."""
    if process.command:
        return process.command
    arguments = _read(f"/proc/{process.pid}/cmdline")[: 4 * _MAX_COMMAND_CHARACTERS]
    command = arguments.replace(b"\0", b" ").decode("utf-8", "replace").strip()
    if not command:
        command = _read(f"/proc/{process.pid}/comm").decode("utf-8", "replace").strip()
    return command[:_MAX_COMMAND_CHARACTERS]


def _read_stat(pid: int) -> list[str] | None:
    """Return the fields after the name (state, parent, …); ``None`` for a zombie or no process."""
    # The name may hold blanks and brackets: the last bracket ends it.
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].decode("ascii", "replace").split()
    return fields if len(fields) > _START_TIME and fields[_STATE] not in {"Z", "X", "x"} else None


def _read(path: str) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        content = b""
        while piece := os.read(file, 65536):
            content += piece
    except OSError:
        return b""
    finally:
        os.close(file)
    return content


def read_with_ps(marker: bytes) -> Iterator[Process]:
    """Yield all living processes as ``ps`` tells them, environment included where it may be seen."""
    columns = "pid=,ppid=,pgid=,sess=,stat=,lstart=,command="
    text = _run_ps("-axww", "-E", "-o", columns) if os.uname().sysname == "Darwin" else _run_ps("axeww", "-o", columns)
    name = marker.decode("utf-8", "replace")
    for line in text.splitlines():
        fields = line.split(None, _PS_COMMAND)
        if len(fields) <= _PS_COMMAND or fields[4].startswith("Z"):
            continue
        command = fields[_PS_COMMAND]
        yield Process(
            pid=int(fields[0]),
            state=fields[4][0],
            parent=int(fields[1]),
            group=int(fields[2]),
            session=int(fields[3]) if fields[3].isdigit() else 0,
            start_time=" ".join(fields[5:10]),
            command=command[:_MAX_COMMAND_CHARACTERS],
            has_marker=name in command.split(" "),
        )


def _run_ps(*arguments: str) -> str:
    reader, writer = os.pipe()
    try:
        actions = [(os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
        pid = os.posix_spawnp("ps", ["ps", *arguments], {**os.environ, "LC_ALL": "C"}, file_actions=actions)
    except OSError:
        os.close(reader)
        return ""
    finally:
        os.close(writer)
    content = b""
    while piece := os.read(reader, 65536):
        content += piece
    os.close(reader)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass
    return content.decode("utf-8", "replace")
