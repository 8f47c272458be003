"""The vendors' usage windows, how fast tokens and money go, and what the month comes to, in a few lines."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from textual.content import Content

from agentmon.domain.amounts import count_text, duration_text
from agentmon.domain.usage_windows import WindowOrigin
from agentmon.screens.costs.import_line import part_bar
from agentmon.widgets.cells import cells, even_line, pad

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.amounts import MoneyFormat
    from agentmon.domain.projections import WindowProjection
    from agentmon.domain.usage_windows import UsageWindow
    from agentmon.services.limits import LimitOverview

_BAR_CELLS: Final = 12
_NEAR_PERCENT: Final = 80
_ALL_PERCENT: Final = 100
_LONGEST_NAME: Final = 24
_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
_DAY_S: Final = 24 * _HOUR_S
_WEEK_S: Final = 7 * _DAY_S


def limit_lines(
    overview: LimitOverview, now: datetime, money: MoneyFormat, *, most: int, is_filtered: bool = False
) -> list[Content]:
    """Return a line for each window that is known, and one for the rate and the month; none when nothing is known.

    Args:
        overview: As it was read.
        now: The present time.
        money: How amounts are shown.
        most: Most windows that get a line.
        is_filtered: Whether what stands around it is of a part only, which rate and month are not.
    """
    windows = _told(overview.windows)
    names = max((cells(_name(one)) for one in windows), default=0)
    labels = max((cells(one.label) for one in windows), default=0)
    ends = {_key(one): one for one in overview.projection.windows}
    lines = []
    for window in windows[:most]:
        lead = ((f"{pad(_name(window), names)}  ", "bold"), (f"{pad(window.label, labels)}  ", "$text-muted"))
        lines.append(Content.assemble(*lead, *_use(window, now, money), *_end(ends.get(_key(window)), now)))
    last = [*_rest(len(windows) - most), *_pace(overview, money, is_filtered=is_filtered)]
    return [*lines, Content.assemble(*last)] if last else lines


def limit_line(overview: LimitOverview, now: datetime, money: MoneyFormat, *, is_filtered: bool = False) -> Content:
    """Return all of it in one line, for a screen without room; empty when nothing is known."""
    told = _told(overview.windows)
    official = [one for one in told if one.used_percent is not None]
    parts: list[tuple[str, str]] = []
    before = ""
    for window in official or told:
        name = _name(window)
        gap = "   " if before else ""
        parts.append((" · ", "$text-muted") if name == before else (f"{gap}{name} ", "bold"))
        before = name
        used = f"{window.used_percent:.0f} %" if window.used_percent is not None else money.text(window.spent.cost_nano)
        mark = " est." if window.origin is WindowOrigin.ESTIMATE else ""
        until = _soon_text(window.resets_at_ms, now)
        parts += [(f"{window.label} ", "$text-muted"), (used, _style(window)), (f"{mark}{until}", "$text-muted")]
    pace = _pace(overview, money, is_filtered=is_filtered)
    return Content.assemble(*parts, *([("   ", "")] if parts and pace else []), *pace)


def _told(windows: Sequence[UsageWindow]) -> list[UsageWindow]:
    """Return the windows that say something of now."""
    return [one for one in windows if not one.is_stale and (one.used_percent is not None or one.spent.answers)]


def _use(window: UsageWindow, now: datetime, money: MoneyFormat) -> list[tuple[str, str]]:
    parts: list[tuple[str, str]] = []
    if window.used_percent is not None:
        style = _style(window)
        parts += [
            (part_bar(window.used_percent / _ALL_PERCENT, _BAR_CELLS), style if style != "" else "$primary"),
            (f" {window.used_percent:>3.0f} %   ", style),
        ]
    else:
        spent = window.spent
        amount = money.text(spent.known_cost_nano) or "?"
        parts.append((f"{amount} · {count_text(spent.total_tokens)} tokens   ", ""))
    if window.is_over:
        parts.append(("nothing used since its reset   ", "$text-muted"))
    elif window.resets_at_ms is not None:
        left = duration_text(window.resets_at_ms / 1000 - now.timestamp())
        parts.append((f"resets {_moment(window.resets_at_ms, now)}, in {left}   ", "$text-muted"))
    return [*parts, (f"{_origin(window, now)}   ", "$text-muted")]


def _origin(window: UsageWindow, now: datetime) -> str:
    if window.origin is WindowOrigin.ESTIMATE or window.captured_at_ms is None:
        return window.origin.value
    age_s = now.timestamp() - window.captured_at_ms / 1000
    if age_s < _MINUTE_S:
        return "official, now"
    return f"official, {f'{age_s // _MINUTE_S:.0f} min' if age_s < _HOUR_S else duration_text(age_s)} ago"


def _end(end: WindowProjection | None, now: datetime) -> list[tuple[str, str]]:
    """Return what the window comes to when it goes on like this."""
    if end is None or end.used_percent is None:
        return []
    if end.exhausted_at_ms is not None:
        return [(f"100 % at {_moment(end.exhausted_at_ms, now)}", "$warning")]
    return [(f"~{end.used_percent:.0f} % then", "$text-muted")]


def _pace(overview: LimitOverview, money: MoneyFormat, *, is_filtered: bool) -> list[tuple[str, str]]:
    parts: list[tuple[str, str]] = []
    rate, month = overview.burn.hour, overview.projection.month
    if rate.tokens_per_minute >= 1:
        cost = money.text(rate.cost_nano_per_hour)
        if rate.unpriced_answers:
            cost = f"{cost} + ?" if rate.cost_nano_per_hour else "?"
        parts.append((f"now {cost}/h · {count_text(round(rate.tokens_per_minute))} tokens/min   ", ""))
    if month.known_days and month.projected_nano:
        unknown = " + ?" if month.unpriced_answers else ""
        amount = money._replace(decimals=0).text(month.projected_nano)
        parts.append((f"this month ~{amount}{unknown} at this pace", "$text-muted"))
    return [("in all: ", "$text-muted"), *parts] if is_filtered and parts else parts


def _rest(count: int) -> list[tuple[str, str]]:
    return [(f"{count} more: agentmon limits   ", "$text-muted")] if count > 0 else []


def _style(window: UsageWindow) -> str:
    percent = window.used_percent or 0
    if percent >= _ALL_PERCENT:
        return "$error bold"
    return "$warning" if percent >= _NEAR_PERCENT else ""


def _name(window: UsageWindow) -> str:
    account = "" if window.account == window.agent_slug else window.account
    return even_line(f"{window.agent_slug} {account}".strip(), max_characters=_LONGEST_NAME)


def _key(one: UsageWindow | WindowProjection) -> tuple[str, str, str, WindowOrigin]:
    return one.agent_slug, one.account, one.name, one.origin


def _soon_text(at_ms: int | None, now: datetime) -> str:
    """Return until when it is, when that is within a day."""
    is_soon = at_ms is not None and at_ms / 1000 - now.timestamp() < _DAY_S
    return f" to {_moment(at_ms, now)}" if at_ms is not None and is_soon else ""


def _moment(at_ms: int, now: datetime) -> str:
    """Return a moment to come in local time: ``14:00``, ``Mon 09:00``, ``Dec 05``."""
    there = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone()
    if there.date() == now.astimezone().date():
        return f"{there:%H:%M}"
    return f"{there:%a %H:%M}" if at_ms / 1000 - now.timestamp() < _WEEK_S else f"{there:%b %d}"
