"""Visible letters: what a person takes for one, however many characters it is made of."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

CUT: Final = "…"

_JOINER: Final = "\u200d"
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS: Final = range(0x1F1E6, 0x1F200)
_HANGUL_BEHIND_FIRST: Final = (range(0x1160, 0x1200), range(0xD7B0, 0xD800))
_VIRAMA: Final = 9
"""The combining class of a sign that joins what is behind it. Source: UAX 44."""
_LONGEST: Final = 64
"""Characters of the longest letter that is looked for."""


def joins(before: str, character: str) -> bool:
    """Return whether a character belongs to the letter whose characters so far are ``before``. Source: UAX 29."""
    import unicodedata  # noqa: PLC0415 - most texts are plain

    code, last = ord(character), before[-1]
    if unicodedata.category(character).startswith("M") or _JOINER in {character, last}:
        return True
    if code in _SKIN_TONES or any(code in signs for signs in _HANGUL_BEHIND_FIRST):
        return True
    if unicodedata.combining(last) == _VIRAMA:
        return unicodedata.category(character) == "Lo"
    return code in _FLAG_LETTERS and len(before) == 1 and ord(before) in _FLAG_LETTERS


def letter_begin(text: str, place: int) -> int:
    """Return where the letter begins that the character at a place belongs to."""
    if place >= len(text) or place <= 0 or text[place - 1 : place + 1].isascii():
        return min(place, len(text))
    begin = place
    while begin > max(0, place - _LONGEST) and joins(text[begin - 1], text[begin]):
        if ord(text[begin]) in _FLAG_LETTERS and not _is_second_of_flag(text, begin):
            break
        begin -= 1
    return begin


def clip(text: str, max_characters: int) -> str:
    """Return the text, cut behind a whole letter and with ``…`` at its end when it is longer than that."""
    if len(text) <= max_characters:
        return text
    return text[: letter_begin(text, max(0, max_characters - 1))] + CUT


def _is_second_of_flag(text: str, place: int) -> bool:
    """Return whether a letter of flags is the second of its pair."""
    begin = place
    while begin > 0 and ord(text[begin - 1]) in _FLAG_LETTERS:
        begin -= 1
    return (place - begin) % 2 == 1
