"""Amounts as people read them: durations, sizes, counts and money."""

from __future__ import annotations

from typing import Final

_NANO_PER_DOLLAR: Final = 1_000_000_000
_STEP: Final = 1000
_ONE_DECIMAL_BELOW: Final = 10


def duration_text(seconds: float) -> str:
    """Return a duration in its two largest units: ``8s``, ``4m12s``, ``2h05m``, ``3d04h``; negative counts as zero."""
    whole = max(0, int(seconds))
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d{hour:02d}h"
    if hours:
        return f"{hours}h{minute:02d}m"
    if minutes:
        return f"{minutes}m{second:02d}s"
    return f"{second}s"


def size_text(size_bytes: int) -> str:
    """Return a size in units of 1000 bytes: ``512 B``, ``9.8 MB``."""
    if size_bytes < _STEP:
        return f"{size_bytes} B"
    amount, unit = _scaled(size_bytes, ("KB", "MB", "GB", "TB"))
    return f"{amount:.1f} {unit}"


def count_text(count: int) -> str:
    """Return a count in three digits at most: ``999``, ``1.2 K``, ``34 M``."""
    if count < _STEP:
        return str(count)
    amount, unit = _scaled(count, ("K", "M", "G"))
    return f"{amount:.{1 if amount < _ONE_DECIMAL_BELOW else 0}f} {unit}"


def calls_text(count: int) -> str:
    """Return a number of tool calls: ``1 tool call``, ``1,200 tool calls``; empty for none."""
    return f"{count:,} tool call{'' if count == 1 else 's'}" if count else ""


def cost_text(cost_nano: int | None) -> str:
    """Return an amount of nano-USD as dollars and cents; an unknown amount is empty."""
    return "" if cost_nano is None else f"${cost_nano / _NANO_PER_DOLLAR:,.2f}"


def today_text(cost_nano: int, *, unpriced: int = 0, budget_nano: int | None = None) -> str:
    """Return what a day has cost: ``$4.21 today``, ``$4.21 / $20 today``; empty for nothing of nothing.

    A question mark stands for answers without a known price.
    """
    if not cost_nano and not unpriced and budget_nano is None:
        return ""
    parts = [cost_text(cost_nano)] if cost_nano or not unpriced else []
    cost = " + ".join([*parts, *(["?"] if unpriced else [])])
    return f"{cost} today" if budget_nano is None else f"{cost} / {cost_text(budget_nano).removesuffix('.00')} today"


def _scaled(amount: float, units: tuple[str, ...]) -> tuple[float, str]:
    unit = ""
    for unit in units:  # noqa: B007 - the last unit takes whatever is left
        amount /= _STEP
        if amount < _STEP:
            break
    return amount, unit
