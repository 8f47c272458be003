"""A task on one line: ``fix login !1 @claude #auth after:38 due:fri parent:12 in:~/x retry:2 verify:'make test'``.

What is no sign of something else is the title. A word that has the form of a sign and makes no sense is told, never
dropped or taken for text; quotes around a word or a backslash before it make it text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.due_dates import parse_due
from agentmon.domain.errors import UsageError
from agentmon.domain.labels import LABELS_MAX, parse_label
from agentmon.domain.plain_text import plain_line
from agentmon.domain.task_status import Priority
from agentmon.domain.tasks import TITLE_MAX_CHARACTERS
from agentmon.domain.verifications import read_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime, tzinfo

RETRIES_MAX: Final = 99
SIGNS: Final = "!1 @agent #label after:38 due:fri parent:12 in:~/folder retry:2 verify:make"
"""All signs, for people."""
_KEYS: Final = ("after", "due", "parent", "in", "retry", "verify")
_KEYED: Final = re.compile(rf"(?P<key>{'|'.join(_KEYS)}):", re.IGNORECASE)
_NUMBER: Final = re.compile(r"#?(?P<number>[0-9]{1,17})", re.ASCII)
_QUOTES: Final = "\"'"
_SHOWN_MAX_CHARACTERS: Final = 60
_RETRIES: Final = re.compile(r"0{0,9}[0-9]{1,2}", re.ASCII)


class QuickProblem(NamedTuple):
    """A word that has the form of a sign and makes no sense."""

    word: str
    """As it was typed; empty when it is about the whole line."""
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickLine:
    """What was understood of a line."""

    title: str
    priority: Priority | None = None
    agent_slug: str | None = None
    labels: tuple[str, ...] = ()
    """In the order of the alphabet."""
    after: tuple[int, ...] = ()
    """Numbers of the tasks that it waits for."""
    due_at: datetime | None = None
    parent: int | None = None
    folder: str | None = None
    """As it was typed."""
    retries: int | None = None
    verify: str | None = None
    """As ``InputContext`` has it."""
    problems: tuple[QuickProblem, ...] = ()


class QuickWord(NamedTuple):
    """A word of the line."""

    text: str
    """As it was typed."""
    at: int
    """Where it begins in the line."""
    meaning: str
    """Without quotes and backslash."""
    is_literal: bool
    """Whether it is text, whatever it looks like."""


def parse_quick(text: str, *, now: datetime, zone: tzinfo) -> QuickLine:
    """Return what the line says; every line is one, with what is wrong with it."""
    reading = _Reading(now=now, zone=zone)
    for word in quick_words(text):
        reading.take(word)
    return reading.line()


def quick_words(text: str) -> Iterator[QuickWord]:
    """Yield the words of the line in their order."""
    ends = {quote: _quote_ends(text, quote) for quote in _QUOTES}
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        word = _read_word(text, at, ends)
        yield word
        at += len(word.text)


def _read_word(text: str, at: int, ends: Mapping[str, Sequence[int]]) -> QuickWord:
    if text[at] in _QUOTES:
        end = _closing_quote(ends, text[at], at)
        if end is not None:
            return QuickWord(text[at : end + 1], at, text[at + 1 : end], is_literal=True)
    keyed = _KEYED.match(text, at)
    if keyed is not None and keyed.end() < len(text) and text[keyed.end()] in _QUOTES:
        end = _closing_quote(ends, text[keyed.end()], keyed.end())
        if end is not None:
            meaning = text[at : keyed.end()] + text[keyed.end() + 1 : end]
            return QuickWord(text[at : end + 1], at, meaning, is_literal=False)
    end = next((place for place in range(at, len(text)) if text[place].isspace()), len(text))
    typed = text[at:end]
    if typed.startswith("\\") and len(typed) > 1:
        return QuickWord(typed, at, typed[1:], is_literal=True)
    return QuickWord(typed, at, typed, is_literal=False)


def _quote_ends(text: str, quote: str) -> list[int]:
    """Return where the quote ends a word, in order; one that does not is a mere sign, as in ``'tis``."""
    ends = (match.start() for match in re.finditer(quote, text))
    return [end for end in ends if end + 1 == len(text) or text[end + 1].isspace()]


def _closing_quote(ends: Mapping[str, Sequence[int]], quote: str, at: int) -> int | None:
    """Return where the word ends that the quote begins here; None when nothing does."""
    later = bisect_right(ends[quote], at)
    return ends[quote][later] if later < len(ends[quote]) else None


@dataclass(slots=True, kw_only=True)
class _Reading:
    now: datetime
    zone: tzinfo
    _title: list[str] = field(default_factory=list)
    _priority: Priority | None = None
    _agent_slug: str | None = None
    _labels: set[str] = field(default_factory=set)
    _after: list[int] = field(default_factory=list)
    _due_at: datetime | None = None
    _parent: int | None = None
    _folder: str | None = None
    _retries: int | None = None
    _verify: str | None = None
    _problems: list[QuickProblem] = field(default_factory=list)
    _taken: set[str] = field(default_factory=set)

    def take(self, word: QuickWord) -> None:
        meaning = word.meaning
        reader: Callable[[str], None] | None = None
        content = meaning[1:]
        if word.is_literal or not content:
            self._title.append(meaning)
            return
        keyed = _KEYED.match(meaning)
        kind = meaning[0]
        if kind == "!" and content.isdecimal():
            reader = self._read_priority
        elif kind == "@":
            reader = self._read_agent
        elif kind == "#" and not content.isdecimal():
            reader = self._read_label
        elif keyed is not None:
            kind, content = keyed["key"].lower(), meaning[keyed.end() :].strip()
            readers: dict[str, Callable[[str], None]] = {
                "after": self._read_after,
                "due": self._read_due,
                "parent": self._read_parent,
                "in": self._read_folder,
                "retry": self._read_retries,
                "verify": self._read_verify,
            }
            reader = readers[kind]
        if reader is None:
            self._title.append(meaning)
            return
        try:
            self._require_first(kind)
            reader(content)
        except UsageError as error:
            shown = plain_line(word.text, max_characters=_SHOWN_MAX_CHARACTERS)
            self._problems.append(QuickProblem(shown, str(error), error.hint or f"\\{shown} keeps it as text"))
            return
        if kind not in {"#", "after"}:
            self._taken.add(kind)

    def line(self) -> QuickLine:
        title = " ".join(self._title).strip()
        problems = list(self._problems)
        if not title:
            problems.append(QuickProblem("", "a task needs a title", "words without a sign are the title"))
        elif len(title) > TITLE_MAX_CHARACTERS:
            problems.append(
                QuickProblem("", f"the title has {len(title):,} characters; {TITLE_MAX_CHARACTERS:,} are the most")
            )
        if len(self._labels) > LABELS_MAX:
            problems.append(QuickProblem("", f"{len(self._labels)} labels; a task has at most {LABELS_MAX}"))
        return QuickLine(
            title=title,
            priority=self._priority,
            agent_slug=self._agent_slug,
            labels=tuple(sorted(self._labels)),
            after=tuple(self._after),
            due_at=self._due_at,
            parent=self._parent,
            folder=self._folder,
            retries=self._retries,
            verify=self._verify,
            problems=tuple(problems),
        )

    def _require_first(self, kind: str) -> None:
        if kind in self._taken:
            raise UsageError("this is said twice", hint="leave one of them away")

    def _read_priority(self, content: str) -> None:
        if content not in {str(priority.value) for priority in Priority}:
            raise UsageError("priorities are !1 to !5")
        self._priority = Priority(int(content))

    def _read_agent(self, content: str) -> None:
        self._agent_slug = content.lower()

    def _read_label(self, content: str) -> None:
        self._labels.add(parse_label(content))

    def _read_after(self, content: str) -> None:
        numbers = [_number(part) for part in content.split(",") if part.strip()]
        if not numbers:
            raise UsageError("the number of a task belongs behind it", hint="after:38, or after:38,39")
        self._after += [number for number in dict.fromkeys(numbers) if number not in self._after]

    def _read_due(self, content: str) -> None:
        if not content:
            raise UsageError("a day belongs behind it", hint="due:fri, or due:'dec 1'")
        try:
            self._due_at = parse_due(content, now=self.now, zone=self.zone)
        except UsageError as error:
            raise UsageError(str(error), hint="due:fri, due:'dec 1', due:'in 2 days', due:+3d") from error

    def _read_parent(self, content: str) -> None:
        self._parent = _number(content)

    def _read_folder(self, content: str) -> None:
        if not content:
            raise UsageError("a folder belongs behind it", hint="in:~/src, or in:'my folder'")
        self._folder = content

    def _read_retries(self, content: str) -> None:
        if not _RETRIES.fullmatch(content):
            raise UsageError(f"retries are 0 to {RETRIES_MAX}", hint="retry:2")
        self._retries = int(content)

    def _read_verify(self, content: str) -> None:
        if not content:
            raise UsageError("a command belongs behind it", hint="verify:'make test', or verify:none")
        self._verify = read_command(content)


def _number(text: str) -> int:
    found = _NUMBER.fullmatch(text.strip())
    if found is None or not int(found["number"]):
        raise UsageError("this is not the number of a task", hint="write for example 38")
    return int(found["number"])
