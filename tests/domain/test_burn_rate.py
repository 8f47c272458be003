from __future__ import annotations

import pytest

from agentmon.domain.burn_rate import HOUR_MS, MINUTE_MS, QUARTER_HOUR_MS, UsageMinute, burn_rate, rate_over

NOW_MS = 1_795_802_400_000


def minute(ago: int, *, slug: str = "claude", tokens: int = 600, cost_nano: int = 1_000_000) -> UsageMinute:
    return UsageMinute(
        agent_slug=slug, begun_at_ms=NOW_MS - ago * MINUTE_MS, tokens=tokens, cost_nano=cost_nano, unpriced_answers=1
    )


@pytest.mark.parametrize("span_ms", [QUARTER_HOUR_MS, HOUR_MS])
def test_a_steady_use_has_its_own_rate(span_ms: int) -> None:
    rate = rate_over([minute(ago) for ago in range(1, 200)], now_ms=NOW_MS, span_ms=span_ms)

    assert rate.tokens_per_minute == pytest.approx(600, rel=0.01)
    assert rate.cost_nano_per_hour == pytest.approx(60_000_000, rel=0.01)
    assert rate.unpriced_answers == span_ms // MINUTE_MS


def test_a_single_answer_is_no_flood() -> None:
    rate = burn_rate([minute(0, tokens=15_000)], NOW_MS)

    assert rate.quarter_hour.tokens_per_minute < 15_000 / 6
    assert rate.hour.tokens_per_minute < 15_000 / 25


def test_the_newest_minutes_weigh_most() -> None:
    early = rate_over([minute(50)], now_ms=NOW_MS, span_ms=HOUR_MS)
    late = rate_over([minute(5)], now_ms=NOW_MS, span_ms=HOUR_MS)

    assert 0 < early.tokens_per_minute < late.tokens_per_minute / 4


def test_what_is_too_old_or_to_come_counts_for_nothing() -> None:
    rate = burn_rate([minute(90), minute(-2)], NOW_MS)

    assert (rate.hour.tokens_per_minute, rate.hour.unpriced_answers) == (0, 0)


def test_each_agent_has_its_rate() -> None:
    rate = burn_rate([minute(5), minute(5, slug="codex", tokens=1200)], NOW_MS)

    assert set(rate.hour_by_agent) == {"claude", "codex"}
    both = sum(one.tokens_per_minute for one in rate.hour_by_agent.values())
    assert both == pytest.approx(rate.hour.tokens_per_minute)


def test_without_an_answer_nothing_burns() -> None:
    rate = burn_rate([], NOW_MS)

    assert (rate.quarter_hour.tokens_per_minute, rate.hour.cost_nano_per_hour, rate.hour_by_agent) == (0, 0, {})
