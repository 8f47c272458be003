"""How far a running import of usage is, as a bar in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.content import Content

from agentmon.domain.amounts import duration_text, size_text

if TYPE_CHECKING:
    from agentmon.worker.import_progress import ImportProgress

_LEAST_BAR: Final = 6
_LONGEST_BAR: Final = 40
_ALL_PERCENT: Final = 100
_HEADING: Final = "Reading history "
_EIGHTHS: Final = 8
_PARTS: Final = " ▏▎▍▌▋▊▉"
_GROUND: Final = "░"


def import_content(progress: ImportProgress, width: int) -> Content:
    """Return a bar with per cent, files, bytes and the time that is left.

    Args:
        progress: How far it is.
        width: Cells of the line; the bar takes what the words leave.
    """
    words = f"{progress.files:,}/{progress.all_files:,} files"
    if progress.all_bytes:
        words += f" · {size_text(progress.read_bytes)}/{size_text(progress.all_bytes)}"
    if progress.seconds_left:
        words += f" · {duration_text(progress.seconds_left)} left"
    percent = progress.percent
    share = " " if percent is None else f" {percent:>3} % "
    room = width - len(_HEADING) - len(share) - len(words)
    bar = part_bar((percent or 0) / _ALL_PERCENT, max(_LEAST_BAR, min(room, _LONGEST_BAR)))
    return Content.assemble((_HEADING, "bold"), (bar, "$secondary"), (share, "bold"), (words, "$text-muted"))


def part_bar(part: float, width: int) -> str:
    """Return a bar of so many cells whose first part is full; it says the same without colours."""
    eighths = round(max(0.0, min(1.0, part)) * width * _EIGHTHS)
    full, rest = divmod(eighths, _EIGHTHS)
    bar = "█" * full + (_PARTS[rest] if rest else "")
    return bar + _GROUND * (width - len(bar))
