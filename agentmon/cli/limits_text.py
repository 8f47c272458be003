"""Usage windows, burn rate and projection as lines and as a document."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime

from agentmon.cli.columns import table
from agentmon.cli.cost_documents import currency_form
from agentmon.domain.amounts import NANO, MoneyFormat, count_text
from agentmon.domain.burn_rate import BurnRate, Rate
from agentmon.domain.limit_readings import LimitSnapshot
from agentmon.domain.plain_text import plain_line
from agentmon.domain.projections import MonthProjection, WindowProjection
from agentmon.domain.usage_windows import UsageWindow, WindowOrigin, window_label
from agentmon.services.limits import LimitOverview

_HEADINGS = ("AGENT", "WINDOW", "USED", "UNTIL", "COST", "TOKENS", "FROM")
_UNKNOWN = "–"

Moment = Callable[[int], str]
"""Says a moment in UTC milliseconds in words."""


def moment_of(at_ms: int) -> datetime:
    """Return a moment in UTC milliseconds as an aware time; the last one there is for what lies beyond."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.max.replace(tzinfo=UTC)


def limit_lines(overview: LimitOverview, width: int, money: MoneyFormat, moment: Moment) -> list[str]:
    """Return the windows as a table, then the burn rate and what comes of it."""
    rows = [_window_row(window, money, moment) for window in overview.windows]
    lines = table(_HEADINGS, rows, width) if rows else []
    lines += ["", _burn_words(overview.burn, money)]
    lines += [_projection_words(one, money, moment) for one in overview.projection.windows]
    return [*lines, month_words(overview.projection.month, money)]


def limit_document(overview: LimitOverview, money: MoneyFormat) -> dict[str, object]:
    """Return all of it; times in UTC, money in dollars and nano-dollars."""
    burn = overview.burn
    return {
        "windows": [_window_form(window) for window in overview.windows],
        "burn": {
            "at": _time_form(burn.at_ms),
            "quarter_hour": _rate_form(burn.quarter_hour),
            "hour": _rate_form(burn.hour),
            "hour_by_agent": {slug: _rate_form(rate) for slug, rate in sorted(burn.hour_by_agent.items())},
        },
        "projection": {
            "windows": [_projection_form(one) for one in overview.projection.windows],
            "month": _month_form(overview.projection.month),
        },
        "timezone": overview.zone_name,
        **currency_form(money),
    }


def history_lines(history: Sequence[LimitSnapshot], width: int, moment: Moment) -> list[str]:
    """Return each change of what agents said, oldest first, as a table."""
    rows = [
        (
            moment(one.captured_at_ms),
            moment(one.seen_at_ms) if one.seen_at_ms != one.captured_at_ms else "",
            plain_line(one.agent_slug),
            _window_label(one.agent_slug, one.account, window_label(one.window)),
            f"{one.used_percent:.0f} %",
            _UNKNOWN if one.resets_at_ms is None else moment(one.resets_at_ms),
        )
        for one in history
    ]
    return table(("SINCE", "SEEN TILL", "AGENT", "WINDOW", "USED", "UNTIL"), rows, width)


def history_document(history: Sequence[LimitSnapshot]) -> list[dict[str, object]]:
    """Return each change of what agents said, oldest first; times in UTC."""
    return [
        {
            "agent": one.agent_slug,
            "account": one.account,
            "window": one.window,
            "minutes": one.window_minutes,
            "used_percent": one.used_percent,
            "resets_at": _time_form(one.resets_at_ms),
            "captured_at": _time_form(one.captured_at_ms),
            "seen_at": _time_form(one.seen_at_ms),
            "source": one.source.value,
        }
        for one in history
    ]


def month_words(month: MonthProjection, money: MoneyFormat) -> str:
    """Return what the month comes to: ``November: $84.10 so far, about $102 at its end``."""
    name = f"{date.fromisoformat(f'{month.month}-01'):%B}"
    spent = f"{name}: {money.text(month.spent_nano)} so far"
    unpriced = f"; {month.unpriced_answers:,} unpriced answers are in no sum" if month.unpriced_answers else ""
    if not month.days_left or not month.known_days:
        return spent + unpriced
    days = f"{month.days_left} day{'' if month.days_left == 1 else 's'} left"
    return f"{spent}, about {money.text(month.projected_nano)} at its end ({days}, each as its weekday was){unpriced}"


def _window_row(window: UsageWindow, money: MoneyFormat, moment: Moment) -> tuple[str, ...]:
    return (
        plain_line(window.agent_slug),
        _window_label(window.agent_slug, window.account, window.label),
        _UNKNOWN if window.used_percent is None or window.is_stale else f"{window.used_percent:.0f} %",
        _UNKNOWN if window.resets_at_ms is None or window.is_stale else moment(window.resets_at_ms),
        money.text(window.spent.cost_nano) + (" + ?" if window.spent.unpriced_answers else ""),
        count_text(window.spent.total_tokens),
        origin_words(window, moment),
    )


def _window_label(agent_slug: str, account: str, label: str) -> str:
    return plain_line(f"{label} ({account})" if account not in {"", agent_slug} else label)


def origin_words(window: UsageWindow, moment: Moment) -> str:
    """Return how sure the figures of a window are: ``official, as of 15:04``."""
    if window.origin is WindowOrigin.ESTIMATE:
        return "estimate from the answers" if window.begun_at_ms is not None else "estimate: nothing runs"
    if window.is_over:
        return "official: reset since, nothing used"
    said = "" if window.captured_at_ms is None else moment(window.captured_at_ms)
    if window.is_stale:
        return f"too old to say anything: {window.used_percent or 0:.0f} % at {said}"
    return f"official, as of {said}"


def _burn_words(burn: BurnRate, money: MoneyFormat) -> str:
    if not burn.hour_by_agent:
        return "burn rate: nothing in the last hour"
    return f"burn rate: {_rate_words(burn.quarter_hour, money)} (15 minutes), {_rate_words(burn.hour, money)} (hour)"


def _rate_words(rate: Rate, money: MoneyFormat) -> str:
    unpriced = " + ?" if rate.unpriced_answers else ""
    return f"{count_text(round(rate.tokens_per_minute))} tokens/min, {money.text(rate.cost_nano_per_hour)}{unpriced}/h"


def _projection_words(one: WindowProjection, money: MoneyFormat, moment: Moment) -> str:
    percent = "" if one.used_percent is None else f"{one.used_percent:.0f} %, "
    words = f"{plain_line(one.agent_slug)}, at the end of the window ({moment(one.ends_at_ms)}) at this rate: "
    words += f"{percent}{money.text(one.cost_nano)}, {count_text(one.tokens)} tokens"
    return words if one.exhausted_at_ms is None else f"{words}; used up at {moment(one.exhausted_at_ms)}"


def _window_form(window: UsageWindow) -> dict[str, object]:
    return {
        "agent": window.agent_slug,
        "account": window.account,
        "window": window.name,
        "minutes": window.minutes,
        "origin": window.origin.value,
        "used_percent": window.used_percent,
        "begun_at": _time_form(window.begun_at_ms),
        "resets_at": _time_form(window.resets_at_ms),
        "captured_at": _time_form(window.captured_at_ms),
        "is_stale": window.is_stale,
        "is_over": window.is_over,
        "answers": window.spent.answers,
        "tokens": window.spent.total_tokens,
        **_amount_form("cost", window.spent.cost_nano),
        "unpriced_answers": window.spent.unpriced_answers,
    }


def _rate_form(rate: Rate) -> dict[str, object]:
    return {
        "tokens_per_minute": rate.tokens_per_minute,
        **_amount_form("cost_per_hour", rate.cost_nano_per_hour),
        "unpriced_answers": rate.unpriced_answers,
    }


def _projection_form(one: WindowProjection) -> dict[str, object]:
    return {
        "agent": one.agent_slug,
        "account": one.account,
        "window": one.name,
        "origin": one.origin.value,
        "ends_at": _time_form(one.ends_at_ms),
        "used_percent": one.used_percent,
        "tokens": one.tokens,
        **_amount_form("cost", one.cost_nano),
        "exhausted_at": _time_form(one.exhausted_at_ms),
    }


def _month_form(month: MonthProjection) -> dict[str, object]:
    return {
        "month": month.month,
        **_amount_form("spent", month.spent_nano),
        **_amount_form("projected", month.projected_nano),
        "days_left": month.days_left,
        "known_days": month.known_days,
        "unpriced_answers": month.unpriced_answers,
    }


def _amount_form(name: str, cost_nano: int) -> dict[str, object]:
    return {f"{name}_nano": cost_nano, f"{name}_usd": cost_nano / NANO}


def _time_form(at_ms: int | None) -> str | None:
    if at_ms is None:
        return None
    return moment_of(at_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def has_anything(overview: LimitOverview) -> bool:
    """Return whether there is a window, a rate or a cost to show."""
    parts: Sequence[object] = (overview.windows, overview.burn.hour_by_agent, overview.projection.month.spent_nano)
    return any(parts)
