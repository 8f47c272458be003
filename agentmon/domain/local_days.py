"""Days as a time zone has them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from math import floor
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

SLICE_MS: Final = 15 * 60 * 1000
"""In no zone has another day begun inside of such a slice of UTC since 2012, which is older than all agents."""
_EVEN_SINCE_MS: Final = 1_325_376_000_000
"""2012: Newfoundland set its clocks back at 00:01 until 2011, and went back to the day before. (IANA)"""


class LocalDays:
    """Tells the days of one zone; quick for many moments, since each slice of time is worked out once."""

    __slots__ = ("_days", "_zone", "zone_name")

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone
        self._days: dict[int, str] = {}
        self.zone_name = zone.key
        """The zone's IANA name."""

    def day_of(self, at_ms: int) -> str:
        """Return the day of a moment in milliseconds since 1970: ``2026-03-01``."""
        if at_ms < _EVEN_SINCE_MS:
            return self._work_out(at_ms)
        part = at_ms // SLICE_MS
        day = self._days.get(part)
        if day is None:
            day = self._days[part] = self._work_out(part * SLICE_MS)
        return day

    def day_of_moment(self, moment: datetime) -> str:
        """Return the day of an aware moment."""
        return self.day_of(floor(moment.timestamp() * 1000))

    def begin_ms(self, day: str) -> int:
        """Return the first moment of a day, in milliseconds since 1970.

        Raises:
            ValueError: The text is no day such as ``2026-03-01``.
        """
        midnight = datetime.combine(date.fromisoformat(day), time(), tzinfo=self._zone)
        return round(midnight.timestamp() * 1000)

    def _work_out(self, at_ms: int) -> str:
        try:
            return datetime.fromtimestamp(at_ms // 1000, UTC).astimezone(self._zone).date().isoformat()
        except (OverflowError, ValueError):
            # Damage, or the last hours of the year 9999.
            return date.max.isoformat()
