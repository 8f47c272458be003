"""A block of whole log lines as the text that a person sees, cleaned all at once: line by line is the slow way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agentmon.logs.line_text import TAB_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator

# Sequences as in line_text, over bytes and never beyond the line.
_ESCAPE_SEQUENCE: Final = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~]?)"
)
_COLOUR: Final = re.compile(rb"\x1b\[[0-9;:]*m")
_MOST_COLOURS: Final = 24
_SAMPLE_BYTES: Final = 4096
# No byte of UTF-8, and of no sequence.
_HOLE: Final = b"\xff"
_MOVE: Final = re.compile(rb"\x1b\[[0-9;]*[CDGJK`a]")
# One that does not end the line.
_RETURN: Final = re.compile(rb"\r(?!\r*\n)")
_C1: Final = re.compile(rb"\xc2[\x80-\x9f]")
_BACKSPACE: Final = re.compile(b"\b")
_TAB: Final = re.compile(b"\t")
# Letters outside ASCII that stand for i, s and k where case is ignored.
_OTHER_FORMS: Final = tuple(letter.encode() for letter in "\u0130\u0131\u017f\u212a")


class BlockText:
    """The visible text of a block of whole lines.

    Lines with cursor moves are not in it as they are seen: ``odd_lines`` says which those are.

    Args:
        block: Lines with their line feeds; the last may have none.
        sees_blanks: Whether it matters how many blanks a tab stands for.
        sees_ends: Whether it matters that a carriage return before a line feed is no part of the line.
    """

    def __init__(self, block: bytes, *, sees_blanks: bool, sees_ends: bool) -> None:
        self._block = block
        cleaned = block
        # One byte is found ten times as fast as two.
        while sees_ends and b"\r" in cleaned and b"\r\n" in cleaned:
            cleaned = cleaned.replace(b"\r\n", b"\n")
        uncoloured = _without_colours(cleaned)
        self.odd_lines = self._find_odd_lines(sees_blanks=sees_blanks, has_moves=uncoloured is None)
        """Where the lines begin in the block that only a terminal could tell the text of."""
        cleaned = _ESCAPE_SEQUENCE.sub(b"", cleaned) if uncoloured is None else uncoloured
        if sees_blanks and b"\t" in cleaned:
            cleaned = cleaned.expandtabs(TAB_COLUMNS)
        self.can_lower = cleaned.isascii() or not any(form[:1] in cleaned and form in cleaned for form in _OTHER_FORMS)
        """Whether a search without case for letters of ASCII finds the same in lowered text."""
        self._cleaned = cleaned
        self._is_same = cleaned is block and cleaned.isascii()

    def text(self, *, is_lowered: bool) -> str:
        """Return the text; lowered are letters of ASCII only."""
        shown = self._cleaned.lower() if is_lowered else self._cleaned
        return shown.decode("utf-8", "replace")

    def line_spans(self, text: str, starts: Iterator[int]) -> Iterator[tuple[int, int]]:
        """Yield start and end in the block of the lines that begin at these places of the text, in order."""
        block = self._block
        position = start = 0
        for line_start in starts:
            if self._is_same:
                start = line_start
            else:
                for _ in range(text.count("\n", position, line_start)):
                    start = block.find(b"\n", start) + 1
                position = line_start
            end = block.find(b"\n", start)
            yield start, end if end >= 0 else len(block)

    def _find_odd_lines(self, *, sees_blanks: bool, has_moves: bool) -> frozenset[int]:
        """Return the starts of the lines in the block that move the cursor, or hold what is not cleaned here."""
        block = self._block
        places: list[int] = []
        if (returns := block.count(b"\r")) and returns != block.count(b"\r\n"):
            places += _places(_RETURN, block)
        if b"\b" in block:
            places += _places(_BACKSPACE, block)
        if has_moves:
            places += _places(_MOVE, block)
        if b"\xc2" in block:
            places += _places(_C1, block)
        if sees_blanks and b"\t" in block and not block.isascii():
            # How far a tab goes depends on how wide the letters before it are.
            places += _places(_TAB, block)
        return frozenset(block.rfind(b"\n", 0, place) + 1 for place in places)


def _without_colours(block: bytes) -> bytes | None:
    """Return a block whose only escape sequences are a few colours without them; None for any other block.

    A log repeats its colours, and replacing one of them everywhere is twice as fast as looking for any sequence.
    """
    if b"\x1b" not in block:
        return block
    if _HOLE in block:
        return None
    left = _MOST_COLOURS
    while (at := block.find(b"\x1b")) >= 0:
        colours = set(_COLOUR.findall(block, at, at + _SAMPLE_BYTES))
        left -= len(colours)
        if not colours or left < 0:
            return None
        for colour in colours:
            # What stands on both sides of it must not become a sequence.
            block = block.replace(colour, _HOLE)
    return block.replace(_HOLE, b"")


def _places(what: re.Pattern[bytes], block: bytes) -> Iterator[int]:
    """Yield a place of it for each line that holds it."""
    position = 0
    while match := what.search(block, position):
        yield match.start()
        position = block.find(b"\n", match.start()) + 1
        if position == 0:
            return
