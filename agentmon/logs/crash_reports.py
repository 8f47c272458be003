"""Reports of what ended the application: a file each, without secrets and without what was typed."""

from __future__ import annotations

import os
import platform
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from agentmon import __version__
from agentmon.logs.error_file import append_private, traceback_text, without_environment
from agentmon.private_folders import make_private_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MOST_REPORTS: Final = 10
_NAME: Final = re.compile(r"crash-(\d{8}T\d{6})-\d+\.txt")
_ERROR: Final = "error: "


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashReport:
    """One report."""

    file: Path
    at: datetime
    """Aware UTC."""
    summary: str
    """The type of the error; empty when the file cannot be read."""


def write_crash_report(logs_dir: Path, error: BaseException, facts: Mapping[str, str] | None = None) -> Path | None:
    """Write what ended the application to a new file and return it; None when that could not be written.

    Only the newest ten reports are kept.

    Args:
        logs_dir: The folder, made when it is missing.
        error: What ended it.
        facts: More that helps to find the cause, by name, such as the size of the terminal.
    """
    present = datetime.now(UTC)
    report_file = logs_dir / f"crash-{present.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
    told = {
        "agentmon": __version__,
        "Python": f"{platform.python_version()} on {sys.platform} {platform.machine()}",
        "at": present.isoformat(timespec="milliseconds"),
        **(facts or {}),
    }
    heading = without_environment("".join(f"{name}: {value}\n" for name, value in told.items()), os.environ)
    try:
        make_private_folder(logs_dir)
        append_private(report_file, f"{_ERROR}{type(error).__name__}\n{heading}\n{traceback_text(error)}")
    except OSError:
        return None
    for old in crash_reports(logs_dir)[:-MOST_REPORTS]:
        with suppress(OSError):
            old.file.unlink()
    return report_file


def crash_reports(logs_dir: Path) -> list[CrashReport]:
    """Return the reports in the folder, the oldest first; none when it is not there."""
    try:
        files = sorted(logs_dir.glob("crash-*.txt"))
    except OSError:
        return []
    reports = []
    for file in files:
        name = _NAME.fullmatch(file.name)
        if name is not None:
            at = datetime.strptime(name[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
            reports.append(CrashReport(file=file, at=at, summary=_summary(file)))
    return reports


def _summary(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as report:
            first = report.readline(200).rstrip()
    except OSError:
        return ""
    return first.removeprefix(_ERROR) if first.startswith(_ERROR) else ""
