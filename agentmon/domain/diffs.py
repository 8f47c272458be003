"""A git patch as files, hunks and lines: indexed by offset at once, taken apart only where somebody looks.

Nothing here takes longer than the patch is long: only few and short lines are compared, and what is larger is paired as
it comes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from codecs import utf_8_decode
from collections import OrderedDict
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum, StrEnum
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    Pair: TypeAlias = tuple[int | None, int | None]
    """A line of the old side and the one beside it of the new side, counted from 0 in their hunk."""
    Run: TypeAlias = tuple[int | None, int | None, int]
    """The first line of either side, and how many lines follow each other so; none when the number is 0."""
    Spans: TypeAlias = tuple[tuple[int, int], ...]
    """Starts and ends of pieces of a text, counted in characters."""

# A line of content begins with a blank, a sign or a backslash, or is empty: only heads begin with these.
_HEADS: Final = re.compile(
    rb"\n(?:(diff --(?:git|cc|combined) )|@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@|@@+ -)"
)
_USUAL_HEAD: Final = re.compile(
    rb"diff --git a/([^\n\"\t]+) b/\1\nindex [0-9a-f]+\.\.[0-9a-f]+ (\d{6})\n--- a/\1\n\+\+\+ b/\1\n"
)
"""Of a file that kept its name and its mode, as most do."""
_HUNK: Final = re.compile(rb"(@@+) (-\d{1,9}(?:,\d{1,9})? (?:-\d{1,9}(?:,\d{1,9})? )*)\+(\d{1,9})(?:,(\d{1,9}))? @@+ ?")
_PREFIX: Final = re.compile(rb"[abciow12]/")
"""What git puts before a path, also with ``diff.mnemonicPrefix``."""
_QUOTED: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')
_ESCAPE: Final = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
_ESCAPES: Final = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13}
_HEAD_LINES: Final = 12
_SAME, _ADDED = b" +"
_SIGNS: Final = bytes(sign if sign in b"+-" else _SAME for sign in range(256))
_ODD: Final = re.compile(rb"[^ !#-\[\]-~]")
"""What git writes as an escape in a quoted path."""
_BLOCK: Final = re.compile(rb"-+\+*|\++")
_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")
_BYTES_WORD: Final = re.compile(rb"\w+|[^\w\s]")
_KEPT_HUNKS: Final = 64
_FIRST_LINES: Final = 1024
"""As many lines of a whole file are read before somebody goes further down."""
_COUNTED_TOGETHER: Final = 512
"""Lines of a hunk of which it is known how many of each sign are above them."""
_MOST_COMPARED: Final = 900
"""Most comparisons of lines in one block of changes."""
_MOST_LINES_COMPARED: Final = 400
"""Most lines of a hunk in which lines are compared at all."""
_LONGEST_COMPARED: Final = 2000
_MOST_WORDS: Final = 120
_ALIKE: Final = 0.4
"""From which likeness on two lines count as one that was changed, from 0.0 to 1.0."""
_DIGEST_BYTES: Final = 16


class ChangeKind(Enum):
    """What became of a file."""

    ADDED = "added"
    DELETED = "deleted"
    MODIFIED = "modified"
    RENAMED = "renamed"
    COPIED = "copied"
    UNMERGED = "unmerged"
    """It has a conflict: its hunks compare the file with several others, and none can be taken back."""


class DiffSide(StrEnum):
    """Which of the two texts a line number belongs to."""

    OLD = "old"
    NEW = "new"


class LineSpan(NamedTuple):
    """Some lines of one side of a file, counted from 1."""

    path: str
    side: DiffSide
    first_line: int
    last_line: int


class Hunk(NamedTuple):
    """A stretch of changed lines with what is around them; line numbers count from 1."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    added: int
    removed: int
    line_count: int
    """Its lines in the patch, unchanged ones too, as its head has them; ``HunkLines`` counts them."""
    start: int
    """Where its head begins, in bytes of ``Diff.content``."""
    body: int
    end: int
    parents: int = 1
    """How many old texts it compares; more than one in a file with a conflict."""

    def has(self, side: DiffSide, first: int, last: int) -> bool:
        """Return whether any line from the first to the last of one side is among its lines."""
        is_old = side is DiffSide.OLD
        start, count = (self.old_start, self.old_count) if is_old else (self.new_start, self.new_count)
        return first < start + count and start <= last


@dataclass(frozen=True, slots=True)
class FileDiff:
    """What was changed in one file; paths are those of the repository, odd bytes as ``os.fsdecode`` has them."""

    path: str
    old_path: str
    kind: ChangeKind
    old_mode: str
    """Six octal digits; empty when the patch has none."""
    new_mode: str
    is_binary: bool
    hunks: tuple[Hunk, ...]
    added: int
    removed: int
    start: int
    """Where it begins, in bytes of ``Diff.content``."""
    end: int


class HunkRows(Protocol):
    """The rows of a hunk in some form, from top to bottom."""

    def __len__(self) -> int:
        """Return how many there are."""
        ...

    def __getitem__(self, row: int) -> Pair:
        """Return the lines of a row."""
        ...

    def row_of(self, line: int) -> int:
        """Return the row that has a line of the hunk; the last one when none has."""
        ...


class _LineRows:
    """A row for each line."""

    def __init__(self, signs: bytes) -> None:
        self._signs = signs

    def __len__(self) -> int:
        return len(self._signs)

    def __getitem__(self, row: int) -> Pair:
        sign = self._signs[row]
        return (row, row) if sign == _SAME else (None, row) if sign == _ADDED else (row, None)

    def row_of(self, line: int) -> int:
        return min(line, len(self) - 1)


class _RunRows:
    """Rows that were put together of runs, so that many alike take the room of one."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._runs: list[Run] = []
        self._count = 0

    def add(self, old: int | None, new: int | None, count: int) -> None:
        if count > 0:
            self._starts.append(self._count)
            self._runs.append((old, new, count))
            self._count += count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: int) -> Pair:
        if not 0 <= row < self._count:
            raise IndexError(row)
        at = bisect_right(self._starts, row) - 1
        step = row - self._starts[at]
        old, new, _ = self._runs[at]
        return None if old is None else old + step, None if new is None else new + step

    def row_of(self, line: int) -> int:
        for start, (old, new, count) in zip(self._starts, self._runs, strict=True):
            for first in (old, new):
                if first is not None and first <= line < first + count:
                    return start + line - first
        return self._count - 1


class HunkLines:
    """The lines of one hunk, counted from 0."""

    def __init__(self, body: bytes, hunk: Hunk) -> None:
        self._hunk = hunk
        self._body = body
        self.unended: frozenset[int] = frozenset()
        """Lines without a line feed at the end of their file."""
        has_note = body.startswith(b"\\") or b"\n\\" in body
        self._is_one_sided = not has_note and not (hunk.old_count and hunk.new_count)
        if self._is_one_sided:
            # A whole file mostly, and a long one at times.
            count = body.count(b"\n") + (not body.endswith(b"\n"))
            self.signs = (b"+" if hunk.new_count else b"-") * count
            """A blank, a plus or a minus for each line."""
        else:
            rows = self._rows
            if has_note:
                kept: list[bytes] = []
                unended = set()
                for row in rows:
                    if row.startswith(b"\\"):
                        unended.add(len(kept) - 1)
                    else:
                        kept.append(row)
                rows[:], self.unended = kept, frozenset(unended)
            if hunk.parents == 1:
                signs = bytes([row[0] if row else _SAME for row in rows])
            else:
                signs = b"".join([_combined_sign(row[: hunk.parents]) for row in rows])
            self.signs = signs.translate(_SIGNS)
        self._runs_of: dict[int, list[Run]] = {}

    def __len__(self) -> int:
        return len(self.signs)

    @cached_property
    def _rows(self) -> list[bytes]:
        rows = self._body.split(b"\n")
        if not rows[-1]:
            rows.pop()
        return rows

    @cached_property
    def _first_rows(self) -> list[bytes]:
        return self._body.split(b"\n", _FIRST_LINES)[:_FIRST_LINES]

    def _row(self, line: int) -> bytes:
        return (self._first_rows if self._is_one_sided and line < _FIRST_LINES else self._rows)[line]

    def content(self, line: int) -> bytes:
        """Return the bytes of a line without its sign and its end."""
        return self._row(line)[self._hunk.parents :].removesuffix(b"\r")

    @cached_property
    def has_mixed_ends(self) -> bool:
        """Whether some lines end with CR LF and others do not."""
        return 0 < sum(row.endswith(b"\r") for row in self._rows) < len(self._rows)

    def has_carriage_return(self, line: int) -> bool:
        """Return whether a line ends with CR LF."""
        return self._row(line).endswith(b"\r")

    def text(self, line: int, max_bytes: int | None = None) -> str:
        r"""Return a line, or its beginning; bytes that are no UTF-8 stand as ``\xff``. It may hold control codes."""
        content = self.content(line)
        if max_bytes is None or len(content) <= max_bytes:
            return content.decode(errors="backslashreplace")
        # The last character may be cut in half.
        return utf_8_decode(content[:max_bytes], "backslashreplace", False)[0]

    def numbers(self, line: int) -> tuple[int, int]:
        """Return the number of a line in the old text and in the new one; of one that a side lacks, the next one's."""
        at = line // _COUNTED_TOGETHER
        start = at * _COUNTED_TOGETHER
        added = self._added_before[at] + self.signs.count(b"+", start, line)
        removed = self._removed_before[at] + self.signs.count(b"-", start, line)
        return self._hunk.old_start + line - added, self._hunk.new_start + line - removed

    @cached_property
    def _added_before(self) -> list[int]:
        return self._counted_before(b"+")

    @cached_property
    def _removed_before(self) -> list[int]:
        return self._counted_before(b"-")

    def _counted_before(self, sign: bytes) -> list[int]:
        starts = range(0, len(self.signs), _COUNTED_TOGETHER)
        counts = (self.signs.count(sign, start, start + _COUNTED_TOGETHER) for start in starts)
        return list(accumulate(counts, initial=0))

    @cached_property
    def blocks(self) -> list[tuple[int, int, int]]:
        """Each block of changes: its first removed line, its first added one, and the line after it."""
        found = []
        for match in _BLOCK.finditer(self.signs):
            start, end = match.span()
            added = self.signs.find(b"+", start, end)
            found.append((start, added if added >= 0 else end, end))
        return found

    def partner(self, line: int) -> int | None:
        """Return the line of the other side that this one was changed from, or into; None when there is none."""
        at = bisect_right(self.blocks, (line, len(self), len(self))) - 1
        if at < 0 or line >= self.blocks[at][2]:
            return None
        start, middle, end = self.blocks[at]
        if middle in {start, end}:
            return None
        runs = self._runs_of.get(at)
        if runs is None:
            runs = self._runs_of[at] = list(self._runs(self.blocks[at]))
        for old, new, count in runs:
            if old is not None and new is not None:
                if old <= line < old + count:
                    return new + line - old
                if new <= line < new + count:
                    return old + line - new
        return None

    def rows(self, *, side_by_side: bool = False, ignores_blanks: bool = False) -> HunkRows:
        """Return the lines as rows from top to bottom; in one with both sides they are the same or stand side by side.

        Args:
            side_by_side: Whether lines that belong together share a row.
            ignores_blanks: Whether lines that differ in blanks alone share a row; they count as unchanged.
        """
        if not side_by_side and not ignores_blanks:
            return _LineRows(self.signs)
        rows = _RunRows()
        done = 0
        for block in self.blocks:
            rows.add(done, done, block[0] - done)
            if side_by_side:
                for run in self._runs(block):
                    rows.add(*run)
            else:
                for old, new in self._one_below_the_other(block):
                    rows.add(old, new, 1)
            done = block[2]
        rows.add(done, done, len(self) - done)
        return rows

    def differ_in_blanks(self, old: int, new: int) -> bool:
        """Return whether two lines are the same but for blanks."""
        return self.content(old).split() == self.content(new).split() or _squeezed(self.content(old)) == _squeezed(
            self.content(new)
        )

    def _one_below_the_other(self, block: tuple[int, int, int]) -> Iterator[Pair]:
        removed: list[Pair] = []
        added: list[Pair] = []
        for old, new in self._pairs(block):
            if old is not None and new is not None and self.differ_in_blanks(old, new):
                yield from removed
                yield from added
                yield old, new
                removed, added = [], []
                continue
            removed += [(old, None)] if old is not None else []
            added += [(None, new)] if new is not None else []
        yield from removed
        yield from added

    def _pairs(self, block: tuple[int, int, int]) -> Iterator[Pair]:
        for old, new, count in self._runs(block):
            for at in range(count):
                yield None if old is None else old + at, None if new is None else new + at

    def _runs(self, block: tuple[int, int, int]) -> Iterator[Run]:
        """Yield the lines of a block side by side: those that are alike, and between them the others in order."""
        start, middle, end = block
        old, new = start, middle
        anchors: list[tuple[int, int]] = []
        if end - start > 2 and len(self) <= _MOST_LINES_COMPARED:  # noqa: PLR2004 - one of each
            anchors = _alike_lines(self._contents(start, middle), self._contents(middle, end))
        for old_at, new_at in [*((start + a, middle + b) for a, b in anchors), (middle, end)]:
            both = min(old_at - old, new_at - new)
            yield old, new, both
            yield old + both, None, old_at - old - both
            yield None, new + both, new_at - new - both
            yield old_at, new_at, int(old_at < middle)
            old, new = old_at + 1, new_at + 1

    def _contents(self, start: int, end: int) -> list[bytes]:
        return [self.content(at) for at in range(start, end)]


class Diff:
    """What a patch says, as ``git diff`` prints it with the usual prefixes; what is no patch has no files.

    Args:
        patch: The whole output; text is taken as UTF-8.
    """

    def __init__(self, patch: bytes | str = b"") -> None:
        raw = patch.encode(errors="surrogateescape") if isinstance(patch, str) else patch
        self.content: Final = b"\n" + raw
        """The patch behind a line feed, so that each of its lines begins behind one."""
        self.files: Final = tuple(self._read())
        """The files in the order of the patch."""
        self.added: Final = sum(file.added for file in self.files)
        self.removed: Final = sum(file.removed for file in self.files)
        self._lines: OrderedDict[int, HunkLines] = OrderedDict()
        self._digests: dict[int, tuple[str, ...]] = {}
        self._file_digests: dict[int, str] = {}

    def heading(self, hunk: Hunk) -> str:
        """Return the text after the line numbers of a hunk, mostly the function around it; it is not safe to draw."""
        found = _HUNK.match(self.content, hunk.start)
        if found is None:
            return ""
        return self.content[found.end() : max(found.end(), hunk.body - 1)][:1000].decode(errors="replace").strip()

    def lines(self, hunk: Hunk) -> HunkLines:
        """Return the lines of a hunk; those of the last ones that were asked for are kept."""
        known = self._lines.get(hunk.start)
        if known is None:
            known = self._lines[hunk.start] = HunkLines(self.content[hunk.body : hunk.end], hunk)
            if len(self._lines) > _KEPT_HUNKS:
                self._lines.popitem(last=False)
        else:
            self._lines.move_to_end(hunk.start)
        return known

    def hunk_digests(self, file: FileDiff) -> tuple[str, ...]:
        """Return a name for each hunk of a file that follows from path and lines alone, wherever in the file it is.

        Hunks with the same lines have different names: the second, third and so on of them.
        """
        known = self._digests.get(file.start)
        if known is None:
            seen: dict[bytes, int] = {}
            names = []
            for hunk in file.hunks:
                body = self.content[hunk.body : hunk.end]
                seen[body] = seen.get(body, 0) + 1
                names.append(_digest(_bytes(file.path), b"%d" % seen[body], body))
            known = self._digests[file.start] = tuple(names)
        return known

    def file_digest(self, file: FileDiff) -> str:
        """Return a name that follows from all that was changed in the file, wherever in it that is."""
        known = self._file_digests.get(file.start)
        if known is not None:
            return known
        what = "\0".join((file.path, file.old_path, file.kind.value, file.old_mode, file.new_mode))
        # Of a binary file the head tells the content by its hashes.
        parts = [name.encode() for name in self.hunk_digests(file)] or [self.content[file.start : file.end]]
        known = self._file_digests[file.start] = _digest(_bytes(what), *parts)
        return known

    def file_patch(self, file: FileDiff) -> bytes:
        """Return the part of the patch that is about a file."""
        return self.content[file.start : file.end]

    def hunk_patch(self, file: FileDiff, hunk: Hunk) -> bytes:
        """Return a patch of one hunk, which ``git apply -R`` takes back while the others stay.

        It leaves name and mode as they are now; of a file that was added or deleted it is the whole change.
        """
        if file.kind in {ChangeKind.ADDED, ChangeKind.DELETED}:
            return self.content[file.start : file.hunks[0].start] + self.content[hunk.start : hunk.end]
        old, new = quoted_path(b"a/" + _bytes(file.path)), quoted_path(b"b/" + _bytes(file.path))
        return b"diff --git %b %b\n--- %b\n+++ %b\n" % (old, new, old, new) + self.content[hunk.start : hunk.end]

    def _read(self) -> Iterator[FileDiff]:
        content = self.content
        start = -1
        hunks: list[Hunk] = []
        heads = [
            (mark.start() + 1, mark)
            for mark in _HEADS.finditer(content)
            if mark.lastindex or _HUNK.match(content, mark.start() + 1)
        ]
        ends = [*(at for at, _ in heads), len(content)][1:]
        for (at, mark), end in zip(heads, ends, strict=True):
            if mark.lastindex == 1:
                if start >= 0:
                    yield self._file(start, at, hunks)
                start, hunks = at, []
            elif start >= 0:
                hunks.append(self._hunk(mark, at, end) if mark.lastindex else self._combined_hunk(at, end))
        if start >= 0:
            yield self._file(start, len(content), hunks)

    def _hunk(self, mark: re.Match[bytes], start: int, end: int) -> Hunk:
        olds, old, news, new = mark.group(2, 3, 4, 5)
        old_count, new_count = int(old or 1), int(new or 1)
        body = (self.content.find(b"\n", mark.end(), end) + 1) or end
        # The head says the rest, so that most of the text is not read before somebody looks at it.
        removed = min(old_count, self.content.count(b"\n-", body - 1, end) if old_count and new_count else old_count)
        added = max(0, removed + new_count - old_count)
        count = min(old_count + added, end - body + 1)
        return Hunk(int(olds), old_count, int(news), new_count, added, removed, count, start, body, end)

    def _combined_hunk(self, start: int, end: int) -> Hunk:
        found = _HUNK.match(self.content, start)
        assert found is not None
        ats, olds, new_start, new_count = found.groups()
        old_start, _, old_count = olds.split(b" ", 1)[0][1:].partition(b",")
        parents = len(ats) - 1
        body = (self.content.find(b"\n", found.end(), end) + 1) or end
        signs = [_combined_sign(row[:parents]) for row in self.content[body:end].split(b"\n")]
        counts = int(old_count or 1), int(new_count or 1)
        added, removed = signs.count(b"+"), signs.count(b"-")
        return Hunk(
            old_start=int(old_start),
            old_count=counts[0],
            new_start=int(new_start),
            new_count=counts[1],
            added=added,
            removed=removed,
            line_count=min((sum(counts) + added + removed) // 2, end - body + 1),
            start=start,
            body=body,
            end=end,
            parents=parents,
        )

    def _file(self, start: int, end: int, hunks: list[Hunk]) -> FileDiff:
        head = _Head(self.content, start, hunks[0].start if hunks else end)
        return FileDiff(
            path=_text(head.new),
            old_path=_text(head.old),
            kind=head.kind,
            old_mode=head.old_mode,
            new_mode=head.new_mode,
            is_binary=head.is_binary,
            hunks=tuple(hunks),
            added=sum(hunk.added for hunk in hunks),
            removed=sum(hunk.removed for hunk in hunks),
            start=start,
            end=end,
        )


class _Head:
    """What the lines above the hunks of a file say."""

    def __init__(self, content: bytes, start: int, end: int) -> None:
        self.kind = ChangeKind.MODIFIED
        self.old_mode = self.new_mode = ""
        self.is_binary = False
        if usual := _USUAL_HEAD.fullmatch(content, start, end):
            self.old = self.new = usual[1]
            self.old_mode = self.new_mode = _text(usual[2])
            return
        first, lines = _first_lines(content, start, end)
        if first.startswith(b"diff --git "):
            self.old, self.new = _both_paths(first[11:])
        else:
            self.kind = ChangeKind.UNMERGED
            self.old = self.new = _path(first.split(b" ", 2)[2], has_prefix=False)
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:  # noqa: C901 - one case for each word of git's
        word, _, rest = line.partition(b" ")
        match word:
            case b"old" if rest.startswith(b"mode "):
                self.old_mode = _text(rest[5:11])
            case b"new" if rest.startswith(b"mode "):
                self.new_mode = _text(rest[5:11])
            case b"new" if rest.startswith(b"file mode "):
                self.kind, self.new_mode = ChangeKind.ADDED, _text(rest[10:16])
            case b"deleted" if rest.startswith(b"file mode "):
                self.kind, self.old_mode = ChangeKind.DELETED, _text(rest[10:16])
            case b"rename" | b"copy":
                self.kind = ChangeKind.RENAMED if word == b"rename" else ChangeKind.COPIED
                if rest.startswith(b"from "):
                    self.old = _path(rest[5:], has_prefix=False)
                elif rest.startswith(b"to "):
                    self.new = _path(rest[3:], has_prefix=False)
            case b"index" if b" " in rest:
                self.old_mode = self.new_mode = _text(rest.rpartition(b" ")[2][:6])
            case b"Binary" | b"GIT":
                self.is_binary = True
            case b"---" if self.kind in {ChangeKind.MODIFIED, ChangeKind.DELETED} and rest != b"/dev/null":
                self.old = _path(rest)
            case b"+++" if self.kind in {ChangeKind.MODIFIED, ChangeKind.ADDED} and rest != b"/dev/null":
                self.new = _path(rest)


def word_changes(old: str, new: str) -> tuple[Spans, Spans]:
    """Return the pieces of two lines in which they differ; none at all when they are too different, or too long."""
    if max(len(old), len(new)) > _LONGEST_COMPARED:
        return (), ()
    old_words, new_words = _WORD.findall(old), _WORD.findall(new)
    first = _common(old_words, new_words)
    last = _common(old_words[first:][::-1], new_words[first:][::-1])
    old_end, new_end = len(old_words) - last, len(new_words) - last
    if max(old_end, new_end) - first > _MOST_WORDS:
        return (), ()
    matcher = SequenceMatcher(None, old_words[first:old_end], new_words[first:new_end], autojunk=False)
    blocks = [(0, 0, first), *((first + a, first + b, size) for a, b, size in matcher.get_matching_blocks())]
    # The last one of the matcher is empty and stands at the end.
    blocks[-1] = (old_end, new_end, last)
    same = sum(len(word) for a, _, size in blocks for word in old_words[a : a + size] if not word.isspace())
    if 2 * same < _ALIKE * sum(len(word) for word in old_words + new_words if not word.isspace()):
        return (), ()
    return _changed(old_words, [(a, size) for a, _, size in blocks]), _changed(
        new_words, [(b, size) for _, b, size in blocks]
    )


def _changed(words: Sequence[str], same: Sequence[tuple[int, int]]) -> Spans:
    """Return the pieces of the line that lie between words which are the same."""
    edges = [0]
    for word in words:
        edges.append(edges[-1] + len(word))
    spans = []
    done = 0
    for at, size in same:
        if at > done:
            spans.append((edges[done], edges[at]))
        done = at + size
    return tuple(spans)


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    """Return how many words at the beginning are the same."""
    return next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def _alike_lines(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return the lines of both that are most alike, in order; none when there are too many to compare."""
    if not old or not new or len(old) * len(new) > _MOST_COMPARED:
        return []
    old_words = [frozenset(_BYTES_WORD.findall(line[:_LONGEST_COMPARED])) for line in old]
    new_words = [frozenset(_BYTES_WORD.findall(line[:_LONGEST_COMPARED])) for line in new]
    likeness = [
        [2 * len(a & b) / (len(a) + len(b)) if a and b else float(not a and not b) * _ALIKE for b in new_words]
        for a in old_words
    ]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for a in reversed(range(len(old))):
        for b in reversed(range(len(new))):
            alike = likeness[a][b]
            both = best[a + 1][b + 1] + alike if alike >= _ALIKE else 0.0
            best[a][b] = max(both, best[a + 1][b], best[a][b + 1])
    pairs = []
    a = b = 0
    while a < len(old) and b < len(new):
        alike = likeness[a][b]
        if alike >= _ALIKE and best[a][b] == best[a + 1][b + 1] + alike:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        elif best[a][b] == best[a + 1][b]:
            a += 1
        else:
            b += 1
    return pairs


def _first_lines(content: bytes, start: int, end: int) -> tuple[bytes, list[bytes]]:
    lines: list[bytes] = []
    at = start
    while at < end and len(lines) < _HEAD_LINES:
        stop = content.find(b"\n", at, end)
        stop = stop if stop >= 0 else end
        lines.append(content[at:stop])
        at = stop + 1
    return lines[0], lines[1:]


def _both_paths(rest: bytes) -> tuple[bytes, bytes]:
    """Return the paths of a ``diff --git`` line; without quotes both are the same where nothing else names them."""
    if quoted := _QUOTED.match(rest):
        return _path(quoted[0]), _path(rest[quoted.end() + 1 :])
    if rest.endswith(b'"') and (at := rest.find(b' "')) >= 0:
        return _path(rest[:at]), _path(rest[at + 1 :])
    half = len(rest) // 2
    return _path(rest[:half]), _path(rest[half + 1 :])


def _path(name: bytes, *, has_prefix: bool = True) -> bytes:
    name = _ESCAPE.sub(_unescaped, name[1:-1]) if _QUOTED.fullmatch(name) else name.removesuffix(b"\t")
    return name[2:] if has_prefix and _PREFIX.match(name) else name


def _unescaped(found: re.Match[bytes]) -> bytes:
    escaped = found[1]
    if escaped[:1].isdigit():
        return bytes([int(escaped, 8) & 0xFF])
    return bytes([_ESCAPES[escaped]]) if escaped in _ESCAPES else escaped


def quoted_path(name: bytes) -> bytes:
    """Return a path as git writes it."""
    escaped = _ODD.sub(lambda found: b"\\%03o" % found[0][0], name)
    return name if escaped == name else b'"%b"' % escaped


def _combined_sign(prefix: bytes) -> bytes:
    return b"+" if b"+" in prefix else b"-" if b"-" in prefix else b" "


def _squeezed(content: bytes) -> bytes:
    return b"".join(content.split())


def _digest(*parts: bytes) -> str:
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.hexdigest()


def _text(name: bytes) -> str:
    return name.decode(errors="surrogateescape")


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogateescape")
