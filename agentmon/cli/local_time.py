"""The person's own time zone, and moments as they read in it."""

import functools
from datetime import datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import UsageError
from agentmon.domain.moments import moment_words, parse_moment_text
from agentmon.schedule import local_zone_name


@functools.cache
def local_zone() -> tzinfo:
    """Return the zone of this machine; one of a fixed offset when the machine names none that is known."""
    here = datetime.now().astimezone()
    zone = ZoneInfo(local_zone_name())
    is_known = here.astimezone(zone).utcoffset() == here.utcoffset()
    return zone if is_known else here.tzinfo or zone


def local_words(moment: datetime) -> str:
    """Return a moment in short words of the local zone, to the minute: ``15:04``, ``tomorrow 07:00``."""
    return moment_words(moment, now=SystemClock().now(), zone=local_zone())


def zone_words(moment: datetime, zone_name: str) -> str:
    """Return a moment in short words, as it reads in the zone of this IANA name."""
    return moment_words(moment, now=SystemClock().now(), zone=ZoneInfo(zone_name))


def moment_to_come(text: str) -> datetime:
    """Return the moment that a person means by ``15:04``, ``tomorrow 7:00`` or ``in 90 minutes``.

    Raises:
        UsageError: The text is not understood, or is in the past.
    """
    return parse_moment_text(text, now=SystemClock().now(), zone=local_zone())


def moment_gone(text: str) -> datetime:
    """Return the past moment that a person means by a span such as ``2h``, or by a date with or without a time.

    Raises:
        UsageError: The text is not understood, or is in the future.
    """
    now = SystemClock().now()
    words = " ".join(text.split()).removesuffix(" ago")
    moment = _read_date(words)
    if moment is None:
        try:
            ahead = parse_moment_text(words, now=now, zone=local_zone())
        except UsageError as error:
            raise _not_understood(text) from error
        is_clock = ":" in words
        moment = ahead - timedelta(days=1) if is_clock else now - (ahead - now)
    if moment > now:
        raise UsageError(f"{text!r} is in the future", hint="write for example 2h, 07:30 or 2026-11-30")
    return moment


def _read_date(words: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(words)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=local_zone())


def _not_understood(text: str) -> UsageError:
    return UsageError(f"{text!r} is not understood as a past moment", hint="write for example 2h, 07:30 or 2026-11-30")
