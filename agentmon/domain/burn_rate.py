"""How fast tokens and money go: an average in which the newest minutes weigh most."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
QUARTER_HOUR_MS: Final = 15 * MINUTE_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageMinute:
    """What the answers of an agent took in one minute."""

    agent_slug: str
    begun_at_ms: int
    tokens: int
    cost_nano: int
    """Of the answers with a known cost."""
    unpriced_answers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How fast it goes."""

    tokens_per_minute: float = 0.0
    cost_nano_per_hour: int = 0
    unpriced_answers: int = 0
    """Those of the time that have no known cost, and are not in the cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnRate:
    """How fast tokens and money go now."""

    at_ms: int
    quarter_hour: Rate
    """Over the last 15 minutes, of all agents."""
    hour: Rate
    """Over the last hour, of all agents."""
    hour_by_agent: Mapping[str, Rate] = field(default_factory=dict)
    """Over the last hour, by the agent's slug; those without an answer in it are left out."""


def rate_over(minutes: Iterable[UsageMinute], *, now_ms: int, span_ms: int) -> Rate:
    """Return the exponentially weighted rate over the time up to now.

    What came an age ago weighs ``exp(-age / (span / 2))``, and the weights over the whole span make one: a steady use
    gives its own rate, and a single answer gives a small one, however short the time since the first is.

    Args:
        minutes: Those outside of the span count for nothing.
        now_ms: UTC.
        span_ms: Above nothing.
    """
    decay_ms = span_ms / 2
    weighed_tokens = weighed_cost = 0.0
    unpriced = 0
    for minute in minutes:
        age_ms = max(0.0, now_ms - minute.begun_at_ms - MINUTE_MS / 2)
        if age_ms > span_ms or minute.begun_at_ms > now_ms:
            continue
        weight = exp(-age_ms / decay_ms)
        weighed_tokens += minute.tokens * weight
        weighed_cost += minute.cost_nano * weight
        unpriced += minute.unpriced_answers
    whole_ms = decay_ms * (1 - exp(-span_ms / decay_ms))
    return Rate(
        tokens_per_minute=weighed_tokens / whole_ms * MINUTE_MS,
        cost_nano_per_hour=round(weighed_cost / whole_ms * HOUR_MS),
        unpriced_answers=unpriced,
    )


def burn_rate(minutes: Iterable[UsageMinute], now_ms: int) -> BurnRate:
    """Return the rates over the minutes of the last hour."""
    known = list(minutes)
    slugs = dict.fromkeys(minute.agent_slug for minute in known)
    return BurnRate(
        at_ms=now_ms,
        quarter_hour=rate_over(known, now_ms=now_ms, span_ms=QUARTER_HOUR_MS),
        hour=rate_over(known, now_ms=now_ms, span_ms=HOUR_MS),
        hour_by_agent={
            slug: rate_over([minute for minute in known if minute.agent_slug == slug], now_ms=now_ms, span_ms=HOUR_MS)
            for slug in slugs
        },
    )
