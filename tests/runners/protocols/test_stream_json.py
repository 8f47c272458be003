from __future__ import annotations

import json
from typing import Any

import pytest

from agentmon.runners.protocols.stream_json.usage import UsageBook
from tests.runners.protocols.claude_runs import CAPTURES, ClaudeRun, answered, ask_of, permission, result
from tests.runners.protocols.fuzzing import size_bytes

RECORDINGS = sorted(path.name for path in CAPTURES.glob("*.jsonl"))


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_recording_is_understood_to_its_end(name: str) -> None:
    run = ClaudeRun().replay(name).end()

    unknown = [text for topic, text in run.all("notice", "topic", "text") if topic == "unknown_message"]
    assert [text for text in unknown if "hook_callback" not in text] == []
    assert len(run.all("tool_started", "tool_ref")) >= len(run.all("tool_finished"))
    assert sorted(set(run.all("tool_started", "tool_ref"))) == sorted(run.all("tool_finished", "tool_ref"))
    assert sorted(run.all("ask", "request_id")) == sorted(run.all("ask_closed", "request_id"))


@pytest.mark.parametrize(
    ("name", "outcomes", "error", "cost_nano"),
    [
        ("plain.jsonl", ["completed"], None, 1_250_000),
        ("perm_allow.io.jsonl", ["completed"], None, 3_750_000),
        ("perm_deny.io.jsonl", ["completed"], None, 2_500_000),
        ("perm_deny_interrupt.io.jsonl", ["interrupted"], None, 1_250_000),
        ("interrupt_tool.io.jsonl", ["interrupted"], None, 1_250_000),
        ("interrupt_text.io.jsonl", ["interrupted", "completed"], None, 2_300_000),
        ("sigint_tool.io.jsonl", ["interrupted"], None, 1_250_000),
        ("queued_message.io.jsonl", ["completed"], None, 2_500_000),
        ("subagent.io.jsonl", ["completed"], None, 5_000_000),
        ("max_turns.jsonl", ["limit"], "Reached maximum number of turns (3)", 3_750_000),
        ("max_budget.jsonl", ["limit"], "Reached maximum budget ($0.5)", 1_800_450_000),
        ("err400.jsonl", ["failed"], "API Error: 400 mock bad request", 0),
        ("no_key.jsonl", ["failed"], "Not logged in · Please run /login", 0),
        ("tools_denied_default.jsonl", ["completed"], None, 3_750_000),
        ("fork.jsonl", ["completed"], None, 6_250_000),
        (
            "bad_resume.jsonl",
            ["failed"],
            "No conversation found with session ID: 11111111-2222-4333-8444-555555555555",
            0,
        ),
        ("sigterm.io.jsonl", ["failed"], "The agent ended in the middle of its work.", None),
    ],
)
def test_a_turn_ends_as_claude_says_and_costs_what_it_says(
    name: str, outcomes: list[str], error: str | None, cost_nano: int | None
) -> None:
    run = ClaudeRun().replay(name).end()

    assert run.all("turn_ended", "outcome") == outcomes
    assert run.adapter.outcome == outcomes[-1]
    assert run.adapter.error == error
    assert (run.all("cost", "cost_nano") or [None])[-1] == cost_nano
    assert len(run.all("turn_started")) == len(outcomes)


@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        ("perm_allow.io.jsonl", ["success", "success"]),
        ("perm_deny.io.jsonl", ["blocked"]),
        ("perm_deny_interrupt.io.jsonl", ["cancelled"]),
        ("perm_interrupt_while_asking.io.jsonl", ["cancelled"]),
        ("interrupt_tool.io.jsonl", ["cancelled"]),
        ("sigint_tool.io.jsonl", ["cancelled"]),
        ("tools_denied_default.jsonl", ["blocked", "success"]),
        ("subagent.io.jsonl", ["success", "success"]),
        ("sigterm.io.jsonl", []),
    ],
)
def test_a_call_ends_as_it_went(name: str, statuses: list[str]) -> None:
    run = ClaudeRun().replay(name).end()

    assert run.all("tool_finished", "status") == statuses


def test_a_conversation_with_tools_is_told_call_by_call() -> None:
    run = ClaudeRun("go #mock:tools").replay("perm_allow.jsonl")

    path = "/home/dev/lab/w/d_perm_allow/hello.txt"
    assert run.all("tool_started", "tool_name", "type", "target", "answer_key") == [
        ("Write", "write", "hello.txt", "msg_mock_000110"),
        ("Write", "write", path, "msg_mock_000110"),
        ("Bash", "execute", "cat hello.txt; echo ran", "msg_mock_000112"),
    ]
    assert run.all("diff", "path", "change_type", "diff", "added_lines", "removed_lines") == [
        ("hello.txt", "create", "@@ -0,0 +1,1 @@\n+hello\n", 1, 0)
    ]
    assert run.all("message", "role", "text") == [
        ("user", "go #mock:tools"),
        ("assistant", "I will write the file."),
        ("assistant", "Now I run a command."),
        ("assistant", "All done: wrote hello.txt and ran a command."),
    ]
    ask = ask_of(run)
    assert ask["ask_kind"] == "permission"
    assert ask["title"] == f"Write: {path}"
    assert ask["detail"] == "@@ -0,0 +1,1 @@\n+hello\n"
    assert ask["tool_input"] == {"file_path": path, "content": "hello\n"}
    assert ask["can_allow_for_session"]
    assert ask["can_edit_input"]


def test_the_session_is_named_once_with_its_transcript() -> None:
    run = ClaudeRun().replay("interrupt_text.jsonl")

    (session,) = run.all("session")
    assert session["session_ref"] == "2cb6fa9a-ac31-41ad-afc5-00262e3e1652"
    assert session["model"] == "claude-opus-5-5"
    assert session["permission_mode"] == "default"
    assert session["agent_version"] == "2.1.332"
    assert session["transcript_path"].endswith(
        "/.claude/projects/-home-dev-lab-w-d-interrupt-text/2cb6fa9a-ac31-41ad-afc5-00262e3e1652.jsonl"
    )


def test_an_interrupt_is_marked_once_behind_what_was_said() -> None:
    for name, mark in (("interrupt_text", ""), ("interrupt_tool", " for tool use"), ("sigint_tool", " for tool use")):
        marks = [
            text
            for role, text in ClaudeRun().replay(f"{name}.io.jsonl").all("message", "role", "text")
            if role == "system"
        ]
        assert marks == [f"[Request interrupted by user{mark}]"]


def test_what_was_being_said_is_kept_when_claude_dies() -> None:
    run = ClaudeRun()
    begin = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    pieces = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        for text in ("Half ", "a word")
    ]
    for event in (begin, block, *pieces):
        run.hear({"type": "stream_event", "event": event})

    assert run.end().all("message", "message_ref", "role", "text")[-1] == ("m:0", "assistant", "Half a word")


def test_the_greeting_tells_models_and_modes() -> None:
    run = ClaudeRun()
    greeting = json.loads((CAPTURES / "perm_allow.jsonl").read_bytes().splitlines()[0])
    greeting["response"]["request_id"] = run.sent[0]["request_id"]

    run.hear(greeting)

    (session,) = run.all("session")
    assert session["models"] == ["default", "opus", "fable", "sonnet", "haiku"]
    assert "plan" in session["permission_modes"]


def test_pieces_and_the_whole_of_a_message_share_their_id() -> None:
    run = ClaudeRun().replay("partial.jsonl")

    thinking = [event for event in run.all("delta") if event["is_thinking"]]
    said = [event for event in run.all("delta") if not event["is_thinking"]]
    assert "".join(event["text"] for event in thinking) == "Let me think about it."
    assert run.all("message", "message_ref", "text", "is_thinking")[1:] == [
        (thinking[0]["message_ref"], "Let me think about it.", True),
        (said[0]["message_ref"], "Thought about it.", False),
    ]


def test_usage_is_final_with_the_size_that_the_stream_tells() -> None:
    run = ClaudeRun().replay("interrupt_text.jsonl")

    assert run.all("usage", "key", "response_tokens", "is_final") == [
        ("msg_mock_000140", 1, False),
        ("msg_mock_000140", 1, True),
        ("msg_mock_000141", 1, False),
        ("msg_mock_000141", 20, True),
    ]
    assert run.all("usage", "prompt_tokens", "cache_read_tokens", "cache_write_5m_tokens")[-1] == (100, 1000, 50)
    assert run.all("usage", "latency_ms")[-1] == 98


@pytest.mark.parametrize(
    ("begun", "size", "writes", "confidence"),
    [
        ({"cache_creation_input_tokens": 50}, {}, (50, 0), "assumed"),
        (
            {"cache_creation_input_tokens": 50, "cache_creation": {"ephemeral_5m_input_tokens": 20}},
            {},
            (50, 0),
            "assumed",
        ),
        (
            {"cache_creation_input_tokens": 50, "cache_creation": {"ephemeral_1h_input_tokens": 20}},
            {},
            (30, 20),
            "assumed",
        ),
        ({"cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 20}}, {}, (30, 20), None),
        (
            {"cache_creation_input_tokens": 50, "cache_creation": {"ephemeral_1h_input_tokens": 50}},
            {"cache_creation_input_tokens": 50},
            (0, 50),
            None,
        ),
        (
            {"cache_creation_input_tokens": 50},
            {"cache_creation_input_tokens": 50, "cache_creation": {"ephemeral_1h_input_tokens": 50}},
            (0, 50),
            None,
        ),
        (
            {"cache_creation_input_tokens": 50, "cache_creation": {"ephemeral_1h_input_tokens": 50}},
            {"cache_creation_input_tokens": 0, "cache_creation": {"ephemeral_1h_input_tokens": 0}},
            (0, 50),
            None,
        ),
        ({}, {}, (0, 0), None),
    ],
)
def test_how_long_a_cache_lives_is_marked_where_it_is_assumed(
    begun: dict[str, object], size: dict[str, object], writes: tuple[int, int], confidence: str | None
) -> None:
    book = UsageBook()

    book.note_answer("", {"id": "m", "model": "claude-opus-4-8", "usage": {"input_tokens": 1, **begun}}, 0)
    (event,) = book.note_size("", {"output_tokens": 5, **size}, 9)

    assert (event["cache_write_5m_tokens"], event["cache_write_1h_tokens"]) == writes
    assert event.get("confidence") == confidence


def test_each_answer_is_billed_once_also_those_of_subagents() -> None:
    run = ClaudeRun().replay("subagent.jsonl")

    final = [(event["key"], event["response_tokens"]) for event in run.all("usage") if event["is_final"]]
    assert sorted(final) == [
        ("msg_mock_000005", 1),
        ("msg_mock_000007", 1),
        ("msg_mock_000009", 20),
        ("msg_mock_000010", 1),
    ]
    assert run.all("tool_started", "tool_ref", "parent_tool_ref") == [
        ("toolu_mock_000006", None),
        ("toolu_mock_000008", "toolu_mock_000006"),
    ]
    assert run.all("message", "text", "parent_tool_ref")[2] == ("Running.", "toolu_mock_000006")
    assert run.all("tool_finished", "tool_ref", "duration_ms")[-1] == ("toolu_mock_000006", 271)


def test_what_the_program_makes_up_itself_is_not_billed() -> None:
    run = ClaudeRun().replay("err529_default_retries.jsonl")

    assert run.all("usage") == []
    assert run.all("message", "role")[-1] == "system"
    assert run.all("notice", "level", "topic", "text") == [
        ("warn", "retry", "The API answered 529 (overloaded); try 1 of 10 in 0.6 s."),
        ("warn", "retry", "The API answered 529 (overloaded); try 2 of 10 in 1.0 s."),
    ]


def test_states_that_claude_emits_become_activity() -> None:
    run = ClaudeRun().replay("state_events.jsonl")

    assert run.all("activity", "activity", "note", "source") == [
        ("working", "", "start"),
        ("waiting", "a decision", "session_state_changed"),
        ("waiting", "Bash: touch made-by-agent && echo ran", "can_use_tool"),
    ]


def test_a_denial_without_a_question_is_told() -> None:
    run = ClaudeRun().replay("tools_denied_default.jsonl")

    (notice,) = [event for event in run.all("notice") if event["topic"] == "permission_denied"]
    assert notice["text"].startswith("Write was not allowed: Claude requested permissions to write to")


def test_a_plan_is_asked_about_with_its_whole_text() -> None:
    run = ClaudeRun().replay("plan_mode.jsonl")

    ask = ask_of(run)
    assert (ask["ask_kind"], ask["detail"], ask["can_allow_for_session"]) == ("plan", "# Plan\n1. do it", False)


def test_a_question_is_asked_with_its_choices() -> None:
    run = ClaudeRun().replay("ask_user.jsonl")

    assert ask_of(run)["ask_kind"] == "question"
    assert ask_of(run)["questions"] == [
        {
            "question": "Which colour?",
            "header": "Colour",
            "choices": [
                {"key": "Red", "label": "Red", "description": "r"},
                {"key": "Blue", "label": "Blue", "description": "b"},
            ],
            "is_multiple": False,
        }
    ]


def _call(tool_ref: str, name: str, tool_input: object, key: str = "m1", **fields: object) -> dict[str, Any]:
    block = {"type": "tool_use", "id": tool_ref, "name": name, "input": tool_input}
    return {"type": "assistant", "message": {"id": key, "model": "m", "content": [block]}, **fields}


def _finished(tool_ref: str, text: str = "ok", told: object = None, **fields: object) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": tool_ref, "content": text, **fields}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "tool_use_result": told}


def test_a_list_of_things_to_do_becomes_the_plan() -> None:
    run = ClaudeRun()
    todos = [{"content": "One", "status": "completed"}, {"content": "Two", "status": "in_progress"}]

    run.hear(_call("t1", "TodoWrite", {"todos": todos}), _finished("t1"))

    assert run.all("plan", "steps") == [
        [{"text": "One", "status": "completed"}, {"text": "Two", "status": "in_progress"}]
    ]


def test_a_plan_grows_task_by_task() -> None:
    run = ClaudeRun()

    run.hear(_call("t1", "TaskCreate", {"subject": "One", "description": "d"}))
    run.hear(_finished("t1", "Task #1 created successfully: One"))
    run.hear(_call("t2", "TaskCreate", {"subject": "Two"}), _finished("t2", told={"task": {"id": "2"}}))
    run.hear(_call("t3", "TaskUpdate", {"taskId": "1", "status": "in_progress"}), _finished("t3"))
    run.hear(_call("t4", "TaskUpdate", {"taskId": "2", "status": "completed"}), _finished("t4", is_error=True))
    run.hear(_call("t5", "TaskUpdate", {"taskId": "2", "status": "deleted"}), _finished("t5"))

    assert [[(step["text"], step["status"]) for step in steps] for steps in run.all("plan", "steps")] == [
        [("One", "pending")],
        [("One", "pending"), ("Two", "pending")],
        [("One", "in_progress"), ("Two", "pending")],
        [("One", "in_progress")],
    ]


def test_an_edit_is_told_as_the_patch_that_it_made() -> None:
    run = ClaudeRun()
    patch = [{"oldStart": 3, "oldLines": 2, "newStart": 3, "newLines": 2, "lines": [" a", "-b", "+B"]}]
    told = {"filePath": "/p/x", "oldString": "b", "newString": "B", "structuredPatch": patch}

    run.hear(_call("t1", "Edit", {"file_path": "/p/x", "old_string": "b", "new_string": "B"}))
    run.hear(_finished("t1", told=told))

    assert run.all("diff", "path", "change_type", "diff", "added_lines", "removed_lines", "tool_ref") == [
        ("/p/x", "modify", "@@ -3,2 +3,2 @@\n a\n-b\n+B\n", 1, 1, "t1")
    ]


def test_a_subagents_edit_is_told_from_its_input() -> None:
    run = ClaudeRun()
    call = _call("t1", "Edit", {"file_path": "x", "old_string": "b", "new_string": "B\nC"}, parent_tool_use_id="t0")

    run.hear(call, _finished("t1"))

    assert run.all("diff", "diff", "added_lines", "removed_lines") == [("@@ -1,1 +1,2 @@\n-b\n+B\n+C\n", 2, 1)]


def test_an_edit_that_failed_changes_nothing() -> None:
    run = ClaudeRun()

    run.hear(_call("t1", "Edit", {"file_path": "x"}), _finished("t1", "no such text", told="Error", is_error=True))

    assert run.all("diff") == []
    assert run.all("tool_finished", "status", "error") == [("failed", "no such text")]


def test_a_turn_cancels_the_calls_that_it_leaves_open_but_not_those_of_background_agents() -> None:
    run = ClaudeRun()
    run.hear(_call("t1", "Task", {"description": "look"}), _finished("t1", "launched"))
    run.hear(_call("t2", "Bash", {"command": "sleep 9"}, parent_tool_use_id="t1"))
    run.hear(_call("t3", "Bash", {"command": "sleep 9"}))

    run.hear(result())

    assert run.all("tool_finished", "tool_ref", "status") == [("t1", "success"), ("t3", "cancelled")]
    run.end()
    assert run.all("tool_finished", "tool_ref", "status")[-1] == ("t2", "cancelled")


def test_a_background_agent_keeps_the_conversation_unfinished_until_claude_is_idle() -> None:
    run = ClaudeRun()
    running, idle = ({"type": "system", "subtype": "session_state_changed", "state": s} for s in ("running", "idle"))

    run.hear(running, result())
    is_finished_while_running = run.adapter.is_finished
    run.hear(idle)

    assert (is_finished_while_running, run.adapter.is_finished) == (False, True)


def test_a_long_message_comes_in_parts() -> None:
    run = ClaudeRun()
    text = "x" * 130_000

    run.hear({"type": "assistant", "message": {"id": "m1", "content": [{"type": "text", "text": text}]}})

    parts = run.all("message", "message_ref", "continues", "text")[1:]
    assert [(ref, continues, len(part)) for ref, continues, part in parts] == [
        ("m1:0", False, 60_000),
        ("m1:0", True, 60_000),
        ("m1:0", True, 10_000),
    ]


def test_an_unknown_type_is_told_once_with_all_that_it_said() -> None:
    run = ClaudeRun()

    run.hear({"type": "novelty", "n": 1}, {"type": "novelty", "n": 2}, {"type": "system", "subtype": "fresh"})

    assert run.all("notice", "topic", "text") == [
        ("unknown_message", 'The agent sent a message that is not understood: novelty: {"type": "novelty", "n": 1}'),
        (
            "unknown_message",
            'The agent sent a message that is not understood: system/fresh: {"type": "system", "subtype": "fresh"}',
        ),
    ]


def test_lines_that_are_no_messages_are_passed_over_with_a_few_notices() -> None:
    run = ClaudeRun()

    run.hear(b"Warning: something", b"[" * 100_000, b'{"type":' + b"9" * 5_000 + b"}", b"\xff\xfe")

    assert run.all("notice", "text")[0] == "The agent wrote something that is no message: Warning: something"
    assert run.all("notice", "topic") == ["malformed"] * 4


def test_a_line_without_end_is_passed_over_with_a_notice() -> None:
    run = ClaudeRun()

    run.hear(b'{"type":"result","result":"' + b"x" * (32 * 1024 * 1024) + b'"}', result())

    assert run.all("notice", "text") == [
        "The agent wrote something that is no message: an empty line, or one that is too long"
    ]
    assert run.all("turn_ended", "text") == ["ok"]


def test_an_unknown_request_is_refused_so_that_claude_goes_on() -> None:
    run = ClaudeRun()

    sent = run.hear({"type": "control_request", "request_id": "x1", "request": {"subtype": "mcp_message"}})

    assert [(line["response"]["subtype"], line["response"]["request_id"]) for line in sent] == [("error", "x1")]
    assert run.all("notice", "topic") == ["unknown_message"]


def test_limits_are_told_when_their_state_changes() -> None:
    run = ClaudeRun()
    states = ("allowed", "allowed_warning", "allowed_warning", "rejected")

    run.hear(
        *(
            {
                "type": "rate_limit_event",
                "rate_limit_info": {"status": state, "rateLimitType": "five_hour", "resetsAt": 1_800_000_000},
            }
            for state in states
        )
    )

    assert run.all("notice", "level", "topic", "text") == [
        ("warn", "rate_limit", "The usage limit (five hour) is near."),
        ("error", "rate_limit", "The usage limit (five hour) is reached, until 2027-01-15 08:00 UTC."),
    ]


def test_a_hook_that_fails_is_told() -> None:
    run = ClaudeRun()
    hook = {"type": "system", "subtype": "hook_response", "hook_name": "PreToolUse:Bash", "output": ""}

    run.hear({**hook, "outcome": "success"}, {**hook, "outcome": "error", "stderr": "no such file\n"})

    assert run.all("notice", "topic", "text") == [("hook", "PreToolUse:Bash failed: no such file")]


def test_the_title_and_a_new_conversation_are_told() -> None:
    run = ClaudeRun()

    run.hear({"type": "system", "subtype": "session_title_changed", "title": "Mend it"})
    run.hear({"type": "conversation_reset", "new_conversation_id": "n2"})

    assert run.all("session") == [{"kind": "session", "title": "Mend it"}, {"kind": "session", "session_ref": "n2"}]


def test_nothing_that_came_at_all_is_an_error() -> None:
    run = ClaudeRun().end()

    assert (run.adapter.outcome, run.adapter.error) == ("failed", "The agent ended before it began.")
    assert run.adapter.has_broken_off


@pytest.mark.parametrize("start", ["resume", "fork"])
def test_a_resume_that_claude_refuses_says_why_and_what_helps(start: str) -> None:
    reason = "No conversation found with session ID: old"
    refused = {"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": [reason]}
    run = ClaudeRun(start=start, session_ref="old")
    run.hear(refused)
    later = ClaudeRun(start=start, session_ref="old")
    later.hear({"type": "system", "subtype": "init", "session_id": "old"}, refused)

    assert run.adapter.outcome == later.adapter.outcome == "failed"
    assert "agentmon sessions restart old --message TEXT`" in (run.adapter.error or "")
    assert run.all("session", "cannot_resume") == ([reason] if start == "resume" else [])
    assert (run.adapter.error or "").endswith(reason)
    assert later.adapter.error == reason


@pytest.mark.proof
def test_memory_stays_bounded_over_a_long_conversation() -> None:
    run = ClaudeRun()
    sizes = []
    for number in range(12_001):
        content = "y" * (50_000 if number % 40 == 0 else 10)
        call = _call(
            f"t{number}", "Write", {"file_path": "x", "content": content}, f"m{number}", parent_tool_use_id="t"
        )
        call["message"]["usage"] = {"input_tokens": 1}
        cancel = {"type": "control_cancel_request", "request_id": f"r{number}"}
        for message in (call, permission(f"r{number}"), cancel, {"type": f"odd{number}"}):
            run.adapter.receive(json.dumps(message).encode() + b"\n", 1)
        run.adapter.command({"id": f"c{number}", "type": "message", "text": f"{number}"}, 1)
        if number and number % 6_000 == 0:
            sizes.append(size_bytes(run.adapter))

    assert sizes[1] < sizes[0] * 1.03
    assert sizes[1] < 8_000_000


def test_an_answer_that_is_repeated_later_is_not_billed_again() -> None:
    run = ClaudeRun()
    first, second = (
        {"type": "assistant", "message": {"id": key, "model": "m", "usage": {"input_tokens": 5}, "content": []}}
        for key in ("m1", "m2")
    )

    run.hear(first, second, first, result())

    assert run.all("usage", "key", "is_final") == [("m1", False), ("m1", True), ("m2", False), ("m2", True)]


def test_a_call_that_an_interrupt_breaks_off_is_cancelled_also_without_details() -> None:
    run = ClaudeRun()
    run.hear(_call("t1", "Bash", {"command": "sleep 9"}))
    run.command("interrupt")

    run.hear(_finished("t1", "[Request interrupted by user for tool use]", is_error=True))

    assert run.all("tool_finished", "status") == ["cancelled"]


def test_the_same_inputs_give_the_same_steps() -> None:
    first, second = (ClaudeRun().replay("perm_allow.jsonl").end() for _ in range(2))

    assert first.events == second.events
    assert first.sent == second.sent


def test_a_late_model_is_named_by_the_answer() -> None:
    run = ClaudeRun()
    command_id, (sent,) = run.command("set_model", model="haiku")

    run.hear(answered(sent["request_id"]))

    assert sent["request"] == {"subtype": "set_model", "model": "haiku"}
    assert run.all("session", "model") == ["haiku"]
    assert run.fate(command_id) == (True, None)
