"""Billed answers out of a chat of Gemini CLI, ``tmp/<project>/chats/session-<time>-<id>.jsonl`` (as of 0.61.0).

Its older releases wrote one JSON document, ``session-<time>-<id>.json``, which is read as one line. An answer is
written again when its tools are done, and a chat may be set back: what was taken back is still billed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final, Self

from agentmon.domain.billing import BilledAnswer
from agentmon.usage.fields import (
    MAX_MOMENT_MS,
    count_in,
    moment_in,
    object_in,
    objects_in,
    parse_record,
    record_behind_torn,
    ref_in,
    text_in,
)
from agentmon.usage.reading import Answers, Reading, ReadingProblem, line_places, without_byte_order_mark
from agentmon.usage.session_notes import SessionNotes

if TYPE_CHECKING:
    from collections.abc import Mapping

PROVIDER: Final = "google"
_FIRST_FIELDS: Final = (b'{"id":',)
_ANSWER: Final = re.compile(rb'\{"id":"[^"\\]*+","timestamp":"[^"\\]*+","type":"gemini",')
_MARKS: Final = (b'"tokens"', b'"sessionId"', b'"summary"')
_SAID: Final = b'"user"'
_MAX_TEXT: Final = 1_048_576
CONTEXT: Final = ("<session_context>", "This is the Gemini CLI. We are setting up the context")
"""How the text begins that the program puts before a conversation."""


class GeminiReader:
    """Reads one chat of a conversation or of a subagent."""

    parser_version: ClassVar[int] = 2

    __slots__ = (
        "_cwd",
        "_is_begun",
        "_is_subagent",
        "_last_at_ms",
        "_parent_ref",
        "_session_ref",
        "_started_ms",
        "_title",
    )

    def __init__(self, *, session_ref: str = "", parent_ref: str = "", cwd: str = "") -> None:
        """Begin at the start of a file.

        Args:
            session_ref: The conversation of a chat that does not say its own.
            parent_ref: The conversation whose subagent it is.
            cwd: The folder of the project, which chats do not tell.
        """
        self._session_ref = session_ref
        self._parent_ref = parent_ref
        self._cwd = cwd
        self._is_subagent = bool(parent_ref)
        self._is_begun = False
        self._started_ms = 0
        self._title = ""
        self._last_at_ms = 0

    @classmethod
    def restore(cls, state: Mapping[str, object]) -> Self:
        """Return a reader that goes on where the one with that state was."""
        reader = cls(
            session_ref=text_in(state, "session_ref"),
            parent_ref=text_in(state, "parent_ref"),
            cwd=text_in(state, "cwd"),
        )
        reader._is_subagent = state.get("is_subagent") is True
        reader._is_begun = state.get("is_begun") is not False
        reader._title = text_in(state, "title")
        reader._started_ms = count_in(state, "started_ms", MAX_MOMENT_MS)
        reader._last_at_ms = count_in(state, "last_at_ms", MAX_MOMENT_MS)
        return reader

    def state(self) -> dict[str, object]:
        """Return what is to be known of the lines so far."""
        return {
            "session_ref": self._session_ref,
            "parent_ref": self._parent_ref,
            "cwd": self._cwd,
            "is_subagent": self._is_subagent,
            "is_begun": self._is_begun,
            "started_ms": self._started_ms,
            "title": self._title,
            "last_at_ms": self._last_at_ms,
        }

    def read(self, chunk: bytes, offset: int) -> Reading:
        """Return what the lines tell; see ``Reader``."""
        chunk = without_byte_order_mark(chunk, offset)
        answers, notes, problems = Answers(), SessionNotes(), []
        for begin, end in line_places(chunk):
            marks = _MARKS if self._is_begun else (*_MARKS, _SAID)
            if not (_ANSWER.match(chunk, begin, end) or any(chunk.find(mark, begin, end) >= 0 for mark in marks)):
                continue
            line = chunk[begin:end]
            record = parse_record(line)
            if record is None:
                problems.append(ReadingProblem(offset=offset + begin, reason="a damaged line"))
                record = record_behind_torn(line, _FIRST_FIELDS) or {}
            changes = object_in(record, "$set")
            for holder in (record, changes):
                self._take_beginning(holder)
            for message in (record, *objects_in(record, "messages"), *objects_in(changes, "messages")):
                self._take_message(message, offset + begin, answers, notes)
            if self._is_begun:
                for holder in (record, changes):
                    self._take_facts(holder, notes)
        return Reading(answers=tuple(answers.by_key.values()), sessions=notes.sessions(), problems=tuple(problems))

    @property
    def _owner_ref(self) -> str:
        return self._parent_ref or self._session_ref

    def _take_beginning(self, holder: Mapping[str, object]) -> None:
        session_ref = ref_in(holder, "sessionId")
        self._title = text_in(holder, "summary") or self._title
        if session_ref:
            self._session_ref = session_ref
            self._started_ms = moment_in(holder, "startTime") or self._started_ms
            self._is_subagent |= holder.get("kind") == "subagent"

    def _take_said(self, message: Mapping[str, object], notes: SessionNotes) -> None:
        """Take that the conversation has begun; a chat in which nobody has said anything is none.

        Gemini CLI begins one that stays empty with each start for a protocol.
        """
        kind = message.get("type")
        if kind == "gemini" or (kind == "user" and not text_of(message.get("content")).startswith(CONTEXT)):
            self._is_begun = True
            if not self._is_subagent:
                notes.note(self._session_ref, at_ms=self._started_ms, title=self._title, cwd=self._cwd)

    def _take_facts(self, holder: Mapping[str, object], notes: SessionNotes) -> None:
        if not self._is_subagent and (ref_in(holder, "sessionId") or "summary" in holder):
            notes.note(
                self._session_ref,
                at_ms=moment_in(holder, "startTime"),
                title=text_in(holder, "summary"),
                cwd=self._cwd,
            )

    def _take_message(self, message: Mapping[str, object], offset: int, answers: Answers, notes: SessionNotes) -> None:
        if not self._is_begun:
            self._take_said(message, notes)
        key, tokens = ref_in(message, "id"), object_in(message, "tokens")
        if not key or message.get("type") != "gemini" or not any(count_in(tokens, name) for name in tokens):
            return
        sent, thought = count_in(tokens, "input"), count_in(tokens, "thoughts")
        cached = min(count_in(tokens, "cached"), sent)
        at_ms = moment_in(message, "timestamp") or self._last_at_ms
        self._last_at_ms = at_ms
        answer = BilledAnswer(
            key=key,
            session_ref=self._owner_ref,
            cwd=self._cwd,
            provider=PROVIDER,
            model=text_in(message, "model", 200),
            at_ms=at_ms,
            prompt_tokens=sent - cached + count_in(tokens, "tool"),
            cache_read_tokens=cached,
            cache_write_5m_tokens=0,
            cache_write_1h_tokens=0,
            response_tokens=count_in(tokens, "output") + thought,
            reasoning_tokens=thought,
            is_subagent=self._is_subagent,
            offset=offset,
        )
        answers.add(answer)
        if not self._is_subagent:
            notes.note(answer.session_ref, at_ms=at_ms, model=answer.model, cwd=self._cwd)


def text_of(content: object) -> str:
    """Return the words of a message; what a tool gave back is told with its call."""
    if isinstance(content, str):
        return content
    parts = objects_in({"parts": content}, "parts") or [object_in({"part": content}, "part")]
    return "\n".join(filter(None, (text_in(part, "text", _MAX_TEXT) for part in parts)))
