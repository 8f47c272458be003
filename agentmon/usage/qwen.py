"""Billed answers out of a chat of Qwen Code, ``projects/<folder>/chats/<session>.jsonl`` (as of 0.15.10).

Every answer has a record of telemetry, those of subagents and of its memory too; an answer of the conversation itself
has a record with its text besides, which older releases wrote alone. What comes as such a pair counts once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Self

from agentmon.domain.billing import BilledAnswer
from agentmon.usage.fields import count_in, milliseconds_in, moment_in, object_in, parse_record, ref_in, text_in
from agentmon.usage.reading import Answers, Reading, ReadingProblem, lines_with, without_byte_order_mark
from agentmon.usage.session_notes import SessionNotes

if TYPE_CHECKING:
    from collections.abc import Mapping

_MARKS: Final = (b'"usageMetadata"', b'"qwen-code.api_response"', b'"custom_title"')
_RESPONSE: Final = "qwen-code.api_response"
_PROVIDERS: Final = {"gemini": "google", "vertex-ai": "google", "anthropic": "anthropic", "qwen-oauth": "qwen-oauth"}
"""Who is paid by the way the person logged in; behind ``openai`` may be anybody."""
_MAX_UNPAIRED: Final = 16
_COUNTS: Final = {
    "usageMetadata": ("promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount"),
    "uiEvent": ("input_token_count", "cached_content_token_count", "output_token_count", "thoughts_token_count"),
}
_TOTALS: Final = {"usageMetadata": "totalTokenCount", "uiEvent": "total_token_count"}


class QwenReader:
    """Reads one chat."""

    parser_version: ClassVar[int] = 1

    __slots__ = ("_last_at_ms", "_session_ref", "_unpaired")

    def __init__(self, *, session_ref: str = "") -> None:
        """Begin at the start of a file.

        Args:
            session_ref: The conversation of records that name none.
        """
        self._session_ref = session_ref
        self._last_at_ms = 0
        self._unpaired: list[str] = []
        # What was told by one record of a pair whose other one has not come: its kind, its model and its numbers.

    @classmethod
    def restore(cls, state: Mapping[str, object]) -> Self:
        """Return a reader that goes on where the one with that state was."""
        reader = cls(session_ref=text_in(state, "session_ref"))
        reader._last_at_ms = milliseconds_in(state, "last_at_ms")
        unpaired = state.get("unpaired")
        reader._unpaired = [one for one in unpaired if isinstance(one, str)] if isinstance(unpaired, list) else []
        return reader

    def state(self) -> dict[str, object]:
        """Return what is to be known of the lines so far."""
        return {"session_ref": self._session_ref, "last_at_ms": self._last_at_ms, "unpaired": list(self._unpaired)}

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
            payload = object_in(record, "systemPayload")
            event = object_in(payload, "uiEvent")
            if record.get("type") == "assistant":
                self._take(record, object_in(record, "usageMetadata"), offset + begin, answers, notes)
            elif event.get("event.name") == _RESPONSE:
                self._take(record, event, offset + begin, answers, notes, is_event=True)
            elif record.get("subtype") == "custom_title":
                notes.note(self._ref_of(record), title=text_in(payload, "customTitle"))
        return Reading(answers=tuple(answers.by_key.values()), sessions=notes.sessions(), problems=tuple(problems))

    def _ref_of(self, record: Mapping[str, object]) -> str:
        return ref_in(record, "sessionId") or self._session_ref

    def _take(
        self,
        record: Mapping[str, object],
        told: Mapping[str, object],
        offset: int,
        answers: Answers,
        notes: SessionNotes,
        *,
        is_event: bool = False,
    ) -> None:
        at_ms = self._last_at_ms = moment_in(record, "timestamp") or self._last_at_ms
        own_ref, forked_ref = self._ref_of(record), ref_in(object_in(record, "forkedFrom"), "sessionId")
        model = text_in(told if is_event else record, "model", 200)
        answer = _answer(
            told,
            kind="uiEvent" if is_event else "usageMetadata",
            key=ref_in(record, "uuid"),
            session_ref=forked_ref or own_ref,
            is_owner_marked=bool(forked_ref),
            cwd=text_in(record, "cwd"),
            model=model,
            at_ms=at_ms,
            is_subagent=is_event and bool(text_in(told, "subagent_name")),
            offset=offset,
        )
        if forked_ref:
            notes.note(own_ref, parent_ref=forked_ref, cwd=answer.cwd)
        else:
            notes.note(own_ref, at_ms=at_ms, cwd=answer.cwd, model="" if answer.is_subagent else model)
        is_told = not answer.is_subagent and self._is_second_of_pair(answer, "event" if is_event else "text")
        if answer.key and answer.total_tokens and not is_told:
            answers.add(answer)

    def _is_second_of_pair(self, answer: BilledAnswer, kind: str) -> bool:
        """Return whether the other record has told the answer already; otherwise remember this one for it."""
        facts = f"{answer.model}:{answer.prompt_tokens}:{answer.cache_read_tokens}:{answer.response_tokens}"
        other = f"{'text' if kind == 'event' else 'event'}:{facts}"
        if other in self._unpaired:
            self._unpaired.remove(other)
            return True
        self._unpaired = [*self._unpaired, f"{kind}:{facts}"][-_MAX_UNPAIRED:]
        return False


def _answer(
    told: Mapping[str, object],
    *,
    kind: str,
    key: str,
    session_ref: str,
    is_owner_marked: bool,
    cwd: str,
    model: str,
    at_ms: int,
    is_subagent: bool,
    offset: int,
) -> BilledAnswer:
    sent, cached, answered, thought = (count_in(told, name) for name in _COUNTS[kind])
    # Only Gemini's own interface counts thoughts apart; behind the others they are part of the answer.
    is_apart = count_in(told, _TOTALS[kind]) == sent + answered + thought
    cached = min(cached, sent)
    response_tokens = answered + thought if is_apart else max(answered, thought)
    return BilledAnswer(
        key=key,
        session_ref=session_ref,
        is_owner_marked=is_owner_marked,
        cwd=cwd,
        provider=_PROVIDERS.get(text_in(told, "auth_type"), ""),
        model=model,
        at_ms=at_ms,
        prompt_tokens=sent - cached,
        cache_read_tokens=cached,
        cache_write_5m_tokens=0,
        cache_write_1h_tokens=0,
        response_tokens=response_tokens,
        reasoning_tokens=min(thought, response_tokens),
        is_subagent=is_subagent,
        offset=offset,
    )
