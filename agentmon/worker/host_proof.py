"""Whether the host of an execution lives: it holds a lock from its first moment to its last."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmon.runners.execution_folder import ExecutionFolder


def is_host_alive(folder: ExecutionFolder) -> bool:
    """Whether the host's lock is held; False also before the host has taken it."""
    try:
        descriptor = os.open(folder.host_lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
