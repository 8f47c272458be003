"""Files that others left about a program, read up to a size and unpacked; nothing in them is run."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_MOST_BYTES: Final = 4 * 1024 * 1024
"""The largest page of this kind that is known has 1 MiB; a packed one may claim any size."""


def read_text(path: Path) -> str | None:
    """Return the text of a file, unpacked by what its name ends with and cut at 4 MiB; None when it cannot be read.

    A pipe or a device in its place is not opened: it may never answer.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb") as file:  # noqa: PTH123 - it is open already
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        try:
            with _unpacked(file, path.suffix) as unpacked:
                return unpacked.read(_MOST_BYTES).decode("utf-8", "replace")
        except (OSError, EOFError, zlib.error, lzma.LZMAError, _zstd_error()):
            return None


def _unpacked(file: IO[bytes], suffix: str) -> IO[bytes]:
    match suffix:
        case ".gz":
            return io.BufferedReader(gzip.GzipFile(fileobj=file))
        case ".bz2":
            return io.BufferedReader(bz2.BZ2File(file))
        case ".xz" | ".lzma":
            return io.BufferedReader(lzma.LZMAFile(file))
        case ".zst":
            if sys.version_info >= (3, 14):
                from compression.zstd import ZstdFile  # noqa: PLC0415
            else:
                from backports.zstd import ZstdFile  # noqa: PLC0415 - few pages are packed that way
            return io.BufferedReader(ZstdFile(file))
        case _:
            return file


def _zstd_error() -> type[Exception]:
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdError  # noqa: PLC0415
    else:
        from backports.zstd import ZstdError  # noqa: PLC0415 - see above
    return ZstdError
