"""Opens files that agents may have compressed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, Self

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from types import TracebackType

UNREADABLE: Final = (OSError, EOFError, zstd.ZstdError)
"""What opening and reading may raise: the last two when the compressed bytes are cut off or damaged."""


class OpenedFile(Protocol):
    """A file that is open for reading bytes."""

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes; none at the end."""
        ...

    def seek(self, offset: int, /) -> int:
        """Go to the offset from the beginning."""
        ...

    def fileno(self) -> int:
        """Return the descriptor of the file as it lies there."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...


def open_file(path: str) -> OpenedFile:
    """Return the file opened for reading bytes, unpacked when its name ends with ``.zst``; the caller closes it."""
    if path.endswith(".zst"):
        return zstd.open(path, "rb")
    return Path(path).open("rb", buffering=0)


def why_unreadable(error: BaseException) -> str:
    """Return in a few words why a file could not be read."""
    if isinstance(error, OSError) and error.strerror:
        return f"it cannot be read: {error.strerror.lower()}"
    return "its compressed bytes are damaged or cut off"
