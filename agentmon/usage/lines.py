"""Cuts a stream into bounded pieces of whole lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.usage.fields import parse_record
from agentmon.usage.long_lines import LongLine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentmon.usage.compressed import OpenedFile

BLOCK_BYTES: Final = 262_144
"""Small enough for the cache of a core, in which every search is twice as fast."""
MAX_LINE_BYTES: Final = 8 * 1_048_576
"""A longer line is shortened while it streams by: whole it would need several times its size of memory."""


def pieces_of(stream: OpenedFile, offset: int) -> Iterator[tuple[int, bytes] | LongLine]:
    """Yield the whole lines of the stream with where they begin, about ``BLOCK_BYTES`` at a time.

    What stands behind the last newline is a whole line when it is a whole record: nothing can be added to that.

    Args:
        stream: Stands at the beginning of a line.
        offset: Where that is in the file, in bytes.
    """
    held: list[bytes] = []
    held_bytes = 0
    long_line: LongLine | None = None
    while block := stream.read(BLOCK_BYTES):
        cut = block.rfind(b"\n") + 1
        begin = 0
        if long_line is not None:
            begin = block.find(b"\n") + 1
            long_line.add(block[: begin or len(block)])
            if not begin:
                continue
            yield long_line
            offset, long_line = long_line.end, None
        if begin < cut:
            piece = b"".join((*held, memoryview(block)[begin:cut]))
            yield offset, piece
            offset += len(piece)
            held, held_bytes = [], 0
        held.append(block[cut:])
        held_bytes += len(block) - cut
        if held_bytes > MAX_LINE_BYTES:
            long_line = LongLine(offset)
            for part in held:
                long_line.add(part)
            held, held_bytes = [], 0
    if long_line is not None:
        if parse_record(long_line.shortened()) is not None:
            yield long_line
        return
    rest = b"".join(held)
    if rest and parse_record(rest) is not None:
        yield offset, rest
