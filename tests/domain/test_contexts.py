from __future__ import annotations

from dataclasses import replace

import pytest

from agentmon.domain.billing import BilledAnswer, Confidence
from agentmon.domain.contexts import context_limit, contexts_of
from agentmon.domain.limit_readings import ContextReading

ANSWER = BilledAnswer(
    key="msg_1",
    session_ref="s",
    provider="anthropic",
    model="claude-opus-5-5",
    at_ms=1000,
    prompt_tokens=109,
    cache_read_tokens=5009,
    cache_write_5m_tokens=1000,
    cache_write_1h_tokens=9,
    response_tokens=209,
    reasoning_tokens=100,
    offset=0,
)


def test_the_context_is_what_the_last_answer_was_asked_with() -> None:
    later = replace(ANSWER, key="msg_2", at_ms=2000, prompt_tokens=200)

    assert contexts_of([later, ANSWER]) == (
        ContextReading(session_ref="s", tokens=6218, limit_tokens=1_000_000, at_ms=2000),
    )


@pytest.mark.parametrize(
    "other",
    [
        replace(ANSWER, at_ms=2000, is_subagent=True),
        replace(ANSWER, at_ms=2000, key="msg_1#adv1"),
        replace(ANSWER, at_ms=2000, confidence=Confidence.DERIVED),
        replace(ANSWER, at_ms=0),
    ],
)
def test_what_has_a_context_of_its_own_or_none_does_not_tell(other: BilledAnswer) -> None:
    (context,) = contexts_of([ANSWER, other])

    assert context.at_ms == 1000
    assert contexts_of([other]) == ()


@pytest.mark.parametrize(
    ("model", "tokens", "limit"),
    [
        ("claude-sonnet-4-5-20250929", 1000, 200_000),
        ("claude-sonnet-4-20250514", 199_000, 200_000),
        ("claude-sonnet-4-20250514", 240_000, 1_000_000),
        ("claude-sonnet-4-5-20250929[1m]", 1000, 1_000_000),
        ("claude-opus-4-1-20250805", 1000, 200_000),
        ("claude-3-7-sonnet-20250219", 1000, 200_000),
        ("claude-opus-4-6", 1000, None),
        ("claude-opus-4-6[1m]", 1000, 1_000_000),
        ("claude-opus-5-5", 1000, 1_000_000),
        ("gpt-6", 1000, None),
        ("", 0, None),
    ],
)
def test_the_limit_is_told_where_it_is_sure(model: str, tokens: int, limit: int | None) -> None:
    assert context_limit(model, tokens) == limit
