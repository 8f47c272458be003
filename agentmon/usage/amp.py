"""Billed answers out of a thread of Amp, ``threads/T-<id>.json``, one document.

Its ledger has an event for each answer; what came from a cache stands in the message that the event brought forth, and
a message without an event counts alone. As public readers of these files tell. Credits are Amp's own unit: unread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Self

from agentmon.domain.billing import BilledAnswer
from agentmon.usage.fields import (
    confidence_of_writes,
    count_in,
    milliseconds_in,
    moment_in,
    object_in,
    objects_in,
    parse_record,
    ref_in,
    text_in,
)
from agentmon.usage.reading import Answers, Reading, ReadingProblem, without_byte_order_mark
from agentmon.usage.session_notes import SessionNotes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FILE: Final = "file://"


@dataclass(slots=True, kw_only=True)
class _Event:
    """One answer as the ledger tells it."""

    told: Mapping[str, object]
    tokens: Mapping[str, object]
    message: Mapping[str, object] | None = None


class AmpReader:
    """Reads one thread."""

    parser_version: ClassVar[int] = 2

    __slots__ = ("_session_ref",)

    def __init__(self, *, session_ref: str = "") -> None:
        """Begin at the start of a file.

        Args:
            session_ref: The thread of a document that does not name its own.
        """
        self._session_ref = session_ref

    @classmethod
    def restore(cls, state: Mapping[str, object]) -> Self:
        """Return a reader that goes on where the one with that state was."""
        return cls(session_ref=text_in(state, "session_ref"))

    def state(self) -> dict[str, object]:
        """Return what is to be known of the lines so far."""
        return {"session_ref": self._session_ref}

    def read(self, chunk: bytes, offset: int) -> Reading:
        """Return what the lines tell, each of them a thread; see ``Reader``."""
        chunk = without_byte_order_mark(chunk, offset)
        answers, notes, problems = Answers(), SessionNotes(), []
        for line in chunk.split(b"\n"):
            if line.strip():
                thread = parse_record(line)
                if thread is None:
                    problems.append(ReadingProblem(offset=offset, reason="a damaged document"))
                else:
                    self._take(thread, offset, answers, notes)
            offset += len(line) + 1
        return Reading(answers=tuple(answers.by_key.values()), sessions=notes.sessions(), problems=tuple(problems))

    def _take(self, thread: Mapping[str, object], offset: int, answers: Answers, notes: SessionNotes) -> None:
        session_ref = self._session_ref = ref_in(thread, "id") or self._session_ref
        created_ms, cwd = milliseconds_in(thread, "created"), _folder_of(thread)
        notes.note(session_ref, at_ms=created_ms, title=text_in(thread, "title"), cwd=cwd)
        events = [
            _Event(told=event, tokens=object_in(event, "tokens"))
            for event in objects_in(object_in(thread, "usageLedger"), "events")
        ]
        alone = _pair(events, [one for one in objects_in(thread, "messages") if object_in(one, "usage")])
        keys: set[str] = set()
        for number, event in enumerate(events):
            usage = object_in(event.message or {}, "usage")
            key = _message_key(session_ref, _target(event))
            if not key or key in keys:
                key = ref_in(event.told, "id") or f"{session_ref}:event:{number}"
            keys.add(key)
            answer = _answer(
                {"inputTokens": event.tokens.get("input"), "outputTokens": event.tokens.get("output")}
                | {name: usage.get(name) for name in _CACHES}
                | {name: event.tokens[name] for name in _CACHES if count_in(event.tokens, name)},
                key=key,
                session_ref=session_ref,
                cwd=cwd,
                model=text_in(event.told, "model", 200) or text_in(usage, "model", 200),
                at_ms=moment_in(event.told, "timestamp") or _message_ms(event.message or {}) or created_ms,
                offset=offset,
            )
            if answer.total_tokens:
                answers.add(answer)
                notes.note(session_ref, at_ms=answer.at_ms, model=answer.model)
        for message in alone:
            usage = object_in(message, "usage")
            answer = _answer(
                usage,
                key=_message_key(session_ref, count_in(message, "messageId")),
                session_ref=session_ref,
                cwd=cwd,
                model=text_in(usage, "model", 200),
                at_ms=_message_ms(message) or created_ms,
                offset=offset,
            )
            if answer.key and answer.total_tokens:
                answers.add(answer)
                notes.note(session_ref, at_ms=answer.at_ms, model=answer.model)


_CACHES: Final = ("cacheReadInputTokens", "cacheCreationInputTokens")


def _pair(events: Sequence[_Event], messages: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Give events the messages that they brought forth, by number or by the same tokens; return the other messages."""
    alone = []
    for message in messages:
        usage, number = object_in(message, "usage"), count_in(message, "messageId")
        free = [event for event in events if event.message is None]
        event = next((one for one in free if number and count_in(one.told, "toMessageId") == number), None)
        event = event or next((one for one in free if _is_alike(one, usage)), None)
        if event is None:
            alone.append(message)
        else:
            event.message = message
    return alone


def _is_alike(event: _Event, usage: Mapping[str, object]) -> bool:
    pairs = (("input", "inputTokens"), ("output", "outputTokens"))
    return (
        not count_in(event.told, "toMessageId")
        and event.told.get("model") == usage.get("model")
        and all(count_in(event.tokens, one) == count_in(usage, other) for one, other in pairs)
    )


def _target(event: _Event) -> int:
    return count_in(event.told, "toMessageId") or count_in(event.message or {}, "messageId")


def _message_key(session_ref: str, number: int) -> str:
    """Return the key of the answer in a message, under which it is known before and after the ledger has it."""
    return f"{session_ref}:{number}" if number else ""


def _message_ms(message: Mapping[str, object]) -> int:
    return moment_in(object_in(message, "usage"), "timestamp") or milliseconds_in(object_in(message, "meta"), "sentAt")


def _folder_of(thread: Mapping[str, object]) -> str:
    initial = object_in(object_in(thread, "env"), "initial")
    uris = (text_in(tree, "uri") for tree in objects_in(initial, "trees"))
    return next((uri.removeprefix(_FILE) for uri in uris if uri.startswith(f"{_FILE}/")), "")


def _answer(
    usage: Mapping[str, object], *, key: str, session_ref: str, cwd: str, model: str, at_ms: int, offset: int
) -> BilledAnswer:
    return BilledAnswer(
        key=key,
        session_ref=session_ref,
        cwd=cwd,
        provider="",
        model=model,
        at_ms=at_ms,
        prompt_tokens=count_in(usage, "inputTokens"),
        cache_read_tokens=count_in(usage, "cacheReadInputTokens"),
        cache_write_5m_tokens=count_in(usage, "cacheCreationInputTokens"),
        cache_write_1h_tokens=0,
        response_tokens=count_in(usage, "outputTokens"),
        reasoning_tokens=0,
        confidence=confidence_of_writes(model, count_in(usage, "cacheCreationInputTokens")),
        offset=offset,
    )
