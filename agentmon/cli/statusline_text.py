"""The status line as text: its parts, what fits, and what is coloured; standard library only, and little of it."""

import os
import time

from agentmon.cli.status import find_settings_path
from agentmon.store.money_setting import find_money_words, money_format
from agentmon.store.status_counts import StatusCounts
from agentmon.usage.claude_status import FIVE_HOUR, ClaudeStatus, StatusWindow

_WARN_PERCENT = 80
_ALARM_PERCENT = 95
_YELLOW = 33
_RED = 31
_GAP = "  "
_NANO_PER_CENT = 10_000_000
_MANY_COLUMNS = 10_000


def status_text(status: ClaudeStatus | None, day: StatusCounts | None) -> str:
    """Return the parts that are known and that the terminal has room for, in their order."""
    parts: list[tuple[int, str, float | None]] = []
    if status is not None:
        parts += [(3, status.model_name, None)] if status.model_name else []
        percent = status.context_percent
        parts += [(0, f"context {percent:.0f}%", percent)] if percent is not None else []
    money = _Money(day)
    if status is not None and status.cost_nano is not None:
        parts.append((4, f"{money.text(status.cost_nano)} session", None))
    if day is not None and (today := money.today()):
        parts.append((2, today, None))
    if status is not None:
        parts += _window_parts(status)
    return _fitted(parts) or "agentmon"


def _window_parts(status: ClaudeStatus) -> list[tuple[int, str, float | None]]:
    parts: list[tuple[int, str, float | None]] = []
    for window in status.windows:
        if window.name == FIVE_HOUR:
            parts.append((1, f"5h {window.used_percent:.0f}%{_reset_words(window)}", window.used_percent))
        elif window.used_percent >= _WARN_PERCENT:
            name = {"seven_day": "week"}.get(window.name, window.name.replace("_", " "))
            parts.append((1, f"{name} {window.used_percent:.0f}%{_reset_words(window)}", window.used_percent))
    return parts


def _reset_words(window: StatusWindow) -> str:
    """Return until when the window is; the day as well when it is not the present one."""
    if window.resets_at_ms is None:
        return ""
    try:
        ends, now = time.localtime(window.resets_at_ms / 1000), time.localtime()
    except (OverflowError, ValueError, OSError):
        return ""
    is_today = ends[:3] == now[:3]
    return time.strftime(" until %H:%M" if is_today else " until %a %H:%M", ends)


def _fitted(parts: list[tuple[int, str, float | None]]) -> str:
    """Return the parts in one line, without those of the highest numbers while it is too wide."""
    columns = os.environ.get("COLUMNS", "")
    is_width = columns.isdecimal() and len(columns) < len(str(_MANY_COLUMNS)) and int(columns) > 0
    width = int(columns) if is_width else _MANY_COLUMNS
    kept = list(parts)
    while len(kept) > 1 and len(_GAP.join(text for _, text, _ in kept)) > width:
        kept.remove(max(kept, key=lambda part: part[0]))
    if len(kept) == 1 and len(kept[0][1]) > width:
        from agentmon.domain.letters import cut  # noqa: PLC0415 - hardly ever

        return cut(kept[0][1], width)
    return _GAP.join(_coloured(text, percent) for _, text, percent in kept)


def _coloured(text: str, percent: float | None) -> str:
    """Return the text in a colour when there is something to look out for.

    Claude Code shows colours, though no terminal is at hand.
    """
    if percent is None or percent < _WARN_PERCENT or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_RED if percent >= _ALARM_PERCENT else _YELLOW}m{text}\x1b[0m"


class _Money:
    """Amounts in the currency that the person set; mostly that is none, and then ``domain.amounts`` is not imported."""

    def __init__(self, day: StatusCounts | None) -> None:
        self._day = day
        self._words = {
            **find_money_words(find_settings_path(), os.environ),
            **({} if day is None else day.money_words),
        }

    def text(self, cost_nano: int) -> str:
        return money_format(self._words).text(cost_nano) if self._words else _dollars(cost_nano)

    def today(self) -> str:
        """Return what the day costs, as ``domain.amounts.today_text`` has it."""
        day = self._day
        if day is None or not (day.cost_today_nano or day.unpriced_today or day.budget_today_nano is not None):
            return ""
        parts = [self.text(day.cost_today_nano)] if day.cost_today_nano or not day.unpriced_today else []
        cost = " + ".join([*parts, *(["?"] if day.unpriced_today else [])])
        if day.budget_today_nano is None:
            return f"{cost} today"
        return f"{cost} / {self.text(day.budget_today_nano).removesuffix('.00')} today"


def _dollars(cost_nano: int) -> str:
    cents = (cost_nano + _NANO_PER_CENT // 2) // _NANO_PER_CENT
    if not cents and cost_nano > 0:
        return "<$0.01"
    return f"${cents // 100:,}.{cents % 100:02d}"
