"""What stands out in the text of a log line: the level of its message, and addresses of the web."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEVEL_CHARACTERS: Final = 160
"""A level stands near the beginning, behind a time and a name."""
_MOST_LINKS: Final = 20
# Capitals count anywhere; small letters only where nothing else is meant.
_CAPITALS: Final = re.compile(
    r"(?<![\w./-])(ERROR|ERR|FATAL|CRITICAL|PANIC|SEVERE|WARNING|WARN|INFO|NOTICE|DEBUG|TRACE)(?![\w./-])"
)
_WORDS: Final = "(error|err|fatal|critical|panic|severe|warning|warn|info|notice|debug|trace)"
_FIELD: Final = re.compile(rf"\b(?:level|lvl|severity)\"?[=:] ?\"?{_WORDS}\b", re.IGNORECASE)
_BRACKETED: Final = re.compile(rf"(?:^(?=\w+:)|(?<=\[)(?=\w+ *\])|(?<=<)(?=\w+>)){_WORDS}\b", re.IGNORECASE)
_LINK: Final = re.compile(r"https?://[^\s<>\"'`\x00-\x1f]+", re.IGNORECASE)
_AFTER_LINK: Final = ".,;:!?"
_CLOSING: Final = {")": "(", "]": "[", "}": "{"}


class Level(Enum):
    """How grave a message is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    DEBUG = "debug"


class LevelMark(NamedTuple):
    """The word of a line that tells its level."""

    level: Level
    start: int
    end: int


_LEVELS: Final = {
    **dict.fromkeys(("error", "err", "fatal", "critical", "panic", "severe"), Level.ERROR),
    **dict.fromkeys(("warning", "warn"), Level.WARNING),
    **dict.fromkeys(("info", "notice"), Level.INFO),
    **dict.fromkeys(("debug", "trace"), Level.DEBUG),
}


def find_level(text: str) -> LevelMark | None:
    """Return the word that tells the level of the line, in one of the usual forms; None when there is none."""
    head = text[:_LEVEL_CHARACTERS]
    match = _FIELD.search(head) or _BRACKETED.search(head) or _CAPITALS.search(head)
    return LevelMark(_LEVELS[match[1].lower()], match.start(1), match.end(1)) if match else None


def find_links(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the addresses in a part of a line, without the punctuation of the sentence around them."""
    for count, match in enumerate(_LINK.finditer(text, start, len(text) if end is None else end)):
        if count >= _MOST_LINKS:
            return
        link = match[0]
        while link and (
            link[-1] in _AFTER_LINK or (link[-1] in _CLOSING and link.count(_CLOSING[link[-1]]) < link.count(link[-1]))
        ):
            link = link[:-1]
        yield match.start(), match.start() + len(link)
