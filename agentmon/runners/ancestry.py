"""Whether this process is part of an execution: by its own environment, or by that of a process it comes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.runners.host.spec import MARKER_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_ANCESTORS: Final = 64
_PARENT: Final = 1
_HOST_MAIN: Final = b"/runners/host/__main__.py"


def find_executions_around(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ids of the executions that this process is part of, the nearest first.

    A program that takes the marker out of the environment of a command is still found above it, where the system
    shows the environment of other processes. So is one that left its parents behind: it becomes a child of the host.
    """
    found = [environ.get(MARKER_VARIABLE, "")]
    pid = os.getppid()
    for _ in range(_MOST_ANCESTORS):
        if pid <= 1:
            break
        found += [_marker_of(pid), _hosted_by(pid)]
        pid = _parent_of(pid)
    return tuple(dict.fromkeys(one for one in found if one))


def _marker_of(pid: int) -> str:
    wanted = f"{MARKER_VARIABLE}=".encode()
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    return next((one[len(wanted) :].decode("utf-8", "replace") for one in variables if one.startswith(wanted)), "")


def _hosted_by(pid: int) -> str:
    """Return whose host the process is; the host itself carries no marker."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    is_host = len(words) > 1 and words[-2].endswith(_HOST_MAIN)
    return words[-1].rpartition(b"/")[2].decode("utf-8", "replace") if is_host else ""


def _parent_of(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return 0
    return int(stat.rpartition(b")")[2].split()[_PARENT])
