"""Text measured in terminal cells: cut and padded so that what stands beside it stays in its column."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from rich.cells import get_character_cell_size

from agentmon.domain import letters
from agentmon.domain.plain_text import UNEVEN, plain_line

# Characters of one cell that nothing joins, for which most texts need no look at each one.
_EVEN: Final = "[\x20-\x7e\xa0-\xac\xae-\u02ff\u2010-\u2027\u2190-\u21ff\u2400-\u2426\u2500-\u25fc\u2800-\u28ff\ufffd]*"
_MARKS_MAX: Final = 3
"""Most combining marks kept on one character."""


def even_line(text: str, *, max_characters: int = 1000) -> str:
    """Return the text as one safe line whose width is the sum of the widths of its characters."""
    line = plain_line(text, max_characters=max_characters)
    if line.isascii() or is_single(line):
        return line
    # Each character is drawn for itself.
    line = re.sub(UNEVEN, "", unicodedata.normalize("NFC", line))
    kept: list[str] = []
    marks = 0
    for character in line:
        if get_character_cell_size(character):
            marks = 0
        else:
            marks += 1
            # A mark at the start of a line would join whatever is drawn before it.
            if marks > _MARKS_MAX or not kept:
                continue
        kept.append(character)
    return "".join(kept)


def even_lines(text: str) -> str:
    """Return the text with its line breaks kept and each line as ``even_line`` makes it."""
    return "\n".join(even_line(line) for line in re.split(r"\r\n|\r|\n", text))


def is_single(text: str) -> bool:
    """Return whether each character of the text is known to take one cell, without a look at each."""
    return re.fullmatch(_EVEN, text) is not None


def cells(text: str) -> int:
    """Return the width of a text that ``even_line`` made, in cells."""
    return len(text) if text.isascii() else sum(map(get_character_cell_size, text))


def cut(text: str, width: int) -> str:
    """Return a text that ``even_line`` made, at most ``width`` cells wide; a longer one ends with ``…``."""
    return text if len(text) * 2 <= width else letters.cut(text, width, cells)


def pad(text: str, width: int) -> str:
    """Return the text cut and filled with blanks to exactly ``width`` cells."""
    text = cut(text, width)
    return text + " " * (width - cells(text))


def wrap(text: str, width: int) -> list[str]:
    """Return the words of the text in lines of at most ``width`` cells; a longer word is cut."""
    lines: list[str] = []
    for word in text.split():
        if lines and cells(lines[-1]) + 1 + cells(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(cut(word, width))
    return lines
