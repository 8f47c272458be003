"""Costs as rows of a table, as tiles of a period, and as the explanation of one answer."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from textual.content import Content

from agentmon.domain.amounts import DOLLARS, count_text
from agentmon.domain.costs import CostGroup, CostSource, CostSums
from agentmon.widgets.local_time import local_time_text
from agentmon.widgets.row_table import Column, Sorting, TableRow
from agentmon.widgets.text_rows import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from agentmon.domain.amounts import MoneyFormat
    from agentmon.services.cost_reports import CostBucket
    from agentmon.services.costs import ExplainedAnswer

COST_COLUMNS: Final = (
    Column("Name"),
    Column("Agents", 14, from_width=124),
    Column("Answers", 9, from_width=64, is_right=True),
    Column("Input", 8, from_width=84, is_right=True),
    Column("Cached", 8, from_width=84, is_right=True),
    Column("Output", 8, from_width=84, is_right=True),
    Column("Tokens", 8, is_right=True),
    Column("Cost", 12, is_right=True),
    Column("Share", 12, from_width=100),
)
ANSWER_COLUMNS: Final = (
    Column("When", 12),
    Column("Model"),
    Column("Input", 7, from_width=60, is_right=True),
    Column("Cached", 7, from_width=60, is_right=True),
    Column("Output", 7, from_width=60, is_right=True),
    Column("Cost", 12, is_right=True),
    Column("Source", 9, from_width=80),
)
NO_NAME: Final = {
    CostGroup.MODEL: "no model told",
    CostGroup.AGENT: "no agent",
    CostGroup.PROJECT: "no folder known",
    CostGroup.SESSION: "no conversation",
    CostGroup.TASK: "without a task",
}
SOURCE_WORDS: Final = {
    CostSource.LIST: "list",
    CostSource.OVERRIDE: "own price",
    CostSource.REPORTED: "reported",
    CostSource.NONE: "unpriced",
}
MORE: Final = "\0more"
"""The key of the row that stands for those without one."""
PAGE_ROWS: Final = 500
NAME_COLUMN: Final = 0
COST_COLUMN: Final = 7
_SHARE_CELLS: Final = 10
_EIGHTHS: Final = 8
_PARTS: Final = " ▏▎▍▌▋▊▉"


def cost_rows(
    group: CostGroup,
    buckets: Sequence[CostBucket],
    *,
    is_by_tokens: bool,
    money: MoneyFormat = DOLLARS,
    sorting: Sorting | None = None,
    limit: int = PAGE_ROWS,
) -> tuple[TableRow, ...]:
    """Return a row for each group, and one that says how many more there are.

    Args:
        group: By what the buckets are summed up.
        buckets: In any order.
        is_by_tokens: Whether shares are of the tokens instead of the money.
        money: How amounts are shown.
        sorting: Without it the dearest comes first, or the one with most tokens.
        limit: Most groups that get a row.
    """
    measured = CostSums.of_all(bucket.sums for bucket in buckets) if buckets else CostSums()
    whole = amount_of(measured, is_by_tokens=is_by_tokens)
    rows = []
    for bucket in in_order(buckets, sorting, is_by_tokens=is_by_tokens)[:limit]:
        sums = bucket.sums
        cells = (
            Span(bucket.label) if bucket.group else Span(NO_NAME.get(group, ""), "muted"),
            Span(", ".join(bucket.agents), "muted"),
            Span(f"{sums.answers:,}", "muted"),
            Span(count_text(sums.prompt_tokens), "muted"),
            Span(count_text(cached(sums)), "muted"),
            Span(count_text(sums.response_tokens), "muted"),
            Span(count_text(sums.total_tokens), "muted"),
            _cost_cell(sums, money),
            Span(share_bar(amount_of(sums, is_by_tokens=is_by_tokens), whole), "primary"),
        )
        rows.append(TableRow(bucket.group, cells))
    if len(buckets) > limit:
        more = f"… {len(buckets) - limit:,} more; enter shows the next of them"
        rows.append(TableRow(MORE, (Span(more, "muted"), *(Span("") for _ in COST_COLUMNS[1:]))))
    return tuple(rows)


def in_order(buckets: Sequence[CostBucket], sorting: Sorting | None, *, is_by_tokens: bool) -> Sequence[CostBucket]:
    """Return the groups in the order of the table."""
    if sorting is None:
        return sorted(buckets, key=lambda one: (-amount_of(one.sums, is_by_tokens=is_by_tokens), one.group))
    key_of = _SORT_KEYS[sorting.column]
    return sorted(buckets, key=lambda one: (key_of(one), one.group), reverse=sorting.is_descending)


def next_sorting(present: Sorting | None, shown: Sequence[int]) -> Sorting | None:
    """Return the order by the next column that is shown; behind the last one there is none."""
    columns = [at for at in shown if at in _SORT_KEYS]
    later = [at for at in columns if present is None or at > present.column]
    return Sorting(later[0], is_descending=later[0] != NAME_COLUMN) if later else None


def clicked_sorting(present: Sorting | None, column: int) -> Sorting | None:
    """Return the order after a click on a heading; a second click turns it round."""
    if column not in _SORT_KEYS:
        return present
    if present is not None and present.column == column:
        return present._replace(is_descending=not present.is_descending)
    return Sorting(column, is_descending=column != NAME_COLUMN)


def answer_rows(
    answers: Sequence[ExplainedAnswer], now: datetime, money: MoneyFormat = DOLLARS
) -> tuple[TableRow, ...]:
    """Return a row for each answer, in their order."""
    rows = []
    for one in answers:
        answer, source = one.source.answer, one.source
        written = answer.cache_read_tokens + answer.cache_write_5m_tokens + answer.cache_write_1h_tokens
        cells = (
            Span(local_time_text(datetime.fromtimestamp(answer.at_ms / 1000, UTC), now), "muted"),
            Span(answer.model),
            Span(count_text(answer.prompt_tokens), "muted"),
            Span(count_text(written), "muted"),
            Span(count_text(answer.response_tokens), "muted"),
            Span(money.fine_text(source.cost_nano)) if source.cost_nano is not None else Span("?", "warning"),
            Span(source_words(source.cost_source), "muted"),
        )
        rows.append(TableRow(source.id, cells))
    return tuple(rows)


def explanation_text(one: ExplainedAnswer, money: MoneyFormat = DOLLARS) -> str:
    """Return how the cost of an answer comes about, and where the answer was found, as lines.

    Rates are in dollars, as vendors tell them.
    """
    source = one.source
    unit = "row" if source.path and source.path.endswith(".db") else "byte"
    place = f"{source.path} at {unit} {source.answer.offset:,}" if source.path else "told by the agent while it ran"
    lines = [*one.price.formula]
    if money.is_converted and source.cost_nano is not None:
        lines.append(f"shown as {money.fine_text(source.cost_nano)}, {money.exchange_rate} for a dollar")
    if source.cost_nano != one.price.cost_nano:
        lines.append("The cost is kept by the prices of its import; `agentmon costs reprice` takes those of now.")
    return "\n".join((*lines, "", place, f"key {source.answer.key}"))


def cached(sums: CostSums) -> int:
    """Return the tokens that were read from a cache or written to one."""
    return sums.cache_read_tokens + sums.cache_write_5m_tokens + sums.cache_write_1h_tokens


def amount_of(sums: CostSums, *, is_by_tokens: bool) -> int:
    """Return what is compared: tokens or nano-USD."""
    return sums.total_tokens if is_by_tokens else sums.cost_nano


def source_words(source: str) -> str:
    """Return how it is told where a cost comes from."""
    try:
        return SOURCE_WORDS[CostSource(source)]
    except ValueError:
        return source


def share_bar(amount: int, whole: int) -> str:
    """Return a bar of ten cells for the share of the whole; the least share shows."""
    if amount <= 0 or whole <= 0:
        return ""
    eighths = max(1, round(amount * _SHARE_CELLS * _EIGHTHS / whole))
    full, part = divmod(eighths, _EIGHTHS)
    return "█" * full + (_PARTS[part] if part else "")


_SORT_KEYS: Final[Mapping[int, Callable[[CostBucket], int | str]]] = {
    NAME_COLUMN: lambda one: one.label.casefold(),
    2: lambda one: one.sums.answers,
    3: lambda one: one.sums.prompt_tokens,
    4: lambda one: cached(one.sums),
    5: lambda one: one.sums.response_tokens,
    6: lambda one: one.sums.total_tokens,
    COST_COLUMN: lambda one: one.sums.cost_nano,
}
"""By the numbers of their columns."""


class Tile:
    """A period up to today beside as many days of the period before it."""

    def __init__(self, name: str, begin: date, before: date) -> None:
        """Make a tile.

        Args:
            name: What the period is called.
            begin: Its first day.
            before: The first day of the period that it is compared with.
        """
        self.name = name
        self.begin = begin
        self._before = before

    def content(
        self, days: Mapping[date, CostSums], today: date, *, is_by_tokens: bool, money: MoneyFormat = DOLLARS
    ) -> Content:
        """Return the lines of the tile for sums by day."""
        length = today - self.begin
        # A month may have more days than the one before it: none of them counts twice.
        last_before = min(self._before + length, self.begin - timedelta(days=1))
        now = _sum(days, self.begin, today)
        then = _sum(days, self._before, last_before)
        cost = money.text(now.known_cost_nano) or "?"
        tokens = f"{count_text(now.total_tokens)} tokens"
        large, small = (tokens, cost) if is_by_tokens else (cost, tokens)
        change = _change(amount_of(now, is_by_tokens=is_by_tokens), amount_of(then, is_by_tokens=is_by_tokens))
        return Content.assemble(
            (f"{self.name}\n", "$text-muted"), (large, "bold"), *change, (f"\n{small}", "$text-muted")
        )


def tiles_of(today: date) -> tuple[Tile, ...]:
    """Return the tiles of today, this week and this month."""
    week = today - timedelta(days=today.weekday())
    month = today.replace(day=1)
    return (
        Tile("Today", today, today - timedelta(days=1)),
        Tile("This week", week, week - timedelta(days=7)),
        Tile("This month", month, (month - timedelta(days=1)).replace(day=1)),
    )


def _sum(days: Mapping[date, CostSums], first: date, last: date) -> CostSums:
    return sum((sums for day, sums in days.items() if first <= day <= last), CostSums())


def _change(now: int, then: int) -> Iterable[tuple[str, str]]:
    if not then:
        return ()
    percent = round((now - then) * 100 / then)
    if not percent:
        return (("  as before", "$text-muted"),)
    arrow = "▲" if percent > 0 else "▼"
    return ((f"  {arrow} {abs(percent):,} %", "$text-muted"),)


def _cost_cell(sums: CostSums, money: MoneyFormat) -> Span:
    cost = sums.known_cost_nano
    if cost is None:
        return Span("unpriced", "warning")
    return Span(f"{money.text(cost)}{' +?' if sums.unpriced_answers else ''}")
