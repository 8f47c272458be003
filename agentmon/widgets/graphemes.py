"""Visible letters: what a person takes for one, however many characters it is made of."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

from rich import cells

if TYPE_CHECKING:
    from collections.abc import Iterator

_JOINER: Final = "\u200d"
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS: Final = range(0x1F1E6, 0x1F200)
_LONGEST: Final = 64
"""Characters of the longest letter that is looked for."""


def clusters(text: str) -> Iterator[tuple[str, int]]:
    """Yield what is drawn as one, with its width here."""
    begun, width = "", 0
    for start, end, size in cells.split_graphemes(text)[0]:
        part = text[start:end]
        if begun and _joins(begun, part):
            begun, width = begun + part, width + size
            continue
        if begun:
            yield begun, width
        begun, width = part, size
    if begun:
        yield begun, width


def _joins(before: str, part: str) -> bool:
    code = ord(part[0])
    is_flag = code in _FLAG_LETTERS and len(before) == 1 and ord(before) in _FLAG_LETTERS
    is_mark = unicodedata.category(part[0]).startswith("M")
    return is_flag or is_mark or code in _SKIN_TONES or before.endswith(_JOINER) or part[0] == _JOINER


def letter_before(text: str, place: int) -> int:
    """Return where the letter before a place of the text begins."""
    if place <= 1 or text[place - 1].isascii():
        return max(0, place - 1)
    *_, (last, _width) = clusters(text[max(0, place - _LONGEST) : place])
    return place - len(last)


def letter_behind(text: str, place: int) -> int:
    """Return where the letter behind a place of the text ends."""
    if place >= len(text) or text[place : place + 2].isascii():
        return min(len(text), place + 1)
    first, _width = next(clusters(text[place : place + _LONGEST]))
    return place + len(first)
