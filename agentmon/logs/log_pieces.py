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
    from collections.abc import Iterator

PIECE_BYTES: Final = 24 * 1024
"""A piece is no longer, unless a line is; then it is cut here all the same."""
_COUNT_BYTES: Final = 1024 * 1024
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
    """Return what a person sees in some lines: without control codes, with as many line feeds."""
    if _NEEDS_TERMINAL.search(content) is None:
        return content.decode("utf-8", "replace")
    return "\n".join(plain_text(line) for line in content.split(b"\n"))


def line_offset(content: bytes, line: int) -> int:
    """Return at which byte of some lines the line of a number, counted from 0, begins."""
    position = 0
    for _ in range(line):
        position = content.index(b"\n", position) + 1
    return position
