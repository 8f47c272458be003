"""What a search found, grouped by kind: one row each, with what was found marked in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive

from agentmon.domain.plain_text import plain_lines
from agentmon.domain.search import SearchKind
from agentmon.widgets.cells import cells, cut, even_line, pad
from agentmon.widgets.cursor_table import GAP, MARGIN, CursorTable, fitted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.search import FoundOfKind, SearchHit, TextMatcher

KIND_WORDS: Final = {
    SearchKind.TASKS: "Tasks",
    SearchKind.SESSIONS: "Conversations",
    SearchKind.MESSAGES: "Messages",
    SearchKind.OPERATIONS: "Tool calls",
    SearchKind.CHANGES: "Changed files",
    SearchKind.LOGS: "Logs",
    SearchKind.DOCUMENTS: "Documents",
}
_GLYPHS: Final = {
    SearchKind.TASKS: "■",
    SearchKind.SESSIONS: "●",
    SearchKind.MESSAGES: "“",
    SearchKind.OPERATIONS: "›",
    SearchKind.CHANGES: "±",
    SearchKind.LOGS: "│",
    SearchKind.DOCUMENTS: "▪",
}
_MARK: Final = Style(bold=True, underline=True)
_TASK_SHARE: Final = 3
_WIDEST_TASK: Final = 36
_WIDEST_PLACE: Final = 24
_PLACE_FROM: Final = 90
"""Narrower tables leave out where and when."""


class FoundRow(NamedTuple):
    """A row: the heading of a kind, or something that was found."""

    key: str
    hit: SearchHit | None
    title: str = ""
    place: str = ""


def found_rows(found: Sequence[FoundOfKind], places: dict[str, str]) -> tuple[FoundRow, ...]:
    """Return the rows of what was found, each kind below its heading.

    Args:
        found: What was found; kinds without anything have no heading.
        places: Where and when each one is, by its key.
    """
    rows: list[FoundRow] = []
    for group in found:
        if not group.hits:
            continue
        more = "+" if group.has_more or group.is_cut else ""
        rows.append(FoundRow(f"kind:{group.kind}", None, f"{KIND_WORDS[group.kind]}  {len(group.hits)}{more}"))
        for hit in group.hits:
            number = "" if hit.task_number is None else f"#{hit.task_number} "
            rows.append(FoundRow(f"{hit.kind}:{hit.key}", hit, number + hit.title, places.get(hit.key, "")))
    return tuple(rows)


class SearchResults(CursorTable):
    """Rows with a cursor that passes over the headings; the parent sets ``rows`` and calls the moves from its keys."""

    rows: reactive[tuple[FoundRow, ...]] = reactive((), layout=False, repaint=False, init=False)
    """All rows, from top to bottom."""

    keeps_cursor = False
    """Whether the cursor stays on its row when other rows are set; else it goes to the first."""

    @dataclass
    class Opened(Message):
        """Something that was found was chosen."""

        results: SearchResults
        hit: SearchHit

    @dataclass
    class Highlighted(Message):
        """The cursor stands on something else; None when nothing was found."""

        results: SearchResults
        hit: SearchHit | None

    @property
    def row_count(self) -> int:
        """How many rows there are, with the headings."""
        return len(self.rows)

    @property
    def selected(self) -> SearchHit | None:
        """What is under the cursor."""
        return self.rows[self.cursor_row].hit if self.rows else None

    def key_of(self, row: int) -> str:
        """Return the name of a row."""
        return self.rows[row].key

    def tell_opened(self) -> None:
        """Post ``Opened``."""
        hit = self.selected
        if hit is not None:
            self.post_message(self.Opened(self, hit))

    def tell_highlighted(self) -> None:
        """Post ``Highlighted``."""
        self.post_message(self.Highlighted(self, self.selected))

    def watch_rows(self) -> None:
        """Show other rows, with the cursor on the first of what was found, or where it was."""
        if self.keeps_cursor:
            self.settle({row.key: at for at, row in enumerate(self.rows)})
            self.move_to(self.cursor_row)
            return
        self.settle({})
        self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self.move_to(0)

    def move_to(self, row: int) -> None:
        """Move the cursor to a row, past a heading in the same direction; a row outside is the nearest end."""
        row = max(0, min(row, self.row_count - 1))
        if self.rows and self.rows[row].hit is None:
            row += 1 if row > self.cursor_row or row == 0 else -1
        super().move_to(row)

    def go_kind(self, steps: int) -> None:
        """Go to the first row of the next kind, or of the one before, round the ends."""
        heads = [at for at, row in enumerate(self.rows) if row.hit is None]
        if heads:
            here = sum(head < self.cursor_row for head in heads) - 1
            self.move_to(heads[(here + steps) % len(heads)] + 1)

    def heading_segments(self, base: Style) -> list[Segment]:
        """Return the headings of the columns."""
        title, place, text = self._widths()
        header = self.style_of("header", base)
        shown = [("Where", title), ("Found", text), ("When", place)]
        return [Segment(pad(word, width) + " " * GAP, header) for word, width in shown if width]

    def row_segments(self, row: int, base: Style) -> list[Segment]:
        """Return the heading of a kind, or the cells of what was found."""
        shown = self.rows[row]
        if shown.hit is None:
            return [Segment(fitted(shown.title, self._room()), self.style_of("primary", base) + Style(bold=True))]
        title, place, text = self._widths()
        is_archived = shown.hit.is_archived
        first = f"{_GLYPHS[shown.hit.kind]} {shown.title}" + (" (archived)" if is_archived else "")
        segments = [
            Segment(fitted(first, title), self.style_of("muted", base) if is_archived else base),
            Segment(" " * GAP, base),
            *_marked(shown.hit, text, base),
        ]
        if place:
            segments += [Segment(" " * GAP, base), Segment(fitted(shown.place, place), self.style_of("muted", base))]
        return segments

    def _room(self) -> int:
        return max(1, self.scrollable_size.width - 2 * MARGIN)

    def _widths(self) -> tuple[int, int, int]:
        """Return the cells of the title, of where and when, and of what was found."""
        room = self._room()
        title = min(_WIDEST_TASK, room // _TASK_SHARE)
        place = _WIDEST_PLACE if room >= _PLACE_FROM else 0
        return title, place, max(1, room - title - GAP - (place + GAP if place else 0))


def preview(hit: SearchHit, heading: str, matcher: TextMatcher) -> Content:
    """Return the text around something that was found, with what was looked for marked."""
    text = plain_lines(hit.context)
    parts: list[Content] = [Content.styled(heading, "bold"), Content("\n\n")]
    last = 0
    for start, end in matcher.marks(text):
        parts += [Content(text[last:start]), Content.styled(text[start:end], "$primary bold underline")]
        last = end
    return Content.assemble(*parts, Content(text[last:]))


def _marked(hit: SearchHit, width: int, base: Style) -> list[Segment]:
    """Return the snippet in exactly so many cells, with what was found marked."""
    segments: list[Segment] = []
    room = width
    text, last = hit.snippet.text, 0
    for start, end in (*hit.snippet.marks, (len(text), len(text))):
        for piece, style in ((text[last:start], base), (text[start:end], base + _MARK)):
            shown = cut(even_line(piece), room)
            if shown:
                segments.append(Segment(shown, style))
                room -= cells(shown)
        last = end
    return [*segments, Segment(" " * room, base)]
