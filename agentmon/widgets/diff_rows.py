"""A difference as rows of a screen: files, hunks and folds, of which only what is looked at is ever taken apart."""

from __future__ import annotations

from collections import OrderedDict
from copy import copy
from enum import Enum
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.diffs import ChangeKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agentmon.domain.diffs import Diff, FileDiff, Hunk, HunkRows

_KEPT_ROWS: Final = 32
_PLAIN_MODE: Final = "100644"
_LINK_MODE: Final = "120000"
WHOLE: Final = {ChangeKind.ADDED, ChangeKind.DELETED}
"""Files of which the patch has every line, all of one side."""


class RowKind(Enum):
    """What a row, and the part that it is a row of, shows."""

    FILE = "file"
    NOTE = "note"
    """What became of a file beside its lines."""
    GAP = "gap"
    """Unchanged lines that the patch leaves out, folded."""
    KEPT = "kept"
    """One of these lines, unfolded."""
    HUNK = "hunk"
    LINE = "line"
    BLANK = "blank"


class Place(NamedTuple):
    """A row of a part; places are ordered from top to bottom."""

    part: int
    row: int


TOP: Final = Place(0, 0)


class Part(NamedTuple):
    """A stretch of rows that belong together: of kind FILE, NOTE, GAP, HUNK or BLANK."""

    kind: RowKind
    file: int
    hunk: int = -1
    """Of a gap the hunk below it; one more than there are at the end of the file."""


class DiffRow(NamedTuple):
    """One row; ``old`` and ``new`` are lines of the hunk, or numbers of unchanged lines counted from 1."""

    kind: RowKind
    place: Place
    file: FileDiff
    hunk: Hunk | None = None
    old: int | None = None
    new: int | None = None


class Anchor(NamedTuple):
    """What a row is about, so that it is found again in another difference or another layout."""

    path: str
    file: int
    kind: RowKind
    name: str = ""
    """The digest of the hunk, or of the one below a gap."""
    old: int | None = None
    new: int | None = None
    number: int = 0
    """The number of the line in the new text."""


class DiffLayout:
    """The rows of a difference in one form; another form is another layout.

    Args:
        diff: What is shown.
        looked: Digests of what a person has looked at, which is folded.
        toggled: Names of files (their paths), hunks (their digests) and gaps (``fold_name``) that are folded when they
            would not be otherwise, or the other way round.
        unchanged: Lines of whole files, by path, as far as they are known.
    """

    def __init__(
        self,
        diff: Diff,
        *,
        looked: frozenset[str] = frozenset(),
        toggled: frozenset[str] = frozenset(),
        unchanged: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.diff = diff
        self.side_by_side = False
        """Whether old and new lines share a row."""
        self.ignores_blanks = False
        """Whether lines that differ in blanks alone count as unchanged."""
        self._looked = looked
        self._toggled = toggled
        self._unchanged = unchanged or {}
        self._rows: OrderedDict[tuple[int, bool, bool], HunkRows] = OrderedDict()
        self.parts: list[Part] = []
        self.first_parts: list[int] = []
        """The part with which each file begins."""
        for at in range(len(diff.files)):
            self.first_parts.append(len(self.parts))
            self.parts += self._parts_of(at)

    def in_form(self, *, side_by_side: bool, ignores_blanks: bool) -> DiffLayout:
        """Return the same in another form."""
        if (side_by_side, ignores_blanks) == (self.side_by_side, self.ignores_blanks):
            return self
        other = copy(self)
        other.side_by_side, other.ignores_blanks = side_by_side, ignores_blanks
        return other

    # What is folded, and what was looked at

    def is_looked(self, file: FileDiff) -> bool:
        """Return whether all of a file was looked at."""
        return bool(self._looked) and self._looked.issuperset(marks_of(self.diff, file))

    def file_note(self, file: FileDiff, notes: Mapping[str, str]) -> str:
        """Return what is said of a file: the first note of its hunks, and of how many of them where not all have it."""
        if not notes:
            return ""
        own = [notes.get(mark, "") for mark in marks_of(self.diff, file)]
        first = next(filter(None, own), "")
        count = own.count(first)
        return f"{count} of {len(own)} {first}" if first and count < len(own) else first

    def is_hunk_looked(self, part: Part) -> bool:
        """Return whether a hunk was looked at."""
        return bool(self._looked) and self.hunk_name(part) in self._looked

    def is_folded(self, part: Part) -> bool:
        """Return whether a file or a hunk shows its head alone."""
        if not self._looked and not self._toggled:
            return False
        if part.kind is RowKind.FILE:
            file = self.diff.files[part.file]
            return self.is_looked(file) != (file.path in self._toggled)
        return self.is_hunk_looked(part) != (self.hunk_name(part) in self._toggled)

    def hunk_name(self, part: Part) -> str:
        """Return the digest of a hunk, or of the hunk below a gap; nothing for the gap at the end."""
        names = self.diff.hunk_digests(self.diff.files[part.file])
        return names[part.hunk] if part.hunk < len(names) else ""

    def fold_name(self, part: Part) -> str:
        """Return under which name a file, hunk or gap is toggled."""
        path = self.diff.files[part.file].path
        if part.kind is RowKind.GAP:
            return f"{path}\0{self.hunk_name(part)}"
        return self.hunk_name(part) if part.kind is RowKind.HUNK else path

    # Rows

    def row_count(self, at: int) -> int:
        """Return how many rows a part has; at least one."""
        part = self.parts[at]
        if part.kind is RowKind.HUNK and not self.is_folded(part):
            return 1 + len(self._pairs(at))
        if part.kind is RowKind.GAP and self.is_unfolded_gap(part):
            first, end = self.gap_span(part)
            return max(1, (end or first) - first)
        return 1

    def row(self, place: Place) -> DiffRow:
        """Return a row that is there."""
        part = self.parts[place.part]
        file = self.diff.files[part.file]
        if part.kind is RowKind.HUNK:
            hunk = file.hunks[part.hunk]
            if not place.row:
                return DiffRow(RowKind.HUNK, place, file, hunk)
            return DiffRow(RowKind.LINE, place, file, hunk, *self._pairs(place.part)[place.row - 1])
        if part.kind is RowKind.GAP and self.is_unfolded_gap(part):
            number = self.gap_span(part)[0] + place.row
            return DiffRow(RowKind.KEPT, place, file, None, number - self._shift(part), number)
        return DiffRow(part.kind, place, file)

    def numbers(self, row: DiffRow) -> tuple[int | None, int | None]:
        """Return the line numbers of a row in the old text and the new one."""
        if row.hunk is None:
            return row.old, row.new
        lines = self.diff.lines(row.hunk)
        return (
            None if row.old is None else lines.numbers(row.old)[0],
            None if row.new is None else lines.numbers(row.new)[1],
        )

    def kept_text(self, row: DiffRow) -> str:
        """Return an unchanged line that the patch leaves out."""
        lines = self._unchanged.get(row.file.path, ())
        return lines[row.new - 1] if row.new is not None and 0 < row.new <= len(lines) else ""

    def gap_span(self, part: Part) -> tuple[int, int | None]:
        """Return the number of the first line of a gap and of the one after it, in the new text; None for unknown."""
        file = self.diff.files[part.file]
        first = 1 if part.hunk == 0 else _end(file.hunks[part.hunk - 1])
        if part.hunk < len(file.hunks):
            return first, _start(file.hunks[part.hunk])
        lines = self._unchanged.get(file.path)
        return first, None if lines is None else len(lines) + 1

    def is_unfolded_gap(self, part: Part) -> bool:
        """Return whether a gap was unfolded and its lines are there."""
        if not self._unchanged or self.diff.files[part.file].path not in self._unchanged:
            return False
        return self.fold_name(part) in self._toggled

    # Ways

    def forwards(self, place: Place, count: int) -> list[DiffRow]:
        """Return up to ``count`` rows from a place on."""
        rows: list[DiffRow] = []
        at, row = place
        while at < len(self.parts) and len(rows) < count:
            end = min(self.row_count(at), row + count - len(rows))
            rows += [self.row(Place(at, one)) for one in range(row, end)]
            at, row = at + 1, 0
        return rows

    def moved(self, place: Place, count: int) -> Place:
        """Return the place so many rows below, or above when negative; the nearest end when there are fewer."""
        at, row = place.part, place.row + count
        while row < 0 and at > 0:
            at -= 1
            row += self.row_count(at)
        while at < len(self.parts) - 1 and row >= (rows := self.row_count(at)):
            row -= rows
            at += 1
        return Place(at, max(0, min(row, self.row_count(at) - 1))) if self.parts else TOP

    @property
    def last(self) -> Place:
        """The last row."""
        return Place(len(self.parts) - 1, self.row_count(len(self.parts) - 1) - 1) if self.parts else TOP

    @cached_property
    def weights(self) -> list[int]:
        """About how many rows come before each part, and how many there are; exact but for what shares a row."""
        return list(accumulate((self._weight(part) for part in self.parts), initial=0))

    @cached_property
    def part_numbers(self) -> dict[tuple[RowKind, int, int], int]:
        """Where each part is."""
        return {(part.kind, part.file, part.hunk): at for at, part in enumerate(self.parts)}

    # Finding again

    def anchor(self, place: Place) -> Anchor:
        """Return what a row is about."""
        part = self.parts[place.part]
        row = self.row(place)
        name = self.hunk_name(part) if part.kind in {RowKind.HUNK, RowKind.GAP} else ""
        number = 0
        if row.kind is RowKind.KEPT:
            number = row.new or 0
        elif part.hunk >= 0:
            number = self.gap_span(part)[0] if part.kind is RowKind.GAP else _start(row.file.hunks[part.hunk])
        if row.kind is RowKind.LINE and row.hunk is not None:
            lines = self.diff.lines(row.hunk)
            number = lines.numbers(row.old if row.new is None and row.old is not None else row.new or 0)[1]
        return Anchor(row.file.path, part.file, row.kind, name, row.old, row.new, number)

    def find(self, anchor: Anchor) -> Place:
        """Return the row that an anchor is about, or the nearest one."""
        if not self.parts:
            return TOP
        at = self._file_number(anchor)
        file = self.diff.files[at]
        head = Place(self.first_parts[at], 0)
        if anchor.kind in {RowKind.FILE, RowKind.NOTE, RowKind.BLANK}:
            return head
        is_gap = anchor.kind in {RowKind.GAP, RowKind.KEPT}
        names = (*self.diff.hunk_digests(file), *([""] if is_gap else []))
        if anchor.name in names:
            key = (RowKind.GAP if is_gap else RowKind.HUNK, at, names.index(anchor.name))
            part = self.part_numbers.get(key)
            if part is not None:
                return Place(part, self._row_in(part, anchor, is_same=True))
        # The last one that begins above the line.
        below = sum(_start(hunk) <= anchor.number for hunk in file.hunks)
        part = self.part_numbers.get((RowKind.HUNK, at, max(0, below - 1)))
        return head if part is None else Place(part, self._row_in(part, anchor, is_same=False))

    def line_place(self, file: int, hunk: int, line: int) -> Place:
        """Return the row of a line of a hunk, which has to be unfolded."""
        part = self.part_numbers.get((RowKind.HUNK, file, hunk))
        if part is None:
            return Place(self.first_parts[file], 0)
        return Place(part, 1 + self._pairs(part).row_of(line) if line >= 0 and self.row_count(part) > 1 else 0)

    def _row_in(self, at: int, anchor: Anchor, *, is_same: bool) -> int:
        part = self.parts[at]
        last = self.row_count(at) - 1
        if part.kind is RowKind.GAP:
            return max(0, min(anchor.number - self.gap_span(part)[0], last)) if anchor.kind is RowKind.KEPT else 0
        if anchor.kind is not RowKind.LINE or not last:
            return 0
        pairs = self._pairs(at)
        if is_same:
            return 1 + pairs.row_of((anchor.old if anchor.new is None else anchor.new) or 0)
        number = _start(self.diff.files[part.file].hunks[part.hunk])
        for one in range(last):
            if number >= anchor.number:
                return one + 1
            number += pairs[one][1] is not None
        return last

    def _file_number(self, anchor: Anchor) -> int:
        files = self.diff.files
        if anchor.file < len(files) and files[anchor.file].path == anchor.path:
            return anchor.file
        return next((at for at, file in enumerate(files) if file.path == anchor.path), min(anchor.file, len(files) - 1))

    def _parts_of(self, at: int) -> Iterator[Part]:
        file = self.diff.files[at]
        head = Part(RowKind.FILE, at)
        yield head
        if self.is_folded(head):
            return
        if not file.hunks or has_odd_mode(file) or is_link(file):
            yield Part(RowKind.NOTE, at)
        has_gaps = file.kind not in WHOLE and bool(file.hunks) and file.hunks[0].parents == 1 and not is_link(file)
        end = 1
        for number, hunk in enumerate(file.hunks):
            if has_gaps and _start(hunk) > end:
                yield Part(RowKind.GAP, at, number)
            yield Part(RowKind.HUNK, at, number)
            end = _end(hunk)
        if has_gaps and len(self._unchanged.get(file.path, ())) != end - 1:
            yield Part(RowKind.GAP, at, len(file.hunks))
        yield Part(RowKind.BLANK, at)

    def _pairs(self, at: int) -> HunkRows:
        form = at, self.side_by_side, self.ignores_blanks
        known = self._rows.get(form)
        if known is None:
            part = self.parts[at]
            lines = self.diff.lines(self.diff.files[part.file].hunks[part.hunk])
            known = lines.rows(side_by_side=self.side_by_side, ignores_blanks=self.ignores_blanks)
            self._rows[form] = known
            if len(self._rows) > _KEPT_ROWS:
                self._rows.popitem(last=False)
        else:
            self._rows.move_to_end(form)
        return known

    def _weight(self, part: Part) -> int:
        if part.kind is RowKind.HUNK and not self.is_folded(part):
            return 1 + self.diff.files[part.file].hunks[part.hunk].line_count
        if part.kind is RowKind.GAP and self.is_unfolded_gap(part):
            first, end = self.gap_span(part)
            return max(1, (end or first) - first)
        return 1

    def _shift(self, part: Part) -> int:
        """Return by how much the numbers of a gap's lines are larger in the new text."""
        file = self.diff.files[part.file]
        if part.hunk == 0:
            return 0
        before = file.hunks[part.hunk - 1]
        return _end(before) - (before.old_start + before.old_count if before.old_count else before.old_start + 1)


def has_odd_mode(file: FileDiff) -> bool:
    """Return whether a file has another mode than before, or is a new one of an unusual mode."""
    if file.kind is ChangeKind.ADDED:
        return file.new_mode not in {"", _PLAIN_MODE}
    return bool(file.old_mode and file.new_mode) and file.old_mode != file.new_mode


def is_link(file: FileDiff) -> bool:
    """Return whether a file is a symbolic link on both sides, or on the one that it has: its one line is the target."""
    return {mode for mode in (file.old_mode, file.new_mode) if mode} == {_LINK_MODE}


def marks_of(diff: Diff, file: FileDiff) -> tuple[str, ...]:
    """Return what has to be looked at of a file: its hunks, or the file where it has none."""
    return diff.hunk_digests(file) or (diff.file_digest(file),)


def _start(hunk: Hunk) -> int:
    """Return the number of its first line in the new text; of one without lines there, that of the next."""
    return hunk.new_start if hunk.new_count else hunk.new_start + 1


def _end(hunk: Hunk) -> int:
    return _start(hunk) + hunk.new_count
