"""Keys of layouts without Latin letters: which Latin key lies in the same place, for where no text is typed."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

from textual import events

if TYPE_CHECKING:
    from collections.abc import Iterator

_LAYOUTS: Final = (
    # Each beside the layout of the US: what is typed there, and what in the same places here.
    ("qwertyuiop[]asdfghjkl;'zxcvbnm,.`", "йцукенгшщзхъфывапролджэячсмитьбюё"),  # Russian
    ("s]'\\o", "іїєґў"),  # Ukrainian and Belarusian, beside the Russian ones
    ("wertyuiopasdfghjklzxcvbnm", "ςερτυθιοπασδφγηξκλζχψωβνμ"),  # Greek
    ("ertyuiopasdfghjkl;zxcvbnm,.", "קראטוןםפשדגכעיחלךףזסבהנמצתץ"),  # Hebrew
    ("qwertyuiop[]asdfghjkl;'zxcvnm,./", "ضصثقفغعهخحجدشسيبلاتنمكطئءؤرىةوزظ"),  # Arabic
    ("qwertyuiopasdfghjklzxcvbnm", "ㅂㅈㄷㄱㅅㅛㅕㅑㅐㅔㅁㄴㅇㄹㅎㅗㅓㅏㅣㅋㅌㅊㅍㅠㅜㅡ"),  # Korean
    ("qwertyuiop[asdfghjkl;'zxcvbnm,./", "ๆไำพะัีรนยบฟหกดเ้่าสวงผปแอิืทมใฝ"),  # Thai
)
_LATIN: Final = {theirs: ours for us, them in _LAYOUTS for ours, theirs in zip(us, them, strict=True)}


class PlacedKey(events.Key):
    """A key of which the terminal says where it lies.

    Args:
        latin: The character of the layout of the US in that place.
    """

    def __init__(self, key: str, character: str | None, latin: str) -> None:
        super().__init__(key, character)
        self.latin = latin


PlacedKey.handler_name = events.Key.handler_name  # Textual hands events on by the name of their class


def latin_of(key: events.Key) -> str:
    """Return the Latin character in the place of a key that types a letter of another script; empty for all others."""
    if isinstance(key, PlacedKey):
        return key.latin
    character = key.character or ""
    latin = _LATIN.get(character.lower(), "")
    return latin if character == character.lower() or not latin.isalpha() else latin.upper()


def placed(found: Iterator[events.Key], base: str, *, is_shifted: bool) -> Iterator[events.Key]:
    """Yield keys with the character of the layout of the US that lies in their place.

    Args:
        found: The keys.
        base: What that place types without shift.
        is_shifted: Whether shift is held; what it makes of anything but a letter differs by layout.
    """
    for key in found:
        latin = base.upper() if is_shifted and base.isalpha() else "" if is_shifted else base
        is_foreign = key.character is not None and not _is_latin(key.character)
        yield PlacedKey(key.key, key.character, latin) if latin and is_foreign else key


def _is_latin(character: str) -> bool:
    return character.isascii() or unicodedata.name(character, "LATIN").startswith("LATIN")
