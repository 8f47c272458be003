"""A vendor's refusal: why a program could not work, although nothing is wrong with its task."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

RESET_MAX: Final = timedelta(days=40)
"""A reset further away than this is not believed; the longest that is known comes once a month."""


class RefusalKind(StrEnum):
    """What a vendor refuses for; the values stand in the database and in JSON."""

    USAGE_LIMIT = "usage_limit"
    """The quota of a plan, a day or an account is used up; hours or days may pass."""
    RATE_LIMIT = "rate_limit"
    """Too many requests at this moment, or the vendor is overloaded; seconds or minutes may pass."""
    BAD_LOGIN = "bad_login"
    """Not logged in, or a key or token that is not accepted; a person has to act."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refusal that the output of a failed run tells of."""

    kind: RefusalKind
    text: str
    """The line of the output that says so: one line, safe to draw, secrets masked, at most 200 characters."""
    until: datetime | None
    """When the vendor says that it goes on, aware UTC and later than the look at it; None when it did not say."""
    advice: str
    """What a person can do, one short sentence without a full stop."""
