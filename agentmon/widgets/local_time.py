"""Moments in the time of this machine, as short as they can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.domain.clock import in_zone

if TYPE_CHECKING:
    from datetime import datetime


def local_time_text(moment: datetime, now: datetime) -> str:
    """Return a moment in local time, as short as it can be: ``14:02:11``, ``Mar 03 14:02``, ``2025-03-03``."""
    there = in_zone(moment)
    here = now.astimezone()
    if there.date() == here.date():
        return f"{there:%H:%M:%S}"
    return f"{there:%b %d %H:%M}" if there.year == here.year else f"{there:%Y-%m-%d}"
