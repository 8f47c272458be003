"""Writing a log, or the lines of it that match, to a file of the person's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import ConflictError, NotFoundError, UsageError
from agentmon.logs.line_text import plain_text
from agentmon.logs.log_file import LogFile
from agentmon.logs.search import search_log
from agentmon.logs.text_log import TextLog

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from agentmon.logs.pattern import LogMatcher

_COPY_BYTES: Final = 1024 * 1024


def write_new_file(target: Path, pieces: Iterable[bytes], *, overwrite: bool = False) -> int:
    """Write the pieces to a file that only its owner can read, whole or not at all, and return its size in bytes.

    Raises:
        ConflictError: There is a file of this name already, and it is not to be overwritten.
        UsageError: It cannot be written, and why.
    """
    if not overwrite and os.path.lexists(target):
        raise ConflictError(f"there is a file already: {target}")
    if target.is_dir():
        raise UsageError(f"that is a folder, not a file: {target}")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            byte_count = 0
            with os.fdopen(descriptor, "wb") as file:
                for piece in pieces:
                    byte_count += file.write(piece)
            if overwrite:
                part.replace(target)
            else:
                _name(part, target)
        finally:
            part.unlink(missing_ok=True)
    except FileExistsError as error:
        raise ConflictError(f"there is a file already: {target}") from error
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {(error.strerror or str(error)).lower()}") from error
    return byte_count


def save_log(
    source: Path,
    target: Path,
    *,
    pattern: LogMatcher | None = None,
    overwrite: bool = False,
    text: bytes | None = None,
) -> int:
    """Write a log as the program wrote it, or its matching lines, to a file and return the size in bytes.

    What comes while it is being written is left out. A ``text`` that is shown in its place is written without colours.

    Raises:
        NotFoundError: There is no log.
        ConflictError: There is a file of this name already, and it is not to be overwritten.
        UsageError: It cannot be written, or it is the log itself.
    """
    with LogFile(source) if text is None else TextLog(text) as log:
        if not log.size:
            raise NotFoundError("the log is empty or gone: there is nothing to save")
        if target.exists() and source.exists() and target.samefile(source):
            raise UsageError("that is the log itself; name another file")
        pieces = _all_bytes(log) if pattern is None else _matching_bytes(log, pattern)
        if text is not None:
            pieces = (f"{plain_text(line)}\n".encode() for line in b"".join(pieces).splitlines())
        return write_new_file(target, pieces, overwrite=overwrite)


def _name(part: Path, target: Path) -> None:
    """Give the finished file its name; unlike a rename, a link never takes the place of a file that came meanwhile."""
    try:
        target.hardlink_to(part)
    except FileExistsError:
        raise
    except OSError:
        # Some file systems have no links.
        part.replace(target)


def _all_bytes(log: LogFile) -> Iterator[bytes]:
    position = 0
    while block := log.read(position, position + _COPY_BYTES):
        yield block
        position += len(block)


def _matching_bytes(log: LogFile, pattern: LogMatcher) -> Iterator[bytes]:
    for step in search_log(log, pattern, start=0):
        for start in step.matches:
            for line in log.lines_from(start, 1):
                yield log.read(line.start, line.end)
