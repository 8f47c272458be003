"""How much was done, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmon.domain.summaries import Activity


def activity_line(activity: Activity) -> str:
    """Return ``12 sessions · 340 tool calls · 98 % ok · 2 blocked``; empty when nothing was done."""
    percent = activity.success_percent
    parts = (
        _counted(activity.session_count, "session"),
        _counted(activity.operation_count, "tool call"),
        "" if percent is None else f"{percent} % ok",
        f"{activity.blocked_operations:,} blocked" if activity.blocked_operations else "",
    )
    return " · ".join(part for part in parts if part)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}" if count else ""
