"""The file of agents of a workspace: its bytes, never through a link out of the workspace."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentmon.domain.errors import UsageError
from agentmon.domain.written_text import text_of

AGENT_FILE: Final = (".agentmon", "agents.toml")
SIZE_MAX_BYTES: Final = 256_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """A file as it was read at one moment."""

    path: str
    text: str
    digest: str
    """SHA-256 of its bytes, in hexadecimal digits."""


def read_workspace_file(root: str) -> FileRead | None:
    """Return the file of agents of a workspace; None when there is none.

    Raises:
        UsageError: It is no plain file of the workspace, too large, no UTF-8, or cannot be read.
    """
    path = Path(root, *AGENT_FILE)
    try:
        content = _bytes_of(Path(root), path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint="`ls -l` shows whose it is") from error
    try:
        text = text_of(content)
    except ValueError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    return FileRead(path=str(path), text=text, digest=hashlib.sha256(content).hexdigest())


def _bytes_of(root: Path, path: Path) -> bytes:
    if path.parent.is_symlink() or path.is_symlink():
        raise UsageError(
            f"{path} is a link, which could lead to any file", hint="put the file itself into the workspace"
        )
    # What is opened is what is looked at: the file may be exchanged between two looks.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:  # noqa: PTH123 - of a descriptor
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise UsageError(f"{path} is no file")
        if about.st_size > SIZE_MAX_BYTES:
            raise UsageError(f"{path} has more than {SIZE_MAX_BYTES // 1000} KB")
        if path.parent.resolve() != root.resolve() / AGENT_FILE[0]:
            raise UsageError(f"{path} lies outside of the workspace")
        return stream.read(SIZE_MAX_BYTES + 1)
