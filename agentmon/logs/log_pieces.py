"""A log in pieces at line boundaries, as plain text: what an index of words is made of, and where words are found.

Pieces name bytes of the file. A piece that is read again after the file was replaced shows what stands there now.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.logs.line_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PIECE_BYTES: Final = 24 * 1024
"""A piece is no longer, unless a line is; then it is cut here all the same."""
_COUNT_BYTES: Final = 1024 * 1024
# Source: ECMA-48, 8.3: CUU and CPL, CUD and CNL.
_MOVE_UP: Final = re.compile(rb"\x1b\[[0-9]{0,3}[AF]")
_MOVE: Final = re.compile(rb"\x1b\[([0-9]{0,3})([ABEF])")
_NEEDS_TERMINAL: Final = re.compile(rb"[\x1b\r\b]|\xc2[\x80-\x9f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPiece:
    """Some lines of a log."""

    start: int
    """The offset of its first byte."""
    end: int
    """The offset behind its last byte."""
    first_line: int
    """How many lines end before it."""
    content: bytes


def read_pieces(descriptor: int, start: int, end: int, *, first_line: int, is_last: bool) -> Iterator[LogPiece]:
    """Yield the pieces of an open log from ``start`` to ``end``.

    Args:
        descriptor: The open file.
        start: The beginning of a line.
        end: Where to stop.
        first_line: How many lines end before ``start``.
        is_last: Whether what is left at the end is a piece as well, however short and without a line feed.
    """
    while start < end:
        block = os.pread(descriptor, min(PIECE_BYTES, end - start), start)
        if not block or (len(block) < PIECE_BYTES and not is_last):
            return
        if start + len(block) < end or not is_last:
            cut = block.rfind(b"\n") + 1
            block = block[:cut] if cut else block
        yield LogPiece(start=start, end=start + len(block), first_line=first_line, content=block)
        start += len(block)
        first_line += block.count(b"\n")


def count_lines(descriptor: int, start: int, end: int) -> int:
    """Return how many line feeds stand between two offsets of an open file."""
    counted = 0
    while start < end and (block := os.pread(descriptor, min(_COUNT_BYTES, end - start), start)):
        counted += block.count(b"\n")
        start += len(block)
    return counted


def piece_text(content: bytes) -> str:
    """Return what a person sees in some lines: without control codes, with as many line feeds.

    A line that a later one of them is painted over is empty.
    """
    if _NEEDS_TERMINAL.search(content) is None:
        return content.decode("utf-8", "replace")
    lines = content.split(b"\n")
    texts = [plain_text(line) for line in lines]
    if _MOVE_UP.search(content) is not None:
        for hidden in _painted_over(lines, texts):
            texts[hidden] = ""
    return "\n".join(texts)


def _painted_over(lines: Sequence[bytes], texts: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of the lines in whose rows something else was written after the cursor had gone up."""
    row = 0
    newest: dict[int, int] = {}
    for number, line in enumerate(lines):
        written, rest = row, line
        for move in _MOVE.finditer(line):
            count = int(move[1] or 1)
            row += -count if move[2] in b"AF" else count
            rest = line[move.end() :]
        if rest is not line and (b"\x1b[2K" in rest or plain_text(rest).strip()):
            written = row
        if texts[number].strip():
            if written in newest:
                yield newest[written]
            newest[written] = number
        row += 1


def line_offset(content: bytes, line: int) -> int:
    """Return at which byte of some lines the line of a number, counted from 0, begins."""
    position = 0
    for _ in range(line):
        position = content.index(b"\n", position) + 1
    return position
