"""Bars over time, each stacked from the parts of up to six series, in eighths of a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from agentmon.widgets.cells import cells, cut, pad
from agentmon.widgets.guarded import Guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SERIES: Final = 6
"""How many series have a style of their own."""
_EIGHTHS: Final = 8
_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
PATTERNS: Final = "█▓▒░╳·"
"""What tells the series apart where there are no colours."""
_NICE: Final = (1, 2, 5, 10)
_MIDDLE_FROM_ROWS: Final = 6
_LEAST_STEP_WITH_GAP: Final = 3
_WIDEST_BAR: Final = 9


class Bar(NamedTuple):
    """What one span of time had."""

    label: str
    parts: tuple[tuple[int, int], ...]
    """Series and amount, from the foot upwards; no amount is negative."""


class BarCell(NamedTuple):
    """One cell of a bar: a block of one series before the ground of another; None is the empty ground."""

    block: str
    series: int | None
    ground: int | None

    @property
    def pattern(self) -> str:
        """The cell without colours: the pattern of the series that fills most of it, or a part of a block alone."""
        if self.series is None:
            return " "
        half = _BLOCKS[_EIGHTHS // 2]
        if self.ground is not None:
            return PATTERNS[self.series if self.block >= half else self.ground]
        is_part = self.series == 0 and self.block != _BLOCKS[-1]
        return self.block if is_part else PATTERNS[self.series]


class StackedBars(Guarded, Widget, inherit_bindings=False):
    """A chart of bars, the newest at the right; older ones that have no room are left out."""

    DEFAULT_CSS = """
    StackedBars {
        width: 1fr;
        height: 1fr;
        & > .stacked-bars--axis { color: $text-muted; }
        & > .stacked-bars--series-0 { color: $primary; }
        & > .stacked-bars--series-1 { color: $secondary; }
        & > .stacked-bars--series-2 { color: $warning; }
        & > .stacked-bars--series-3 { color: $success; }
        & > .stacked-bars--series-4 { color: $error; }
        & > .stacked-bars--series-5 { color: $text-muted; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "stacked-bars--axis",
        *(f"stacked-bars--series-{number}" for number in range(SERIES)),
    }

    bars: reactive[tuple[Bar, ...]] = reactive((), init=False)
    """All bars, from the oldest to the newest."""
    is_patterned: reactive[bool] = reactive(False, layout=False, init=False)
    """Whether each series has a pattern of its own, since there are no colours."""

    def __init__(self, amount_text: Callable[[int], str], *, id: str | None = None) -> None:  # noqa: A002 - Textual's
        """Make an empty chart.

        Args:
            amount_text: Writes an amount of the axis.
            id: The widget's name.
        """
        super().__init__(id=id)
        self._amount_text = amount_text
        self._drawn: tuple[tuple[object, ...], list[list[BarCell]], _Layout] | None = None

    def render_line(self, y: int) -> Strip:
        """Return one line: the axis at the left, then the bars; the last line has their labels."""
        width, height = self.size
        base = self.rich_style
        axis = base + self.get_component_rich_style("stacked-bars--axis", partial=True)
        if height < 2 or not self.bars:  # noqa: PLR2004 - one line for the bars and one for their labels
            return Strip.blank(width, base)
        columns, layout = self._layout(width, height)
        if y == height - 1:
            return Strip([Segment(layout.labels, axis)]).adjust_cell_length(width, base)
        row = y - (height - 1 - len(layout.axis))
        if row < 0:
            return Strip.blank(width, base)
        segments = [Segment(layout.axis[row], axis)]
        for column in columns:
            cell = column[row]
            block = cell.pattern if self.is_patterned else cell.block
            segments.append(Segment(block * layout.bar_width, self._style(cell, base)))
            segments.append(Segment(" " * (layout.step - layout.bar_width), base))
        return Strip(segments).adjust_cell_length(width, base)

    def _style(self, cell: BarCell, base: Style) -> Style:
        style = base
        if self.is_patterned:
            return style
        if cell.series is not None:
            style += self.get_component_rich_style(f"stacked-bars--series-{cell.series}", partial=True)
        if cell.ground is not None:
            ground = self.get_component_rich_style(f"stacked-bars--series-{cell.ground}", partial=True)
            style += Style(bgcolor=ground.color)
        return style

    def _layout(self, width: int, height: int) -> tuple[list[list[BarCell]], _Layout]:
        given = (width, height, self.bars)
        if self._drawn is None or self._drawn[0] != given:
            rows = height - 1
            if rows >= _MIDDLE_FROM_ROWS:
                # The middle of an even number of rows is at half the amount.
                rows -= rows % 2
            top = nice_top(max(sum(amount for _, amount in bar.parts) for bar in self.bars))
            layout = _Layout.fit(self.bars, top, width, rows, self._amount_text)
            columns = [bar_cells(bar.parts, top, rows) for bar in self.bars[-layout.bars :]]
            self._drawn = (given, columns, layout)
        return self._drawn[1], self._drawn[2]


class _Layout(NamedTuple):
    """Where everything stands."""

    bars: int
    """How many there is room for."""
    step: int
    bar_width: int
    axis: list[str]
    labels: str

    @classmethod
    def fit(cls, bars: Sequence[Bar], top: int, width: int, rows: int, amount_text: Callable[[int], str]) -> _Layout:
        amounts = [""] * rows
        if any(amount for bar in bars for _, amount in bar.parts):
            amounts[0] = amount_text(top)
            middle = amount_text(top - top * (rows // 2) // rows)
            if rows >= _MIDDLE_FROM_ROWS and middle != amounts[0]:
                amounts[rows // 2] = middle
        room = max(map(cells, amounts))
        axis = [" " * (room - cells(text)) + text + (" ┤" if text else " │") for text in amounts]
        left = room + 2
        count = max(1, min(len(bars), width - left))
        step = max(1, min((width - left) // count, _WIDEST_BAR + 1))
        bar_width = step - 1 if step >= _LEAST_STEP_WITH_GAP else step
        return cls(count, step, bar_width, axis, " " * left + _labels(bars[-count:], step, width - left))


def nice_top(amount: int) -> int:
    """Return the least of 1, 2, 5, 10, 20 … that is not below the amount."""
    scale = 1
    while True:
        for factor in _NICE:
            if factor * scale >= amount:
                return factor * scale
        scale *= 10


def bar_cells(parts: Sequence[tuple[int, int]], top: int, rows: int) -> list[BarCell]:
    """Return the cells of a bar from the uppermost down; whatever is more than nothing shows.

    Args:
        parts: Series and amount, from the foot upwards.
        top: The amount that fills all rows.
        rows: How many cells the bar has room for.
    """
    edges: list[tuple[int, int]] = []
    """Series, and the eighth at which it ends."""
    reached = 0
    for series, amount in parts:
        reached += amount
        edge = min(rows * _EIGHTHS, round(reached * rows * _EIGHTHS / top)) if top else 0
        if amount and not edge:
            edge = 1
        if edge > (edges[-1][1] if edges else 0):
            edges.append((series, edge))
    return [_cell(edges, (rows - 1 - row) * _EIGHTHS) for row in range(rows)]


def _cell(edges: Sequence[tuple[int, int]], foot: int) -> BarCell:
    """Return the cell whose lowest eighth is ``foot``; it has room for two series, or one below the empty ground."""
    inside = [(series, edge - foot) for series, edge in edges if edge > foot]
    if not inside:
        return BarCell(" ", None, None)
    lowest, height = inside[0]
    if height >= _EIGHTHS:
        return BarCell(_BLOCKS[-1], lowest, None)
    if inside[-1][1] >= _EIGHTHS:
        return BarCell(_BLOCKS[height], lowest, inside[1][0])
    heights = [edge - before for (_, edge), before in zip(inside, (0, *(edge for _, edge in inside)), strict=False)]
    return BarCell(_BLOCKS[inside[-1][1]], inside[heights.index(max(heights))][0], None)


def _labels(bars: Sequence[Bar], step: int, width: int) -> str:
    """Return a line of the labels, each below its bar; those that would touch the one before are left out."""
    line = ""
    for at, bar in enumerate(bars):
        begin = at * step
        label = cut(bar.label, width - begin)
        if (not line or begin >= cells(line) + 1) and cells(label) == cells(bar.label):
            line = pad(line, begin) + label
    return line
