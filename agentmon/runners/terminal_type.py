"""Which ``TERM`` programs of this system can draw on: that of the person, where the system knows it, or one like it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SYSTEM_FOLDERS: Final = (
    *("/etc/terminfo", "/lib/terminfo", "/usr/lib/terminfo", "/usr/share/terminfo", "/usr/share/lib/terminfo"),
    *("/usr/share/misc/terminfo", "/usr/local/share/terminfo", "/opt/homebrew/share/terminfo"),
)
_OF_MULTIPLEXERS: Final = ("screen-256color", "screen")
_OF_OTHERS: Final = ("xterm-256color", "xterm", "vt100")
_ASKING_TIMEOUT_S: Final = 2.0


def usable_terminal(environ: Mapping[str, str]) -> str:
    """Return ``TERM`` when this system has a description of it, otherwise the most able one like it that it has.

    Terminals that are younger than the system, such as Ghostty, kitty and foot, are not in its descriptions, and all
    programs that draw refuse to start there. They obey what xterm obeys.
    """
    terminal = environ.get("TERM", "")
    if _is_known(terminal, environ) or _is_described(terminal, environ):
        return terminal
    likely = _OF_MULTIPLEXERS if terminal.startswith(("tmux", "screen")) else ()
    return next((one for one in (*likely, *_OF_OTHERS) if _is_known(one, environ)), terminal)


def with_usable_terminal(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with a ``TERM`` on which programs of this system can draw."""
    return {**environ, "TERM": usable_terminal(environ)} if environ.get("TERM") else dict(environ)


def _is_known(terminal: str, environ: Mapping[str, str]) -> bool:
    # By its first letter, or by the number of that where the file system knows no case. Source: term(5) of ncurses.
    places = (terminal[:1], f"{ord(terminal[0]):x}") if terminal and "/" not in terminal else ()
    return any(
        os.path.isfile(folder / place / terminal)  # noqa: PTH113 - pathlib raises in a folder that is another user's
        for folder in _folders(environ)
        for place in places
    )


def _folders(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield where ncurses looks. Source: terminfo(5), "Fetching Compiled Descriptions"."""
    named = (environ.get("TERMINFO", ""), *environ.get("TERMINFO_DIRS", "").split(":"))
    home = environ.get("HOME", "")
    yield from (Path(folder) for folder in (*named, f"{home}/.terminfo" if home else "", *_SYSTEM_FOLDERS) if folder)


def _is_described(terminal: str, environ: Mapping[str, str]) -> bool:
    """Return whether ncurses itself finds the terminal in a place that is not among the usual ones."""
    program = shutil.which("infocmp", path=environ.get("PATH", os.defpath))
    if program is None or terminal.startswith("-"):
        return False
    try:
        asked = subprocess.run(
            [program, terminal],
            env=dict(environ),
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_ASKING_TIMEOUT_S,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0
