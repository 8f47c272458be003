from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agentmon.domain.redaction import redact
from agentmon.runners.protocols.acp.opening import NO_FORK, NO_RESUME
from agentmon.runners.protocols.acp.usage import turn_usage
from tests.runners.protocols.acp_session import MODES, SESSION, AcpSession

RESUMED = {"start": "resume", "session_ref": "old"}


def test_the_greeting_offers_forms_and_neither_files_nor_terminals() -> None:
    session = AcpSession()

    (greeting,) = session.sent
    assert greeting["method"] == "initialize"
    assert greeting["params"] == {
        "protocolVersion": 1,
        "clientCapabilities": {
            "fs": {"readTextFile": False, "writeTextFile": False},
            "terminal": False,
            "elicitation": {"form": {}},
        },
        "clientInfo": {"name": "agentmon", "version": "1.2"},
    }


def test_a_session_says_what_it_offers_and_the_prompt_follows() -> None:
    session = AcpSession()
    session.open()

    assert session.of_kind("session")[-1] == {
        "kind": "session",
        "session_ref": SESSION,
        "model": "small",
        "permission_mode": "default",
        "models": ["small", "large"],
        "permission_modes": ["default", "plan"],
        "cannot_resume": NO_RESUME,
        "cannot_fork": NO_FORK,
    }
    assert session.methods() == ["initialize", "session/new", "session/prompt"]
    assert session.sent[-1]["params"]["prompt"] == [{"type": "text", "text": "go"}]
    assert not session.is_finished()
    session.answer({"stopReason": "end_turn"})
    assert session.is_finished()
    assert session.adapter.outcome == "completed"
    session.end()


def test_instructions_are_told_with_the_first_message_and_not_shown_as_the_persons() -> None:
    session = AcpSession(instructions="Be kind.")
    session.open()

    assert [block["text"] for block in session.sent[-1]["params"]["prompt"]] == ["Be kind.", "go"]
    assert [event["text"] for event in session.of_kind("message")] == ["go"]


def test_the_model_and_the_mode_are_chosen_before_the_first_message() -> None:
    session = AcpSession(model="large", permission_mode="plan")
    session.open()
    assert session.sent[-1]["method"] == "session/set_model"
    assert session.sent[-1]["params"] == {"sessionId": SESSION, "modelId": "large"}
    session.answer()
    assert session.sent[-1]["method"] == "session/set_mode"
    assert session.sent[-1]["params"] == {"sessionId": SESSION, "modeId": "plan"}
    session.answer()

    assert session.sent[-1]["method"] == "session/prompt"
    told = [event for event in session.of_kind("session") if "model" in event or "permission_mode" in event]
    assert [event.get("model") for event in told] == ["small", "large", None]
    assert told[-1]["permission_mode"] == "plan"


def test_configuration_options_stand_in_for_models_and_modes() -> None:
    groups = [{"group": "a", "options": [{"value": "a/one"}]}, {"group": "b", "options": [{"value": "b/two"}]}]
    options = [
        {"id": "m", "category": "model", "currentValue": "a/one", "options": groups},
        {"id": "mode", "category": "mode", "currentValue": "build", "options": [{"value": "build"}, {"value": "plan"}]},
    ]
    session = AcpSession(model="b/two")
    session.greet()
    session.answer({"sessionId": SESSION, "configOptions": options})

    assert session.sent[-1]["method"] == "session/set_config_option"
    assert session.sent[-1]["params"] == {"sessionId": SESSION, "configId": "m", "value": "b/two"}
    session.answer({"configOptions": [{**options[0], "currentValue": "b/two"}, options[1]]})
    assert session.sent[-1]["method"] == "session/prompt"
    assert session.of_kind("session")[-1]["model"] == "b/two"


def test_a_mode_that_the_agent_does_not_have_ends_the_run_before_anything_is_done() -> None:
    session = AcpSession(permission_mode="careful")
    session.open()

    assert "session/prompt" not in session.methods()
    assert session.is_finished()
    assert session.adapter.error == "The agent has no mode careful; it has default, plan."


def test_a_login_that_is_needed_is_said_with_how_it_is_done() -> None:
    session = AcpSession()
    session.greet()
    session.answer(error={"code": -32000, "message": "Authentication required"})

    assert session.is_finished()
    (ended,) = session.of_kind("turn_ended")
    assert ended["outcome"] == "failed"
    assert "needs a login" in ended["error"]
    assert "Run `agent login` in the terminal" in ended["error"]


def test_an_agent_of_another_version_is_refused() -> None:
    session = AcpSession()
    session.answer({"protocolVersion": 2})

    assert session.adapter.error == "The agent speaks version 2 of the protocol, not 1."


@pytest.mark.parametrize(
    ("start", "capabilities", "method"),
    [
        ("resume", {"sessionCapabilities": {"resume": {}}, "loadSession": True}, "session/resume"),
        ("resume", {"loadSession": True}, "session/load"),
        ("fork", {"sessionCapabilities": {"fork": {}}}, "session/fork"),
    ],
)
def test_a_conversation_goes_on_in_the_way_that_the_agent_offers(
    start: str, capabilities: dict[str, object], method: str
) -> None:
    session = AcpSession(start=start, session_ref="old")
    session.greet(**capabilities)

    assert session.sent[-1]["method"] == method
    assert session.sent[-1]["params"] == {"sessionId": "old", "cwd": "/project", "mcpServers": []}
    session.answer({"sessionId": "new"} if start == "fork" else {})
    wanted = "new" if start == "fork" else "old"
    assert session.sent[-1]["params"]["sessionId"] == wanted
    assert session.of_kind("session")[-1]["session_ref"] == wanted


@pytest.mark.parametrize("start", ["resume", "fork"])
def test_what_an_agent_cannot_go_on_with_is_refused(start: str) -> None:
    session = AcpSession(start=start, session_ref="old")
    session.greet()

    assert session.is_finished()
    assert session.adapter.outcome == "failed"
    assert "cannot" in (session.adapter.error or "")
    assert "fresh one" in (session.adapter.error or "")


def test_a_history_that_follows_the_answer_is_passed_over_too() -> None:
    session = AcpSession(**RESUMED)
    session.greet(loadSession=True)
    session.answer({"modes": MODES})
    assert session.sent[-1]["method"] == "session/set_mode"
    session.say("old words", "user_message_chunk", session="old")
    session.say("old answer", session="old")
    session.update("tool_call", session="old", toolCallId="t0", status="completed", title="old")
    session.answer()
    session.say("what it says while it answers", session="old")
    assert session.sent[-1]["method"] == "session/set_mode"
    session.answer()
    assert session.sent[-1]["method"] == "session/set_mode"
    session.answer()

    assert session.sent[-1]["method"] == "session/prompt"
    assert [event["text"] for event in session.of_kind("message")] == ["go"]
    assert session.of_kind("tool_started") == []


def test_an_agent_that_tells_something_before_each_answer_is_spoken_to_all_the_same() -> None:
    session = AcpSession(**RESUMED)
    session.greet(loadSession=True)
    session.answer({"modes": MODES})
    for _ in range(100):
        if session.sent[-1]["method"] != "session/set_mode":
            break
        session.say("old answer", session="old")
        session.answer()

    assert session.sent[-1]["method"] == "session/prompt"


def test_a_history_that_begins_before_the_answer_may_go_on_after_it() -> None:
    session = AcpSession(**RESUMED)
    session.greet(loadSession=True)
    session.say("old words", "user_message_chunk", session="old")
    session.answer({"modes": MODES})
    session.say("old answer", session="old")
    session.answer()
    session.answer()

    assert session.sent[-1]["method"] == "session/prompt"
    assert [event["text"] for event in session.of_kind("message")] == ["go"]


def test_keys_of_usage_differ_between_the_runs_of_one_conversation() -> None:
    keys = set()
    for launch, later_ms in (({}, 0), (RESUMED, 5), (RESUMED, 9)):
        session = AcpSession(**launch)
        session.at_ms += later_ms
        session.greet(sessionCapabilities={"resume": {}})
        session.answer({"sessionId": "old"})
        session.answer({"stopReason": "end_turn", "usage": {"inputTokens": 1, "outputTokens": 1}})
        keys.add(session.of_kind("usage")[0]["key"])

    assert len(keys) == 3


def test_a_message_is_told_piece_by_piece_and_then_whole() -> None:
    session = AcpSession()
    session.open()
    session.say("Let me see.", "agent_thought_chunk")
    session.say("Hello ")
    session.say("world.")
    assert [event["text"] for event in session.of_kind("delta")] == ["Let me see.", "Hello ", "world."]
    session.update("plan", entries=[{"content": "One", "status": "in_progress"}, {"content": "Two", "status": "odd"}])

    messages = session.of_kind("message")[1:]
    assert [(event["text"], event["is_thinking"]) for event in messages] == [
        ("Let me see.", True),
        ("Hello world.", False),
    ]
    assert session.of_kind("delta")[-1]["message_ref"] == messages[-1]["message_ref"]
    assert session.of_kind("plan")[0]["steps"] == [
        {"text": "One", "status": "in_progress"},
        {"text": "Two", "status": "pending"},
    ]


def test_another_message_id_begins_another_message() -> None:
    session = AcpSession()
    session.open()
    session.say("One.", messageId="m1")
    session.say("Two.", messageId="m2")
    session.answer({"stopReason": "end_turn"})

    assert [event["text"] for event in session.of_kind("message")][1:] == ["One.", "Two."]
    assert session.of_kind("turn_ended")[0]["text"] == "Two."


def test_a_long_message_comes_in_parts() -> None:
    session = AcpSession()
    session.open()
    for _ in range(3):
        session.say("x" * 50_000)
    session.answer({"stopReason": "end_turn"})

    parts = session.of_kind("message")[1:]
    assert [(len(part["text"]), part["continues"]) for part in parts] == [
        (60_000, False),
        (60_000, True),
        (30_000, True),
    ]
    assert len({part["message_ref"] for part in parts}) == 1
    assert [bool(part.get("goes_on")) for part in parts] == [True, True, False]


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-" + "api03-abcdefghijklmnopqrst",
        "password:\n hunter2hunter2",
        f"-----BEGIN RSA PRIVATE KEY----- {'MIIEabcdef0123456789 ' * 20}-----END RSA PRIVATE KEY-----",
    ],
)
def test_no_secret_is_cut_by_the_parts_of_a_message(secret: str) -> None:
    for place in range(59_960, 60_001, 4):
        text = f"{'some words ' * 6_000}"[:place] + f" {secret} {'and more ' * 10_000}"
        session = AcpSession()
        session.open()
        for start in range(0, len(text), 7_000):
            session.say(text[start : start + 7_000])
        session.answer({"stopReason": "end_turn"})

        parts = [part["text"] for part in session.of_kind("message")[1:]]
        assert "".join(parts) == text
        assert max(map(len, parts)) <= 60_000
        assert "".join([redact(part) for part in parts]) == redact(text)


@pytest.mark.parametrize(
    ("kind", "type_", "target"),
    [
        ("read", "read", "/project/a.py"),
        ("edit", "write", "/project/a.py"),
        ("delete", "write", "/project/a.py"),
        ("move", "write", "/project/a.py"),
        ("search", "query", "needle"),
        ("fetch", "query", "https://example.com/"),
        ("think", "query", "Thinking"),
        ("execute", "execute", "touch a"),
        ("other", "execute", "Thinking"),
    ],
)
def test_calls_are_told_by_what_they_do_to_what(kind: str, type_: str, target: str) -> None:
    inputs = {"search": {"pattern": "needle"}, "fetch": {"url": target}, "execute": {"command": target}}
    session = AcpSession()
    session.open()
    session.update(
        "tool_call", toolCallId="t1", title="Thinking", kind=kind, rawInput=inputs.get(kind, {}),
        locations=[{"path": "/project/a.py"}],
    )  # fmt: skip

    (started,) = session.of_kind("tool_started")
    assert (started["type"], started["target"]) == (type_, target)


def test_a_change_is_told_when_it_is_made() -> None:
    session = AcpSession()
    session.open()
    old = "".join(f"line {number}\n" for number in range(20))
    change = {"type": "diff", "path": "/project/a.txt", "oldText": old, "newText": old.replace("line 7\n", "seven\n")}
    session.update("tool_call", toolCallId="t1", title="edit", kind="edit", content=[change])
    assert session.of_kind("diff") == []
    session.update("tool_call_update", toolCallId="t1", status="completed")

    (diff,) = session.of_kind("diff")
    assert (diff["change_type"], diff["added_lines"], diff["removed_lines"]) == ("modify", 1, 1)
    assert diff["diff"].splitlines() == [
        "@@ -5,7 +5,7 @@", " line 4", " line 5", " line 6", "-line 7", "+seven", " line 8", " line 9", " line 10",
    ]  # fmt: skip
    assert session.of_kind("tool_finished")[0]["status"] == "success"


def test_a_new_file_is_created_and_an_emptied_one_modified() -> None:
    session = AcpSession()
    session.open()
    session.update(
        "tool_call", toolCallId="t1", kind="edit", status="completed",
        content=[
            {"type": "diff", "path": "/new", "oldText": None, "newText": "a\nb\n"},
            {"type": "diff", "path": "/emptied", "oldText": "a\n", "newText": ""},
        ],
    )  # fmt: skip

    diffs = session.of_kind("diff")
    assert [(diff["change_type"], diff["added_lines"], diff["removed_lines"]) for diff in diffs] == [
        ("create", 2, 0),
        ("modify", 0, 1),
    ]
    assert diffs[0]["diff"] == "@@ -0,0 +1,2 @@\n+a\n+b\n"


def test_news_of_the_session_is_told() -> None:
    session = AcpSession()
    session.open()
    session.update("current_mode_update", currentModeId="plan")
    session.update("session_info_update", title="A title")
    session.update("usage_update", used=1, size=2, cost={"amount": 0.25, "currency": "USD"})
    session.update("usage_update", used=1, size=2, cost={"amount": 3, "currency": "EUR"})
    session.update("available_commands_update", availableCommands=[])

    assert [event.get("permission_mode") for event in session.of_kind("session")][-2:] == ["plan", None]
    assert session.of_kind("session")[-1]["title"] == "A title"
    assert [event["cost_nano"] for event in session.of_kind("cost")] == [250_000_000]


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("end_turn", "completed"),
        ("max_tokens", "limit"),
        ("max_turn_requests", "limit"),
        ("refusal", "failed"),
        ("cancelled", "interrupted"),
        ("invented", "failed"),
        (None, "failed"),
    ],
)
def test_a_turn_ends_as_the_agent_says(reason: str | None, outcome: str) -> None:
    session = AcpSession()
    session.open()
    session.answer({"stopReason": reason})

    assert session.adapter.outcome == outcome
    assert (session.adapter.error is None) == (outcome in {"completed", "interrupted"})
    session.end()


@pytest.mark.parametrize(("text", "is_finished"), [("Done.", True), ("SQLite or Postgres?", False)])
def test_a_question_in_plain_words_keeps_the_conversation_open(text: str, is_finished: bool) -> None:
    session = AcpSession()
    session.open()
    session.say(text)
    session.answer({"stopReason": "end_turn"})

    assert session.adapter.outcome == "completed"
    assert session.adapter.is_finished == is_finished
    assert (text in session.of_kind("activity")[-1]["note"]) == (not is_finished)
    session.command(type="message", text="SQLite")
    assert not session.adapter.is_finished
    session.say("Done.")
    session.answer({"stopReason": "end_turn"})
    assert session.adapter.is_finished


def test_what_explains_a_request_is_no_output() -> None:
    session = AcpSession()
    session.open()
    explained = [{"type": "content", "content": {"type": "text", "text": "(Run a command)"}}]
    session.decide(session.ask(content=explained), "deny")
    session.answer({"stopReason": "end_turn"})

    (finished,) = session.of_kind("tool_finished")
    assert (finished["status"], finished["output_summary"]) == ("blocked", "")


@pytest.mark.parametrize(
    ("status", "output", "became"),
    [
        ("completed", "Command cancelled by user.", "cancelled"),
        ("completed", "User aborted the command", "cancelled"),
        ("completed", "all is done", "success"),
        ("failed", "Tool execution aborted", "cancelled"),
    ],
)
def test_a_call_that_an_interrupt_stops_is_cancelled(status: str, output: str, became: str) -> None:
    session = AcpSession()
    session.open()
    session.update("tool_call", toolCallId="t1", title="sleep 9", kind="execute")
    session.command(type="interrupt")
    told = [{"type": "content", "content": {"type": "text", "text": output}}]
    session.update("tool_call_update", toolCallId="t1", status=status, content=told)

    (finished,) = session.of_kind("tool_finished")
    assert (finished["status"], finished["output_summary"]) == (became, output)


def test_gemini_says_by_a_message_that_the_mode_is_another() -> None:
    session = AcpSession()
    session.open()
    session.say("[MODE_UPDATE] plan")
    session.say("[MODE_UPDATE] nothing known")

    assert session.of_kind("session")[-1] == {"kind": "session", "permission_mode": "plan"}
    assert [event["text"] for event in session.of_kind("delta")] == ["[MODE_UPDATE] nothing known"]


@pytest.mark.parametrize(
    ("name", "has_call", "key"),
    [("OpenCode", False, "msg_2"), ("OpenCode", True, "s1:1:1"), ("other", False, "s1:1:1")],
)
def test_opencode_keeps_an_answer_under_the_id_of_its_message(name: str, *, has_call: bool, key: str) -> None:
    session = AcpSession()
    session.answer({"protocolVersion": 1, "agentInfo": {"name": name}})
    session.answer({"sessionId": SESSION})
    session.say("first", messageId="msg_1")
    session.say("last", messageId="msg_2")
    if has_call:
        session.update("tool_call", toolCallId="t1", title="bash", kind="execute", status="completed")
    session.answer({"stopReason": "end_turn", "usage": {"inputTokens": 1, "outputTokens": 2}})

    (usage,) = session.of_kind("usage")
    assert (usage["key"], usage["is_key_provisional"]) == (key, key != "msg_2")


def test_a_request_that_is_not_offered_is_refused() -> None:
    session = AcpSession()
    session.open()
    session.write({"id": 7, "method": "fs/read_text_file", "params": {"path": "/etc/passwd"}})

    assert session.sent[-1]["id"] == 7
    assert session.sent[-1]["error"]["code"] == -32601


def test_what_is_not_understood_is_noted_once_and_what_is_no_json_a_few_times() -> None:
    session = AcpSession()
    session.open()
    for _ in range(3):
        session.write({"method": "invented/thing", "params": {}})
        session.update("invented_update")
    for _ in range(20):
        session.write_bytes(b"Loaded cached credentials.\n")

    topics = [event["topic"] for event in session.of_kind("notice")]
    assert topics == ["unknown_message"] * 2 + ["malformed"] * 5


def test_the_end_of_the_agent_closes_what_is_open() -> None:
    session = AcpSession()
    session.open()
    session.say("Half a sen")
    asked = session.ask()
    session.command(type="message", text="and more")
    session.command(type="set_model", model="large")
    session.end()

    assert session.adapter.error == "The agent ended in the middle of its work."
    assert session.of_kind("ask_closed")[0]["request_id"] == asked["request_id"]
    assert [event["status"] for event in session.of_kind("tool_finished")] == ["cancelled"]
    assert "Half a sen" in [event["text"] for event in session.of_kind("message")]
    assert [event["was_obeyed"] for event in session.of_kind("command")] == [False, False, False]


def test_an_agent_that_ends_before_it_began_has_failed() -> None:
    session = AcpSession()
    session.end()

    assert session.adapter.outcome == "failed"
    assert session.adapter.error == "The agent ended before it began."


def test_the_adapter_imports_little_of_the_standard_library() -> None:
    names = ("dataclasses", "decimal", "typing", "hashlib", "difflib", "agentmon.domain.redaction")
    program = (
        "import sys, agentmon.runners.protocols.acp.adapter; "
        f"print(*[name for name in {names!r} if name in sys.modules])"
    )
    printed = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
    )

    assert printed.stdout.split() == []


@pytest.mark.parametrize(
    ("model", "agent", "written", "confidence"),
    [
        ("anthropic/claude-opus-4-8", "other", 50, "assumed"),
        ("default", "claude-agent-acp", 50, "assumed"),
        ("anthropic/claude-opus-4-8", "other", 0, None),
        ("openai/gpt-5", "other", 50, None),
    ],
)
def test_how_long_a_cache_of_anthropic_lives_is_assumed(
    model: str, agent: str, written: int, confidence: str | None
) -> None:
    (event,) = turn_usage({"usage": {"inputTokens": 1, "cachedWriteTokens": written}}, "turn", model, agent, "")

    assert event.get("confidence") == confidence
