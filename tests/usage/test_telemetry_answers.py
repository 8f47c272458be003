from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmon.domain.billing import Confidence
from agentmon.usage.fields import MAX_COUNT
from agentmon.usage.telemetry import MAX_RECORDS, TelemetryAnswer, answers_in
from tests.usage.histories import SAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator


def _messages(agent: str) -> Iterator[dict[str, Any]]:
    for line in (SAMPLES / "captured" / f"otlp_{agent}.jsonl").read_text().splitlines():
        sent = json.loads(line)
        if sent["path"] == "/v1/logs":
            yield sent["body"]


def _answers(agent: str) -> list[TelemetryAnswer]:
    return [answer for message in _messages(agent) for answer in answers_in(message)]


def _logs(*attributes: dict[str, object], **record: object) -> dict[str, object]:
    records = [
        {"attributes": [{"key": key, "value": value} for key, value in each.items()], **record} for each in attributes
    ]
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}


def _claude_event(**more: object) -> dict[str, object]:
    return {
        "event.name": {"stringValue": "api_request"},
        "session.id": {"stringValue": "s"},
        "event.timestamp": {"stringValue": "2026-11-27T21:29:53.083Z"},
        "model": {"stringValue": "claude-opus-5-5"},
        "input_tokens": {"intValue": 1},
        **more,
    }


def test_claude_code_tells_its_answers_with_both_kinds_of_cache_writes() -> None:
    first, second = _answers("claude")

    assert first == TelemetryAnswer(
        conversation_ref="30e3cd76-ff2b-4f76-8755-eab482216eb1",
        key="otel:req_011852c3f5ce8714ee88f288",
        at_ms=1795814993083,
        model="claude-opus-5-5",
        provider="anthropic",
        prompt_tokens=102,
        cache_read_tokens=5002,
        cache_write_5m_tokens=400,
        cache_write_1h_tokens=602,
        response_tokens=202,
        reasoning_tokens=0,
        latency_ms=79,
    )
    assert second.key == "otel:req_0118dd1af2c07bd43bca5ba4"


def test_codex_tells_its_answers_once_with_the_cache_taken_out_of_the_input() -> None:
    first, second = _answers("codex")

    assert (first.conversation_ref, first.provider) == ("01a21ee8-a52b-7260-b4f1-e9f909f870dc", "openai")
    assert (first.prompt_tokens, first.cache_read_tokens, first.cache_write_5m_tokens) == (1900, 8005, 100)
    assert (first.response_tokens, first.reasoning_tokens) == (505, 305)
    assert second.response_tokens == 506


def test_gemini_tells_its_answers_with_its_thoughts_among_the_response() -> None:
    first, second = _answers("gemini")

    assert (first.model, first.provider) == ("gemini-3.5-pro", "google")
    assert (first.prompt_tokens, first.cache_read_tokens) == (4000, 11003)
    assert (first.response_tokens, first.reasoning_tokens, first.latency_ms) == (1106, 903, 115)
    assert second.at_ms == 1795814998268


def test_a_time_in_nanoseconds_and_numbers_as_texts_are_read() -> None:
    event = _claude_event(**{"event.timestamp": {"boolValue": True}, "input_tokens": {"intValue": "77"}})

    (answer,) = answers_in(_logs(event, timeUnixNano="1795814993083999999"))

    assert (answer.at_ms, answer.prompt_tokens) == (1795814993083, 77)


@pytest.mark.parametrize(
    "broken",
    [
        {"session.id": {"stringValue": ""}},
        {"model": {"intValue": 3}},
        {"input_tokens": {"intValue": -5}},
        {"input_tokens": {"stringValue": "9" * 30}},
        {"input_tokens": None},
        {"event.timestamp": {"stringValue": "yesterday"}},
        {"event.name": {"stringValue": "tool_result"}},
    ],
)
def test_a_record_without_what_an_answer_needs_is_none(broken: dict[str, object]) -> None:
    assert answers_in(_logs(_claude_event(**broken))) == []


def test_no_more_records_are_looked_at_than_one_message_may_have() -> None:
    assert len(answers_in(_logs(*[_claude_event()] * (MAX_RECORDS + 5)))) == MAX_RECORDS


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), junk=_JSON)
def test_no_damage_makes_it_fail_or_tell_impossible_numbers(seed: int, junk: object) -> None:
    chosen = random.Random(seed)
    message = next(_messages(chosen.choice(("claude", "codex", "gemini"))))
    holder: Any = message
    while True:
        places = list(holder) if isinstance(holder, dict) else range(len(holder))
        place = chosen.choice(list(places))
        if not isinstance(holder[place], (dict, list)) or not holder[place] or chosen.random() < 0.1:
            holder[place] = junk
            break
        holder = holder[place]

    for answer in answers_in(message):
        assert 0 <= answer.prompt_tokens <= 2 * MAX_COUNT
        assert answer.reasoning_tokens <= answer.response_tokens


def test_cache_writes_of_which_no_kind_is_told_are_assumed_to_be_the_short_ones() -> None:
    told = [
        _claude_event(cache_creation_tokens={"intValue": 50}),
        _claude_event(cache_creation_tokens={"intValue": 50}, cache_creation_1h_tokens={"intValue": 50}),
    ]

    answers = answers_in(_logs(*told))

    assert [(one.cache_write_5m_tokens, one.confidence) for one in answers] == [
        (50, Confidence.ASSUMED),
        (0, Confidence.EXACT),
    ]
