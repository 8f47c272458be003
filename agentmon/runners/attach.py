"""How to attach to a session from where a person is: decisions; no tmux is asked."""

from __future__ import annotations

import os
import re
import shlex
import sys
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import UsageError
from agentmon.runners.terminal_type import usable_terminal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BACK_KEY: Final = "ctrl+q"
"""The key that the status line of each session names; the server's configuration binds it."""

_SESSION_ID: Final = re.compile(r"\$\d+")
_TRUE_COLOUR: Final = frozenset({"truecolor", "24bit"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachPlan:
    """A program to run with the terminal handed over to it."""

    argv: tuple[str, ...]
    environ: Mapping[str, str]
    """The whole environment of that program."""
    note: str
    """One line for the person, to be shown before."""


class _Place(Enum):
    TERMINAL = auto()
    OTHER_TMUX = auto()
    OWN_TMUX = auto()


def plan_attach(
    *,
    socket_path: Path,
    session_name: str,
    environ: Mapping[str, str],
    tmux_binary: str,
    read_only: bool = False,
    has_terminal: bool | None = None,
    has_unicode: bool | None = None,
) -> AttachPlan:
    """Return what to run to show a session; one key comes back to where the person was, whatever the place.

    In a plain terminal and inside a tmux of the user the program is a tmux client that ends on the way back. Inside
    a session of agentmon's own server it ends at once: the terminal shows the other session, and afterwards the
    first again.

    Args:
        socket_path: The socket of agentmon's server.
        session_name: The exact name, or better the id (``$3``), which a renamed session keeps.
        environ: The environment of the asking process.
        tmux_binary: The program to run, such as ``find_tmux`` gives.
        read_only: Watch without being able to type.
        has_terminal: Whether input and output are a terminal; found out from this process when None.
        has_unicode: Whether the locale is one of UTF-8; found out from this process when None.

    Raises:
        UsageError: There is no terminal, or one that cannot show a session, or it shows this one.
    """
    _require_terminal(environ, has_terminal=has_terminal)
    if has_unicode is None:
        has_unicode = sys.__stdout__ is None or "utf" in sys.__stdout__.encoding.lower()
    terminal = usable_terminal(environ)
    flags = ("-N", *(("-u",) if has_unicode else ()), *_colour_flags(environ))
    client = (tmux_binary, *flags, "-S", str(socket_path))
    attach = (*client, "attach-session", *(("-r",) if read_only else ()), "-t", _target(session_name))
    outside = {name: value for name, value in environ.items() if name not in {"TMUX", "TMUX_PANE"}}
    outside["TERM"] = terminal
    instead = "" if terminal == environ["TERM"] else f"; this system has no TERM={environ['TERM']}, {terminal} is used"
    match _find_place(socket_path, environ):
        case _Place.TERMINAL:
            return AttachPlan(argv=attach, environ=outside, note=f"{BACK_KEY} comes back; the run goes on{instead}")
        case _Place.OTHER_TMUX:
            note = f"{BACK_KEY} comes back into your own tmux session; the run goes on{instead}"
            return AttachPlan(argv=attach, environ=outside, note=note)
        case _Place.OWN_TMUX:
            # The client of the session around is replaced by two clients in turn, so that the key is a plain
            # detach everywhere: a read-only client may do no more than that.
            around = f"${environ['TMUX'].rsplit(',', 1)[1]}"
            if session_name == around:
                raise UsageError("you are in this session already", hint=f"{BACK_KEY} leaves it")
            back = (*client, "attach-session", "-t", around)
            chain = f"{shlex.join(attach)}; exec {shlex.join(back)}"
            argv = (*client, "detach-client", "-E", chain)
            note = f"{BACK_KEY} comes back to the session you are in; both runs go on"
            return AttachPlan(argv=argv, environ=dict(environ), note=note)


def _require_terminal(environ: Mapping[str, str], *, has_terminal: bool | None) -> None:
    if has_terminal is None:
        has_terminal = os.isatty(0) and os.isatty(1)
    if not has_terminal:
        message = "attaching needs a terminal: input or output is a file or a pipe"
        raise UsageError(message, hint="run it in a terminal, or follow the log with: agentmon log NUMBER -f")
    terminal = environ.get("TERM", "")
    if terminal in {"", "dumb", "unknown"}:
        said = f"TERM is {terminal}" if terminal else "TERM is not set"
        hint = "set TERM to what your terminal is, for example: TERM=xterm-256color agentmon attach NUMBER"
        raise UsageError(f"this terminal cannot show a session: {said}", hint=hint)


def _find_place(socket_path: Path, environ: Mapping[str, str]) -> _Place:
    parts = environ.get("TMUX", "").rsplit(",", 2)
    if not parts[0]:
        return _Place.TERMINAL
    is_whole = len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit()  # noqa: PLR2004 - socket, pid, session
    if is_whole and os.path.realpath(parts[0]) == os.path.realpath(socket_path) and _is_alive(int(parts[1])):
        return _Place.OWN_TMUX
    return _Place.OTHER_TMUX


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _target(session_name: str) -> str:
    return session_name if _SESSION_ID.fullmatch(session_name) else f"={session_name}"


def _colour_flags(environ: Mapping[str, str]) -> tuple[str, ...]:
    return ("-T", "RGB") if environ.get("COLORTERM", "").lower() in _TRUE_COLOUR else ()
