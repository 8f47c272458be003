"""Signals to the host: noted by a handler, taken by the loop."""

from __future__ import annotations

import os

from agentmon.runners.host.lean import signal

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
# A dead tmux, worker or terminal must not end the host.
_IGNORED = ("SIGHUP", "SIGPIPE", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGXFSZ")


def reset_signals(kept: frozenset[int] = frozenset()) -> None:
    """Undo what a process inherited or set, but for the kept ones: nothing is ignored, handled or blocked."""
    for number in signal.valid_signals() - kept:
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            pass  # KILL, STOP and those that the C library keeps
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


class SignalInbox:
    """Collects signals; ``waker`` becomes readable when one came in."""

    __slots__ = ("_numbers", "_writer", "waker")

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self.waker, self._writer = os.pipe()
        os.set_blocking(self.waker, False)
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for name in _IGNORED:
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_IGN)
        for number in (*STOP_SIGNALS, signal.SIGCHLD, signal.SIGWINCH):
            signal.signal(number, self._note)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def take(self) -> list[int]:
        """Return the signals since the last call, in their order."""
        try:
            os.read(self.waker, 4096)
        except BlockingIOError:
            pass
        numbers, self._numbers = self._numbers, []
        return numbers

    def _note(self, number: int, _frame: object) -> None:
        if number not in self._numbers:
            self._numbers.append(number)
