"""Search through a log of any size in bounded steps: what a person sees in a line is what is matched."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from agentmon.domain.errors import UsageError
from agentmon.logs.line_text import plain_text
from agentmon.logs.log_file import CUT_GRID_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agentmon.logs.log_file import LogFile, LogLine

STEP_BYTES: Final = 256 * 1024
"""So much of the file is searched between two steps: a millisecond for a word, some for a regular expression."""

_SPECIAL_IN_PATTERN: Final = re.compile(r"[\\.^$*+?{}\[\]|()]")
# C2 begins the C1 controls in UTF-8; blanks may stand for a tab.
_NEEDS_TERMINAL: Final = (b"\x1b", b"\r", b"\b", b"\t", b"\xc2")
# Sequences as in line_text, over bytes and never beyond the line.
_ESCAPE_SEQUENCE: Final = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]?|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?|\r(?=\n)"
)


class Direction(Enum):
    """Where a search goes from where it begins."""

    FORWARDS = "forwards"
    BACKWARDS = "backwards"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStep:
    """What one bounded piece of a search found."""

    scanned_bytes: int
    """How much of the file this search has looked at so far, this step included."""
    matches: tuple[int, ...]
    """The starts of the display lines that match, in the order of the search."""
    has_wrapped: bool = False
    """Whether the search went past the file's end (or beginning) and began at the other one."""


class LogMatcher(Protocol):
    """Decides which lines match."""

    def matches(self, line: bytes) -> bool:
        """Return whether a line matches."""
        ...

    def candidates(self, block: bytes, *, needs_terminal: bool) -> Iterable[tuple[int, int]]:
        """Yield start and end of the lines of a block that can match, in order; the others do not."""
        ...


class LogPattern:
    """A regular expression with smart case: without a capital letter it ignores case.

    Raises:
        UsageError: The expression is not a valid one.
    """

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.ignores_case = expression == expression.lower()
        try:
            self.regex = re.compile(expression, re.IGNORECASE if self.ignores_case else 0)
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(
                f"not a regular expression: {error}", hint="Put \\ before a character that is meant as itself."
            ) from error
        is_plain = bool(expression) and _SPECIAL_IN_PATTERN.search(expression) is None and "\n" not in expression
        self._literal = b""
        # Lower-casing bytes knows ASCII only.
        if is_plain and (not self.ignores_case or expression.isascii()):
            self._literal = expression.encode("utf-8", "surrogatepass")
        self._part = b"" if is_plain else _needed_part(expression, ignores_case=self.ignores_case)

    @classmethod
    def of_words(cls, words: str) -> LogPattern:
        """Return the pattern that finds these words letter for letter, with smart case too."""
        return cls(_SPECIAL_IN_PATTERN.sub(r"\\\g<0>", words))

    def matches(self, line: bytes) -> bool:
        """Return whether the expression matches somewhere in the visible text of a line."""
        return self.regex.search(plain_text(line)) is not None

    def candidates(self, block: bytes, *, needs_terminal: bool) -> Iterable[tuple[int, int]]:
        """Yield start and end of the lines of a block that can match, in order; the others do not.

        A block that does not need a terminal shows its bytes as they are, and then every candidate matches.
        """
        if self._part and not needs_terminal:
            return self._lines_with_part(block)
        if not self._literal or (b" " in self._literal and b"\t" in block):
            return self._lines_one_by_one(block, needs_terminal=needs_terminal)
        return self._lines_with_literal(block, self._literal)

    def _lines_with_part(self, block: bytes) -> Iterator[tuple[int, int]]:
        for start, end in self._lines_with_literal(block, self._part):
            if self.regex.search(block[start:end].decode("utf-8", "replace")):
                yield start, end

    def _lines_with_literal(self, block: bytes, literal: bytes) -> Iterator[tuple[int, int]]:
        is_cleaned = b"\x1b" in block
        cleaned = _ESCAPE_SEQUENCE.sub(b"", block) if is_cleaned else block
        if self.ignores_case:
            cleaned = cleaned.lower()
        position = raw_start = 0
        while (found := cleaned.find(literal, position)) >= 0:
            if is_cleaned:
                for _ in range(cleaned.count(b"\n", position, found)):
                    raw_start = block.find(b"\n", raw_start) + 1
            else:
                raw_start = block.rfind(b"\n", 0, found) + 1
            end = cleaned.find(b"\n", found)
            raw_end = block.find(b"\n", raw_start)
            yield raw_start, raw_end if raw_end >= 0 else len(block)
            if end < 0 or raw_end < 0:
                return
            position = end + 1
            raw_start = raw_end + 1

    def _lines_one_by_one(self, block: bytes, *, needs_terminal: bool) -> Iterator[tuple[int, int]]:
        search = self.regex.search
        start = 0
        for line in block.split(b"\n"):
            end = start + len(line)
            text = plain_text(line) if needs_terminal else line.decode("utf-8", "replace")
            if search(text) and start < len(block):
                yield start, end
            start = end + 1


def _needed_part(expression: str, *, ignores_case: bool) -> bytes:
    """Return the longest text that every match of the expression holds for certain; empty when none is known.

    It only reads simple expressions; in others it finds nothing, and each line is looked at.
    """
    if re.search(r"[()|\n]|\\[xuUN0-9]", expression) or not expression.isascii():
        return b""
    # Outside ASCII, K and S have other forms that a search without case finds too.
    usual = "[a-jl-rt-zA-JL-RT-Z0-9 _/:,;=<>@#%&!~\"'-]" if ignores_case else "[\\w /:,;=<>@#%&!~\"'-]"
    pieces = re.findall(
        rf"\\.|\{{\d*,?\d*\}}|\[\^?\]?(?:\\.|[^\]\\])*\]|(?:{usual}(?![*?{{]))+|.", expression, re.ASCII
    )
    runs = [piece for piece in pieces if re.fullmatch(f"{usual}{{2,}}", piece, re.ASCII)]
    return max(runs, key=len, default="").encode()


class BothMatch:
    """Matches the lines that two patterns match, the rarer of which comes first."""

    def __init__(self, rarer: LogPattern, other: LogPattern) -> None:
        self._rarer = rarer
        self._other = other

    def matches(self, line: bytes) -> bool:
        """Return whether both match somewhere in the visible text of a line."""
        return self._rarer.matches(line) and self._other.matches(line)

    def candidates(self, block: bytes, *, needs_terminal: bool) -> Iterator[tuple[int, int]]:
        """Yield start and end of the lines of a block that can match, in order."""
        for start, end in self._rarer.candidates(block, needs_terminal=needs_terminal):
            if self._other.matches(block[start:end]):
                yield start, end


def search_log(
    log: LogFile,
    pattern: LogMatcher,
    *,
    start: int,
    stop: int | None = None,
    direction: Direction = Direction.FORWARDS,
    most: int | None = None,
) -> Iterator[SearchStep]:
    """Search from ``start`` (a display line's start, or the size) to ``stop`` in steps of at most ``STEP_BYTES``.

    Forwards the line at ``start`` is searched too and ``stop`` is where to end; backwards only what comes before
    ``start``, down to ``stop``. Without ``stop`` the search ends where the file does. It never looks at bytes that came
    after the log's last refresh. ``most`` bounds the matches of one step.
    """
    scanned = 0
    if direction is Direction.FORWARDS:
        limit = log.size if stop is None else min(stop, log.size)
        while start < limit:
            end = _step_end(log, start, limit)
            scanned += end - start
            yield SearchStep(scanned_bytes=scanned, matches=_matches(log, pattern, start, end, direction, most))
            start = end
    else:
        limit = 0 if stop is None else stop
        end = min(start, log.size)
        while end > limit:
            begin = max(limit, log.line_start(max(limit, end - STEP_BYTES)))
            scanned += end - begin
            yield SearchStep(scanned_bytes=scanned, matches=_matches(log, pattern, begin, end, direction, most))
            end = begin


def matching_starts(log: LogFile, pattern: LogMatcher, start: int, end: int) -> tuple[int, ...]:
    """Return the starts of the display lines from ``start`` up to ``end``, both of them starts, that match."""
    return _matches(log, pattern, start, end, Direction.FORWARDS, None) if start < end else ()


def find_next(
    log: LogFile, pattern: LogMatcher, *, origin: int, direction: Direction = Direction.FORWARDS
) -> Iterator[SearchStep]:
    """Search for the line nearest to the display line at ``origin``, that line last of all, around the file's end.

    The last step is the one with the match; no step has any when nothing matches.
    """
    origin = log.line_start(origin)
    here = log.lines_from(origin, 1)
    after = here[0].end if here else origin
    legs = ((after, log.size), (0, after)) if direction is Direction.FORWARDS else ((origin, 0), (log.size, origin))
    scanned = 0
    for leg, (start, stop) in enumerate(legs):
        covered = 0
        for step in search_log(log, pattern, start=start, stop=stop, direction=direction, most=1):
            covered = step.scanned_bytes
            yield SearchStep(scanned_bytes=scanned + covered, matches=step.matches, has_wrapped=leg == 1)
            if step.matches:
                return
        scanned += covered


def _step_end(log: LogFile, start: int, limit: int) -> int:
    if start + STEP_BYTES >= limit:
        return limit
    end = log.line_start(start + STEP_BYTES)
    return end if end > start else limit


def _matches(
    log: LogFile, pattern: LogMatcher, start: int, end: int, direction: Direction, most: int | None
) -> tuple[int, ...]:
    block = log.read(start, end)
    needs_terminal = any(mark in block for mark in _NEEDS_TERMINAL)
    spans = pattern.candidates(block, needs_terminal=needs_terminal)
    is_backwards = direction is Direction.BACKWARDS
    found: list[int] = []
    for line_start, line_end in reversed(list(spans)) if is_backwards else spans:
        if not needs_terminal and line_end - line_start < CUT_GRID_BYTES:
            found.append(start + line_start)
        else:
            lines = _display_lines(log, start + line_start, start + line_end)
            starts = [line.start for line in lines if pattern.matches(line.content)]
            found += reversed(starts) if is_backwards else starts
        if most is not None and len(found) >= most:
            return tuple(found[:most])
    return tuple(found)


def _display_lines(log: LogFile, start: int, end: int) -> Iterator[LogLine]:
    while lines := log.lines_from(start, 1):
        yield lines[0]
        start = lines[0].end
        if lines[0].is_whole or start >= end:
            return
