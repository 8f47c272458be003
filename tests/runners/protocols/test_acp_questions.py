from __future__ import annotations

from typing import Any, Final

import pytest

from tests.runners.protocols.acp_session import SESSION, AcpSession

COLOURS: Final = [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]
SCHEMA: Final = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "description": "Which colour?", "title": "Colour", "oneOf": COLOURS},
        "count": {"type": "integer", "title": "How many?"},
        "extras": {"type": "array", "title": "What else?", "items": {"type": "string", "enum": ["lid", "bag"]}},
    },
    "required": ["colour"],
}


@pytest.fixture
def session() -> AcpSession:
    session = AcpSession()
    session.open()
    return session


def show_form(session: AcpSession, **more: object) -> None:
    told = {"sessionId": SESSION, "mode": "form", "message": "Choose.", "requestedSchema": SCHEMA, **more}
    session.write({"id": 5, "method": "elicitation/create", "params": told})


def asked(session: AcpSession, **more: object) -> dict[str, Any]:
    show_form(session, **more)
    return session.of_kind("ask")[-1]


def test_a_form_is_a_question_with_choices(session: AcpSession) -> None:
    event = asked(session)

    assert (event["ask_kind"], event["title"], event["tool_ref"]) == ("question", "Choose.", None)
    first, second, third = event["questions"]
    assert first == {
        "question": "Which colour?",
        "header": "Colour",
        "choices": [{"key": "r", "label": "Red"}, {"key": "b", "label": "Blue"}],
        "is_multiple": False,
    }
    assert (second["question"], second["choices"]) == ("How many?", [])
    assert third["is_multiple"]
    assert session.of_kind("activity")[-1]["note"] == "Choose."


def test_an_answer_fills_the_form(session: AcpSession) -> None:
    answers = {"Which colour?": "b", "How many?": "3", "What else?": ["lid", "bag"]}

    told = session.decide(asked(session), "answer", answers=answers)

    assert told["was_obeyed"]
    content = {"colour": "b", "count": 3, "extras": ["lid", "bag"]}
    assert session.sent[-1] == {"jsonrpc": "2.0", "id": 5, "result": {"action": "accept", "content": content}}
    assert session.of_kind("ask_closed")[-1]["outcome"] == "answered"
    assert session.of_kind("activity")[-1]["activity"] == "working"
    session.answer({"stopReason": "end_turn"})
    session.end()


@pytest.mark.parametrize(("interrupts", "action"), [(False, "decline"), (True, "cancel")])
def test_a_form_can_be_denied(session: AcpSession, *, interrupts: bool, action: str) -> None:
    session.decide(asked(session), "deny", interrupts=interrupts)

    answers = [message["result"] for message in session.sent if "result" in message]
    assert answers == [{"action": action}]
    assert ("session/cancel" in session.methods()) == interrupts
    assert session.of_kind("ask_closed")[-1]["outcome"] == "denied"
    session.end()


def test_to_deny_a_question_blocks_no_call(session: AcpSession) -> None:
    session.update("tool_call", toolCallId="t1", title="ask_user", kind="think")
    event = asked(session, toolCallId="t1")
    session.decide(event, "deny")
    session.update("tool_call_update", toolCallId="t1", status="failed")

    assert (event["tool_ref"], event["tool_name"]) == ("t1", "ask_user")
    assert session.of_kind("tool_finished")[-1]["status"] == "failed"


@pytest.mark.parametrize(
    ("decision", "answers", "error"),
    [
        ("answer", {"Which colour?": "g"}, "not among the choices"),
        ("answer", {"How many?": "3"}, "needs an answer to colour"),
        ("answer", {"Which colour?": "b", "How many?": "three"}, "takes a number"),
        ("answer", {"What?": "b"}, "a question that was not asked"),
        ("answer", {}, "needs an answer"),
        ("allow", {}, "needs an answer"),
    ],
)
def test_answers_that_do_not_fit_are_refused(
    session: AcpSession, decision: str, answers: dict[str, str], error: str
) -> None:
    event = asked(session)
    before = len(session.sent)

    told = session.decide(event, decision, answers=answers)

    assert not told["was_obeyed"]
    assert error in told["error"]
    assert len(session.sent) == before
    assert session.decide({**event, "input_digest": "other"}, "deny")["error"].startswith("The answer is meant for")
    session.end()
    assert session.of_kind("ask_closed")[-1]["outcome"] == "withdrawn"


def test_a_form_without_fields_is_allowed_or_denied(session: AcpSession) -> None:
    event = asked(session, requestedSchema={"type": "object", "properties": {}})

    assert event["ask_kind"] == "permission"
    assert not session.decide(event, "answer")["was_obeyed"]
    assert session.decide(event, "allow")["was_obeyed"]
    assert session.sent[-1]["result"] == {"action": "accept", "content": {}}


def test_an_interrupt_withdraws_a_form(session: AcpSession) -> None:
    asked(session)
    session.command(type="interrupt")
    show_form(session)

    assert [message["result"] for message in session.sent if "result" in message] == [{"action": "cancel"}] * 2
    assert [event["outcome"] for event in session.of_kind("ask_closed")] == ["withdrawn"]


def test_a_page_to_open_is_no_form(session: AcpSession) -> None:
    show_form(session, mode="url", url="https://example.org")

    assert session.sent[-1]["error"]["code"] == -32602
    assert session.of_kind("ask") == []


def test_a_form_of_another_conversation_is_cancelled(session: AcpSession) -> None:
    show_form(session, sessionId="other")

    assert session.sent[-1]["result"] == {"action": "cancel"}
    assert session.of_kind("notice")[-1]["topic"] == "permission"
