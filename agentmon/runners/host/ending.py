"""How a run comes to its end: asked first, made to after a grace, and over only when nothing of it is alive."""

from __future__ import annotations

import time

from agentmon.runners.host import process_table
from agentmon.runners.host.lean import signal
from agentmon.runners.host.spec import INTERRUPTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.runners.host.family import Family
    from agentmon.runners.host.journal import Journal
    from agentmon.runners.host.process_table import Process

EXITED = "exited"
FINISHED = "finished"
STOPPED = "stopped"
TIMED_OUT = "timed_out"
START_FAILED = "start_failed"
TERMINATED = "terminated"

_LINGER_S = 1.0
"""How long what the program left behind may go on after its end."""
_STRAGGLER_GRACE_S = 2.0
_KILL_INTERVAL_S = 0.1
_LOOK_INTERVAL_S = 0.1
_KILL_FOR_S = 10.0
_STUCK_INTERVAL_S = 1.0

_RUNNING, _LINGERING, _ASKED, _KILLING, _STUCK, _OVER = range(6)


class Ending:
    """The way from a running program to ``is_over``; ``outcome`` is set by the first thing that leads there."""

    __slots__ = (
        "_family",
        "_interrupt",
        "_journal",
        "_kill_until",
        "_killed",
        "_next_look",
        "_next_step",
        "_phase",
        "_share_s",
        "_stuck_pids",
        "outcome",
    )

    def __init__(
        self, family: Family, journal: Journal, *, grace_s: float, interrupt: Sequence[str] = ("TERM",)
    ) -> None:
        """``interrupt`` names the signals of ``INTERRUPTS`` that come before the kill, ``grace_s`` the time for all."""
        self._family = family
        self._journal = journal
        self._share_s = grace_s / len(interrupt)
        self._interrupt = list(interrupt)
        """Those that were not sent yet."""
        self._stuck_pids: list[int] = []
        self._phase = _RUNNING
        self._next_step = float("inf")
        self._next_look = float("inf")
        self._kill_until = float("inf")
        self._killed: set[tuple[int, str]] = set()
        self.outcome = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing of the run is alive, or what is alive cannot be ended and is none of the outcome's matter."""
        return self._phase == _OVER

    @property
    def has_begun(self) -> bool:
        """Whether the program has ended or was asked to."""
        return self._phase != _RUNNING

    @property
    def next_step(self) -> float:
        """When ``advance`` has something to do again, on the monotonic clock."""
        return min(self._next_step, self._next_look)

    def note_program_end(self, now: float) -> None:
        """Take note that the program itself has ended."""
        if self._phase == _RUNNING:
            self.outcome = EXITED
            self._enter(_LINGERING, now + _LINGER_S)
            if not self._family.is_known_to_be_gone and not self._family.find_members():
                self._phase = _OVER

    def stop(self, outcome: str) -> None:
        """Ask everything of the run to end; what is left after the grace is killed."""
        if self._phase == _RUNNING:
            self.outcome = outcome
            self._interrupt_next()
        elif self._phase == _LINGERING:
            self._next_step = float("-inf")

    def kill(self, now: float, outcome: str) -> None:
        """Kill everything of the run at once, also when it was only asked before."""
        self.outcome = self.outcome or outcome
        if self._phase in {_RUNNING, _LINGERING, _ASKED}:
            self._begin_killing(now)
        elif self._phase == _STUCK:
            self._next_step = now

    def advance(self, now: float) -> None:
        """Take the next step when its time has come; end when nothing is left."""
        if self._phase in {_RUNNING, _OVER}:
            return
        if self._is_nothing_left(now):
            self._phase = _OVER
            return
        if now < self._next_step:
            return
        if self._phase == _LINGERING:
            self._end_stragglers()
        elif self._phase == _ASKED and self._interrupt and self.outcome != EXITED:
            self._interrupt_next()
        elif self._phase == _ASKED:
            self._begin_killing(now)
        else:
            self._kill_again(now)

    def _enter(self, phase: int, next_step: float) -> None:
        self._phase = phase
        self._next_step = next_step
        self._next_look = next_step

    def _is_nothing_left(self, now: float) -> bool:
        if self._family.agent_status is None:
            return False
        if self._family.is_known_to_be_gone:
            # One that was started for the run by someone else is found by its marker alone.
            return self.outcome == EXITED or not self._family.find_members()
        if now < min(self._next_look, self._next_step):
            return False
        self._next_look = self._next_step if self._phase == _STUCK else now + _LOOK_INTERVAL_S
        return not self._family.find_members()

    def _interrupt_next(self) -> None:
        self._ask(self._interrupt.pop(0))
        self._enter(_ASKED, time.monotonic() + self._share_s)

    def _ask(self, *names: str) -> None:
        members = self._family.find_members()
        for name in names:
            pids = self._family.send(INTERRUPTS[name], members)
            if pids:
                self._journal.add("signal_sent", signal=name, pids=pids)
        # A stopped process acts on the signal only once it goes on.
        self._family.send(signal.SIGCONT, members)

    def _end_stragglers(self) -> None:
        members = self._family.find_members()
        if members:
            self._journal.add("stragglers", processes=_describe(members))
            self._ask("HUP", "TERM")
        self._enter(_ASKED, time.monotonic() + _STRAGGLER_GRACE_S)

    def _begin_killing(self, now: float) -> None:
        self._kill_until = now + _KILL_FOR_S
        self._enter(_KILLING, now)
        self._kill_again(now)

    def _kill_again(self, now: float) -> None:
        members = self._family.find_members()
        pids = self._family.send(signal.SIGKILL, members)
        first_time = {process.pid for process in members if (process.pid, process.start_time) not in self._killed}
        if not first_time.isdisjoint(pids):
            self._journal.add("signal_sent", signal="KILL", pids=[pid for pid in pids if pid in first_time])
        self._killed.update((process.pid, process.start_time) for process in members)
        if self._phase == _STUCK:
            self._note_stuck(members)
            self._next_step = self._next_look = now + _STUCK_INTERVAL_S
        elif now < self._kill_until:
            self._next_step = now + _KILL_INTERVAL_S
        else:
            self._note_stuck(members)
            # The exit of a program stands whatever it left behind; a stop that did not succeed is not reported as one.
            self._enter(_OVER if self.outcome == EXITED else _STUCK, now + _STUCK_INTERVAL_S)

    def _note_stuck(self, members: list[Process]) -> None:
        pids = [process.pid for process in members]
        if pids and pids != self._stuck_pids:
            self._stuck_pids = pids
            self._journal.add("could_not_stop", processes=_describe(members))


def _describe(members: list[Process]) -> list[dict[str, object]]:
    return [{"pid": process.pid, "command": process_table.find_command(process)} for process in members[:100]]
