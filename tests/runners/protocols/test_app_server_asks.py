from __future__ import annotations

from typing import Any

import pytest

from agentmon.runners.protocols.asks import MAX_OPEN_ASKS
from tests.runners.protocols.codex_thread import CodexThread, of_kind

COMMAND = "item/commandExecution/requestApproval"
PATCH = "item/fileChange/requestApproval"
PERMISSIONS = "item/permissions/requestApproval"
QUESTION = "item/tool/requestUserInput"
FORM = "mcpServer/elicitation/request"


def asked(codex: CodexThread, method: str, **params: object) -> dict[str, Any]:
    (ask,) = of_kind(codex.ask(0, method, itemId="x", **params), "ask")
    return ask


@pytest.mark.parametrize(
    ("decision", "fields", "sent", "outcome"),
    [
        ("allow", {}, "accept", "allowed"),
        ("allow_for_session", {}, "acceptForSession", "allowed"),
        ("deny", {}, "decline", "denied"),
        ("deny", {"interrupts": True}, "cancel", "denied"),
    ],
)
@pytest.mark.parametrize("method", [COMMAND, PATCH])
def test_an_approval_is_answered_in_the_words_of_codex(
    method: str, decision: str, fields: dict[str, object], sent: str, outcome: str
) -> None:
    codex = CodexThread()
    ask = asked(codex, method, command="touch x")

    events = codex.reply(ask, decision, **fields)

    assert codex.last_sent == {"id": 0, "result": {"decision": sent}}
    assert [(event["kind"], event.get("outcome")) for event in events] == [("ask_closed", outcome), ("command", None)]
    assert events[0]["command_id"] == "c"


def test_an_answer_for_another_input_is_refused_and_nothing_is_sent() -> None:
    codex = CodexThread()
    ask = asked(codex, COMMAND, command="touch x")
    sent = len(codex.sent)

    events = codex.reply(ask, "allow", input_digest="0" * 64)

    assert events[0]["was_obeyed"] is False
    assert "another input" in events[0]["error"]
    assert len(codex.sent) == sent


@pytest.mark.parametrize(
    "fields", [{"decision": "answer"}, {"decision": "invented"}, {"tool_input": {"command": "rm"}}]
)
def test_an_answer_that_does_not_fit_is_refused_and_the_request_stays_open(fields: dict[str, object]) -> None:
    codex = CodexThread()
    ask = asked(codex, COMMAND, command="touch x")
    sent = len(codex.sent)

    events = codex.reply(ask, **{"decision": "allow", **fields})  # type: ignore[arg-type]

    assert [event["was_obeyed"] for event in events] == [False]
    assert len(codex.sent) == sent
    assert codex.reply(ask, "allow")[1]["was_obeyed"] is True


def test_late_and_unknown_answers_are_refused() -> None:
    codex = CodexThread()
    ask = asked(codex, COMMAND, command="touch x")
    codex.reply(ask, "allow")
    sent = len(codex.sent)

    late = codex.reply(ask, "allow")
    unknown = codex.reply({**ask, "request_id": "99-9"}, "allow")

    assert late[0]["error"] == "That request is settled already: allowed."
    assert unknown[0]["error"] == "The agent does not ask this."
    assert len(codex.sent) == sent


def test_a_request_that_codex_takes_back_is_withdrawn_once() -> None:
    codex = CodexThread()
    ask = asked(codex, COMMAND, command="touch x")

    events = codex.say("serverRequest/resolved", requestId=0)
    again = codex.say("serverRequest/resolved", requestId=0)

    assert [(event["kind"], event["outcome"]) for event in events] == [("ask_closed", "withdrawn")]
    assert again == []
    assert codex.reply(ask, "allow")[0]["error"] == "That request is settled already: withdrawn."


def test_what_is_settled_by_our_answer_is_not_settled_again() -> None:
    codex = CodexThread()
    codex.reply(asked(codex, COMMAND, command="touch x"), "allow")

    assert codex.say("serverRequest/resolved", requestId=0) == []


def test_the_same_number_for_another_request_is_another_request() -> None:
    codex = CodexThread()
    first = asked(codex, COMMAND, command="touch x")

    events = codex.ask(0, COMMAND, itemId="x", command="rm x")

    assert [event["kind"] for event in events] == ["ask_closed", "ask"]
    assert events[1]["request_id"] != first["request_id"]
    assert codex.reply(first, "allow")[0]["was_obeyed"] is False
    assert codex.ask(0, COMMAND, itemId="x", command="rm x") == []


def test_a_denial_with_a_reason_tells_it_to_codex() -> None:
    codex = CodexThread()

    codex.reply(asked(codex, COMMAND, command="rm x"), "deny", reason="Use git rm.")

    assert codex.sent[-2] == {"id": 0, "result": {"decision": "decline"}}
    assert codex.last_sent["method"] == "turn/steer"
    assert codex.last_sent["params"]["input"] == [{"type": "text", "text": "Use git rm."}]


def test_a_reason_that_comes_when_the_turn_is_over_begins_the_next_one() -> None:
    codex = CodexThread()
    codex.reply(asked(codex, COMMAND, command="rm x"), "deny", reason="Use git rm.")
    codex.end_turn()
    assert not codex.adapter.is_finished

    codex.answer("turn/steer", error="no turn runs")

    assert codex.last_sent["method"] == "turn/start"
    assert codex.last_sent["params"]["input"] == [{"type": "text", "text": "Use git rm."}]


def test_the_reason_of_a_denial_that_interrupts_comes_with_the_next_message() -> None:
    codex = CodexThread()
    codex.reply(asked(codex, COMMAND, command="rm x"), "deny", reason="Use git rm.", interrupts=True)
    assert "turn/steer" not in {message.get("method") for message in codex.sent}
    codex.end_turn("interrupted")
    assert not codex.adapter.is_finished

    codex.command("message", text="go on")

    assert codex.last_sent["params"]["input"] == [{"type": "text", "text": "Use git rm.\n\ngo on"}]


def test_a_patch_is_shown_as_its_item_has_it_by_then() -> None:
    codex = CodexThread()
    change = {"path": "/w/a", "kind": {"type": "update"}, "diff": "@@ -1 +1 @@\n-a\n+b\n"}
    codex.say("item/started", item={"type": "fileChange", "id": "x", "changes": [], "status": "inProgress"})
    empty = asked(codex, PATCH, reason="needed")
    codex.say("serverRequest/resolved", requestId=0)
    codex.say("item/fileChange/patchUpdated", itemId="x", changes=[change])

    ask = asked(codex, PATCH, reason="needed")

    assert ask["detail"] == "update /w/a\n@@ -1 +1 @@\n-a\n+b\n"
    assert (ask["title"], ask["reason"], ask["tool_ref"]) == ("Change /w/a", "needed", "x")
    assert ask["input_digest"] != empty["input_digest"]


@pytest.mark.parametrize(
    ("command", "title"),
    [
        ("/bin/bash -lc 'touch x'", "Run touch x"),
        ("/bin/bash -lc 'touch x; rm y'", "Run /bin/bash -lc 'touch x; rm y'"),
        ("rm y; touch x", "Run rm y; touch x"),
    ],
)
def test_a_title_leaves_out_the_shell_and_nothing_else(command: str, title: str) -> None:
    ask = asked(CodexThread(), COMMAND, command=command, commandActions=[{"type": "unknown", "command": "touch x"}])

    assert ask["title"] == title
    assert ask["detail"] == command


def test_input_for_a_running_command_and_a_command_that_needs_a_person_are_told_apart() -> None:
    codex = CodexThread()
    typed = asked(codex, COMMAND, command="yes", kind="writeStdin")
    human = codex.ask(1, COMMAND, itemId="x", command="deploy", kind="humanCommand")[0]

    assert typed["title"] == "Type into a running command: yes"
    assert (typed["can_allow_for_session"], human["can_allow_for_session"]) == (True, False)


def test_a_network_request_names_the_host() -> None:
    ask = asked(CodexThread(), COMMAND, networkApprovalContext={"host": "example.org", "protocol": "https"})

    assert (ask["title"], ask["target"]) == ("Reach example.org", "example.org")


@pytest.mark.parametrize(("decision", "scope"), [("allow", "turn"), ("allow_for_session", "session")])
def test_permissions_are_given_as_they_were_asked_for(decision: str, scope: str) -> None:
    codex = CodexThread()
    wanted = {"network": {"enabled": True}, "fileSystem": None}

    codex.reply(asked(codex, PERMISSIONS, permissions=wanted), decision)

    assert codex.last_sent["result"] == {"permissions": {"network": {"enabled": True}}, "scope": scope}


def test_permissions_that_are_denied_with_an_interrupt_interrupt_the_turn() -> None:
    codex = CodexThread()

    codex.reply(asked(codex, PERMISSIONS, permissions={"network": {"enabled": True}}), "deny", interrupts=True)

    assert codex.sent[-2]["result"] == {"permissions": {}, "scope": "turn"}
    assert codex.last_sent["method"] == "turn/interrupt"
    codex.end_turn("interrupted")
    assert not codex.adapter.is_finished


def test_questions_are_answered_by_their_ids() -> None:
    codex = CodexThread()
    options = [{"label": "Red", "description": "like blood"}, {"label": "Blue", "description": ""}]
    questions = [
        {"id": "q1", "header": "Colour", "question": "Which one?", "options": options},
        {"id": "q2", "header": "Name", "question": "Which one?", "options": None},
    ]
    ask = asked(codex, QUESTION, questions=questions, isBlocking=True)

    codex.reply(ask, "answer", answers={"Which one?": "Blue", "Which one? (2)": ["Bob"]})

    assert ask["ask_kind"] == "question"
    assert [choice["key"] for choice in ask["questions"][0]["choices"]] == ["Red", "Blue"]
    assert codex.last_sent["result"] == {"answers": {"q1": {"answers": ["Blue"]}, "q2": {"answers": ["Bob"]}}}


def test_an_answer_that_says_nothing_or_to_nothing_is_refused() -> None:
    codex = CodexThread()
    ask = asked(codex, QUESTION, questions=[{"id": "q1", "header": "", "question": "Why?"}])

    assert codex.reply(ask, "answer", answers={})[0]["error"] == "A question needs an answer."
    assert "not asked" in codex.reply(ask, "answer", answers={"How?": "so"})[0]["error"]
    codex.reply(ask, "deny")
    assert codex.last_sent["result"] == {"answers": {}}


def test_a_form_of_an_mcp_server_is_filled_in() -> None:
    codex = CodexThread()
    schema = {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "title": "Size"},
            "kind": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
            "sure": {"type": "boolean", "description": "Sure?"},
            "many": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]}},
        },
        "required": ["size"],
    }
    ask = asked(codex, FORM, serverName="shop", message="Fill in", mode="form", requestedSchema=schema)

    wrong = codex.reply(ask, "answer", answers={"Size": "big"})
    missing = codex.reply(ask, "answer", answers={"kind": "a"})
    foreign = codex.reply(ask, "answer", answers={"kind": "z"})
    codex.reply(ask, "answer", answers={"Size": "3", "kind": "b", "Sure?": "true", "many": ["x"]})

    assert wrong[0]["error"] == "size takes a number."
    assert missing[0]["error"] == "The form needs an answer to size."
    assert foreign[0]["error"] == "'z' is not among the choices of kind."
    content = {"size": 3, "kind": "b", "sure": True, "many": ["x"]}
    assert codex.last_sent["result"] == {"action": "accept", "content": content}


def test_an_mcp_tool_can_be_allowed_for_the_session_only_when_the_server_offers_it() -> None:
    codex = CodexThread()
    plain = asked(codex, FORM, serverName="shop", message="Run it?", mode="form", requestedSchema={})
    refused = codex.reply(plain, "allow_for_session")
    codex.reply(plain, "deny")
    denied = codex.last_sent["result"]

    offered = asked(
        codex, FORM, serverName="shop", message="Run it?", requestedSchema={}, _meta={"persist": ["session"]}
    )
    codex.reply(offered, "allow_for_session")

    assert refused[0]["error"] == "The agent does not offer to allow this for the whole session."
    assert denied == {"action": "decline", "content": None}
    assert codex.last_sent["result"] == {"action": "accept", "content": {}, "_meta": {"persist": "session"}}


def test_requests_beyond_what_can_be_held_are_refused() -> None:
    codex = CodexThread()
    for number in range(MAX_OPEN_ASKS):
        codex.ask(number, COMMAND, itemId="x", command="ls")

    events = codex.ask(MAX_OPEN_ASKS, COMMAND, itemId="x", command="ls")

    assert events == []
    assert codex.last_sent["error"]["message"] == "agentmon holds too many open requests"
