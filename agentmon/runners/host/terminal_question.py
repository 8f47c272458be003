"""Whether a program waits for a person at its terminal: its output rests on an open line while it reads there."""

from __future__ import annotations

import os
import termios

from agentmon.runners.host import process_table
from agentmon.runners.host.waiting_calls import find_waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.host.agent import Agent
    from agentmon.runners.host.journal import Journal
    from agentmon.runners.host.progress import Progress
    from agentmon.runners.host.waiting_calls import Wait

_AT_REST_S = 1.0
_MOST_REST_S = 30.0
_LFLAG = 3
_TERMINAL_NAMES = ("/dev/tty", "/dev/pts/")
_MAX_QUESTION_CHARACTERS = 120


class TerminalQuestion:
    """Tells the journal when the program begins to wait for a person, and when it goes on.

    A program that merely thinks is never taken for one that waits: that it reads there has to be seen, but where the
    system does not tell, and echo is off while the terminal takes whole lines, as it is for a password. One that looks
    whether there is something to read, at other files besides, is a guess.
    """

    __slots__ = ("_agent", "_is_asking", "_journal", "_progress", "_reader", "_rest_s", "next_look")

    def __init__(self, agent: Agent, journal: Journal, progress: Progress) -> None:
        self._agent = agent
        self._journal = journal
        self._progress = progress
        self._is_asking = False
        self._reader = 0
        self._rest_s = _AT_REST_S
        self.next_look = float("inf")
        """On the monotonic clock."""

    def note_output(self, now: float) -> None:
        """Take note of output: the program is at work, whatever it asked before."""
        self._rest_s = _AT_REST_S
        self.next_look = now + self._rest_s
        if self._is_asking:
            self._tell_work()

    def look(self, now: float) -> None:
        """Look whether it waits, when it is time to."""
        if now < self.next_look:
            return
        question = self._progress.open_line()
        if not question:
            self.next_look = float("inf")
            return
        signal = self._find_signal()
        if signal and not self._is_asking:
            self._is_asking = True
            note = f"asks in its terminal: {question[-_MAX_QUESTION_CHARACTERS:]}"
            self._tell({"activity": "waiting", "note": note, "source": f"its terminal: {signal}"})
        elif not signal and self._is_asking:
            self._tell_work()
        self._rest_s = _AT_REST_S if self._is_asking else min(2 * self._rest_s, _MOST_REST_S)
        self.next_look = now + self._rest_s

    def _tell_work(self) -> None:
        self._is_asking = False
        self._tell({"activity": "working", "note": "", "source": "its terminal: no longer waiting"})

    def _tell(self, event: dict[str, str]) -> None:
        self._journal.add("agent_event", event={"kind": "activity", **event})

    def _find_signal(self) -> str:
        """Return the sign that it waits; empty without one."""
        try:
            modes = termios.tcgetattr(self._agent.inner_terminal)[_LFLAG]
            group = os.tcgetpgrp(self._agent.outer_end)
        except (OSError, termios.error):
            return ""
        takes_lines, echoes = bool(modes & termios.ICANON), bool(modes & termios.ECHO)
        may_guess = not takes_lines and not echoes and not self._progress.is_on_other_screen
        how = f"{'whole lines' if takes_lines else 'single keys'}{'' if echoes else ' without echo'}"
        # Whoever read at the last look most likely still does; to find another takes the whole table of processes.
        waits = find_waits(self._reader) if _is_of_group(self._reader, group) else None
        reads, is_untold = _reads(waits, may_guess=may_guess), False
        if not reads:
            found = {pid: find_waits(pid) for pid in process_table.find_group(group)}
            is_untold = not found or None in found.values()
            readers = ((pid, _reads(waits, may_guess=may_guess)) for pid, waits in found.items())
            self._reader, reads = next((reader for reader in readers if reader[1]), (0, ""))
        if reads:
            return f"output rests on an open line, and the program {reads} {how} from the terminal"
        if takes_lines and not echoes and is_untold:
            return "output rests on an open line, and the terminal reads without echo"
        return ""


def _reads(waits: list[Wait] | None, *, may_guess: bool) -> str:
    """Return the verb that says how surely a process waits for input from a terminal; empty if it does not."""
    at_terminal = [wait for wait in waits or () if any(path.startswith(_TERMINAL_NAMES) for path in wait.paths)]
    if any(wait.is_read for wait in at_terminal):
        return "reads"
    if (may_guess and at_terminal) or any(wait.is_endless and len(wait.paths) == 1 for wait in at_terminal):
        return "waits, a guess, for"
    return ""


def _is_of_group(pid: int, group: int) -> bool:
    try:
        return pid > 0 and os.getpgid(pid) == group
    except OSError:
        return False
