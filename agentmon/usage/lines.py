"""Cuts a stream into bounded pieces of whole lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentmon.usage.compressed import OpenedFile

BLOCK_BYTES: Final = 262_144
"""Small enough for the cache of a core, in which every search is twice as fast."""
ENDS_BYTES: Final = 1_024
MAX_LINE_BYTES: Final = 32 * 1_048_576
"""A longer line is passed over: it would need several times its size of memory."""


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line that is too long to be held."""

    offset: int
    end: int
    """Behind its newline."""
    head: bytes
    tail: bytes
    """Its first and its last bytes, ``ENDS_BYTES`` each."""


def pieces_of(stream: OpenedFile, offset: int) -> Iterator[tuple[int, bytes] | LongLine]:
    """Yield the whole lines of the stream with where they begin, about ``BLOCK_BYTES`` at a time.

    Args:
        stream: Stands at the beginning of a line.
        offset: Where that is in the file, in bytes.
    """
    held: list[bytes] = []
    held_bytes = 0
    long_head = long_tail = b""
    while block := stream.read(BLOCK_BYTES):
        cut = block.rfind(b"\n") + 1
        if not cut:
            held.append(block)
            held_bytes += len(block)
            if held_bytes > MAX_LINE_BYTES:
                begun = b"".join(held) if not long_head else b"".join((long_tail, *held))
                long_head = long_head or begun[:ENDS_BYTES]
                long_tail = begun[-ENDS_BYTES:]
                held = []
            continue
        begin = 0
        if long_head:
            begin = block.find(b"\n") + 1
            end = offset + held_bytes + begin
            tail = b"".join((long_tail, *held, block[:begin]))[-ENDS_BYTES:]
            yield LongLine(offset=offset, end=end, head=long_head, tail=tail)
            offset, held, long_head, long_tail = end, [], b"", b""
        if begin < cut:
            piece = b"".join((*held, memoryview(block)[begin:cut]))
            yield offset, piece
            offset += len(piece)
        held, held_bytes = [block[cut:]], len(block) - cut
