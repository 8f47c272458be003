"""Reads a file from where it was left, in bounded pieces of whole lines, and notices when it is another one."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from agentmon.usage.compressed import UNREADABLE, open_file, why_unreadable
from agentmon.usage.fields import object_in, text_in
from agentmon.usage.lines import BLOCK_BYTES, pieces_of
from agentmon.usage.long_lines import LongLine
from agentmon.usage.openings import open_reader, reader_type
from agentmon.usage.reading import GatheredReadings, Reading, ReadingProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agentmon.usage.compressed import OpenedFile
    from agentmon.usage.reading import Reader
    from agentmon.usage.sources import SourceFile

MAX_DOCUMENT_BYTES: Final = 64 * 1_048_576
"""A chat that is one document is read whole; a larger one is reported."""
READ_BYTES: Final = 4 * 1_048_576
"""About so much of a file is told at once."""
UNFINISHED: Final = 0
"""As ``mtime_ns`` of a cursor before the end of the file: a look that begins with it goes on."""
_KNOWN_BYTES: Final = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far a file was read, and how to know it again; plain values that JSON can hold."""

    path: str
    inode: int
    size: int
    """Of the file when it was opened, in bytes as it lies there."""
    mtime_ns: int
    offset: int
    """Behind the last line that was read, in bytes after decompression."""
    head_hash: str
    """Of the first bytes of the file and of the last ones before ``offset``."""
    parser_version: int
    state: Mapping[str, object]
    """Of the reader."""

    def as_json(self) -> dict[str, object]:
        """Return the cursor as an object of JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, written: Mapping[str, object]) -> Cursor | None:
        """Return the cursor that ``as_json`` wrote; None when it is none, so that the file is read anew."""
        names = ("inode", "size", "mtime_ns", "offset", "parser_version")
        numbers = [value for name in names if type(value := written.get(name)) is int]
        if len(numbers) != len(names):
            return None
        inode, size, mtime_ns, offset, parser_version = numbers
        return cls(
            path=text_in(written, "path"),
            inode=inode,
            size=size,
            mtime_ns=mtime_ns,
            offset=offset,
            head_hash=text_in(written, "head_hash"),
            parser_version=parser_version,
            state=object_in(written, "state"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One piece of a file."""

    reading: Reading
    cursor: Cursor | None
    """Where to go on when the piece is kept; None when the file could not be opened and never was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderKinds:
    """Which readers read the files of agents, and what their readings are gathered in."""

    type_of: Callable[[SourceFile], type[Reader]]
    open: Callable[[SourceFile], Reader]
    """Gives a reader for the beginning of the file."""
    gather: Callable[[], GatheredReadings]


USAGE_READERS: Final = ReaderKinds(type_of=reader_type, open=open_reader, gather=GatheredReadings)


def read_source(source: SourceFile, cursor: Cursor | None, kinds: ReaderKinds = USAGE_READERS) -> Iterator[Read]:
    """Yield what is new in the file since the cursor, piece by piece; nothing when it did not change.

    Each piece can be kept on its own with its cursor: reading goes on behind it. A file that was cut, replaced or
    rewritten, and one that an older parser read, is read from its beginning; its answers merge with those known. A last
    line that is neither a whole record nor has a newline waits. What cannot be read is a problem of a piece, never an
    error.
    """
    parser_version = kinds.type_of(source).parser_version
    if cursor is not None and _is_unchanged(source, cursor, parser_version):
        return
    known = cursor
    try:
        with open_file(source.path) as opened:
            facts = os.fstat(opened.fileno())
            begun = Cursor(
                path=source.path,
                inode=facts.st_ino,
                size=facts.st_size,
                mtime_ns=facts.st_mtime_ns,
                offset=0,
                head_hash="",
                parser_version=parser_version,
                state={},
            )
            known = begun if cursor is None else replace(cursor, size=begun.size, mtime_ns=begun.mtime_ns)
            pieces = _read_document if source.path.endswith(".json") else _read_lines
            for read in pieces(opened, source, begun, cursor, kinds):
                known = read.cursor
                yield read
    except UNREADABLE as error:
        yield Read(reading=_problem(0, why_unreadable(error)), cursor=known)


def _is_unchanged(source: SourceFile, cursor: Cursor, parser_version: int) -> bool:
    return (source.path, source.inode, source.size, source.mtime_ns, parser_version) == (
        cursor.path,
        cursor.inode,
        cursor.size,
        cursor.mtime_ns,
        cursor.parser_version,
    )


def _read_lines(
    opened: OpenedFile, source: SourceFile, begun: Cursor, cursor: Cursor | None, kinds: ReaderKinds
) -> Iterator[Read]:
    reader, offset, known_bytes = _go_on(opened, source, begun, cursor, kinds)
    gathered, kept_to, has_news = kinds.gather(), offset, True
    pieces = pieces_of(opened, offset)
    while piece := _next_piece(pieces, offset):
        if isinstance(piece, ReadingProblem):
            gathered.add(Reading(problems=(piece,)))
            has_news = True
            break
        if isinstance(piece, LongLine):
            gathered.add(_read_long(reader, piece))
            known_bytes.add(piece.head)
            known_bytes.add(piece.tail)
            offset = piece.end
        else:
            gathered.add(reader.read(piece[1] if piece[1].endswith(b"\n") else piece[1] + b"\n", piece[0]))
            known_bytes.add(piece[1])
            offset = piece[0] + len(piece[1])
        has_news = offset - kept_to < READ_BYTES
        if not has_news:
            cursor = _moved(begun, offset, known_bytes, reader)
            yield Read(reading=gathered.take(), cursor=replace(cursor, mtime_ns=UNFINISHED))
            kept_to = offset
    if has_news:
        yield Read(reading=gathered.take(), cursor=_moved(begun, offset, known_bytes, reader))


def _read_long(reader: Reader, line: LongLine) -> Reading:
    shortened = line.shortened().rstrip(b"\n")
    return (
        reader.read(shortened + b"\n", line.offset) if shortened else _problem(line.offset, "a line that is too long")
    )


def _next_piece(
    pieces: Iterator[tuple[int, bytes] | LongLine], offset: int
) -> tuple[int, bytes] | LongLine | ReadingProblem | None:
    """Return the next piece, None at the end, or why the bytes behind the offset cannot be read."""
    try:
        return next(pieces, None)
    except UNREADABLE as error:
        return ReadingProblem(offset=offset, reason=why_unreadable(error))


def _go_on(
    opened: OpenedFile, source: SourceFile, begun: Cursor, cursor: Cursor | None, kinds: ReaderKinds
) -> tuple[Reader, int, _KnownBytes]:
    """Return the reader, the offset and the known bytes to go on with; the file then stands at the offset."""
    if cursor is not None and cursor.offset and _is_of(cursor, begun):
        known_bytes = _KnownBytes.of_file(opened, cursor.offset)
        if known_bytes is not None and known_bytes.digest() == cursor.head_hash:
            return kinds.type_of(source).restore(cursor.state), cursor.offset, known_bytes
    opened.seek(0)
    return kinds.open(source), 0, _KnownBytes()


def _is_of(cursor: Cursor, begun: Cursor) -> bool:
    return (cursor.inode, cursor.parser_version) == (begun.inode, begun.parser_version)


def _read_document(
    opened: OpenedFile, source: SourceFile, begun: Cursor, _cursor: Cursor | None, kinds: ReaderKinds
) -> Iterator[Read]:
    """Read a file that is one object as one line: its newlines lie between the words of JSON."""
    written = b"".join(iter(lambda: opened.read(BLOCK_BYTES), b"")) if begun.size <= MAX_DOCUMENT_BYTES else b""
    done = replace(begun, offset=len(written))
    if begun.size > MAX_DOCUMENT_BYTES:
        yield Read(reading=_problem(0, "a document that is too long"), cursor=done)
    else:
        yield Read(reading=kinds.open(source).read(written.replace(b"\n", b" ") + b"\n", 0), cursor=done)


def _moved(begun: Cursor, offset: int, known_bytes: _KnownBytes, reader: Reader) -> Cursor:
    return replace(begun, offset=offset, head_hash=known_bytes.digest(), state=reader.state())


def _problem(offset: int, reason: str) -> Reading:
    return Reading(problems=(ReadingProblem(offset=offset, reason=reason),))


class _KnownBytes:
    """The first bytes of a file and the last ones before the offset, by which it is known again."""

    __slots__ = ("_head", "_tail")

    def __init__(self, head: bytes = b"", tail: bytes = b"") -> None:
        self._head = head
        self._tail = tail

    @classmethod
    def of_file(cls, opened: OpenedFile, offset: int) -> _KnownBytes | None:
        """Return them for the offset, at which the file then stands; None when it does not reach so far."""
        head = opened.read(min(offset, _KNOWN_BYTES))
        tail_begin = max(0, offset - _KNOWN_BYTES)
        opened.seek(tail_begin)
        tail = opened.read(offset - tail_begin)
        return cls(head, tail) if len(tail) == offset - tail_begin else None

    def add(self, piece: bytes) -> None:
        """Take the bytes that follow."""
        if len(self._head) < _KNOWN_BYTES:
            self._head += piece[: _KNOWN_BYTES - len(self._head)]
        self._tail = (self._tail + piece[-_KNOWN_BYTES:])[-_KNOWN_BYTES:]

    def digest(self) -> str:
        """Return a hash of them."""
        return blake2b(b"%d:%s%s" % (len(self._head), self._head, self._tail), digest_size=16).hexdigest()
