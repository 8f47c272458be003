from __future__ import annotations

from datetime import timedelta
from typing import Any

from agentmon.domain.clock import FakeClock
from agentmon.domain.handover import MAX_HISTORY_CHARACTERS, MAX_MESSAGE_CHARACTERS, history_text, with_history
from agentmon.domain.ids import MessageId, SessionId
from agentmon.domain.operations import MessageRole
from agentmon.domain.sessions import Message


def said(number: int, text: str, role: MessageRole = MessageRole.ASSISTANT, **fields: Any) -> Message:
    at = FakeClock().now() + timedelta(seconds=number)
    return Message(
        id=MessageId(str(number)),
        session_id=SessionId("s"),
        execution_id=None,
        role=role,
        content=text,
        created_at=at,
        **fields,
    )


def test_the_history_has_what_was_said_without_thoughts() -> None:
    messages = [
        said(0, "mend it", MessageRole.USER),
        said(1, "hm", is_thinking=True),
        said(2, "inner", parent_ref="t"),
        said(3, "done"),
    ]

    assert history_text(messages, ()) == "[user]\nmend it\n\n[assistant]\ndone"


def test_of_a_long_history_the_task_and_the_newest_stay() -> None:
    messages = [
        said(0, "the task", MessageRole.USER),
        *(said(number, f"{number} " + "x" * 9_000) for number in range(1, 40)),
    ]

    text = history_text(messages, ())

    assert len(text) < MAX_HISTORY_CHARACTERS + 1_000
    assert text.startswith("[user]\nthe task\n\n[")
    assert "[assistant]\n39 " in text
    assert "[assistant]\n1 " not in text
    assert "left out]" in text
    assert max(map(len, text.split("\n\n"))) <= MAX_MESSAGE_CHARACTERS + len("[assistant]\n")


def test_without_a_history_the_message_is_all() -> None:
    assert history_text([said(0, "hm", is_thinking=True)], ()) == ""
    assert with_history("", "go") == "go"
    assert with_history("was", "go").endswith("go")
