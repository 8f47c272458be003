"""Whether this machine has a sandbox: one is tried, since no file says so for all systems."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from agentmon.runners.sandbox.plan import in_sandbox

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


def find_sandbox_problem() -> str:
    """Return why no run can have a sandbox here, as a sentence; empty when it can. Blocks for some 30 ms."""
    if sys.platform != "linux":
        return "only Linux has what it is made of"
    try:
        tried = subprocess.run(
            in_sandbox(_TRIED, ("/bin/sh", "-c", ":")),
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
