from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.runners.protocols.conversation import INTERRUPTED
from agentmon.runners.protocols.stream_json.adapter import StreamJsonAdapter
from tests.runners.protocols.claude_runs import CAPTURES, ClaudeRun, answered, ask_of, permission, result

if TYPE_CHECKING:
    from collections.abc import Callable

INTERACTIVE = sorted(path.name for path in CAPTURES.glob("*.io.jsonl"))
RULE = {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "touch *"}], "behavior": "allow"}
MODE = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
QUESTIONS = {"questions": [{"question": "Which?", "options": [{"label": "A"}, {"label": "B"}], "multiSelect": True}]}


class _Rerun:
    """Gives the commands that a recording shows, and hears what its Claude wrote with the ids of this conversation."""

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        said = [entry["msg"] for entry in entries if entry["dir"] == "in" and entry["msg"]["type"] == "user"]
        self.run = ClaudeRun(said[0]["message"]["content"] if said else "")
        self._is_begun = False
        self._own_ids: dict[str, str] = {}
        for entry in entries:
            if entry["dir"] == "in":
                self._write(entry["msg"])
            elif entry["dir"] == "out":
                self._hear(entry["msg"])
        self.run.end()

    def _hear(self, message: dict[str, Any]) -> None:
        if message.get("type") == "control_response":
            message = json.loads(json.dumps(message))
            message["response"]["request_id"] = self._own_ids[message["response"]["request_id"]]
        self.run.hear(message)

    def _write(self, message: dict[str, Any]) -> None:
        if message["type"] == "user":
            if self._is_begun:
                self._same(message, self.run.command("message", text=message["message"]["content"])[1])
            else:
                self._same(message, self.run.sent[1:2])
            self._is_begun = True
        elif message["type"] == "control_request":
            self._write_request(message)
        elif message["response"]["response"]:
            self._write_answer(message)

    def _write_request(self, message: dict[str, Any]) -> None:
        subtype = message["request"]["subtype"]
        (sent,) = self.run.sent[:1] if subtype == "initialize" else self.run.command(subtype)[1]
        self._own_ids[message["request_id"]] = sent["request_id"]
        assert sent["request"]["subtype"] == subtype

    def _write_answer(self, message: dict[str, Any]) -> None:
        recorded = message["response"]["response"]
        ask = next(ask for ask in self.run.all("ask") if ask["request_id"] == message["response"]["request_id"])
        fields: dict[str, Any] = {"request_id": ask["request_id"], "input_digest": ask["input_digest"]}
        if recorded["behavior"] == "deny":
            fields |= {"decision": "deny", "reason": recorded["message"], "interrupts": recorded.get("interrupt")}
        elif "answers" in recorded["updatedInput"]:
            fields |= {"decision": "answer", "answers": recorded["updatedInput"]["answers"]}
        elif "updatedPermissions" in recorded:
            fields |= {"decision": "allow_for_session"}
        else:
            fields |= {"decision": "allow", "tool_input": recorded["updatedInput"]}
        command_id, sent = self.run.command("answer", **fields)
        assert self.run.fate(command_id) == (True, None)
        if "updatedPermissions" in recorded:
            narrowed = sent[0]["response"]["response"].pop("updatedPermissions")
            assert [update["destination"] for update in narrowed] == ["session"] * len(narrowed)
            assert [update["type"] for update in narrowed] == ["addRules", "addDirectories"]
            recorded = {key: value for key, value in recorded.items() if key != "updatedPermissions"}
        assert sent == [
            {
                "type": "control_response",
                "response": {"subtype": "success", "request_id": ask["request_id"], "response": recorded},
            }
        ]

    @staticmethod
    def _same(recorded: dict[str, Any], sent: list[dict[str, Any]]) -> None:
        ((uuid, line),) = [(line.pop("uuid"), line) for line in [dict(one) for one in sent]]
        assert len(uuid) == 36
        assert line == recorded


def _rerun(name: str) -> ClaudeRun:
    entries = [json.loads(line) for line in (CAPTURES / name).read_bytes().splitlines()]
    return _Rerun([entry for entry in entries if entry["dir"] in {"in", "out"} and "msg" in entry]).run


@pytest.mark.parametrize("name", [name for name in INTERACTIVE if name != "bad_json.io.jsonl"])
def test_the_same_commands_send_what_the_recording_sent(name: str) -> None:
    run = _rerun(name)

    assert all(was_obeyed for was_obeyed in run.all("command", "was_obeyed"))
    assert len(run.all("ask")) == len(run.all("ask_closed"))


@pytest.mark.parametrize(
    ("name", "ask_outcomes", "statuses", "is_finished"),
    [
        ("perm_deny.io.jsonl", ["denied"], ["blocked"], True),
        ("perm_deny_interrupt.io.jsonl", ["denied"], ["blocked"], False),
        ("perm_interrupt_while_asking.io.jsonl", ["withdrawn"], ["cancelled"], False),
        ("perm_always.io.jsonl", ["allowed"], ["success", "success"], True),
        ("perm_two_parallel.io.jsonl", ["allowed", "denied"], ["success", "blocked"], True),
        ("ask_user.io.jsonl", ["answered"], ["success"], True),
        ("plan_mode.io.jsonl", ["allowed"], ["success"], True),
        ("state_events.io.jsonl", ["allowed"], ["success"], True),
        ("subagent.io.jsonl", ["allowed"], ["success", "success"], True),
        ("interrupt_tool.io.jsonl", [], ["cancelled"], False),
        ("interrupt_text.io.jsonl", [], [], True),
        ("queued_message.io.jsonl", [], ["success"], True),
    ],
)
def test_a_recorded_conversation_ends_with_everything_settled(
    name: str, ask_outcomes: list[str], statuses: list[str], is_finished: bool
) -> None:
    run = _rerun(name)

    assert run.all("ask_closed", "outcome") == ask_outcomes
    assert run.all("tool_finished", "status") == statuses
    assert run.adapter.is_finished == is_finished


def test_the_conversation_begins_with_a_greeting_and_the_first_message() -> None:
    run = ClaudeRun("Mend it.")

    greeting, prompt = run.sent
    assert greeting["request"]["subtype"] == "initialize"
    assert prompt["message"] == {"role": "user", "content": "Mend it."}
    assert prompt["uuid"]


def _asked(**fields: Any) -> tuple[ClaudeRun, dict[str, Any]]:
    run = ClaudeRun()
    run.hear(permission(**fields))
    return run, ask_of(run)


def _answer(run: ClaudeRun, ask: dict[str, Any], **fields: object) -> tuple[tuple[bool, str | None], list[Any]]:
    given = {"request_id": ask["request_id"], "input_digest": ask["input_digest"], "decision": "allow", **fields}
    command_id, sent = run.command("answer", **given)
    return run.fate(command_id), sent


def test_an_edited_input_is_what_claude_is_told_to_run() -> None:
    run, ask = _asked()

    fate, (sent,) = _answer(run, ask, tool_input={"command": "touch b"})

    assert fate == (True, None)
    assert sent["response"]["response"] == {"behavior": "allow", "updatedInput": {"command": "touch b"}}
    assert run.all("ask_closed", "outcome", "command_id") == [("allowed", "c1")]


def test_what_is_told_can_be_cleaned_without_changing_what_is_allowed() -> None:
    run, ask = _asked()
    ask["tool_input"]["command"] = "[secret]"

    _, (sent,) = _answer(run, ask)

    assert sent["response"]["response"]["updatedInput"] == {"command": "touch a"}


def test_the_same_message_in_a_resumed_conversation_has_another_id() -> None:
    launch = {"prompt": "go on", "session_id": "s", "session_ref": "s", "start": "resume"}

    first, second = (json.loads(StreamJsonAdapter(launch).start(at_ms).send.splitlines()[1]) for at_ms in (1, 2))

    assert first["uuid"] != second["uuid"]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"input_digest": "0" * 64}, "meant for another input"),
        ({"input_digest": None}, "meant for another input"),
        ({"request_id": "r9"}, "does not ask this"),
        ({"decision": "perhaps"}, "allowed or denied"),
        ({"decision": None}, "allowed or denied"),
        ({"decision": "answer"}, "allowed or denied"),
        ({"decision": "allow_for_session"}, "does not offer"),
        ({"tool_input": "touch b"}, "cannot be edited"),
    ],
)
def test_an_answer_that_does_not_fit_sends_nothing_and_says_why(fields: dict[str, Any], error: str) -> None:
    run, ask = _asked()

    (was_obeyed, said), sent = _answer(run, ask, **fields)

    assert (was_obeyed, sent) == (False, [])
    assert error in str(said)
    assert run.all("ask_closed") == []


@pytest.mark.parametrize("settle", ["answer", "cancel", "end"])
def test_an_answer_that_comes_late_sends_nothing(settle: str) -> None:
    run, ask = _asked()
    ways: dict[str, Callable[[], object]] = {
        "answer": lambda: _answer(run, ask, decision="deny"),
        "cancel": lambda: run.hear({"type": "control_cancel_request", "request_id": "r1"}),
        "end": run.end,
    }
    ways[settle]()

    (was_obeyed, error), sent = _answer(run, ask)

    assert (was_obeyed, sent) == (False, [])
    assert error
    assert len(run.all("ask_closed")) == 1


def test_a_request_that_is_taken_back_is_withdrawn_and_the_agent_works() -> None:
    run, _ = _asked()
    run.hear({"type": "system", "subtype": "init", "session_id": "s"})

    run.hear({"type": "control_cancel_request", "request_id": "r1"})

    assert run.all("ask_closed", "outcome") == ["withdrawn"]
    assert run.all("activity", "activity")[-1] == "working"


def test_of_two_requests_the_other_one_is_waited_for() -> None:
    run, ask = _asked()
    run.hear(permission("r2", tool_input={"command": "touch b"}))

    _answer(run, ask)

    assert run.all("activity", "activity", "note")[-1] == ("waiting", "Bash: touch b")
    assert run.all("ask_closed", "request_id") == ["r1"]


def test_allowing_for_the_session_leaves_the_wider_mode_out() -> None:
    run, ask = _asked(permission_suggestions=[{**RULE, "destination": "localSettings"}, MODE])

    _, (sent,) = _answer(run, ask, decision="allow_for_session")

    assert sent["response"]["response"]["updatedPermissions"] == [{**RULE, "destination": "session"}]


def test_allowing_for_the_session_takes_the_mode_when_nothing_narrower_is_offered() -> None:
    run, ask = _asked(permission_suggestions=[MODE])

    _, (sent,) = _answer(run, ask, decision="allow_for_session")

    assert sent["response"]["response"]["updatedPermissions"] == [MODE]


def test_a_question_takes_several_choices() -> None:
    run, ask = _asked(tool_name="AskUserQuestion", tool_input=QUESTIONS)

    fate, (sent,) = _answer(run, ask, decision="answer", answers={"Which?": ["A", "B"]})

    assert fate == (True, None)
    assert sent["response"]["response"]["updatedInput"] == {**QUESTIONS, "answers": {"Which?": "A, B"}}


@pytest.mark.parametrize(
    "fields",
    [
        {"decision": "answer"},
        {"decision": "answer", "answers": {}},
        {"decision": "answer", "answers": {"Other?": "A"}},
        {"decision": "answer", "answers": {"Which?": []}},
        {"decision": "answer", "answers": {"Which?": [1]}},
        {"decision": "allow"},
        {"decision": "allow_for_session", "answers": {"Which?": "A"}},
    ],
)
def test_a_question_without_a_fitting_answer_stays_open(fields: dict[str, Any]) -> None:
    run, ask = _asked(tool_name="AskUserQuestion", tool_input=QUESTIONS)

    (was_obeyed, _), sent = _answer(run, ask, **fields)

    assert (was_obeyed, sent, run.all("ask_closed")) == (False, [], [])


def test_of_several_questions_each_needs_an_answer() -> None:
    questions = [{"question": text, "options": [{"label": "A"}]} for text in ("One?", "Two?")]
    run, ask = _asked(tool_name="AskUserQuestion", tool_input={"questions": questions})

    (was_obeyed, error), sent = _answer(run, ask, decision="answer", answers={"One?": "A"})

    assert (was_obeyed, sent) == (False, [])
    assert error == "Every question needs an answer."


def test_a_question_that_cannot_be_stored_is_answered_as_the_agent_wrote_it() -> None:
    questions = [{"question": "Which\0one?", "options": [{"label": "A"}]}]
    run, ask = _asked(tool_name="AskUserQuestion", tool_input={"questions": questions})

    (was_obeyed, _), sent = _answer(run, ask, decision="answer", answers={"Which\ufffdone?": "A"})

    assert was_obeyed
    assert sent[0]["response"]["response"]["updatedInput"]["answers"] == {"Which\0one?": "A"}


def test_what_a_person_decides_on_shows_more_than_the_command() -> None:
    tool_input = {"command": "ls", "description": "List", "dangerouslyDisableSandbox": True}

    _, ask = _asked(tool_input=tool_input, decision_reason="\x1b[1mIt leaves the sandbox")

    assert ask["detail"] == 'ls\n\n{"dangerouslyDisableSandbox": true}'
    assert ask["reason"] == "List; [1mIt leaves the sandbox"


def test_an_input_too_long_to_edit_is_only_allowed_as_it_is() -> None:
    run, ask = _asked(tool_input={"command": "x" * 30_000})

    fate, sent = _answer(run, ask, tool_input={"command": "y"})

    assert (ask["tool_input"], ask["can_edit_input"]) == ({}, False)
    assert (fate[0], sent) == (False, [])
    fate, (line,) = _answer(run, ask)
    assert fate == (True, None)
    assert line["response"]["response"]["updatedInput"] == {"command": "x" * 30_000}


def test_the_same_request_again_is_asked_once() -> None:
    run, ask = _asked()
    run.hear(permission())
    _answer(run, ask)

    (sent,) = run.hear(permission())

    assert len(run.all("ask")) == 1
    assert sent["response"]["subtype"] == "error"


def test_an_interrupt_leaves_the_word_to_the_person_until_the_next_message() -> None:
    run = ClaudeRun()
    run.hear({"type": "system", "subtype": "init", "session_id": "s"})
    command_id, (sent,) = run.command("interrupt")
    run.hear(answered(sent["request_id"], still_queued=[]))
    run.hear(result(is_error=True, subtype="error_during_execution", terminal_reason="aborted_tools"))
    is_finished_after_interrupt = run.adapter.is_finished

    run.command("message", text="go on")
    run.hear({"type": "system", "subtype": "init", "session_id": "s"}, result())

    assert run.fate(command_id) == (True, None)
    assert run.all("turn_ended", "outcome") == ["interrupted", "completed"]
    assert (is_finished_after_interrupt, run.adapter.is_finished) == (False, True)


def test_finish_ends_a_conversation_that_was_interrupted() -> None:
    run = ClaudeRun()
    run.command("interrupt")
    run.hear(result(is_error=True, terminal_reason="aborted_streaming"))

    run.command("finish")

    assert run.adapter.is_finished


def test_an_interrupt_of_nothing_is_refused() -> None:
    run = ClaudeRun()
    run.hear(result())

    command_id, sent = run.command("interrupt")

    assert (run.fate(command_id)[0], sent) == (False, [])
    assert run.adapter.is_finished


def test_a_message_that_was_not_taken_up_keeps_the_conversation_open() -> None:
    run = ClaudeRun()
    first = run.sent[1]["uuid"]
    _, (second,) = run.command("message", text="two")
    lifecycle = {"type": "command_lifecycle"}

    run.hear({**lifecycle, "command_uuid": first, "state": "started"}, result(), result())
    is_finished_before = run.adapter.is_finished
    run.hear({**lifecycle, "command_uuid": second["uuid"], "state": "started"}, result())

    assert run.all("turn_started", "prompt_refs") == [[], [], ["c1"]]
    assert (is_finished_before, run.adapter.is_finished) == (False, True)


@pytest.mark.parametrize("state", ["cancelled", "discarded", "refused"])
def test_a_message_that_claude_drops_is_told_and_not_waited_for(state: str) -> None:
    run = ClaudeRun()
    _, (second,) = run.command("message", text="two")
    run.hear({"type": "command_lifecycle", "command_uuid": run.sent[1]["uuid"], "state": "started"}, result())

    run.hear({"type": "command_lifecycle", "command_uuid": second["uuid"], "state": state})

    assert run.all("notice", "topic") == ["message"]
    assert run.adapter.is_finished


def test_a_mode_that_claude_refuses_is_told_as_the_fate_of_the_command() -> None:
    run = ClaudeRun()
    command_id, (sent,) = run.command("set_permission_mode", permission_mode="wild")

    told = {"subtype": "error", "request_id": sent["request_id"], "error": "Cannot set permission mode"}
    run.hear({"type": "control_response", "response": told})

    assert run.fate(command_id) == (False, "Cannot set permission mode")
    assert run.all("session") == []


def test_commands_that_wait_for_claude_fail_when_it_ends() -> None:
    run = ClaudeRun()
    command_id, _ = run.command("set_model", model="haiku")

    run.end()

    assert run.fate(command_id) == (False, "The agent ended before it answered.")


@pytest.mark.parametrize(
    ("kind", "fields"),
    [("message", {"text": " "}), ("message", {"text": 7}), ("set_model", {}), ("dance", {}), ("answer", {})],
)
def test_a_command_without_sense_is_refused(kind: str, fields: dict[str, Any]) -> None:
    run = ClaudeRun()

    command_id, sent = run.command(kind, **fields)

    assert (run.fate(command_id)[0], sent) == (False, [])


def test_the_reason_of_a_denial_that_interrupts_comes_with_the_next_message() -> None:
    run = ClaudeRun()
    run.hear(permission())
    _answer(run, run.all("ask")[0], decision="deny", reason="not here", interrupts=True)
    run.hear(result(is_error=True, terminal_reason="aborted_tools"))

    _, (sent,) = run.command("message", text="go on")

    assert sent["message"]["content"] == "not here\n\ngo on"
    assert run.all("message", "role", "text")[-2:] == [("system", INTERRUPTED), ("user", "not here\n\ngo on")]
