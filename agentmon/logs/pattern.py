"""What is looked for in a log: a regular expression that matches what a person sees in a line."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Final, Protocol

from agentmon.domain.errors import UsageError
from agentmon.logs.block_text import BlockText
from agentmon.logs.line_text import plain_text
from agentmon.logs.log_file import MAX_LINE_BYTES
from agentmon.logs.rewritten_lines import newest_states

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SPECIAL: Final = re.compile(r"[\\.^$*+?{}\[\]|()]")
_ESCAPED: Final = re.compile(r"\\.")
_NOT_PLAIN: Final = re.compile(rf"{_SPECIAL.pattern}|\n")
# Escapes that name a character by a number or its name, and references to groups.
_BY_NUMBER: Final = re.compile(r"\\[xuUN0-9]")
# What sees beyond the line where many lines are searched at once, or gives nothing back that it took.
_LINE_BOUND: Final = re.compile(r"\(\?(?!:)|\\[ABZ]|[*+?}]\+|\n")
_MOST_WORDS: Final = 4


class LogMatcher(Protocol):
    """Decides which lines match."""

    def matches(self, line: bytes) -> bool:
        """Return whether a line matches."""
        ...

    def matching_lines(self, block: bytes) -> Iterable[tuple[int, int]]:
        """Yield start and end of the lines of a block that match, in order."""
        ...


class LogPattern:
    """A regular expression with smart case: without a capital letter it ignores case.

    Raises:
        UsageError: The expression is not a valid one.
    """

    def __init__(self, expression: str) -> None:
        self.expression = expression
        letters = _ESCAPED.sub("", expression)
        self.ignores_case = letters == letters.lower()
        case = re.IGNORECASE if self.ignores_case else 0
        try:
            self.regex = _compiled(expression, case)
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(
                f"not a regular expression: {error}", hint="put \\ before a character that is meant as itself"
            ) from error
        self._sees_blanks = _SPECIAL.search(expression) is not None or " " in expression or "\t" in expression
        # In lowered text the search need not ignore case, which is many times as fast.
        self._can_lower = self.ignores_case and expression.isascii() and _BY_NUMBER.search(expression) is None
        self._is_line_bound = not expression or _LINE_BOUND.search(expression) is not None
        self._finders: dict[bool, re.Pattern[str]] = {}
        self._words: tuple[re.Pattern[str], ...] = ()
        self._words_suffice = False
        self._find_words()

    @classmethod
    def of_words(cls, words: str) -> LogPattern:
        """Return the pattern that finds these words letter for letter, with smart case too."""
        return cls(_SPECIAL.sub(r"\\\g<0>", words))

    def matches(self, line: bytes) -> bool:
        """Return whether the expression matches somewhere in the visible text of a line."""
        return self.regex.search(plain_text(line)) is not None

    def matching_lines(self, block: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of the lines of a block that match, in order."""
        shown = BlockText(block, sees_blanks=self._sees_blanks, sees_ends=not self._words_suffice)
        is_lowered = self._can_lower and shown.can_lower
        text = shown.text(is_lowered=is_lowered)
        # What has no line feed at its end is a line too, also where nothing of it is seen.
        starts = self._starts(text, len(text) + (block[-1:] not in {b"", b"\n"}), is_lowered=is_lowered)
        spans = shown.line_spans(text, starts)
        odd_lines = shown.odd_lines
        if not odd_lines:
            return spans
        found = [span for span in spans if span[0] not in odd_lines]
        for start in odd_lines:
            end = block.find(b"\n", start)
            end = end if end >= 0 else len(block)
            if self.matches(newest_states(block[start:end], MAX_LINE_BYTES)):
                found.append((start, end))
        return iter(sorted(found))

    def _find_words(self) -> None:
        """Find words of which each match holds one for certain, and note whether that is all there is to match."""
        words = self.expression.split("|")
        if len(words) <= _MOST_WORDS and all(word and not _NOT_PLAIN.search(word) for word in words):
            self._words_suffice = True
        else:
            part = _needed_part(self.expression)
            words = [part] if part else []
        self._words = tuple(re.compile(re.escape(word)) for word in words)

    def _starts(self, text: str, limit: int, *, is_lowered: bool) -> Iterator[int]:
        """Yield where the lines begin in the text that match; all lines begin before ``limit``."""
        are_words_usable = bool(self._words) and (is_lowered or not self.ignores_case)
        if are_words_usable and self._words_suffice:
            return _starts_with_any(text, self._words)
        if are_words_usable:
            return self._starts_with_words(text, is_lowered=is_lowered)
        if self._is_line_bound:
            return self._starts_one_by_one(text, limit)
        return self._starts_in_all(text, limit, is_lowered=is_lowered)

    def _starts_with_words(self, text: str, *, is_lowered: bool) -> Iterator[int]:
        search = self.regex.search if self._is_line_bound else self._finder(is_lowered=is_lowered).search
        for start in _starts_with_any(text, self._words):
            end = text.find("\n", start)
            end = end if end >= 0 else len(text)
            if self._is_line_bound:
                if search(text[start:end]):
                    yield start
            elif search(text, start, end):
                yield start

    def _starts_one_by_one(self, text: str, limit: int) -> Iterator[int]:
        search = self.regex.search
        start = 0
        for line in text.split("\n"):
            if start < limit and search(line):
                yield start
            start += len(line) + 1

    def _starts_in_all(self, text: str, limit: int, *, is_lowered: bool) -> Iterator[int]:
        """Search all lines at once: what matches a line matches there too, and is then looked at in its line alone."""
        search = self._finder(is_lowered=is_lowered).search
        position = 0
        while position < limit and (match := search(text, position)):
            start = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", start)
            end = end if end >= 0 else len(text)
            if start < limit and (match.end() <= end or search(text, start, end)):
                yield start
            position = end + 1

    def _finder(self, *, is_lowered: bool) -> re.Pattern[str]:
        finder = self._finders.get(is_lowered)
        if finder is None:
            case = re.IGNORECASE if self.ignores_case and not is_lowered else 0
            finder = self._finders[is_lowered] = _compiled(self.expression, case | re.MULTILINE)
        return finder


class BothMatch:
    """Matches the lines that two patterns match, the rarer of which comes first."""

    def __init__(self, rarer: LogPattern, other: LogPattern) -> None:
        self._rarer = rarer
        self._other = other

    def matches(self, line: bytes) -> bool:
        """Return whether both match somewhere in the visible text of a line."""
        return self._rarer.matches(line) and self._other.matches(line)

    def matching_lines(self, block: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of the lines of a block that both match, in order."""
        for start, end in self._rarer.matching_lines(block):
            if self._other.matches(block[start:end]):
                yield start, end


def _compiled(expression: str, flags: int) -> re.Pattern[str]:
    """Return the expression without Python's word on what a later release may read otherwise, such as ``[[``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(expression, flags)


def _starts_with_any(text: str, words: tuple[re.Pattern[str], ...]) -> Iterator[int]:
    """Yield where the lines begin that hold one of the words."""
    places = [_place(word, text, 0) for word in words]
    while (place := min(places)) < len(text):
        yield text.rfind("\n", 0, place) + 1
        after = text.find("\n", place)
        if after < 0:
            return
        places = [_place(word, text, after) if at < after else at for word, at in zip(words, places, strict=True)]


def _place(word: re.Pattern[str], text: str, position: int) -> int:
    match = word.search(text, position)
    return match.start() if match else len(text)


def _needed_part(expression: str) -> str:
    """Return the longest text that every match of the expression holds for certain; empty when none is known.

    It only reads simple expressions; in others it finds nothing. What begins with a text is found by that as fast, and
    looked at less often.
    """
    if re.search(r"[()|\n]|\\[xuUN0-9]", expression) or not expression.isascii():
        return ""
    usual = "[\\w /:,;=<>@#%&!~\"'-]"
    pieces = re.findall(
        rf"\\.|\{{\d*,?\d*\}}|\[\^?\]?(?:\\.|[^\]\\])*\]|(?:{usual}(?![*?{{]))+|.", expression, re.ASCII
    )
    runs = [piece for piece in pieces if re.fullmatch(f"{usual}{{2,}}", piece, re.ASCII)]
    return "" if runs and pieces[0] == runs[0] else max(runs, key=len, default="")
