"""Exit codes in words: what a program's end says to a person."""

from __future__ import annotations

import signal
from typing import Final

_SIGNAL_BASE: Final = 128
"""A program that signal N ended has the code 128 + N, as shells count."""


def failure_text(exit_code: int | None, last_line: str | None) -> str:
    """Return why an execution failed, in one line: its exit code or signal, and the last thing it said."""
    text = _exit_text(exit_code)
    return f"{text}: {last_line}" if last_line else text


def _exit_text(exit_code: int | None) -> str:
    if exit_code is None:
        return "ended without an exit code"
    if exit_code > _SIGNAL_BASE:
        try:
            return f"ended by {signal.Signals(exit_code - _SIGNAL_BASE).name}"
        except ValueError:
            pass
    return f"exit {exit_code}"
