from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentmon.domain.billing import Confidence
from agentmon.usage.copilot import CopilotReader
from tests.usage.histories import sums

RESUMED = Path(__file__).parent / "copilot" / "resumed.jsonl"
"""Made by the form that public reports show: a session that ended twice."""
SESSION = "5d2c7c6e-3a4c-4a53-9f0a-6a3f0c9f1b01"


def shutdown(metrics: object, **more: object) -> bytes:
    record = {"type": "session.shutdown", "id": "e1", "timestamp": "2026-07-16T08:01:00Z", "data": {}}
    return json.dumps(record | {"data": {"modelMetrics": metrics}} | more).encode() + b"\n"


def test_the_totals_of_each_end_are_spread_over_their_requests() -> None:
    reading = CopilotReader(session_ref="x").read(RESUMED.read_bytes(), 0)

    assert [(answer.model, answer.total_tokens) for answer in reading.answers] == [
        ("claude-opus-4.7", 35_641 + 100),
        ("claude-opus-4.7", 35_641 + 101),
        ("gpt-5.4", 1_230),
        ("claude-opus-4.7", 5_100),
    ]
    assert sums(reading.answers) == {
        "requests": 4,
        "input": 4 + 1_200 + 1_000,
        "output": 201 + 30 + 100,
        "cache_read": 35_495 + 4_000,
        "cache_write_5m": 35_783,
        "cache_write_1h": 0,
        "reasoning": 40,
        "web_search": 0,
        "total_tokens": 71_483 + 1_230 + 5_100,
    }
    assert {answer.confidence for answer in reading.answers} == {Confidence.DERIVED}
    assert {(answer.session_ref, answer.provider, answer.cwd) for answer in reading.answers} == {
        (SESSION, "github-copilot", "/home/dev/shop")
    }
    assert [answer.at_ms for answer in reading.answers] == [1_784_188_860_000] * 3 + [1_784_278_980_000]
    assert reading.answers[0].key == "b6f8a2d4-0000-4000-8000-000000000004:claude-opus-4.7:1"


def test_a_session_has_its_folder_its_branch_and_its_times() -> None:
    (session,) = CopilotReader().read(RESUMED.read_bytes(), 0).sessions

    assert (session.session_ref, session.cwd, session.git_branch) == (SESSION, "/home/dev/shop", "cart")
    assert (session.first_at_ms, session.last_at_ms) == (1_784_188_800_120, 1_784_278_980_000)


def test_a_long_session_may_have_taken_more_than_any_answer() -> None:
    usage = {"inputTokens": 5 * 10**9, "outputTokens": 7}
    metrics = {"m": {"usage": usage, "requests": {"count": 5_000}}}

    answers = CopilotReader(session_ref="x").read(shutdown(metrics), 0).answers

    assert sums(answers)["input"] == 5 * 10**9


@pytest.mark.parametrize("count", [0, -1, "3", None, 10**9])
def test_a_count_of_requests_that_cannot_be_makes_few_rows_and_the_same_sums(count: object) -> None:
    usage = {"inputTokens": 30, "outputTokens": 7, "cacheReadTokens": 10}

    answers = CopilotReader().read(shutdown({"m": {"requests": {"count": count}, "usage": usage}}), 0).answers

    assert len(answers) <= 30
    assert len({answer.key for answer in answers}) == len(answers)
    assert (sums(answers)["input"], sums(answers)["output"], sums(answers)["cache_read"]) == (20, 7, 10)


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"type":"session.shutdown",\n',
        b'["session.shutdown"]\n',
        shutdown([1]),
        shutdown({"m": 7, "n": {"usage": [1]}, "o": {"usage": {"inputTokens": -1}}}),
        shutdown({"": {"usage": {"inputTokens": 0}}}, id=7, timestamp=7),
        shutdown({}, data="text"),
    ],
)
def test_what_is_broken_is_passed_over(damaged: bytes) -> None:
    reading = CopilotReader().read(damaged + shutdown({"m": {"usage": {"inputTokens": 1}}}, id="e9"), 0)

    assert [answer.key for answer in reading.answers] == ["e9:m:1"]
