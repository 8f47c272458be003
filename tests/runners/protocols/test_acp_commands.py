from __future__ import annotations

import pytest

from agentmon.runners.protocols.conversation import INTERRUPTED
from tests.runners.protocols.acp_session import OPTIONS, SESSION, AcpSession


@pytest.fixture
def session() -> AcpSession:
    opened = AcpSession()
    opened.open()
    return opened


def test_a_request_shows_all_that_is_decided_on(session: AcpSession) -> None:
    session.update("tool_call", toolCallId="t1", title="bash", kind="execute", rawInput={"cwd": "/elsewhere"})
    asked = session.ask(rawInput={"command": "touch a"})

    assert asked["tool_name"] == "bash"
    assert asked["target"] == "touch a"
    assert asked["detail"] == 'touch a\n\n{"cwd": "/elsewhere"}'
    assert asked["tool_input"] == {"cwd": "/elsewhere", "command": "touch a"}
    assert asked["can_allow_for_session"]
    assert session.of_kind("activity")[-1]["activity"] == "waiting"


def test_a_command_in_the_working_folder_is_shown_alone(session: AcpSession) -> None:
    asked = session.ask(rawInput={"command": "touch a", "description": "Makes a file", "cwd": "/project"})

    assert asked["detail"] == "touch a"
    assert asked["reason"] == "Makes a file"


def test_a_command_that_runs_elsewhere_says_so_in_the_detail() -> None:
    session = AcpSession()
    session.open()
    home = {"type": "text", "text": "[current working directory /project] (Makes a file)"}
    other = {"type": "text", "text": "[in /etc] (Makes a file)"}

    at_home = session.ask(1, content=[{"type": "content", "content": home}])
    elsewhere = session.ask(2, toolCallId="t2", content=[{"type": "content", "content": other}])

    assert at_home["detail"] == "touch a"
    assert "Makes a file" in at_home["reason"]
    assert elsewhere["detail"] == "touch a\n\n[in /etc] (Makes a file)"


def test_a_change_is_shown_before_it_is_allowed(session: AcpSession) -> None:
    change = {"type": "diff", "path": "/project/a.txt", "oldText": "", "newText": "hello\n"}
    asked = session.ask(kind="edit", title="Writing to a.txt", content=[change])

    assert asked["type"] == "write"
    assert asked["target"] == "/project/a.txt"
    assert "+hello" in asked["detail"]
    assert session.of_kind("diff") == []


def test_a_change_of_several_files_names_them_all(session: AcpSession) -> None:
    content = [{"type": "diff", "path": f"/project/{name}", "newText": "hello\n"} for name in "ab"]
    asked = session.ask(kind="edit", content=content, locations=[{"path": "/project/a"}, {"path": "/project/c"}])

    assert asked["target"] == "/project/a, /project/b, /project/c"


@pytest.mark.parametrize(
    ("decision", "option", "outcome"),
    [("allow", "o-once", "allowed"), ("allow_for_session", "o-always", "allowed"), ("deny", "o-no", "denied")],
)
def test_an_answer_chooses_the_option_of_its_kind(
    session: AcpSession, decision: str, option: str, outcome: str
) -> None:
    fate = session.decide(session.ask("r-1"), decision)

    assert fate["was_obeyed"]
    assert session.sent[-1] == {
        "jsonrpc": "2.0",
        "id": "r-1",
        "result": {"outcome": {"outcome": "selected", "optionId": option}},
    }
    (closed,) = session.of_kind("ask_closed")
    assert (closed["outcome"], closed["command_id"]) == (outcome, "c1")
    assert session.of_kind("activity")[-1]["activity"] == "working"
    session.answer({"stopReason": "end_turn"})
    session.end()


def test_to_allow_once_never_becomes_always(session: AcpSession) -> None:
    asked = session.ask(options=OPTIONS[1:])
    fate = session.decide(asked, "allow")

    assert not fate["was_obeyed"]
    assert "once" in fate["error"]
    assert session.sent[-1]["method"] == "session/prompt"
    assert session.decide(asked, "allow_for_session")["was_obeyed"]


def test_a_denial_without_an_option_for_it_cancels_the_request(session: AcpSession) -> None:
    asked = session.ask(options=OPTIONS[:1])
    assert not asked["can_allow_for_session"]
    assert not session.decide(asked, "allow_for_session")["was_obeyed"]
    session.decide(asked, "deny")

    assert session.sent[-1]["result"] == {"outcome": {"outcome": "cancelled"}}


@pytest.mark.parametrize(
    "words", ["Understood. I won't run the command.", "Okay, skipping this.", "I leave the file as it is.", ""]
)
def test_a_turn_in_which_nothing_went_well_behind_a_denial_needs_a_person(session: AcpSession, words: str) -> None:
    session.decide(session.ask(), "deny")
    if words:
        session.say(words)
    session.answer({"stopReason": "end_turn"})

    assert not session.is_finished()
    told = session.of_kind("activity")[-1]
    assert (told["activity"], told["note"]) == ("waiting", "stopped after a denied request")
    assert ("a guess" in told["source"]) is bool(words)


def test_a_question_behind_a_denial_is_what_a_person_is_asked(session: AcpSession) -> None:
    session.decide(session.ask(), "deny")
    session.say("Understood. Which file may I change instead?")
    session.answer({"stopReason": "end_turn"})

    assert "Which file may I change instead?" in session.of_kind("activity")[-1]["note"]


def test_work_that_went_another_way_behind_a_denial_is_done(session: AcpSession) -> None:
    session.decide(session.ask(), "deny")
    session.update("tool_call", toolCallId="t2", title="edit", kind="edit", status="completed")
    session.say("Done another way.")
    session.answer({"stopReason": "end_turn"})

    assert session.is_finished()
    assert session.adapter.outcome == "completed"


def test_the_reason_of_a_denial_is_said_next_when_the_turn_has_ended(session: AcpSession) -> None:
    session.decide(session.ask(), "deny", reason="not here")
    assert session.sent[-1]["result"]["outcome"] == {"outcome": "selected", "optionId": "o-no"}
    session.answer({"stopReason": "end_turn"})

    assert not session.is_finished()
    assert session.sent[-1]["params"]["prompt"] == [{"type": "text", "text": "not here"}]
    assert [event["text"] for event in session.of_kind("message")] == ["go", "not here"]
    session.say("Elsewhere, then.")
    session.answer({"stopReason": "end_turn"})
    assert session.is_finished()
    assert session.adapter.outcome == "completed"
    session.end()


def test_reasons_go_along_with_what_a_person_says_meanwhile(session: AcpSession) -> None:
    session.decide(session.ask(), "deny", reason="not here")
    session.decide(session.ask(1, toolCallId="t2"), "deny", reason="nor there")
    session.command(type="message", text="try /tmp")
    session.answer({"stopReason": "end_turn"})

    assert session.sent[-1]["params"]["prompt"][0]["text"] == "not here\n\nnor there\n\ntry /tmp"
    session.answer({"stopReason": "end_turn"})
    assert session.is_finished()


def test_the_reason_of_a_denial_that_interrupts_waits_for_the_next_message(session: AcpSession) -> None:
    session.decide(session.ask(), "deny", reason="not here", interrupts=True)
    session.answer({"stopReason": "cancelled"})
    assert "session/prompt" not in session.methods()[3:]
    assert not session.is_finished()
    session.command(type="message", text="try /tmp")

    assert session.sent[-1]["params"]["prompt"][0]["text"] == "not here\n\ntry /tmp"


def test_a_denial_with_a_reason_has_failed_when_the_agent_ends_before_it_hears_that(session: AcpSession) -> None:
    session.decide(session.ask(), "deny", reason="not here")
    session.answer({"stopReason": "end_turn"})
    session.end()

    assert session.adapter.outcome == "failed"


def test_a_denial_that_interrupts_cancels_the_turn(session: AcpSession) -> None:
    session.decide(session.ask(), "deny", interrupts=True)

    assert session.sent[-2]["result"] == {"outcome": {"outcome": "cancelled"}}
    assert session.sent[-1]["method"] == "session/cancel"
    session.answer({"stopReason": "cancelled"})
    assert session.adapter.outcome == "interrupted"
    assert not session.is_finished()
    assert session.of_kind("tool_finished")[0]["status"] == "blocked"


def test_answers_that_do_not_fit_are_refused_and_nothing_is_sent(session: AcpSession) -> None:
    asked = session.ask(rawInput={"command": "touch a"})
    sent = len(session.sent)
    fates = [
        session.decide(asked, "allow", input_digest="0" * 64),
        session.decide(asked, "allow", request_id="permission-9"),
        session.decide(asked, "invented"),
        session.decide(asked, "answer", answers={"a": "b"}),
        session.decide(asked, "allow", tool_input={"command": "touch b"}),
    ]

    assert [fate["was_obeyed"] for fate in fates] == [False] * 5
    assert all(fate["error"] for fate in fates)
    assert len(session.sent) == sent
    assert session.decide(asked, "allow")["was_obeyed"]
    late = session.decide(asked, "deny")
    assert late["error"] == "That request is settled already: allowed."
    assert len(session.sent) == sent + 1


def test_another_input_has_another_digest(session: AcpSession) -> None:
    first = session.ask(1, rawInput={"command": "touch a"})
    second = session.ask(2, toolCallId="t2", rawInput={"command": "touch b"})

    assert first["input_digest"] != second["input_digest"]
    assert not session.decide(second, "allow", input_digest=first["input_digest"])["was_obeyed"]


def test_a_request_that_the_agent_takes_back_is_withdrawn(session: AcpSession) -> None:
    asked = session.ask(5)
    session.write({"method": "$/cancel_request", "params": {"requestId": 5}})

    assert session.of_kind("ask_closed")[0]["outcome"] == "withdrawn"
    assert session.decide(asked, "allow")["error"] == "That request is settled already: withdrawn."


def test_a_message_waits_until_the_turn_is_over(session: AcpSession) -> None:
    fate = session.command(type="message", text="and this")
    assert (fate["was_obeyed"], fate["is_queued"]) == (False, True)
    session.answer({"stopReason": "end_turn"})

    assert session.sent[-1]["params"]["prompt"] == [{"type": "text", "text": "and this"}]
    assert session.of_kind("turn_started")[-1]["prompt_refs"] == ["c1"]
    assert session.of_kind("command")[-1]["was_obeyed"]
    assert not session.is_finished()
    session.answer({"stopReason": "end_turn"})
    assert session.is_finished()
    session.end()


def test_an_interrupt_cancels_the_turn_and_withdraws_what_is_asked(session: AcpSession) -> None:
    session.ask(3)
    fate = session.command(type="interrupt")

    assert fate["was_obeyed"]
    assert session.sent[-2] == {"jsonrpc": "2.0", "id": 3, "result": {"outcome": {"outcome": "cancelled"}}}
    assert session.sent[-1] == {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": SESSION}}
    assert session.of_kind("ask_closed")[0]["outcome"] == "withdrawn"
    session.answer({"stopReason": "cancelled"})
    assert session.adapter.outcome == "interrupted"
    assert not session.is_finished()
    assert session.of_kind("activity")[-1]["activity"] == "waiting"
    session.command(type="finish")
    assert session.is_finished()
    session.end()


def test_what_is_asked_after_an_interrupt_is_cancelled_at_once(session: AcpSession) -> None:
    session.command(type="interrupt")
    params = {"sessionId": SESSION, "toolCall": {"toolCallId": "t1"}, "options": OPTIONS}
    session.write({"id": 4, "method": "session/request_permission", "params": params})

    assert session.sent[-1]["result"] == {"outcome": {"outcome": "cancelled"}}
    assert session.of_kind("ask") == []


def test_what_another_conversation_asks_is_refused_and_said_once(session: AcpSession) -> None:
    params = {"sessionId": "another", "toolCall": {"toolCallId": "t1"}, "options": OPTIONS}
    for request in (4, 5):
        session.write({"id": request, "method": "session/request_permission", "params": params})

    assert [message["id"] for message in session.sent[-2:]] == [4, 5]
    assert session.sent[-1]["result"] == {"outcome": {"outcome": "cancelled"}}
    assert session.of_kind("ask") == []
    assert [event["topic"] for event in session.of_kind("notice")] == ["permission"]


def test_an_agent_that_works_on_after_an_interrupt_is_told_again(session: AcpSession) -> None:
    session.command(type="interrupt")
    session.say("still")
    assert session.methods().count("session/cancel") == 1
    session.at_ms += 1_000
    session.say("talking")
    assert session.methods().count("session/cancel") == 2


def test_a_person_goes_on_after_an_interrupt(session: AcpSession) -> None:
    session.command(type="interrupt")
    session.answer({"stopReason": "cancelled"})
    assert session.command(type="message", text="go on")["was_obeyed"]
    session.answer({"stopReason": "end_turn"})

    assert session.is_finished()
    assert session.adapter.outcome == "completed"


def test_an_interrupt_before_the_session_is_there_keeps_the_task_for_the_next_message() -> None:
    session = AcpSession()
    assert session.command(type="interrupt")["was_obeyed"]
    assert session.adapter.outcome == "interrupted"
    assert not session.is_finished()
    session.open()
    assert "session/prompt" not in session.methods()
    session.command(type="message", text="but carefully")

    assert [block["text"] for block in session.sent[-1]["params"]["prompt"]] == ["go", "but carefully"]
    assert [event["text"] for event in session.of_kind("message")] == ["go", INTERRUPTED, "but carefully"]
    session.answer({"stopReason": "end_turn"})
    assert session.is_finished()
    session.end()


def test_an_interrupt_of_nothing_is_refused(session: AcpSession) -> None:
    session.answer({"stopReason": "end_turn"})

    assert not session.command(type="interrupt")["was_obeyed"]


def test_model_and_mode_change_when_the_agent_says_so(session: AcpSession) -> None:
    assert session.command(type="set_model", model="large") == {}
    assert session.sent[-1]["params"] == {"sessionId": SESSION, "modelId": "large"}
    session.answer()
    assert session.of_kind("session")[-1]["model"] == "large"
    assert session.of_kind("command")[-1]["was_obeyed"]
    session.command(type="set_permission_mode", permission_mode="plan")
    session.answer(error={"code": -32603, "message": "not now"})
    assert session.of_kind("command")[-1]["error"] == "not now"


def test_a_mode_that_is_not_offered_is_refused(session: AcpSession) -> None:
    fate = session.command(type="set_permission_mode", permission_mode="careful")

    assert fate["error"] == "The agent has these modes: default, plan."


@pytest.mark.parametrize("command", [{"type": "message", "text": " "}, {"type": "set_model"}, {"type": "invented"}])
def test_commands_without_sense_are_refused(session: AcpSession, command: dict[str, object]) -> None:
    fate = session.command(**command)

    assert not fate["was_obeyed"]
    assert fate["error"]


def test_a_mode_whose_id_is_an_address_is_chosen_by_its_last_word() -> None:
    address = "https://agentclientprotocol.com/protocol/session-modes"
    modes = {
        "currentModeId": f"{address}#agent",
        "availableModes": [{"id": f"{address}#{name}", "name": name} for name in ("agent", "plan")],
    }
    session = AcpSession(permission_mode="agent")
    session.open(modes=modes)
    begun = session.methods()

    session.command(type="set_permission_mode", permission_mode="plan")

    assert "session/set_mode" not in begun
    assert session.sent[-1]["params"] == {"sessionId": SESSION, "modeId": f"{address}#plan"}
