from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from agentmon.domain.amounts import DOLLARS, NANO, MoneyFormat
from agentmon.domain.burn_rate import BurnRate, Rate
from agentmon.domain.costs import CostSums
from agentmon.domain.projections import MonthProjection, Projection, project_windows
from agentmon.domain.usage_windows import UsageWindow, WindowOrigin
from agentmon.screens.costs.limit_block import limit_line, limit_lines
from agentmon.services.limits import LimitOverview

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
NO_MONTH = MonthProjection(
    month="2026-11", spent_nano=0, projected_nano=0, days_left=10, known_days=0, unpriced_answers=0
)
MONTH = MonthProjection(
    month="2026-11", spent_nano=60 * NANO, projected_nano=84 * NANO, days_left=10, known_days=40, unpriced_answers=0
)
SPENT = CostSums(answers=4, cost_nano=2 * NANO, prompt_tokens=90_000)


def ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def official(percent: float, *, hours: float = 2, age_min: float = 3, is_stale: bool = False) -> UsageWindow:
    return UsageWindow(
        agent_slug="codex",
        account="codex",
        name="five_hour",
        minutes=300,
        used_percent=percent,
        resets_at_ms=ms(NOW + timedelta(hours=hours)),
        begun_at_ms=ms(NOW - timedelta(hours=3)),
        spent=SPENT,
        origin=WindowOrigin.OFFICIAL,
        captured_at_ms=ms(NOW - timedelta(minutes=age_min)),
        is_stale=is_stale,
    )


def estimate(spent: CostSums = SPENT) -> UsageWindow:
    return UsageWindow(
        agent_slug="claude",
        name="five_hour",
        minutes=300,
        used_percent=None,
        resets_at_ms=ms(NOW + timedelta(hours=4, minutes=5)),
        begun_at_ms=ms(NOW - timedelta(minutes=55)),
        spent=spent,
        origin=WindowOrigin.ESTIMATE,
    )


def overview(*windows: UsageWindow, rate: Rate | None = None, month: MonthProjection = NO_MONTH) -> LimitOverview:
    hour = rate or Rate()
    burn = BurnRate(at_ms=ms(NOW), quarter_hour=hour, hour=hour, hour_by_agent={"codex": hour})
    projection = Projection(windows=project_windows(windows, burn), month=month)
    return LimitOverview(windows=windows, burn=burn, projection=projection, zone_name="UTC")


def texts(shown: LimitOverview, *, most: int = 4, money: MoneyFormat = DOLLARS) -> Sequence[str]:
    return [" ".join(line.plain.split()) for line in limit_lines(shown, NOW, money, most=most)]


def test_an_official_window_has_a_bar_its_reset_and_its_age() -> None:
    (line,) = texts(overview(official(62.4)))
    reset = (NOW + timedelta(hours=2)).astimezone()

    assert line == f"codex 5 hours ███████▌░░░░ 62 % resets {reset:%H:%M}, in 2h00m official, 3 min ago ~62 % then"


def test_an_estimate_says_so_and_has_what_was_spent_in_place_of_a_share() -> None:
    (line,) = texts(overview(estimate()), money=MoneyFormat("EUR", "0.5", 2))

    assert line.startswith("claude 5 hours €1.00 · 90 K tokens resets ")
    assert line.endswith("in 4h05m estimate")


def test_a_window_that_fills_before_its_reset_says_when() -> None:
    rate = Rate(tokens_per_minute=1000, cost_nano_per_hour=2 * NANO)
    first, pace = texts(overview(official(50), rate=rate))
    full = (NOW + timedelta(hours=1)).astimezone()

    assert first.endswith(f"100 % at {full:%H:%M}")
    assert pace == "now $2.00/h · 1.0 K tokens/min"


def test_what_says_nothing_of_now_is_left_out() -> None:
    nothing = overview(official(40, is_stale=True), estimate(CostSums()))

    assert texts(nothing) == []
    assert not limit_line(nothing, NOW, DOLLARS)


def test_the_rate_and_the_month_stand_in_the_last_line() -> None:
    rate = Rate(tokens_per_minute=45_000, cost_nano_per_hour=1_200_000_000, unpriced_answers=2)

    assert texts(overview(rate=rate, month=MONTH)) == ["now $1.20 + ?/h · 45 K tokens/min this month ~$84 at this pace"]


def test_a_rate_of_which_no_price_is_known_is_no_zero() -> None:
    (pace,) = texts(overview(rate=Rate(tokens_per_minute=1_800, unpriced_answers=8)))

    assert pace == "now ?/h · 1.8 K tokens/min"


def test_beside_figures_of_a_part_rate_and_month_say_that_they_are_not() -> None:
    shown = overview(official(97), month=MONTH)
    lines = limit_lines(shown, NOW, DOLLARS, most=4, is_filtered=True)

    assert lines[-1].plain.split() == ["in", "all:", "this", "month", "~$84", "at", "this", "pace"]
    assert "in all: this month" in limit_line(shown, NOW, DOLLARS, is_filtered=True).plain
    assert "in all" not in limit_lines(overview(official(10)), NOW, DOLLARS, most=4, is_filtered=True)[-1].plain


def test_more_windows_than_there_is_room_for_are_counted() -> None:
    lines = texts(overview(estimate(), official(10), month=MONTH), most=1)

    assert len(lines) == 2
    assert lines[1] == "1 more: agentmon limits this month ~$84 at this pace"


def test_without_room_one_line_has_the_official_windows_first_of_all() -> None:
    line = limit_line(overview(estimate(), official(97), month=MONTH), NOW, DOLLARS)
    reset = (NOW + timedelta(hours=2)).astimezone()

    assert line.plain == f"codex 5 hours 97 % to {reset:%H:%M}   this month ~$84 at this pace"
