"""The processes of one run: the program, its descendants, and whoever else carries the run's marker."""

from __future__ import annotations

import os

from agentmon.runners.host import process_table
from agentmon.runners.host.lean import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentmon.runners.host.process_table import Process

_PR_SET_CHILD_SUBREAPER = 36  # source: prctl(2), linux/prctl.h


def become_subreaper() -> bool:
    """Let processes whose parent dies become this process's children; ``False`` where the system cannot."""
    try:
        import _ctypes  # noqa: PLC0415 - absent from some interpreters; ctypes itself costs 10 ms

        this_program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type] # None is what dlopen(3) calls a null name
        prctl = _ctypes.dlsym(this_program, "prctl")
        return bool(_ctypes.call_function(prctl, (_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0)
    except (ImportError, AttributeError, OSError):
        return False


class Family:
    """All processes that belong to the run; reaps those that ended."""

    __slots__ = (
        "_is_subreaper",
        "_marker",
        "agent_pid",
        "agent_status",
        "has_children",
        "on_outsider_end",
        "outsiders",
    )

    def __init__(self, marker: str, *, is_subreaper: bool) -> None:
        self._marker = marker.encode("utf-8", "surrogateescape")
        self._is_subreaper = is_subreaper
        self.agent_pid: int | None = None
        self.agent_status: int | None = None
        """The wait status of the program once it has ended."""
        self.has_children = False
        self.outsiders: set[int] = set()
        """Children of the host that are none of the run's."""
        self.on_outsider_end: Callable[[int, int], object] | None = None
        """Told of each of these that has ended: its pid and its wait status."""

    @property
    def is_known_to_be_gone(self) -> bool:
        """Whether not having children proves that nothing of the run is alive."""
        return self._is_subreaper and not self.has_children

    def reap(self) -> None:
        """Take the status of every child that ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.has_children = False
                return
            if pid == 0:
                self.has_children = True
                return
            if pid in self.outsiders:
                self.outsiders.discard(pid)
                if self.on_outsider_end is not None:
                    self.on_outsider_end(pid, status)
            if pid == self.agent_pid and self.agent_status is None:
                self.agent_status = status

    def find_members(self) -> list[Process]:
        """Return the living processes of the run, ordered by pid; none before the program was started."""
        if self.agent_pid is None:
            return []
        own_pid = os.getpid()
        processes = process_table.read_processes(self._marker)
        children: dict[int, list[Process]] = {}
        for process in processes:
            children.setdefault(process.parent, []).append(process)
        members: dict[int, Process] = {}
        found = [process for process in processes if process.has_marker or process.session == self.agent_pid]
        found += children.get(own_pid, ())
        while found:
            process = found.pop()
            if process.pid not in members and process.pid not in {own_pid, 1} and process.pid not in self.outsiders:
                members[process.pid] = process
                found += children.get(process.pid, ())
        return [members[pid] for pid in sorted(members)]

    def send(self, number: int, members: Sequence[Process]) -> list[int]:
        """Send the signal once to each member that is still the same process; return the pids that were reached.

        The program's own group gets it in one call, so that a member born meanwhile gets it too.
        """
        reached = []
        group = self.agent_pid if self.agent_status is None else None
        if group is not None:
            try:
                os.killpg(group, number)
                reached = [process.pid for process in members if process.group == group and _may_signal(process.pid)]
            except OSError:
                group = None
        for process in members:
            if (group is None or process.group != group) and send_to_same(process, number):
                reached.append(process.pid)
        return sorted(reached)


def _may_signal(pid: int) -> bool:
    """Return whether a signal to its group reaches the process: the call succeeds when it reaches any of the group."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return False
    except OSError:
        pass  # it was reached and is gone
    return True


def send_to_same(process: Process, number: int) -> bool:
    """Send the signal unless the pid means another process by now."""
    try:
        if not hasattr(os, "pidfd_open"):
            if process_table.find_start_time(process.pid) != process.start_time:
                return False
            os.kill(process.pid, number)
            return True
        handle = os.pidfd_open(process.pid)
        try:
            # The handle names one process for good, so what is true of it now stays true at the next line.
            if process_table.find_start_time(process.pid) != process.start_time:
                return False
            signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)
    except OSError:
        return False
    return True
