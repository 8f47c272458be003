"""Visible letters: what a person takes for one, however many characters it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich import cells

from agentmon.domain.letters import joins

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST: Final = 64
"""Characters of the longest letter that is looked for."""


def clusters(text: str) -> Iterator[tuple[str, int]]:
    """Yield what is drawn as one, with its width here."""
    begun, width = "", 0
    for start, end, size in cells.split_graphemes(text)[0]:
        part = text[start:end]
        if begun and joins(begun, part[0]):
            begun, width = begun + part, width + size
            continue
        if begun:
            yield begun, width
        begun, width = part, size
    if begun:
        yield begun, width


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
