from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.billing import BilledAnswer
from agentmon.usage.gemini import GeminiReader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentmon.domain.billing import HistorySession

CHATS = Path(__file__).parent / "chats"
TOKENS = {"input": 10, "output": 2, "cached": 4, "thoughts": 1, "tool": 0, "total": 13}


def lines_of(name: str) -> list[bytes]:
    return (CHATS / f"{name}.jsonl").read_bytes().splitlines(keepends=True)


def line(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def read_answer_keys(lines: Iterable[bytes]) -> list[BilledAnswer]:
    return list(GeminiReader().read(b"".join(lines), 0).answers)


def tokens_of(answers: list[BilledAnswer]) -> list[tuple[int, int, int, int]]:
    return [
        (answer.prompt_tokens, answer.cache_read_tokens, answer.response_tokens, answer.reasoning_tokens)
        for answer in answers
    ]


def test_a_turn_with_a_tool_has_an_answer_before_and_after_it() -> None:
    answers = read_answer_keys(lines_of("with_a_tool"))

    assert [answer.key for answer in answers] == [
        "99aa6e91-6ec8-4d82-9d8f-ee632c9b9979",
        "a9309418-a156-4e49-8477-6dfb9061a410",
    ]
    assert tokens_of(answers) == [(4_000, 11_001, 1_102, 901), (4_000, 11_002, 1_104, 902)]
    assert answers[0] == BilledAnswer(
        key="99aa6e91-6ec8-4d82-9d8f-ee632c9b9979",
        session_ref="661a2518-6ec3-454c-8482-bc495fe14b68",
        model="gemini-3.1-pro-preview",
        provider="google",
        prompt_tokens=4_000,
        cache_read_tokens=11_001,
        cache_write_5m_tokens=0,
        cache_write_1h_tokens=0,
        response_tokens=1_102,
        reasoning_tokens=901,
        at_ms=1_795_814_361_074,
        offset=1_070,
    )


def test_answers_that_are_written_again_count_once_and_those_taken_back_still_count() -> None:
    answers = read_answer_keys(lines_of("rewound"))

    assert [answer.key for answer in answers] == ["g1-m1", "g1-m2", "g1-m3", "g1-m0", "g1-m4", "g1-m5"]
    assert tokens_of(answers) == [
        (4_000, 11_000, 1_100, 900),
        (4_050, 12_000, 400, 100),
        (17_000, 0, 50, 0),
        (2_000, 0, 110, 10),
        (150_000, 100_000, 1_500, 500),
        (100, 0, 10, 0),
    ]
    assert [answer.model for answer in answers[-3:]] == [
        "gemini-3-flash-preview",
        "gemini-3.1-pro-preview",
        "gemini-9-ultra",
    ]


def test_a_chat_of_an_older_release_is_one_document() -> None:
    message = {"id": "m1", "type": "gemini", "tokens": TOKENS, "model": "gemini-2.5-pro", "timestamp": "2025-11-01"}
    chat = {"sessionId": "s1", "messages": [{"id": "u1", "type": "user", "content": "hi"}, message]}

    (answer,) = read_answer_keys([json.dumps(chat, indent=2).encode().replace(b"\n", b" "), b"\n"])

    assert (answer.key, answer.session_ref, answer.at_ms) == ("m1", "s1", 1_761_955_200_000)
    assert tokens_of([answer]) == [(6, 4, 3, 1)]


def test_of_an_answer_that_grows_the_newest_counts() -> None:
    first = line(id="m1", type="gemini", tokens=TOKENS, model="a")
    later = line(id="m1", type="gemini", tokens={**TOKENS, "output": 7}, model="b")
    without = line(id="m1", type="gemini", tokens=None, model="c")

    (answer,) = read_answer_keys([first, later, without])

    assert (answer.model, answer.response_tokens) == ("b", 8)


@pytest.mark.parametrize(
    "written",
    [
        b"",
        b"{\n",
        b"{\n" * 30_000,
        b'{"id":"m1","type":"gemini","tokens":{"input":1',
        b'{"tokens":' * 30_000,
        b'["tokens"]\n',
        b'{"id":"m1","type":"gemini","tokens":[1]}\n',
        b'{"id":7,"type":"gemini","tokens":{"input":1}}\n',
        b'{"id":"m1","type":"user","tokens":{"input":1}}\n',
        b'{"id":"m1","type":"gemini","tokens":{"input":-5,"output":"9","cached":true}}\n',
        b'{"sessionId":"s1","messages":{"tokens":1},"$set":{"messages":[null,{"tokens":[]}]}}\n',
        b'\xff\xfe"tokens"\n',
    ],
)
def test_what_is_broken_is_passed_over(written: bytes) -> None:
    good = line(id="m9", type="gemini", tokens=TOKENS, timestamp="no time")
    lines = [written + b"\n"]

    assert read_answer_keys(lines) == []
    assert [answer.key for answer in read_answer_keys([good, *lines])] == ["m9"]


def test_more_cached_than_sent_leaves_nothing_negative() -> None:
    (answer,) = read_answer_keys([line(id="m1", type="gemini", tokens={"input": 5, "cached": 9, "thoughts": 3})])

    assert tokens_of([answer]) == [(0, 5, 3, 3)]
    assert (answer.session_ref, answer.model, answer.at_ms) == ("", "", 0)


def test_a_chat_in_the_folder_of_another_conversation_is_its_subagent() -> None:
    chat = line(sessionId="sub", kind="subagent") + line(id="m1", type="gemini", tokens=TOKENS)

    reading = GeminiReader(parent_ref="parent", cwd="/project").read(chat, 0)

    (answer,) = reading.answers
    assert (answer.session_ref, answer.is_subagent, answer.cwd) == ("parent", True, "/project")
    assert reading.sessions == ()


def test_a_conversation_has_the_folder_of_its_project_and_its_summary() -> None:
    chat = line(sessionId="s1", startTime="2026-11-12T09:00:00Z") + line(**{"$set": {"summary": "Cart"}})
    answered = line(id="m1", type="gemini", tokens=TOKENS, model="g", timestamp="2026-11-12T09:00:01Z")

    (session,) = GeminiReader(cwd="/project").read(chat + answered, 0).sessions

    assert (session.session_ref, session.title, session.cwd, session.model) == ("s1", "Cart", "/project", "g")
    assert session.last_at_ms == (session.first_at_ms or 0) + 1_000


@pytest.mark.parametrize("pieces", [1, 4])
def test_a_chat_in_which_nobody_has_said_anything_is_no_conversation(pieces: int) -> None:
    begun = line(sessionId="s1", startTime="2026-11-12T09:00:00Z", kind="main")
    context = {"id": "m0", "type": "user", "content": [{"text": "<session_context>\nThis is the Gemini CLI."}]}
    empty = [begun, line(**{"$set": {"messages": [context]}}), line(**{"$set": {"summary": "Cart"}})]
    said = line(id="m1", type="user", content=[{"text": "hello"}], timestamp="2026-11-12T09:00:09Z")

    assert read_in_pieces(empty, pieces) == []
    (session,) = read_in_pieces([*empty, said], pieces)
    assert (session.session_ref, session.title, session.cwd) == ("s1", "Cart", "/project")
    assert session.first_at_ms == 1_794_474_000_000


def read_in_pieces(lines: list[bytes], pieces: int) -> list[HistorySession]:
    """Return what is told of conversations, by readers of which each goes on where the one before was."""
    sessions: list[HistorySession] = []
    reader = GeminiReader(cwd="/project")
    for chunk in [b"".join(lines)] if pieces == 1 else lines:
        sessions += reader.read(chunk, 0).sessions
        reader = GeminiReader.restore(json.loads(json.dumps(reader.state())))
    return sessions
