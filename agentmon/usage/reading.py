"""What every reader of an agent's files gives and takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, Self

from agentmon.domain.billing import merge_answers, merge_sessions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentmon.domain.billing import BilledAnswer, FailedCall, HistorySession
    from agentmon.domain.limit_readings import ContextReading, LimitReading

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingProblem:
    """A stretch of a file, or a whole one, that could not be read and was passed over."""

    offset: int
    """Where it begins, in bytes after decompression."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What some lines of a file tell; each key and each conversation occurs once."""

    answers: tuple[BilledAnswer, ...] = ()
    """An answer that was told before counts by ``merge_answers``."""
    failures: tuple[FailedCall, ...] = ()
    sessions: tuple[HistorySession, ...] = ()
    problems: tuple[ReadingProblem, ...] = ()
    limits: tuple[LimitReading, ...] = ()
    """Of each window of a vendor what was said last; not every agent writes it down."""
    contexts: tuple[ContextReading, ...] = ()
    """Where the agent says itself how full a context is; otherwise the answers tell it."""


class Reader(Protocol):
    """Reads one file of an agent from its beginning, in pieces of whole lines."""

    parser_version: ClassVar[int]
    """Grows when the same bytes would give other answers: files that an older one read are read again."""

    def read(self, chunk: bytes, offset: int) -> Reading:
        """Return what the lines tell; damaged ones are passed over and reported, and no bytes make it fail.

        Args:
            chunk: Whole lines, each with its newline, right after those of the call before.
            offset: Where they begin in the file, in bytes.
        """
        ...

    def state(self) -> dict[str, object]:
        """Return as JSON values what is to be known of the lines so far to read on."""
        ...

    @classmethod
    def restore(cls, state: Mapping[str, object]) -> Self:
        """Return a reader that goes on where the one with that state was."""
        ...


class Answers:
    """The answers of one reading, each key once."""

    __slots__ = ("by_key",)

    def __init__(self) -> None:
        self.by_key: dict[str, BilledAnswer] = {}

    def add(self, answer: BilledAnswer) -> None:
        """Take an answer, which may have been told before."""
        earlier = self.by_key.get(answer.key)
        self.by_key[answer.key] = answer if earlier is None else merge_answers(earlier, answer)


class GatheredReadings:
    """Several readings that follow each other, as one."""

    __slots__ = ("_answers", "_contexts", "_failures", "_limits", "_problems", "_sessions")

    def __init__(self) -> None:
        self._answers = Answers()
        self._failures: dict[str, FailedCall] = {}
        self._sessions: dict[str, HistorySession] = {}
        self._problems: list[ReadingProblem] = []
        self._limits: dict[tuple[str, str], LimitReading] = {}
        self._contexts: dict[str, ContextReading] = {}

    def add(self, reading: Reading) -> None:
        """Take the next reading."""
        for answer in reading.answers:
            self._answers.add(answer)
        self._failures.update((failure.key, failure) for failure in reading.failures)
        for session in reading.sessions:
            earlier = self._sessions.get(session.session_ref)
            self._sessions[session.session_ref] = session if earlier is None else merge_sessions(earlier, session)
        self._problems += reading.problems
        self._limits.update(((limit.account, limit.window), limit) for limit in reading.limits)
        self._contexts.update((context.session_ref, context) for context in reading.contexts)

    def take(self) -> Reading:
        """Return what came since the last time."""
        reading = Reading(
            answers=tuple(self._answers.by_key.values()),
            failures=tuple(self._failures.values()),
            sessions=tuple(self._sessions.values()),
            problems=tuple(self._problems),
            limits=tuple(self._limits.values()),
            contexts=tuple(self._contexts.values()),
        )
        self._answers, self._sessions, self._problems = Answers(), {}, []
        self._limits, self._contexts = {}, {}
        return reading


def line_places(chunk: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each line begins and ends in the chunk, its newline left out."""
    begin, size = 0, len(chunk)
    while begin < size:
        end = chunk.find(b"\n", begin)
        end = size if end < 0 else end
        yield begin, end
        begin = end + 1


def lines_with(chunk: bytes, mark: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that hold the mark, with where each begins in the chunk."""
    at = chunk.find(mark)
    while at >= 0:
        begin = chunk.rfind(b"\n", 0, at) + 1
        end = chunk.find(b"\n", at)
        end = len(chunk) if end < 0 else end
        yield begin, chunk[begin:end]
        at = chunk.find(mark, end)


def without_byte_order_mark(chunk: bytes, offset: int) -> bytes:
    """Return the chunk with a mark at the beginning of the file blanked, so that offsets stay."""
    if offset == 0 and chunk.startswith(BYTE_ORDER_MARK):
        return b"   " + chunk[len(BYTE_ORDER_MARK) :]
    return chunk
