"""Billed answers out of the events of a session of Copilot CLI, ``session-state/<session>/events.jsonl`` (1.0.68).

Only when its process ends it writes down what that took: by model the sums of all requests. They are spread evenly over
these, so that requests are counted, and none is taken for one with a very long prompt. As public reports tell; a
session that was cut off, or left with ``/new``, tells nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Self

from agentmon.domain.billing import BilledAnswer, Confidence
from agentmon.usage.fields import (
    MAX_RUNNING_TOTAL,
    count_in,
    moment_in,
    object_in,
    parse_record,
    ref_in,
    text_in,
)
from agentmon.usage.reading import Answers, Reading, ReadingProblem, lines_with, without_byte_order_mark
from agentmon.usage.session_notes import SessionNotes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROVIDER: Final = "github-copilot"
_MARKS: Final = (b'"session.start"', b'"session.resume"', b'"session.shutdown"')
_MAX_MODELS: Final = 100
_MAX_REQUESTS: Final = 10_000
"""More are told as so many."""


class CopilotReader:
    """Reads the events of one session."""

    parser_version: ClassVar[int] = 1

    __slots__ = ("_cwd", "_session_ref")

    def __init__(self, *, session_ref: str = "") -> None:
        """Begin at the start of a file.

        Args:
            session_ref: The conversation, where its first event does not name it.
        """
        self._session_ref = session_ref
        self._cwd = ""

    @classmethod
    def restore(cls, state: Mapping[str, object]) -> Self:
        """Return a reader that goes on where the one with that state was."""
        reader = cls(session_ref=text_in(state, "session_ref"))
        reader._cwd = text_in(state, "cwd")
        return reader

    def state(self) -> dict[str, object]:
        """Return what is to be known of the lines so far."""
        return {"session_ref": self._session_ref, "cwd": self._cwd}

    def read(self, chunk: bytes, offset: int) -> Reading:
        """Return what the lines tell; see ``Reader``."""
        chunk = without_byte_order_mark(chunk, offset)
        answers, notes, problems = Answers(), SessionNotes(), []
        lines = {begin: line for mark in _MARKS for begin, line in lines_with(chunk, mark)}
        for begin, line in sorted(lines.items()):
            record = parse_record(line)
            if record is None:
                problems.append(ReadingProblem(offset=offset + begin, reason="a damaged line"))
                continue
            event, facts, at_ms = record.get("type"), object_in(record, "data"), moment_in(record, "timestamp")
            if event in ("session.start", "session.resume"):
                self._begin(facts, at_ms, notes)
            elif event == "session.shutdown":
                notes.note(self._session_ref, at_ms=at_ms, model=text_in(facts, "currentModel", 200))
                for answer in self._answers(record, facts, at_ms, offset + begin):
                    answers.add(answer)
        return Reading(answers=tuple(answers.by_key.values()), sessions=notes.sessions(), problems=tuple(problems))

    def _begin(self, facts: Mapping[str, object], at_ms: int, notes: SessionNotes) -> None:
        context = object_in(facts, "context")
        self._session_ref = ref_in(facts, "sessionId") or self._session_ref
        self._cwd = text_in(context, "cwd") or self._cwd
        notes.note(
            self._session_ref,
            at_ms=at_ms,
            cwd=self._cwd,
            git_branch=text_in(context, "branch"),
            model=text_in(facts, "selectedModel", 200),
        )

    def _answers(
        self, record: Mapping[str, object], facts: Mapping[str, object], at_ms: int, offset: int
    ) -> Iterator[BilledAnswer]:
        event_id = ref_in(record, "id") or f"{self._session_ref}:{at_ms}"
        metrics = object_in(facts, "modelMetrics")
        for model in list(metrics)[:_MAX_MODELS]:
            told = object_in(metrics, model)
            usage = object_in(told, "usage")
            names = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens", "reasoningTokens")
            sums = [count_in(usage, name, MAX_RUNNING_TOTAL) for name in names]
            most = max(sums)
            requests = min(max(1, count_in(object_in(told, "requests"), "count")), _MAX_REQUESTS, max(1, most))
            for number in range(requests):
                sent, read, written, answered, thought = (_part(total, number, requests) for total in sums)
                answer = BilledAnswer(
                    key=text_in({"key": f"{event_id}:{model}:{number + 1}"}, "key", 400),
                    session_ref=self._session_ref,
                    cwd=self._cwd,
                    provider=PROVIDER,
                    model=text_in({"model": model}, "model", 200),
                    at_ms=at_ms,
                    prompt_tokens=max(0, sent - read - written),
                    cache_read_tokens=read,
                    cache_write_5m_tokens=written,
                    cache_write_1h_tokens=0,
                    response_tokens=answered,
                    reasoning_tokens=min(thought, answered),
                    confidence=Confidence.DERIVED,
                    offset=offset,
                )
                if answer.total_tokens:
                    yield answer


def _part(total: int, number: int, parts: int) -> int:
    """Return the share of one of the parts; they differ by one at most and add up to the total."""
    return total * (number + 1) // parts - total * number // parts
