"""Where unexpected errors of the application go: a file of its own, with tracebacks and without secrets."""

from __future__ import annotations

import os
import re
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from agentmon.domain.redaction import MASK, redact
from agentmon.private_folders import make_private_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_FILE_MAX_BYTES: Final = 1_000_000
_SECRET_NAME: Final = re.compile(r"(?i)key|token|secret|pass|credential|auth|session|cookie")
_SECRET_MIN_CHARACTERS: Final = 6


def write_error(logs_dir: Path, error: BaseException) -> Path | None:
    """Append the error with its traceback to ``app.log`` and return the file; None when that could not be written.

    A file over 1 MB is set aside as ``app.log.1`` first.
    """
    log_file = logs_dir / "app.log"
    try:
        make_private_folder(logs_dir)
        if log_file.exists() and log_file.stat().st_size > _FILE_MAX_BYTES:
            log_file.replace(log_file.with_name("app.log.1"))
        append_private(log_file, f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {traceback_text(error)}\n")
    except OSError:
        return None
    return log_file


def without_environment(text: str, environ: Mapping[str, str]) -> str:
    """Return the text with secrets masked: those known by their shape, and the values of variables named like one."""
    values = {
        value for name, value in environ.items() if _SECRET_NAME.search(name) and len(value) >= _SECRET_MIN_CHARACTERS
    }
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, MASK)
    return redact(text)


def traceback_text(error: BaseException) -> str:
    """Return the error with its traceback, without secrets; the values of variables are not in it."""
    return without_environment("".join(traceback.format_exception(error)), os.environ)


def append_private(file: Path, text: str) -> None:
    """Append to a file that only its owner reads.

    Raises:
        OSError: It cannot be written.
    """
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace") as handle:
        handle.write(text)
