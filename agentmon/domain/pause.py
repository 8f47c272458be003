"""The pause of the whole queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePause:
    """A pause that is in force."""

    since: datetime
    halts_running: bool = False
    """Whether what ran then was halted where it was, rather than left to finish."""
