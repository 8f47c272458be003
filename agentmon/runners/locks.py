"""Locked files as proof of life: a lock goes with its process, however that ends, and is never a stranger's."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def is_locked(path: Path) -> bool:
    """Whether some process holds the file locked; False when there is no such file.

    Raises:
        OSError: The file is there and cannot be opened, so nothing is known of its lock.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
