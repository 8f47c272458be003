"""Visible letters: what a person takes for one, however many characters it is made of. No cut goes through one."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Final

# Characters that are letters of their own wherever only such ones are beside them, and take a column or two each: most
# texts have no others, and need no import. Source: Unicode 17, UAX 29.
_ALONE: Final = (
    "[\x20-\x7e\xa0-\xac\xae-\u02ff\u0370-\u0377\u037a-\u0482\u048a-\u052f\u2010-\u2027\u2190-\u2bff\u3001-\u3029"
    "\u3041-\u3096\u30a0-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60\ufffd"
    "\U0001f300-\U0001f3fa\U0001f400-\U0001faff]*"
)
_LONGEST: Final = 64
"""Characters of the longest letter that is looked for behind a place."""
_CUT: Final = "…"


def letters(text: str) -> Iterable[str]:
    """Return the letters of the text in order."""
    if _are_alone(text):
        return text
    try:
        from wcwidth import iter_graphemes  # noqa: PLC0415 - as long to import as Python takes to start
    except ImportError:
        # The host of a run has the standard library alone.
        return text
    return iter_graphemes(text)


def columns_of(text: str) -> int:
    """Return how many columns a terminal gives the text."""
    if text.isascii():
        return len(text)
    if _are_alone(text):
        from unicodedata import east_asian_width  # noqa: PLC0415 - most texts are ASCII

        return sum(2 if east_asian_width(character) in {"W", "F"} else 1 for character in text)
    try:
        from wcwidth import width  # noqa: PLC0415 - see letters
    except ImportError:
        return len(text)
    return width(text)


def cut(text: str, room: int, size_of: Callable[[str], int] = len) -> str:
    """Return the text; of one that is larger than the room the letters that fit, and ``…`` behind them.

    Args:
        text: Any text.
        room: The most that may come back, in the measure of ``size_of``.
        size_of: The size of a letter or a text: characters, or the columns that they are drawn in.
    """
    if size_of(text) <= room:
        return text
    return text[: fitting(text, room - 1, size_of)].rstrip() + _CUT if room > 0 else ""


def cut_before(text: str, room: int, size_of: Callable[[str], int] = len) -> str:
    """Return the text; of one that is larger than the room ``…``, and the letters of its end that fit."""
    if size_of(text) <= room:
        return text
    if room <= 0:
        return ""
    begin = len(text)
    left = room - 1
    for letter in reversed([*letters(text)]):
        left -= size_of(letter)
        if left < 0:
            break
        begin -= len(letter)
    return _CUT + text[begin:]


def fitting(text: str, room: int, size_of: Callable[[str], int] = len) -> int:
    """Return how many characters of the text are whole letters that fit into the room."""
    room = max(0, room)
    # Each letter of these takes one or more: whether the last of them fits or not, nothing behind them does.
    beginning = text[: room + 1]
    if beginning.isascii():
        return min(len(text), room)
    end = 0
    for letter in beginning if _are_alone(beginning) else letters(text):
        room -= size_of(letter)
        if room < 0:
            break
        end += len(letter)
    return end


def letter_before(text: str, place: int) -> int:
    """Return where the letter before a place of the text begins."""
    if place <= 1 or text[place - 1].isascii():
        return max(0, place - 1)
    try:
        from wcwidth import grapheme_boundary_before  # noqa: PLC0415 - see letters
    except ImportError:
        return place - 1
    return grapheme_boundary_before(text, place)


def letter_behind(text: str, place: int) -> int:
    """Return where the letter behind a place of the text ends."""
    if place >= len(text) or text[place : place + 2].isascii():
        return min(len(text), place + 1)
    return place + len(next(iter(letters(text[place : place + _LONGEST]))))


def _are_alone(text: str) -> bool:
    return text.isascii() or re.fullmatch(_ALONE, text) is not None
