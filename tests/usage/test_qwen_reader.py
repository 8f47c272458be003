from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentmon.usage.qwen import QwenReader
from tests.usage.histories import History, sums

REAL = Path(__file__).parent / "qwen" / "plain_and_tools.jsonl"
"""Written by Qwen Code 0.15.10: an answer, what its memory asked by itself, and a turn with two tools."""
SESSION = "99372456-3b32-4902-88b1-cf29b562a5f5"


def records() -> list[dict[str, object]]:
    return [json.loads(line) for line in REAL.read_bytes().splitlines()]


def written(*told: object) -> bytes:
    return b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in told)


def assistant(
    uuid: str, *, sent: int = 100, cached: int = 40, answered: int = 20, thought: int = 0, **more: object
) -> dict[str, Any]:
    counts = {
        "promptTokenCount": sent,
        "cachedContentTokenCount": cached,
        "candidatesTokenCount": answered,
        "thoughtsTokenCount": thought,
    }
    record = {"uuid": uuid, "sessionId": "s1", "timestamp": "2026-11-28T11:37:41.908Z", "type": "assistant"}
    return record | {"model": "qwen3-coder-plus", "cwd": "/p", "usageMetadata": counts} | more


def event(
    uuid: str, *, sent: int = 100, cached: int = 40, answered: int = 20, thought: int = 0, **more: object
) -> dict[str, Any]:
    told = {
        "event.name": "qwen-code.api_response",
        "model": "qwen3-coder-plus",
        "input_token_count": sent,
        "cached_content_token_count": cached,
        "output_token_count": answered,
        "thoughts_token_count": thought,
    }
    record = {"uuid": uuid, "sessionId": "s1", "timestamp": "2026-11-28T11:37:41.901Z", "type": "system"}
    return record | {"subtype": "ui_telemetry", "cwd": "/p", "systemPayload": {"uiEvent": told | more}}


def read_keys(chunk: bytes) -> list[str]:
    return [answer.key for answer in QwenReader().read(chunk, 0).answers]


def test_the_answers_of_a_real_chat_count_once_and_those_of_its_memory_too() -> None:
    reading = QwenReader(session_ref="x").read(REAL.read_bytes(), 0)

    assert [answer.is_subagent for answer in reading.answers] == [False, True, False, False, False]
    assert sums(reading.answers) == {
        "requests": 5,
        "input": 750,
        "output": 100,
        "cache_read": 5_000,
        "cache_write_5m": 0,
        "cache_write_1h": 0,
        "reasoning": 0,
        "web_search": 0,
        "total_tokens": 5_850,
    }
    first = reading.answers[0]
    assert (first.key, first.session_ref) == ("bbdf5a79-eca6-4c50-9583-86746db5df3a", SESSION)
    assert (first.model, first.provider, first.cwd) == ("qwen3-coder-plus", "", "/home/dev/shop")
    assert (first.at_ms, first.offset) == (1_795_865_861_901, 709)
    (session,) = reading.sessions
    assert (session.session_ref, session.cwd, session.model) == (SESSION, "/home/dev/shop", "qwen3-coder-plus")


def test_a_chat_of_an_older_release_has_the_texts_alone() -> None:
    texts = [record for record in records() if record["type"] == "assistant"]

    answers = QwenReader().read(written(*texts), 0).answers

    assert [answer.key for answer in answers] == [record["uuid"] for record in texts]
    assert sums(answers)["total_tokens"] == 4 * 1_170


@pytest.mark.parametrize("is_event_first", [True, False])
def test_the_two_records_of_an_answer_count_once_in_any_order(is_event_first: bool) -> None:
    pair = [event("e1"), assistant("a1")]

    keys = read_keys(written(*(pair if is_event_first else pair[::-1]), event("e2", sent=7, cached=0), event("e3")))

    assert keys == ["e1" if is_event_first else "a1", "e2", "e3"]


def test_what_a_subagent_was_told_is_no_half_of_a_pair() -> None:
    chunk = written(event("e1", subagent_name="extractor"), assistant("a1"))

    assert read_keys(chunk) == ["e1", "a1"]


def test_a_copy_in_a_fork_belongs_to_the_conversation_that_it_was_copied_from() -> None:
    copies = [
        record | {"sessionId": "fork", "forkedFrom": {"sessionId": SESSION, "messageUuid": record["uuid"]}}
        for record in records()
    ]
    own = [event("e9") | {"sessionId": "fork"}, assistant("a9") | {"sessionId": "fork"}]
    history = History()
    history.keep("qwen", QwenReader().read(written(*copies, *own), 0))
    history.keep("qwen", QwenReader().read(REAL.read_bytes(), 0))

    assert [answer.session_ref for answer in history.answers.values()] == [*[SESSION] * 5, "fork"]
    assert history.sessions["qwen", "fork"].parent_ref == SESSION


@pytest.mark.parametrize(("total", "response"), [(107, 7), (110, 10)])
def test_thoughts_are_part_of_the_answer_or_beside_it_as_the_total_tells(total: int, response: int) -> None:
    record = assistant("a1", answered=7, thought=3)
    record["usageMetadata"]["totalTokenCount"] = total

    (answer,) = QwenReader().read(written(record), 0).answers

    assert (answer.prompt_tokens, answer.cache_read_tokens) == (60, 40)
    assert (answer.response_tokens, answer.reasoning_tokens) == (response, 3)


def test_the_login_tells_who_is_paid_and_a_name_is_the_title() -> None:
    title = {"type": "system", "subtype": "custom_title", "sessionId": "s1", "systemPayload": {"customTitle": "Cart"}}

    reading = QwenReader().read(written(event("e1", auth_type="gemini"), title), 0)

    assert [answer.provider for answer in reading.answers] == ["google"]
    assert [session.title for session in reading.sessions] == ["Cart"]


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"usageMetadata":',
        b'["usageMetadata"]',
        b'{"type":"assistant","uuid":7,"usageMetadata":{"promptTokenCount":1}}',
        b'{"type":"assistant","uuid":"a","usageMetadata":[1]}',
        b'{"type":"assistant","uuid":"a","usageMetadata":{"promptTokenCount":-1,"candidatesTokenCount":"2"}}',
        b'{"type":"user","uuid":"a","usageMetadata":{"promptTokenCount":1}}',
    ],
)
def test_what_is_broken_is_passed_over(damaged: bytes) -> None:
    assert read_keys(damaged + b"\n" + written(assistant("a9"))) == ["a9"]
