"""Adapters' events into news: what is whole comes out, what is not comes out as None, and nothing raises."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.activity import Activity
from agentmon.domain.billing import Confidence
from agentmon.domain.changes import ChangeType
from agentmon.domain.conversation import (
    ActivityNews,
    AskChoice,
    AskClosedNews,
    AskKind,
    AskNews,
    AskOutcome,
    AskQuestion,
    CommandNews,
    ConversationNews,
    CostNews,
    DiffNews,
    MessageNews,
    NoticeNews,
    PlanNews,
    PlanStatus,
    PlanStep,
    SessionNews,
    ToolFinishedNews,
    ToolStartedNews,
    TurnEndedNews,
    TurnOutcome,
    TurnStartedNews,
    UsageNews,
)
from agentmon.domain.events import EventLevel
from agentmon.domain.operations import MessageRole, OperationStatus, OperationType
from agentmon.runners.conversation_entries import read_news

if TYPE_CHECKING:
    from collections.abc import Mapping

_ASK = {"kind": "ask", "request_id": "r", "ask_kind": "permission", "title": "t"}
_CALL = {"kind": "tool_started", "tool_ref": "t", "tool_name": "Bash", "type": "execute", "target": "ls"}
_KINDS = [
    *("session", "activity", "message", "plan", "tool_started", "tool_finished", "diff", "ask", "ask_closed"),
    *("usage", "cost", "turn_started", "turn_ended", "notice", "command"),
]


@pytest.mark.parametrize(
    ("event", "news"),
    [
        (
            {"kind": "session", "session_ref": "s", "models": ["a"], "title": None},
            SessionNews(session_ref="s", models=("a",)),
        ),
        (
            {"kind": "activity", "activity": "waiting", "note": "n"},
            ActivityNews(activity=Activity.WAITING, note="n"),
        ),
        (
            {"kind": "message", "message_ref": "m", "role": "assistant", "text": "Hi", "continues": True},
            MessageNews(message_ref="m", role=MessageRole.ASSISTANT, text="Hi", continues=True),
        ),
        (
            {"kind": "plan", "steps": [{"text": "one", "status": "in_progress"}]},
            PlanNews(steps=(PlanStep(text="one", status=PlanStatus.IN_PROGRESS),)),
        ),
        (
            _CALL | {"answer_key": "a"},
            ToolStartedNews(tool_ref="t", tool_name="Bash", type=OperationType.EXECUTE, target="ls", answer_key="a"),
        ),
        (
            {"kind": "tool_finished", "tool_ref": "t", "status": "blocked", "duration_ms": -4},
            ToolFinishedNews(tool_ref="t", status=OperationStatus.BLOCKED, duration_ms=0),
        ),
        (
            {"kind": "diff", "path": "a", "change_type": "create", "diff": "+a", "added_lines": 1},
            DiffNews(path="a", change_type=ChangeType.CREATE, diff="+a", added_lines=1, removed_lines=0),
        ),
        (
            {
                "kind": "ask",
                "request_id": "r",
                "ask_kind": "question",
                "title": "Which?",
                "type": None,
                "can_edit_input": True,
                "questions": [{"question": "Which?", "choices": [{"key": "a", "label": "A"}], "is_multiple": True}],
            },
            AskNews(
                request_id="r",
                ask_kind=AskKind.QUESTION,
                title="Which?",
                questions=(AskQuestion(question="Which?", choices=(AskChoice(key="a", label="A"),), is_multiple=True),),
            ),
        ),
        (
            {"kind": "ask_closed", "request_id": "r", "outcome": "allowed"},
            AskClosedNews(request_id="r", outcome=AskOutcome.ALLOWED),
        ),
        (
            {"kind": "usage", "key": "k", "model": "m", "provider": "p", "prompt_tokens": 10**30},
            UsageNews(key="k", model="m", provider="p", prompt_tokens=10**12),
        ),
        (
            {"kind": "usage", "key": "k", "model": "m", "provider": "p", "confidence": "assumed"},
            UsageNews(key="k", model="m", provider="p", confidence=Confidence.ASSUMED),
        ),
        ({"kind": "cost", "cost_nano": 5}, CostNews(cost_nano=5)),
        ({"kind": "turn_started", "prompt_refs": ["c"]}, TurnStartedNews(prompt_refs=("c",))),
        ({"kind": "turn_ended", "outcome": "limit"}, TurnEndedNews(outcome=TurnOutcome.LIMIT)),
        ({"kind": "notice", "level": "warn", "text": "t"}, NoticeNews(level=EventLevel.WARN, text="t")),
        (
            {"kind": "command", "command_id": "c", "was_obeyed": False, "error": "busy"},
            CommandNews(command_id="c", was_obeyed=False, error="busy"),
        ),
    ],
)
def test_every_kind_of_event_becomes_its_news(event: Mapping[str, object], news: ConversationNews) -> None:
    assert read_news(event) == news
    assert read_news({**event, "unknown_field": {"a": 1}}) == news


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"kind": 7},
        {"kind": "delta", "message_ref": "m", "text": "x"},
        {"kind": "message", "message_ref": "m", "role": "assistant"},
        {"kind": "message", "message_ref": "", "role": "assistant", "text": "x"},
        {"kind": "message", "message_ref": "m" * 301, "role": "assistant", "text": "x"},
        {"kind": "message", "message_ref": "m", "role": "robot", "text": "x"},
        {"kind": "message", "message_ref": "m", "role": "assistant", "text": "x", "continues": 1},
        {"kind": "plan", "steps": ["one"]},
        {"kind": "plan", "steps": {"text": "one"}},
        {"kind": "cost", "cost_nano": 1.5},
        {"kind": "cost", "cost_nano": True},
        {"kind": "turn_started", "prompt_refs": [1]},
        {"kind": "ask", "request_id": "r", "ask_kind": "permission", "title": "t", "tool_input": "ls"},
    ],
)
def test_an_event_of_the_wrong_form_is_no_news(event: Mapping[str, object]) -> None:
    assert read_news(event) is None


def test_long_texts_are_cut_and_what_no_database_holds_is_replaced() -> None:
    news = read_news(_CALL | {"target": "x" * 5000, "input_summary": "a\0b\ud800"})

    assert isinstance(news, ToolStartedNews)
    assert (len(news.target), news.target[-1]) == (1000, "…")
    assert news.input_summary == "a\ufffdb\ufffd"


def test_an_input_that_is_too_long_or_no_json_is_left_out_and_cannot_be_edited() -> None:
    ask = _ASK | {"can_edit_input": True}

    whole = read_news(ask | {"tool_input": {"command": "ls"}})
    deep: dict[str, object] = {}
    for _ in range(500):
        deep = {"inner": [deep]}
    unfit = ({"text": "x" * 300_000}, {"number": float("nan")}, deep, {str(name): 1 for name in range(100_000)})
    left_out = [read_news(ask | {"tool_input": one}) for one in unfit]

    assert isinstance(whole, AskNews)
    assert (whole.tool_input, whole.can_edit_input) == ({"command": "ls"}, True)
    for news in left_out:
        assert isinstance(news, AskNews)
        assert (news.tool_input, news.can_edit_input) == ({}, False)


def test_what_no_database_holds_is_decided_on_by_its_number_and_cannot_be_edited() -> None:
    asked = {"command": "rm a\0b", "more": [{"pa\0th": "\ud800"}]}
    digest = {"input_digest": "of the agent's own input", "can_edit_input": True, "tool_input": asked}

    ask = read_news(_ASK | digest | {"target": "rm a\0b", "title": "Bash: rm a\0b", "detail": "rm a\0b\ud800"})

    assert isinstance(ask, AskNews)
    assert ask.tool_input == {"command": "rm a\ufffdb", "more": [{"pa\ufffdth": "\ufffd"}]}
    assert (ask.target, ask.title, ask.detail) == ("rm a\\u0000b", "Bash: rm a\\u0000b", "rm a\\u0000b\\ud800")
    assert (ask.input_digest, ask.can_edit_input) == ("of the agent's own input", False)


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["assistant", "read", "info"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_NAMES = sorted({one.name for news in get_args(ConversationNews) for one in fields(news)})


@pytest.mark.proof
@given(kind=st.sampled_from(_KINDS), event=st.dictionaries(st.sampled_from(_NAMES), _VALUES, max_size=12))
def test_no_event_raises_and_all_news_can_be_stored(kind: str, event: dict[str, object]) -> None:
    news = read_news(event | {"kind": kind})

    if news is not None:
        for one in fields(news):
            text = getattr(news, one.name)
            if isinstance(text, str):
                text.encode()
                assert "\0" not in text
            elif isinstance(text, int):
                assert 0 <= text < 2**63
            elif isinstance(text, dict):
                json.dumps(text, allow_nan=False)
