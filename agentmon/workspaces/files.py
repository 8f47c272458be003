"""Files written so that a kill leaves the old or the new one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def replace_file(path: Path, content: bytes, *, times_ns: tuple[int, int] | None = None, lasts: bool = False) -> None:
    """Write a file of the store anew; whoever reads it finds all of the old or all of the new content.

    Args:
        path: The file; only one process at a time writes it.
        content: What it holds then.
        times_ns: Times of access and change to give it.
        lasts: Whether it has to survive a loss of power.
    """
    new = path.with_name(f"{path.name}.new")
    with new.open("wb") as file:
        file.write(content)
        if lasts:
            file.flush()
            os.fsync(file.fileno())
    if times_ns is not None:
        os.utime(new, ns=times_ns)
    new.replace(path)
    if lasts:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make what was made, renamed and removed in a folder survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
