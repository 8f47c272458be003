"""Bars over time of the dearest models, and the line that names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from textual.content import Content

from agentmon.domain.amounts import DOLLARS, MoneyFormat, count_text
from agentmon.domain.costs import CostSums
from agentmon.screens.costs.cost_periods import bar_label, begins_of, group_name
from agentmon.screens.costs.cost_rows import amount_of
from agentmon.widgets.cells import even_line
from agentmon.widgets.stacked_bars import PATTERNS, SERIES, Bar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from agentmon.screens.costs.cost_periods import Period
    from agentmon.services.cost_reports import CostBucket, CostReport

_COLOURS: Final = ("$primary", "$secondary", "$warning", "$success", "$error", "$text-muted")
_OTHERS: Final = SERIES - 1
_SQUARE: Final = "■"
_NO_MODEL: Final = "no model told"


class Measure(NamedTuple):
    """What bars are drawn of."""

    is_by_tokens: bool = False
    money: MoneyFormat = DOLLARS

    def amount(self, sums: CostSums) -> int:
        """Return tokens, or money in billionths of the unit that is shown, whose axis then has round numbers."""
        return sums.total_tokens if self.is_by_tokens else self.money.own_nano(sums.cost_nano)

    def text(self, amount: int) -> str:
        """Return such an amount for people."""
        return count_text(amount) if self.is_by_tokens else self.money.own_text(amount)


def dearest_models(buckets: Sequence[CostBucket], *, is_by_tokens: bool) -> list[str]:
    """Return all models, those with most of the money or of the tokens first."""
    models: dict[str, CostSums] = {}
    for bucket in buckets:
        for model, sums in bucket.models:
            models[model] = models.get(model, CostSums()) + sums
    return sorted(models, key=lambda model: (-amount_of(models[model], is_by_tokens=is_by_tokens), model))


def bars_of(chart: CostReport, period: Period, today: date, models: Sequence[str], measure: Measure) -> tuple[Bar, ...]:
    """Return a bar for each day, week or month, also for those without anything."""
    series = {model: number for number, model in enumerate(models[:_OTHERS])}
    known = {bucket.group: bucket for bucket in chart.buckets}
    bars = []
    for begin in begins_of(period, chart.since_day, today, list(known)):
        amounts: dict[int, int] = {}
        bucket = known.get(group_name(period.group, begin))
        for model, sums in () if bucket is None else bucket.models:
            number = series.get(model, _OTHERS)
            amounts[number] = amounts.get(number, 0) + measure.amount(sums)
        bars.append(Bar(bar_label(period.group, begin), tuple(sorted(amounts.items()))))
    return tuple(bars)


def legend_content(models: Sequence[str], *, is_patterned: bool) -> Content:
    """Return the names of the models that have a colour, or a pattern, of their own."""
    words: list[tuple[str, str]] = []
    for number, model in enumerate(models[: _OTHERS + 1]):
        is_of_many = number == _OTHERS and len(models) > SERIES
        name = f"{len(models) - _OTHERS} others" if is_of_many else even_line(model, max_characters=40) or _NO_MODEL
        mark = PATTERNS[number] * 2 if is_patterned else _SQUARE
        words.extend(((f"{mark} ", _COLOURS[number]), (f"{name}   ", "$text-muted")))
    return Content.assemble(*words)
