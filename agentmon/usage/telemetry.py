"""Billed answers out of the telemetry that agents send while they work (OTLP logs as JSON).

Only the fields named here are looked at: the records can hold prompts, outputs of tools and the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.billing import Confidence
from agentmon.usage.fields import MAX_COUNT, count_in, moment_in, object_in, objects_in, ref_in, text_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_RECORDS: Final = 10_000
"""Most records of one message that are looked at."""
_MAX_DIGITS: Final = 13
_NANO_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryAnswer:
    """One billed answer as an agent's telemetry tells it; it stands in until the agent's file tells the same."""

    conversation_ref: str
    """The agent's own id of the conversation."""
    key: str
    """Of agentmon's own making: no telemetry names the key of the file."""
    at_ms: int
    model: str
    provider: str
    prompt_tokens: int
    """Not from a cache."""
    cache_read_tokens: int
    cache_write_5m_tokens: int
    cache_write_1h_tokens: int
    response_tokens: int
    """With those of reasoning."""
    reasoning_tokens: int
    latency_ms: int | None
    confidence: Confidence = Confidence.EXACT


def answers_in(message: Mapping[str, object]) -> list[TelemetryAnswer]:
    """Return the billed answers in an ``ExportLogsServiceRequest``; what is damaged or something else is passed over.

    Args:
        message: The parsed JSON, ``{"resourceLogs": [{"scopeLogs": [{"logRecords": […]}]}]}``.
    """
    answers: list[TelemetryAnswer] = []
    seen = 0
    for resource in objects_in(message, "resourceLogs"):
        for scope in objects_in(resource, "scopeLogs"):
            for record in objects_in(scope, "logRecords"):
                seen += 1
                if seen > MAX_RECORDS:
                    return answers
                answer = _answer_of(record)
                if answer is not None:
                    answers.append(answer)
    return answers


def _answer_of(record: Mapping[str, object]) -> TelemetryAnswer | None:
    wanted = {text_in(part, "key", 100): part for part in objects_in(record, "attributes")}
    name = _text(wanted, "event.name") or text_in(object_in(record, "body"), "stringValue", 100)
    reader = _READERS.get(name)
    if reader is None:
        return None
    answer = reader(wanted, _at_ms(record, wanted))
    counted = answer.prompt_tokens + answer.cache_read_tokens + answer.response_tokens
    written = answer.cache_write_5m_tokens + answer.cache_write_1h_tokens
    return answer if answer.at_ms and answer.conversation_ref and answer.model and counted + written else None


def _claude(attributes: Mapping[str, Mapping[str, object]], at_ms: int) -> TelemetryAnswer:
    for_an_hour = _count(attributes, "cache_creation_1h_tokens")
    for_minutes = _count(attributes, "cache_creation_5m_tokens")
    unsplit = _count(attributes, "cache_creation_tokens") - for_an_hour
    ref = _ref(attributes, "session.id")
    return TelemetryAnswer(
        conversation_ref=ref,
        key=f"otel:{_ref(attributes, 'request_id') or f'{ref}:{at_ms}'}",
        at_ms=at_ms,
        model=_text(attributes, "model"),
        provider="anthropic",
        prompt_tokens=_count(attributes, "input_tokens"),
        cache_read_tokens=_count(attributes, "cache_read_tokens"),
        cache_write_5m_tokens=max(unsplit, for_minutes),
        cache_write_1h_tokens=for_an_hour,
        response_tokens=_count(attributes, "output_tokens"),
        reasoning_tokens=0,
        latency_ms=_count(attributes, "duration_ms") or None,
        confidence=Confidence.ASSUMED if unsplit > for_minutes else Confidence.EXACT,
    )


def _codex(attributes: Mapping[str, Mapping[str, object]], at_ms: int) -> TelemetryAnswer:
    # The same event comes for each piece of an answer; the one with counts is its end.
    cached, written = _count(attributes, "cached_token_count"), _count(attributes, "cache_write_token_count")
    response = _count(attributes, "output_token_count")
    ref = _ref(attributes, "conversation.id")
    return TelemetryAnswer(
        conversation_ref=ref,
        key=f"otel:{ref}:{at_ms}",
        at_ms=at_ms,
        model=_text(attributes, "model"),
        provider="openai",
        prompt_tokens=max(0, _count(attributes, "input_token_count") - cached - written),
        cache_read_tokens=cached,
        cache_write_5m_tokens=written,
        cache_write_1h_tokens=0,
        response_tokens=response,
        reasoning_tokens=min(_count(attributes, "reasoning_token_count"), response),
        latency_ms=None,
    )


def _gemini(attributes: Mapping[str, Mapping[str, object]], at_ms: int) -> TelemetryAnswer:
    cached, thoughts = _count(attributes, "cached_content_token_count"), _count(attributes, "thoughts_token_count")
    ref = _ref(attributes, "session.id")
    return TelemetryAnswer(
        conversation_ref=ref,
        key=f"otel:{ref}:{at_ms}",
        at_ms=at_ms,
        model=_text(attributes, "model"),
        provider="google",
        prompt_tokens=max(0, _count(attributes, "input_token_count") - cached) + _count(attributes, "tool_token_count"),
        cache_read_tokens=cached,
        cache_write_5m_tokens=0,
        cache_write_1h_tokens=0,
        response_tokens=_count(attributes, "output_token_count") + thoughts,
        reasoning_tokens=thoughts,
        latency_ms=_count(attributes, "duration_ms") or None,
    )


_READERS: Final[dict[str, Callable[[Mapping[str, Mapping[str, object]], int], TelemetryAnswer]]] = {
    "api_request": _claude,
    "claude_code.api_request": _claude,
    "codex.sse_event": _codex,
    "gemini_cli.api_response": _gemini,
}
"""By the name of the event."""


def _value(attributes: Mapping[str, Mapping[str, object]], name: str) -> Mapping[str, object]:
    return object_in(attributes.get(name, {}), "value")


def _text(attributes: Mapping[str, Mapping[str, object]], name: str) -> str:
    return text_in(_value(attributes, name), "stringValue", 200)


def _ref(attributes: Mapping[str, Mapping[str, object]], name: str) -> str:
    return ref_in(_value(attributes, name), "stringValue")


def _count(attributes: Mapping[str, Mapping[str, object]], name: str) -> int:
    """Return the number, which JSON has as a number or, being 64 bits wide, as a text."""
    value = _value(attributes, name)
    for kind in ("intValue", "doubleValue"):
        if isinstance(value.get(kind), (int, float)):
            return count_in(value, kind)
    digits = text_in(value, "intValue", _MAX_DIGITS) or text_in(value, "stringValue", _MAX_DIGITS)
    count = int(digits) if digits.isascii() and digits.isdecimal() else 0
    return count if count <= MAX_COUNT else 0


def _at_ms(record: Mapping[str, object], attributes: Mapping[str, Mapping[str, object]]) -> int:
    told = moment_in(_value(attributes, "event.timestamp"), "stringValue")
    if told:
        return told
    for name in ("timeUnixNano", "observedTimeUnixNano"):
        written = record.get(name)
        if isinstance(written, str) and written.isascii() and written.isdecimal() and written.strip("0"):
            return int(written[:20]) // _NANO_PER_MS
    return 0
