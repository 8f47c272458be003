"""What a person types into the search, and how it is found in a text: words, phrases, kinds and exclusions."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agentmon.domain.letters import cut, letter_before
from agentmon.domain.plain_text import plain_line

if TYPE_CHECKING:
    from datetime import datetime

MOST_WORDS: Final = 12
"""More words than these are passed over."""
_LONGEST_QUERY: Final = 2_000
_LEAST_PREFIX: Final = 2
_SNIPPET_BEFORE: Final = 40
_SNIPPET_CHARACTERS: Final = 160
_CONTEXT_CHARACTERS: Final = 3_000
_WORD: Final = re.compile(r"[^\W_]+")
_CJK: Final = "\u1100-\u11ff\u2e80-\u9fff\ua000-\ua4cf\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
"""Scripts without blanks between words, and those whose words grow at both ends: each character is a word here."""
_ASCII_WORD: Final = re.compile(r"[a-z0-9]+")
_HAS_CJK: Final = re.compile(f"[{_CJK}]")
_PART: Final = re.compile(rf"[{_CJK}]|(?:(?![{_CJK}])[^\W_])+")
_LETTER_BEFORE: Final = rf"(?<!(?![{_CJK}])[^\W_])"
_LETTER_AFTER: Final = rf"(?!(?![{_CJK}])[^\W_])"
_TYPED: Final = re.compile(r'(-?)"([^"]*)("?)|(\S+)')
_KIND: Final = "in:"
_UNSTORABLE: Final = re.compile("[\ud800-\udfff]")


class SearchKind(StrEnum):
    """What is searched; in the order in which it is shown."""

    TASKS = "tasks"
    SESSIONS = "sessions"
    MESSAGES = "messages"
    OPERATIONS = "operations"
    CHANGES = "changes"
    LOGS = "logs"
    DOCUMENTS = "documents"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchWord:
    """A word or a phrase that has to occur."""

    text: str
    """As it is compared: small letters without accents, one blank between words."""
    is_open: bool = False
    """Whether it may be the beginning of a longer word."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The words of an index that it consists of; none when it is made of signs alone."""
        return tuple(_words_of(self.text))

    @property
    def is_prefix(self) -> bool:
        """Whether longer words of an index count for its last part as well."""
        parts = self.parts
        return self.is_open and bool(parts) and len(parts[-1]) >= _LEAST_PREFIX and self.text.endswith(parts[-1])

    @property
    def is_plain(self) -> bool:
        """Whether an index alone tells where it occurs."""
        return self.parts == (self.text,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What is looked for."""

    words: tuple[SearchWord, ...]
    """All of them have to occur."""
    without: tuple[SearchWord, ...]
    """None of them may occur."""
    kinds: frozenset[SearchKind]

    @property
    def is_empty(self) -> bool:
        """Whether it asks for nothing."""
        return not self.words


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A piece of text around what was found, safe to draw, on one line."""

    text: str
    marks: tuple[tuple[int, int], ...]
    """Where what was found begins and ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """One thing that was found."""

    kind: SearchKind
    key: str
    """Its id; of a line of a log the run's id and the byte at which it begins."""
    where: str
    """The agent, tool or state beside it."""
    at: datetime | None
    snippet: Snippet
    context: str
    """Some of the text around it, as it was written."""
    task_id: str | None = None
    task_number: int | None = None
    title: str = ""
    """The title of its task or conversation."""
    workspace_root: str = ""
    is_archived: bool = False
    session_id: str | None = None
    execution_id: str | None = None
    offset: int | None = None
    """At which byte of the log its line begins."""
    line: int | None = None
    """The line of the log, counted from 1; None when nobody knows."""
    log_path: str = ""
    is_partial: bool = False
    """Whether the middle of its log is not in the index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundOfKind:
    """What was found of one kind, best first."""

    kind: SearchKind
    hits: tuple[SearchHit, ...]
    has_more: bool = False
    """Whether there is more than was asked for."""
    is_cut: bool = False
    """Whether the time was up before all was looked through."""
    unindexed: int = 0
    """How many rows or logs are not in the index yet and were not looked through."""


def fold(text: str) -> str:
    """Return the text as it is compared: small letters without accents, character for character."""
    return text.lower() if text.isascii() else text.translate(_FOLDED)


def indexed_words(text: str) -> str:
    """Return the words under which a text is found, one blank between them."""
    return " ".join(_words_of(fold(text)))


def distinct_words(text: str) -> str:
    """Return the words under which a text is found, each once and in order."""
    return " ".join(sorted(set(_words_of(fold(text)))))


def parse_query(text: str) -> SearchQuery:
    """Return what the text asks for; any text asks for something, or for nothing.

    ``"…"`` is a phrase, ``-`` before a word or phrase excludes it, ``in:logs,messages`` names kinds, and the last word
    may be cut off. All else is looked for as it is.
    """
    text = _UNSTORABLE.sub("\ufffd", text[:_LONGEST_QUERY].replace("\0", " "))
    words: list[SearchWord] = []
    without: list[SearchWord] = []
    kinds: set[SearchKind] = set()
    for match in _TYPED.finditer(text):
        sign, phrase, end, plain = match.groups()
        if plain is None:
            word = _word(phrase, is_open=not end)
        else:
            named = _kinds_of(plain)
            if named:
                kinds |= named
                continue
            sign = "-" if re.match(r"-[\w#/.]", plain) else ""
            word = _word(plain.removeprefix(sign), is_open=match.end() == len(text) and not sign)
        if word.text:
            (without if sign else words).append(word)
    return SearchQuery(
        words=tuple(words[:MOST_WORDS]),
        without=tuple(without[:MOST_WORDS]),
        kinds=frozenset(kinds or SearchKind),
    )


class TextMatcher:
    """Finds what a query asks for in texts, in the same way whatever an index said."""

    def __init__(self, query: SearchQuery) -> None:
        self._wanted = tuple(_pattern(word) for word in sorted(query.words, key=lambda word: -len(word.text)))
        self._unwanted = tuple(_pattern(word) for word in query.without)
        self._any = re.compile("|".join(pattern.pattern for pattern in self._wanted) or r"(?!)")

    def matches(self, text: str) -> bool:
        """Return whether all words of the query and none of the excluded ones occur in the text."""
        folded = fold(text)
        return all(pattern.search(folded) for pattern in self._wanted) and not any(
            pattern.search(folded) for pattern in self._unwanted
        )

    def matching_lines(self, text: str) -> list[int]:
        """Return the numbers, counted from 0, of the lines that match."""
        if not self._wanted:
            return []
        folded = fold(text)
        first, *others = self._wanted
        found: list[int] = []
        line, counted = 0, 0
        match = first.search(folded)
        while match is not None:
            start = folded.rfind("\n", 0, match.start()) + 1
            end = folded.find("\n", match.start())
            end = len(folded) if end < 0 else end
            line += folded.count("\n", counted, start)
            counted = start
            if (
                match.end() <= end
                and all(pattern.search(folded, start, end) for pattern in others)
                and not any(pattern.search(folded, start, end) for pattern in self._unwanted)
            ):
                found.append(line)
            match = first.search(folded, end + 1) if end < len(folded) else None
        return found

    def marks(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return where words of the query occur in the text, in order."""
        return tuple(match.span() for match in self._any.finditer(fold(text)) if match.group())

    def snippet(self, text: str) -> Snippet:
        """Return the piece of the text around the first word that is found; its beginning when none is."""
        match = self._any.search(fold(text))
        begin = 0 if match is None else max(0, match.start() - _SNIPPET_BEFORE)
        if begin > 0 and (blank := text.find(" ", begin, begin + _SNIPPET_BEFORE // 2)) >= 0:
            begin = blank + 1
        begin = letter_before(text, begin + 1) if begin else 0
        piece = text[begin : begin + 4 * _SNIPPET_CHARACTERS]
        line = " ".join(plain_line(piece).split())
        shown = ("…" if begin else "") + line
        shown = cut(shown, _SNIPPET_CHARACTERS)
        return Snippet(text=shown, marks=self.marks(shown))

    def context(self, text: str) -> str:
        """Return some thousand characters around the first word that is found."""
        match = self._any.search(fold(text))
        begin = 0 if match is None else max(0, match.start() - _CONTEXT_CHARACTERS // 3)
        if begin and (line := text.find("\n", begin, begin + _CONTEXT_CHARACTERS // 3)) >= 0:
            begin = line + 1
        return text[begin : begin + _CONTEXT_CHARACTERS]


def _words_of(folded: str) -> list[str]:
    """Return the words in order; by the simplest pattern that serves, since whole logs go through it."""
    if folded.isascii():
        return _ASCII_WORD.findall(folded)
    return _PART.findall(folded) if _HAS_CJK.search(folded) else _WORD.findall(folded)


def _word(text: str, *, is_open: bool) -> SearchWord:
    return SearchWord(text=fold(" ".join(unicodedata.normalize("NFC", text).split())), is_open=is_open)


def _kinds_of(typed: str) -> set[SearchKind]:
    if not typed.lower().startswith(_KIND):
        return set()
    names = [name for name in typed[len(_KIND) :].lower().split(",") if name]
    found = {kind for name in names for kind in SearchKind if kind.value.startswith(name)}
    return found if all(any(kind.value.startswith(name) for kind in SearchKind) for name in names) else set()


@lru_cache(maxsize=256)
def _pattern(word: SearchWord) -> re.Pattern[str]:
    body = r"\s+".join(re.escape(part) for part in word.text.split(" "))
    before = _LETTER_BEFORE if _is_letter(word.text[0]) else ""
    after = _LETTER_AFTER if _is_letter(word.text[-1]) and not word.is_prefix else ""
    return re.compile(f"{before}{body}{after}")


def _is_letter(character: str) -> bool:
    return _WORD.match(character) is not None and _HAS_CJK.match(character) is None


class _Folded(dict[int, int]):
    """Each character without its accent and in small; made as they come."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        base = unicodedata.normalize("NFD", character)[0]
        if not "\u1100" <= base <= "\u11ff":
            small = base.lower()
            code = ord(small) if len(small) == 1 else ord(base)
        self[ord(character)] = code
        return code


_FOLDED: Final = _Folded()
