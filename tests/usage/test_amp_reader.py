from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentmon.usage.amp import AmpReader
from tests.usage.histories import History

THREAD = Path(__file__).parent / "amp" / "T-01.json"
"""Made by the form that public readers of these files show."""
REF = "T-0198a1f2-0000-7000-8000-000000000001"


def thread() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(THREAD.read_bytes())
    return document


def line(document: object) -> bytes:
    return json.dumps(document).encode() + b"\n"


def test_an_event_has_the_cache_of_its_message_and_a_message_without_an_event_counts_alone() -> None:
    reading = AmpReader(session_ref="x").read(line(thread()), 0)

    told = [
        (one.key.removeprefix(REF), one.model, one.prompt_tokens, one.cache_read_tokens, one.cache_write_5m_tokens)
        for one in reading.answers
    ]
    assert told == [
        (":1", "claude-sonnet-4-5-20250929", 12, 14_000, 9_000),
        (":3", "gpt-5.4", 500, 2_000, 0),
        ("e3", "gemini-2.5-flash", 900, 100, 0),
        (":5", "claude-sonnet-4-5-20250929", 7, 0, 0),
    ]
    assert [one.response_tokens for one in reading.answers] == [300, 60, 20, 8]
    assert [one.at_ms for one in reading.answers] == [
        1_770_000_005_000,
        1_770_000_061_000,
        1_770_000_120_000,
        1_770_000_300_000,
    ]
    assert {(one.session_ref, one.cwd, one.provider) for one in reading.answers} == {(REF, "/home/dev/shop", "")}
    (session,) = reading.sessions
    assert (session.title, session.cwd, session.first_at_ms) == ("Mend the cart", "/home/dev/shop", 1_770_000_000_000)
    assert session.last_at_ms == 1_770_000_300_000


def test_an_answer_that_the_ledger_gets_later_counts_once() -> None:
    early, history = thread(), History()
    early["usageLedger"] = {"events": []}

    for document in (early, thread()):
        history.keep("amp", AmpReader().read(line(document), 0))

    assert sorted(key.removeprefix(REF) for _, key in history.answers) == [":1", ":3", ":5", "e3"]
    assert sum(answer.total_tokens for answer in history.answers.values()) == 23_312 + 2_560 + 1_020 + 15


def test_a_message_that_was_asked_for_again_is_another_answer() -> None:
    document = thread()
    again = document["usageLedger"]["events"][0] | {"id": "e9", "tokens": {"input": 1, "output": 2}}
    document["usageLedger"]["events"].append(again)

    keys = [answer.key.removeprefix(REF) for answer in AmpReader().read(line(document), 0).answers]

    assert keys == [":1", ":3", "e3", "e9", ":5"]


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"usageLedger":',
        b"[1]",
        b'{"usageLedger":[1],"messages":{"usage":1}}',
        b'{"usageLedger":{"events":[null,{"tokens":[]},{"tokens":{"input":-1}}]}}',
        b'{"messages":[{"usage":{"inputTokens":"1"}},{"messageId":-1,"usage":{"inputTokens":1}}]}',
        b'{"env":{"initial":{"trees":[{"uri":7}]}},"created":"now"}',
    ],
)
def test_what_is_broken_is_passed_over(damaged: bytes) -> None:
    reading = AmpReader(session_ref="s").read(damaged + b"\n" + line(thread()), 0)

    assert len(reading.answers) == 4
