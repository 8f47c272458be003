"""A pause of the run: every process of it is halted, and later all of them go on."""

from __future__ import annotations

import time

from agentmon.runners.host.family import send_to_same
from agentmon.runners.host.lean import signal
from agentmon.runners.host.time_limit import PAUSE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.host.family import Family
    from agentmon.runners.host.journal import Journal
    from agentmon.runners.host.process_table import Process
    from agentmon.runners.host.time_limit import TimeLimit

_LOOK_INTERVAL_S = 0.02
_LOOK_FOR_S = 2.0
"""How long a process may take to halt before it is named as one that runs on."""
_LATE_LOOK_INTERVAL_S = 1.0
# One that waits for a device, or for its vfork child, halts when it comes back: the signal waits for it.
_HALTED = frozenset("TtDU")


class Pause:
    """Whether the run is paused by a command; its time limit stands still meanwhile.

    A program that is halted by anybody else is not paused.
    """

    __slots__ = (
        "_asked",
        "_command_id",
        "_deadline",
        "_family",
        "_has_noted",
        "_journal",
        "_next_look",
        "_time_limit",
        "is_on",
    )

    def __init__(self, family: Family, journal: Journal, time_limit: TimeLimit) -> None:
        self._family = family
        self._journal = journal
        self._time_limit = time_limit
        self._command_id = ""
        self.is_on = False
        self._asked: dict[tuple[int, str], Process] = {}
        self._next_look = float("inf")
        self._deadline = float("inf")
        self._has_noted = False

    @property
    def next_step(self) -> float:
        """When ``advance`` has something to do, on the monotonic clock."""
        return self._next_look

    def begin(self, now: float, command_id: str) -> None:
        """Halt everything of the run; ``paused`` is journaled when a look finds nothing that still runs.

        What does not halt within 2 s is named there as running on, and what it starts is halted too; the entry comes
        again once nothing runs any more. A run that is paused stays so, and one whose program has not started yet has
        nothing to halt.
        """
        if self.is_on:
            return
        self.is_on = True
        self._time_limit.hold(PAUSE, now)
        self._command_id = command_id
        self._asked.clear()
        self._has_noted = False
        self._deadline = now + _LOOK_FOR_S
        self._look(now)

    def advance(self, now: float) -> None:
        """Look again whether something still runs, when the time for it has come."""
        if now >= self._next_look:
            self._look(now)

    def end(self, command_id: str | None = None) -> None:
        """Let everything go on; journaled as ``resumed`` when a command asked for it."""
        if not self.is_on:
            return
        members = self._by_descent()
        if command_id is not None and not self._has_noted:
            self._note_paused(members)
        # Children before parents, as they were halted parents first: a shell never finds a child of its own halted.
        for process in reversed(members):
            self._asked.pop(_identity(process), None)
            send_to_same(process, signal.SIGCONT)
        # Those that nothing leads to any more, since what led to them was killed meanwhile.
        for process in self._asked.values():
            send_to_same(process, signal.SIGCONT)
        if command_id is not None:
            self._journal.add("resumed", command_id=command_id)
        self.forget(time.monotonic())

    def forget(self, now: float) -> None:
        """Take the pause as over, since the run is being ended, which lets what is halted go on by itself."""
        self._time_limit.let_go(PAUSE, now)
        self.is_on = False
        self._next_look = float("inf")

    def _look(self, now: float) -> None:
        members = self._by_descent()
        # One that was asked before this look began can have no child that the look did not see.
        is_quiet = all(_identity(process) in self._asked and process.state in _HALTED for process in members)
        if is_quiet:
            self._next_look = float("inf")
            self._note_paused(members)
            return
        self._family.send(signal.SIGSTOP, members)
        self._asked.update((_identity(process), process) for process in members)
        self._next_look = now + _LOOK_INTERVAL_S
        if now >= self._deadline:
            self._next_look = now + _LATE_LOOK_INTERVAL_S
            if not self._has_noted:
                self._note_paused(members)

    def _note_paused(self, members: list[Process]) -> None:
        self._has_noted = True
        self._journal.add(
            "paused",
            command_id=self._command_id,
            pids=sorted(process.pid for process in members if process.state in _HALTED),
            still_running=sorted(process.pid for process in members if process.state not in _HALTED),
        )

    def _by_descent(self) -> list[Process]:
        """Return the members with each parent before its children."""
        members = {process.pid: process for process in self._family.find_members()}

        def depth(process: Process) -> int:
            count = 0
            parent = members.get(process.parent)
            while parent is not None and count < len(members):
                count += 1
                parent = members.get(parent.parent)
            return count

        return sorted(members.values(), key=depth)


def _identity(process: Process) -> tuple[int, str]:
    return process.pid, process.start_time
