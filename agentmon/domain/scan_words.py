"""What a scan found, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.programs import ScanOutcome

_MOST_NAMES = 5


def outcome_line(outcome: ScanOutcome) -> str:
    """Return in one line how much was found and what is different from the time before."""
    programs = "1 program" if outcome.programs == 1 else f"{outcome.programs:,} programs"
    folders = "1 folder" if outcome.folders == 1 else f"{outcome.folders} folders"
    return "; ".join([f"{programs} in {folders}", *_changes(outcome)])


def news_line(outcome: ScanOutcome) -> str:
    """Return what a person wants to be told of a scan that nobody asked for; empty when nothing is different.

    Of the very first scan there is nothing to tell: all is new.
    """
    return "" if outcome.is_first else "; ".join(_changes(outcome))


def _changes(outcome: ScanOutcome) -> list[str]:
    words = []
    if not outcome.is_first:
        counts = [
            f"{len(paths):,} {what}"
            for paths, what in ((outcome.came, "came"), (outcome.changed, "changed"), (outcome.went, "went"))
            if paths
        ]
        words += [", ".join(counts)] if counts else []
    for slugs, what in (
        (outcome.agents_added, "new here"),
        (outcome.agents_back, "back"),
        (outcome.agents_missing, "not found any more"),
    ):
        words += [f"{what}: {_names(slugs)}"] if slugs else []
    return words


def _names(slugs: Sequence[str]) -> str:
    more = f" and {len(slugs) - _MOST_NAMES} more" if len(slugs) > _MOST_NAMES else ""
    return ", ".join(slugs[:_MOST_NAMES]) + more
