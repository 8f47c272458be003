"""Draws rows of a log: their own colours, levels and addresses, and what is marked, found or selected in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from agentmon.logs.line_marks import Level, find_level, find_links
from agentmon.logs.line_text import PLAIN_STYLE
from agentmon.widgets.cells import cells, cut

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.selection import Selection
    from textual.widget import Widget

    from agentmon.logs.line_text import Colour, TextStyle
    from agentmon.logs.pattern import LogPattern
    from agentmon.widgets.log_rows import DisplayLine, Row

_MAX_HIGHLIGHTS: Final = 200
_MAX_HIGHLIGHT_CHARACTERS: Final = 4096
_LEVEL_CLASSES: Final = {level: f"log-view--{level.value}" for level in Level}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMarks:
    """What is drawn over the text of a log."""

    pattern: LogPattern | None = None
    """What is lit where it matches."""
    current_offset: int | None = None
    """The line whose matches are lit brighter."""
    marked: tuple[int, int] | None = None
    """The starts of the first and the last line that are marked."""
    selection: Selection | None = None
    """What a person selected with the mouse."""


class LogPainter:
    """Draws with the styles of a widget, which has the component classes of ``LogView``."""

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._base = Style.null()
        self._styles: dict[TextStyle, Style] = {}

    def is_base(self, style: Style) -> bool:
        """Return whether this is still the style of the widget; another one is taken from now on."""
        if style == self._base:
            return True
        self._base = style
        self.forget()
        return False

    def forget(self) -> None:
        """Drop the styles that were mixed with those of the widget."""
        self._styles.clear()

    def blank(self, width: int) -> Strip:
        """Return a row without text."""
        return Strip.blank(width, self._base)

    def placeholder(self, text: str, height: int, *, columns: int, width: int) -> list[Strip]:
        """Return the rows of what stands in an empty log."""
        style = self._component("placeholder")
        strips = []
        for line in text.split("\n")[:height]:
            shown = cut(line, columns)
            strips.append(Strip([Segment(shown, style)], cells(shown)).adjust_cell_length(width, style))
        return strips

    def strips(
        self, rows: list[Row], marks: LogMarks, *, width: int, gutter: Callable[[Row], str] | None = None
    ) -> list[Strip]:
        """Return the rows as strips of ``width`` cells.

        Args:
            rows: What is drawn, from top to bottom.
            marks: What is drawn over it.
            width: The cells of each strip.
            gutter: Returns what stands before a row, of one width for all; None for nothing.
        """
        base = self._style(PLAIN_STYLE)
        selected = self._widget.screen.get_component_rich_style("screen--selection") if marks.selection else base
        marked = Style(bgcolor=self._component("marked").bgcolor) if marks.marked else base
        muted = self._component("time") if gutter else base
        strips: list[Strip] = []
        for row in rows:
            line = row.line
            segments = [Segment(" " * row.blanks, base)] if row.blanks else []
            segments += [
                Segment(text, base if style is PLAIN_STYLE else self._style(style))
                for text, style in line.parts(row.start, row.end)
            ]
            segments = self._with_marks(segments, row)
            if marks.marked is not None and marks.marked[0] <= line.start <= marks.marked[1]:
                segments = _overlaid(segments, row, row.start, row.end, marked)
            if marks.pattern is not None:
                segments = self._with_matches(segments, row, marks.pattern, marks.current_offset)
            if marks.selection is not None and (span := marks.selection.get_span(line.start)) is not None:
                segments = _overlaid(segments, row, span[0], len(line.text) if span[1] < 0 else span[1], selected)
            shown = row.blanks + line.cell(row.end) - line.cell(row.start)
            if gutter is not None:
                before = gutter(row)
                segments.insert(0, Segment(before, muted))
                shown += len(before)
            if shown < width:
                segments.append(Segment(" " * (width - shown), base))
            strip = Strip(segments, max(shown, width))
            # Only a wide character in a column of one cell is wider than its row.
            strips.append(strip if shown <= width else strip.crop(0, width))
        return strips

    def _with_marks(self, segments: list[Segment], row: Row) -> list[Segment]:
        line = row.line
        if line.is_plain and (level := find_level(line.text)) is not None and level.start < row.end:
            colour = self._widget.get_component_rich_style(_LEVEL_CLASSES[level.level]).color
            segments = _overlaid(segments, row, level.start, level.end, Style(color=colour))
        if "://" in line.text:
            start, end = _near(line, row)
            for link_start, link_end in find_links(line.text, start, end):
                address = Style(link=line.text[link_start:link_end], underline=True)
                segments = _overlaid(segments, row, link_start, link_end, address)
        return segments

    def _with_matches(
        self, segments: list[Segment], row: Row, pattern: LogPattern, current_offset: int | None
    ) -> list[Segment]:
        style = self._component("current-match" if row.line.start == current_offset else "match")
        for start, end in _matches(pattern, row.line, row):
            segments = _overlaid(segments, row, start, end, style)
        return segments

    def _component(self, name: str) -> Style:
        return self._widget.get_component_rich_style(f"log-view--{name}")

    def _style(self, style: TextStyle) -> Style:
        if style.link:
            # Each has its own, and they would never be forgotten.
            return self._base + _rich_style(style)
        known = self._styles.get(style)
        if known is None:
            known = self._styles[style] = self._base + _rich_style(style)
        return known


def _near(line: DisplayLine, row: Row) -> tuple[int, int]:
    """Return the part of a line that is looked at for what to mark in the row: all but of very long lines."""
    start, end = 0, len(line.text)
    if end > _MAX_HIGHLIGHT_CHARACTERS:
        start = max(0, row.start - _MAX_HIGHLIGHT_CHARACTERS // 2)
        end = min(end, row.end + _MAX_HIGHLIGHT_CHARACTERS // 2)
    return start, end


def _matches(pattern: LogPattern, line: DisplayLine, row: Row) -> list[tuple[int, int]]:
    start, end = _near(line, row)
    found: list[tuple[int, int]] = []
    for match in pattern.regex.finditer(line.text, start, end):
        if match.end() > row.start and match.start() < row.end:
            found.append(match.span())
        if match.start() >= row.end or len(found) >= _MAX_HIGHLIGHTS:
            break
    return found


def _overlaid(segments: list[Segment], row: Row, start: int, end: int, style: Style) -> list[Segment]:
    """Return the segments of a row with ``style`` over the characters of its line from ``start`` up to ``end``."""
    overlaid: list[Segment] = []
    index = row.start - row.blanks
    for text, own, _ in segments:
        low = min(len(text), max(0, start - index))
        high = min(len(text), max(low, end - index))
        if low < high:
            above = own + style if own else style
            overlaid += [
                Segment(part, part_style)
                for part, part_style in ((text[:low], own), (text[low:high], above), (text[high:], own))
                if part
            ]
        else:
            overlaid.append(Segment(text, own))
        index += len(text)
    return overlaid


def _rich_style(style: TextStyle) -> Style:
    return Style(
        color=_rich_colour(style.foreground),
        bgcolor=_rich_colour(style.background),
        bold=style.bold or None,
        dim=style.dim or None,
        italic=style.italic or None,
        underline=style.underline or bool(style.link) or None,
        reverse=style.reverse or None,
        strike=style.strike or None,
        link=style.link or None,
    )


def _rich_colour(colour: Colour | None) -> Color | None:
    if colour is None:
        return None
    return Color.from_ansi(colour) if isinstance(colour, int) else Color.from_rgb(*colour)
