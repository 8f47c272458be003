"""Whether this machine has a wall: one is tried, since no file says so for all systems."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAIN: Final = Path(__file__).with_name("__main__.py")
_WITHIN_S: Final = 10.0
_TRIED: Final = {
    "hidden": ["/opt"],
    "emptied": [],
    "copied": [],
    "kept": [],
    "writable": ["/tmp"],
    "socket": None,
    "has_network": True,
}


def behind(wall: Mapping[str, object] | None, command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that runs another one behind a wall; itself when there is none."""
    return command if wall is None else (sys.executable, "-I", "-S", str(_MAIN), json.dumps(wall), *command)


def find_wall_problem() -> str:
    """Return why no run can have a wall here, as a sentence; empty when it can. Blocks for some 30 ms."""
    if sys.platform != "linux":
        return "only Linux has what it is made of"
    try:
        tried = subprocess.run(
            behind(_TRIED, ("/bin/sh", "-c", ":")),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"it could not be tried: {error}"
    if tried.returncode == 0:
        return ""
    said = tried.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"the kernel refuses a namespace or a mount: {said[-1].rpartition(': ')[2] if said else 'it says nothing'}"
