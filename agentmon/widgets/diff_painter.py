"""Draws rows of a difference: signs and tints, words that changed, colours of the language, and what is found."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from agentmon.domain.amounts import size_text
from agentmon.domain.diffs import ChangeKind, DiffSide, word_changes
from agentmon.domain.letters import cut_before
from agentmon.domain.plain_text import exact_line
from agentmon.widgets.cells import cells, cut, even_line, pad
from agentmon.widgets.diff_colours import CHUNK_LINES, Chunk
from agentmon.widgets.diff_rows import TOP, WHOLE, Place, RowKind, has_odd_mode, is_link

if TYPE_CHECKING:
    from collections.abc import Mapping
    from re import Pattern

    from textual.widget import Widget

    from agentmon.domain.diffs import FileDiff, HunkLines, LineSpan, Spans
    from agentmon.widgets.diff_colours import DiffColours
    from agentmon.widgets.diff_rows import DiffLayout, DiffRow

LONGEST_LINE: Final = 2000
"""Most characters that are shown of a line."""
LETTERS: Final = {
    ChangeKind.ADDED: "A",
    ChangeKind.DELETED: "D",
    ChangeKind.MODIFIED: "M",
    ChangeKind.RENAMED: "R",
    ChangeKind.COPIED: "C",
    ChangeKind.UNMERGED: "U",
}
"""How the kinds of change are marked, as git marks them."""
_IMAGES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".ico", ".tif", ".tiff", ".avif")
_TAB: Final = 4
_LEAST_DIGITS: Final = 3
_MOST_MATCHES: Final = 100
_MOST_DRAWN: Final = 1000
_CURSOR: Final = "▌"
_MARKED: Final = "┃"
_COMMENTED: Final = "●"
_MODES: Final = {"120000": "symbolic link", "160000": "submodule", "100755": "executable", "100644": "file"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffMarks:
    """What is drawn over the text."""

    cursor: Place
    marked: tuple[Place, Place] | None = None
    """The first and the last row that are selected."""
    pattern: Pattern[str] | None = None
    left: int = 0
    """Cells that are scrolled out of view."""
    commented: frozenset[LineSpan] = frozenset()
    """Lines that somebody has said something about."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What is said of hunks, and of files without any, by their digests."""
    sizes: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    """Bytes of binary files before and after, by path."""


class DiffPainter:
    """Draws with the component classes of ``DiffText``."""

    def __init__(self, widget: Widget, colours: DiffColours) -> None:
        self._widget = widget
        self._colours = colours
        self._styles: dict[tuple[str, ...], Style] = {}
        self._chunks: set[Chunk] = set()
        self._drawn: dict[Place, Strip] = {}
        """Rows that are neither lit nor without the colours that they will have."""
        self._drawn_for: tuple[DiffLayout, int, DiffMarks] | None = None
        self._is_whole = True

    def forget(self) -> None:
        """Drop the styles of the former theme."""
        self._styles.clear()
        self._drawn_for = None

    def strips(self, layout: DiffLayout, rows: list[DiffRow], marks: DiffMarks, width: int) -> list[Strip]:
        """Return the rows as strips of ``width`` cells, and ask for the colours that are not known."""
        self._chunks.clear()
        self._colours.drop_wanted()
        drawn_for = (layout, width, replace(marks, cursor=TOP, marked=None))
        if drawn_for != self._drawn_for or len(self._drawn) > _MOST_DRAWN:
            self._drawn.clear()
            self._drawn_for = drawn_for
        return [self._kept_strip(layout, row, marks, width) for row in rows]

    def blank(self, width: int) -> Strip:
        """Return a row without text."""
        return Strip.blank(width, self._style("text", "plain"))

    def placeholder(self, text: str, width: int) -> Strip:
        """Return the row shown for an empty diff."""
        return Strip([Segment(pad(f" {even_line(text)}", width), self._style("muted", "plain"))], width)

    def _kept_strip(self, layout: DiffLayout, row: DiffRow, marks: DiffMarks, width: int) -> Strip:
        place = row.place
        if place == marks.cursor or (marks.marked is not None and marks.marked[0] <= place <= marks.marked[1]):
            return self._strip(layout, row, marks, width)
        known = self._drawn.get(place)
        if known is None:
            self._is_whole = True
            known = self._strip(layout, row, marks, width)
            if self._is_whole:
                self._drawn[place] = known
        return known

    def _strip(self, layout: DiffLayout, row: DiffRow, marks: DiffMarks, width: int) -> Strip:
        is_cursor = row.place == marks.cursor
        is_marked = marks.marked is not None and marks.marked[0] <= row.place <= marks.marked[1]
        lit = "cursor" if is_cursor else "marked" if is_marked else ""
        mark = (
            _CURSOR if is_cursor else _MARKED if is_marked else _COMMENTED if _is_commented(layout, row, marks) else " "
        )
        segments = [Segment(mark, self._style("mark", lit or "plain"))]
        room = width - 1
        if row.kind in {RowKind.LINE, RowKind.KEPT} and layout.side_by_side and row.file.kind not in WHOLE:
            half = (room - 1) // 2
            segments += self._side(layout, row, marks, half, lit, is_old=True)
            segments.append(Segment("│", self._style("rule", lit or "plain")))
            segments += self._side(layout, row, marks, room - half - 1, lit, is_old=False)
        elif row.kind in {RowKind.LINE, RowKind.KEPT}:
            segments += self._unified(layout, row, marks, room, lit)
        else:
            segments += self._head(layout, row, marks, room, lit)
        return Strip(segments, width)

    def _unified(self, layout: DiffLayout, row: DiffRow, marks: DiffMarks, width: int, lit: str) -> list[Segment]:
        old, new = layout.numbers(row)
        digits = digits_of(row)
        ground = "plain" if row.old is not None and row.new is not None else "added" if row.old is None else "removed"
        sign = {"plain": " ", "added": "+", "removed": "-"}[ground]
        gutter = f"{'' if old is None else old:>{digits}} {'' if new is None else new:>{digits}} "
        return self._line(layout, row, marks, width, lit, ground, gutter, sign, is_old=row.new is None)

    def _side(
        self, layout: DiffLayout, row: DiffRow, marks: DiffMarks, width: int, lit: str, *, is_old: bool
    ) -> list[Segment]:
        line = row.old if is_old else row.new
        if line is None:
            return [Segment(" " * width, self._style("text", lit or "absent"))]
        is_same = row.old == row.new or row.kind is RowKind.KEPT
        if not is_same and row.hunk is not None and row.old is not None and row.new is not None:
            is_same = layout.ignores_blanks and layout.diff.lines(row.hunk).differ_in_blanks(row.old, row.new)
        ground = "plain" if is_same else "removed" if is_old else "added"
        sign = {"plain": " ", "added": "+", "removed": "-"}[ground]
        number = layout.numbers(row)[0 if is_old else 1]
        gutter = f"{number:>{digits_of(row)}} "
        return self._line(layout, row, marks, width, lit, ground, gutter, sign, is_old=is_old)

    def _line(
        self,
        layout: DiffLayout,
        row: DiffRow,
        marks: DiffMarks,
        width: int,
        lit: str,
        ground: str,
        gutter: str,
        sign: str,
        *,
        is_old: bool,
    ) -> list[Segment]:
        gutter = gutter[: max(0, width - 2)]
        on = lit or ground
        segments = [
            Segment(gutter, self._style("muted", on)),
            Segment(f"{sign} "[: width - len(gutter)], self._style("sign" if sign != " " else "text", on, ground)),
        ]
        room = width - len(gutter) - 2
        if room <= 0:
            return segments
        words: Spans = ()
        colours: tuple[tuple[int, int, str], ...] = ()
        note = ""
        if row.hunk is None:
            text = shown_line(layout.kept_text(row))
        else:
            lines = layout.diff.lines(row.hunk)
            line = row.old if is_old else row.new
            assert line is not None
            text = line_text(lines, line)
            if ground != "plain":
                words = _words(lines, line, text, is_old=is_old)
            colours = self._colours_of(layout, row, line)
            note = "" if is_link(row.file) else _end_note(lines, line)
        return segments + self._text(text, note, colours, words, marks, room, lit, ground)

    def _text(
        self,
        text: str,
        note: str,
        colours: tuple[tuple[int, int, str], ...],
        words: Spans,
        marks: DiffMarks,
        room: int,
        lit: str,
        ground: str,
    ) -> list[Segment]:
        """Return a line from ``marks.left`` on as segments that fill the room."""
        matches = [] if marks.pattern is None else _matches(marks.pattern, text)
        is_even = text.isascii()
        start, end = (marks.left, min(len(text), marks.left + room)) if is_even else (0, len(text))
        edges = {start, end}
        for low, high in (*((low, high) for low, high, _ in colours), *words, *matches):
            edges.update(edge for edge in (low, high) if start < edge < end)
        ordered = sorted(edges)
        on = lit or ground
        segments = []
        for low, high in pairwise(ordered):
            name = next((style for a, b, style in colours if a <= low < b), "text")
            is_word = any(a <= low < b for a, b in words)
            is_match = any(a <= low < b for a, b in matches)
            piece_on = "match" if is_match else f"{ground}-word" if is_word else on
            segments.append(Segment(text[low:high], self._style(name, piece_on, "word" if is_word else "")))
        if note:
            segments.append(Segment(note, self._style("muted", on)))
        blank = self._style("text", on)
        if is_even:
            taken = max(0, end - start) + cells(note)
            segments.append(Segment(" " * max(0, room - taken), blank))
            return segments if taken <= room else list(Strip(segments).crop(0, room))
        whole = Strip([*segments, Segment(" " * (marks.left + room), blank)])
        return list(whole.crop(marks.left, marks.left + room))

    def _head(self, layout: DiffLayout, row: DiffRow, marks: DiffMarks, width: int, lit: str) -> list[Segment]:
        part = layout.parts[row.place.part]
        file = row.file
        match row.kind:
            case RowKind.FILE:
                note = layout.file_note(file, marks.notes)
                looked = (f"  {note}" if note else "") + (" ✓" if layout.is_looked(file) else "")
                counts = f"  +{file.added} −{file.removed}" if file.hunks else ""
                fold = "▸" if layout.is_folded(part) else "▾"
                room = width - cells(counts) - cells(looked) - 5
                name = cut_before(file_name(file.path, file.old_path), room, cells)
                on = lit or "head"
                return [
                    Segment(f"{fold} ", self._style("muted", on)),
                    Segment(f"{LETTERS[file.kind]} ", self._style("letter", on, file.kind.value)),
                    *self._found(pad(name, room), marks, "bold", on),
                    Segment(cut(f"{counts}{looked} ", max(0, width - max(0, room) - 4)), self._style("muted", on)),
                ]
            case RowKind.NOTE:
                return self._one(f"  {note_text(file, marks.sizes.get(file.path))}", width, "muted", lit)
            case RowKind.GAP:
                first, end = layout.gap_span(part)
                count = "" if end is None else f"{end - first:,} "
                unit = "to the end" if end is None else "unchanged line" + ("" if end - first == 1 else "s")
                return self._one(f"  … {count}{unit}", width, "muted", lit)
            case RowKind.HUNK if row.hunk is not None:
                fold = "▸" if layout.is_folded(part) else "▾"
                looked = "  ✓" if layout.is_hunk_looked(part) else ""
                if marks.notes and (said := marks.notes.get(layout.hunk_name(part))):
                    looked = f"{looked}  {said}"
                heading = shown_line(layout.diff.heading(row.hunk))
                lines = f"{row.hunk.new_start}" if row.hunk.new_count else f"{row.hunk.old_start}"
                counts = f"+{row.hunk.added} −{row.hunk.removed}"
                return self._one(f"  {fold} line {lines}  {counts}{looked}  {heading}", width, "hunk", lit)
            case _:
                return self._one("", width, "text", lit)

    def _one(self, text: str, width: int, name: str, lit: str) -> list[Segment]:
        return [Segment(pad(text, width), self._style(name, lit or "plain"))]

    def _found(self, text: str, marks: DiffMarks, name: str, on: str) -> list[Segment]:
        segments = []
        done = 0
        for start, end in () if marks.pattern is None else _matches(marks.pattern, text):
            segments += [
                Segment(text[done:start], self._style(name, on)),
                Segment(text[start:end], self._style(name, "match")),
            ]
            done = end
        return [*segments, Segment(text[done:], self._style(name, on))]

    def _colours_of(self, layout: DiffLayout, row: DiffRow, line: int) -> tuple[tuple[int, int, str], ...]:
        if row.hunk is None:
            return ()
        part = layout.parts[row.place.part]
        chunk = Chunk(row.file.path, layout.hunk_name(part), line // CHUNK_LINES)
        known = self._colours.of(chunk, line)
        self._is_whole &= known is not None
        if known is None and chunk not in self._chunks:
            self._chunks.add(chunk)
            lines = layout.diff.lines(row.hunk)
            numbers = range(chunk.number * CHUNK_LINES, min(len(lines), (chunk.number + 1) * CHUNK_LINES))
            texts = {number: line_text(lines, number) for number in numbers}
            sides = [{n: text for n, text in texts.items() if lines.signs[n] != skipped} for skipped in (0x2B, 0x2D)]
            self._colours.want(chunk, sides)
        return known or ()

    def _style(self, name: str, ground: str, kind: str = "") -> Style:
        """Return the style of a text on a ground; ``kind`` is what the sign or letter is of, or a changed word."""
        key = (name, ground, kind)
        known = self._styles.get(key)
        if known is None:
            if name in {"sign", "letter"}:
                name = {"added": "plus", "removed": "minus", "deleted": "minus"}.get(kind, "letter")
            own = self._component(name)
            known = self._component("text") + Style(color=own.color, bold=own.bold, italic=own.italic)
            if ground != "plain":
                over = self._component(ground)
                known += Style(bgcolor=over.bgcolor)
                if ground == "match":
                    known += Style(color=over.color)
            if kind == "word":
                known += Style(bold=True, underline=self._widget.app.no_color or None)
            self._styles[key] = known
        return known

    def _component(self, name: str) -> Style:
        return self._widget.get_component_rich_style(f"diff--{name}")


def line_text(lines: HunkLines, line: int) -> str:
    """Return a line of a hunk as it is shown."""
    return shown_line(lines.text(line, max_bytes=4 * LONGEST_LINE))


def shown_line(text: str) -> str:
    r"""Return a text as it is shown: tabs as blanks, and what nobody would see as its number, ``\u202e``."""
    text = text[: LONGEST_LINE + 1]
    if "\t" in text:
        text = text.expandtabs(_TAB)
    if text.isascii() and text.isprintable() and len(text) <= LONGEST_LINE:
        return text
    return even_line(exact_line(text), max_characters=LONGEST_LINE)


def file_name(path: str, old_path: str) -> str:
    """Return the path as it is shown, with the former one where there was another."""
    shown = shown_line(path)
    return shown if path == old_path else f"{shown_line(old_path)} → {shown}"


def digits_of(row: DiffRow) -> int:
    """Return how wide the line numbers of a file are."""
    if not row.file.hunks:
        return _LEAST_DIGITS
    last = row.file.hunks[-1]
    return max(_LEAST_DIGITS, len(str(max(last.old_start + last.old_count, last.new_start + last.new_count))))


def note_text(file: FileDiff, sizes: tuple[int | None, int | None] | None = None) -> str:
    """Return what became of a file beside its lines: ``PNG image, 1.2 KB → 3.4 KB``, ``Renamed without changes``.

    Args:
        file: Which one.
        sizes: Its bytes before and after; None where that is not known.
    """
    parts = []
    if file.is_binary:
        suffix = file.path.lower().rpartition(".")[2]
        kind = f"{suffix.upper()} image" if f".{suffix}" in _IMAGES else "Binary file"
        known = [size_text(size) for size in sizes or () if size is not None]
        parts.append(f"{kind}, {' → '.join(known)}" if known else f"{kind}, not shown")
    if is_link(file):
        parts.append("Symbolic link")
    if has_odd_mode(file) and not is_link(file):
        before = f"{_mode_text(file.old_mode)} → " if file.old_mode else ""
        parts.append(f"Mode {before}{_mode_text(file.new_mode)}")
    if not parts and file.kind in {ChangeKind.RENAMED, ChangeKind.COPIED}:
        parts.append(f"{file.kind.value.capitalize()} without changes")
    return " · ".join(parts) or "No lines"


def _mode_text(mode: str) -> str:
    shown = shown_line(mode)
    return f"{shown} ({_MODES[mode]})" if mode in _MODES else shown


def _is_commented(layout: DiffLayout, row: DiffRow, marks: DiffMarks) -> bool:
    if not marks.commented or row.kind not in {RowKind.LINE, RowKind.KEPT}:
        return False
    old, new = layout.numbers(row)
    for path, side, first, last in marks.commented:
        number = old if side is DiffSide.OLD else new
        if path == row.file.path and number is not None and first <= number <= last:
            return True
    return False


def _words(lines: HunkLines, line: int, text: str, *, is_old: bool) -> Spans:
    """Return the pieces of a line in which it differs from the one that it was changed from, or into."""
    partner = lines.partner(line)
    if partner is None:
        return ()
    other = line_text(lines, partner)
    return word_changes(text, other)[0] if is_old else word_changes(other, text)[1]


def _end_note(lines: HunkLines, line: int) -> str:
    note = "␍" if lines.has_carriage_return(line) and lines.has_mixed_ends else ""
    return f"{note}  no line feed at the end" if line in lines.unended else note


def _matches(pattern: Pattern[str], text: str) -> list[tuple[int, int]]:
    return [match.span() for match in islice(pattern.finditer(text), _MOST_MATCHES) if match.end() > match.start()]
