"""The end of a program in words: its exit code, or the signal that ended it."""

from __future__ import annotations

import signal


def failure_text(exit_code: int | None, signal_number: object, last_line: str | None) -> str:
    """Return why an execution failed, in one line: its exit code or signal, and the last thing it said.

    A program may exit with 137 by itself, as a shell does whose command was killed: only a signal is a signal.
    """
    text = _exit_text(exit_code, signal_number)
    return f"{text}: {last_line}" if last_line else text


def _exit_text(exit_code: int | None, signal_number: object) -> str:
    if isinstance(signal_number, int):
        try:
            return f"ended by {signal.Signals(signal_number).name}"
        except ValueError:
            return f"ended by signal {signal_number}"
    return "ended without an exit code" if exit_code is None else f"exit {exit_code}"
