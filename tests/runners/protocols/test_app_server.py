from __future__ import annotations

import json

import pytest

from agentmon.runners.protocols.conversation import INTERRUPTED
from agentmon.runners.protocols.registry import make_adapter
from tests.runners.protocols.codex_thread import AT_MS, CodexThread, of_kind

TOTAL = {"inputTokens": 5_000, "cachedInputTokens": 3_000, "cacheWriteInputTokens": 500, "outputTokens": 90,
         "reasoningOutputTokens": 40}  # fmt: skip
LAST = {"inputTokens": 1_200, "cachedInputTokens": 900, "cacheWriteInputTokens": 100, "outputTokens": 30,
        "reasoningOutputTokens": 10}  # fmt: skip


def test_the_registry_knows_the_protocol() -> None:
    step = make_adapter({"protocol": "app-server", "prompt": "hi", "working_dir": "/"}).start(AT_MS)

    assert json.loads(step.send)["method"] == "initialize"


def test_a_fresh_thread_asks_for_the_keys_of_its_answers() -> None:
    codex = CodexThread(model="m0", instructions="be kind", permission_mode="read-only")

    begun = next(message for message in codex.sent if message.get("method") == "thread/start")
    assert begun["params"] == {
        "sandbox": "read-only",
        "approvalPolicy": "on-request",
        "cwd": "/w",
        "model": "m0",
        "developerInstructions": "be kind",
        "experimentalRawEvents": True,
    }
    assert codex.sent[0]["params"]["capabilities"]["experimentalApi"] is True


@pytest.mark.parametrize(
    ("mode", "sandbox", "approval_policy"),
    [
        (None, "workspace-write", "on-request"),
        ("ask", "workspace-write", "on-request"),
        ("untrusted", "workspace-write", "untrusted"),
        ("full-access", "danger-full-access", "never"),
        ("plan", "read-only", "on-request"),
        ("invented", "workspace-write", "on-request"),
    ],
)
def test_a_permission_mode_is_a_sandbox_and_an_approval_policy(
    mode: str | None, sandbox: str, approval_policy: str
) -> None:
    codex = CodexThread(permission_mode=mode)

    params = next(message for message in codex.sent if message.get("method") == "thread/start")["params"]
    assert (params["sandbox"], params["approvalPolicy"]) == (sandbox, approval_policy)
    assert bool(of_kind(codex.events, "notice")) == (mode == "invented")


@pytest.mark.parametrize("start", ["resume", "fork"])
def test_a_conversation_that_cannot_be_gone_on_with_says_what_can_be_done(start: str) -> None:
    codex = CodexThread(begins=False, start=start, session_ref="old")
    codex.answer("initialize", {"userAgent": "agentmon/0.171.0"})
    events = codex.answer(f"thread/{start}", error="no rollout found for thread id old")

    error = (
        f"Codex cannot {'resume' if start == 'resume' else 'copy'} the conversation; "
        "`agentmon sessions restart old --message TEXT` starts a fresh one with its history. "
        "It says: no rollout found for thread id old"
    )
    assert of_kind(events, "turn_ended") == [
        {"kind": "turn_ended", "outcome": "failed", "text": "", "error": error},
    ]
    told = [event["cannot_resume"] for event in of_kind(events, "session")]
    assert told == (["no rollout found for thread id old"] if start == "resume" else [])
    assert codex.adapter.is_finished
    assert (codex.adapter.outcome, codex.adapter.error) == ("failed", error)
    assert codex.command("message", text="hi")[0]["was_obeyed"] is False
    assert not of_kind(codex.end(), "turn_ended")


def test_it_is_finished_when_the_turn_ended_by_itself() -> None:
    codex = CodexThread()
    was_finished = codex.adapter.is_finished

    codex.end_turn()

    assert not was_finished
    assert codex.adapter.is_finished
    assert codex.adapter.outcome == "completed"


@pytest.mark.parametrize(("text", "is_finished"), [("Done.", True), ("SQLite or Postgres?", False)])
def test_a_question_in_plain_words_keeps_the_conversation_open(text: str, is_finished: bool) -> None:
    codex = CodexThread()
    item = {"type": "agentMessage", "id": "m1", "text": text}
    codex.say("item/started", threadId="t", turnId="u1", item={**item, "text": ""})
    codex.say("item/completed", threadId="t", turnId="u1", item=item)

    told = codex.end_turn()

    assert codex.adapter.outcome == "completed"
    assert codex.adapter.is_finished == is_finished
    assert [text in event["note"] for event in of_kind(told, "activity")] == [True] * (not is_finished)
    codex.command("finish")
    assert codex.adapter.is_finished


def test_after_an_interrupt_the_person_has_the_word() -> None:
    codex = CodexThread()
    assert codex.command("interrupt", "i") == []
    assert codex.last_sent["params"] == {"threadId": "t", "turnId": "u1"}

    told = codex.answer("turn/interrupt", {})
    codex.end_turn("interrupted")

    assert told == [{"kind": "command", "command_id": "i", "was_obeyed": True}]
    assert codex.adapter.outcome == "interrupted"
    assert not codex.adapter.is_finished
    codex.command("finish")
    assert codex.adapter.is_finished


def test_an_interrupt_that_codex_refuses_is_told_and_leaves_the_turn_alone() -> None:
    codex = CodexThread()
    codex.command("interrupt", "i")

    assert codex.answer("turn/interrupt", error="no active turn to interrupt") == [
        {"kind": "command", "command_id": "i", "was_obeyed": False, "error": "no active turn to interrupt"}
    ]
    codex.command("message", "m", text="go on")
    assert codex.last_sent["method"] == "turn/steer"
    codex.answer("turn/steer", {"turnId": "u1"})
    codex.end_turn()
    assert codex.adapter.is_finished


def test_an_interrupt_before_the_turn_runs_is_sent_when_it_does() -> None:
    codex = CodexThread(begins=False)
    assert codex.command("interrupt", "i") == []
    codex.answer("initialize", {})
    codex.answer("thread/start", {"thread": {"id": "t"}})

    codex.answer("turn/start", {"turn": {"id": "u1"}})
    assert codex.last_sent["method"] != "turn/interrupt"
    codex.say("turn/started", turn={"id": "u1"})

    assert codex.last_sent["method"] == "turn/interrupt"


def test_nothing_to_interrupt_is_an_error() -> None:
    codex = CodexThread()
    codex.end_turn()

    assert codex.command("interrupt")[0]["error"] == "The agent does nothing that could be interrupted."


def test_a_message_during_a_turn_steers_it() -> None:
    codex = CodexThread()

    assert codex.command("message", "m", text="more") == []
    assert codex.last_sent["method"] == "turn/steer"
    assert codex.last_sent["params"] == {
        "threadId": "t",
        "input": [{"type": "text", "text": "more"}],
        "clientUserMessageId": "m",
        "expectedTurnId": "u1",
    }
    codex.end_turn()
    assert not codex.adapter.is_finished
    codex.answer("turn/steer", {"turnId": "u1"})
    assert codex.adapter.is_finished


def test_a_message_that_cannot_steer_waits_for_the_next_turn() -> None:
    codex = CodexThread()
    codex.command("message", "m", text="more")

    queued = codex.answer("turn/steer", error="the turn cannot be steered")
    codex.end_turn()

    assert queued == [{"kind": "command", "command_id": "m", "was_obeyed": False, "is_queued": True}]
    assert codex.last_sent["method"] == "turn/start"
    assert codex.last_sent["params"]["input"][0]["text"] == "more"
    obeyed = codex.answer("turn/start", {"turn": {"id": "u2"}})
    assert [event["kind"] for event in obeyed] == ["command", "turn_started"]
    assert obeyed[1]["prompt_refs"] == ["m"]


def test_a_message_whose_turn_ended_before_it_could_steer_begins_a_turn_at_once() -> None:
    codex = CodexThread()
    codex.command("message", "m", text="more")
    codex.end_turn()

    codex.answer("turn/steer", error="no active turn to steer")

    assert codex.last_sent["method"] == "turn/start"
    assert not codex.adapter.is_finished


def test_messages_before_the_thread_begins_wait_in_their_order() -> None:
    codex = CodexThread(begins=False)
    assert codex.command("message", "m1", text="one")[0]["is_queued"] is True
    codex.answer("initialize", {})
    codex.answer("thread/start", {"thread": {"id": "t"}})
    codex.answer("turn/start", {"turn": {"id": "u1"}})

    codex.end_turn()

    assert codex.last_sent["params"]["clientUserMessageId"] == "m1"


def test_too_much_that_waits_is_refused() -> None:
    codex = CodexThread(begins=False)

    answers = [codex.command("message", f"m{number}", text="x" * 100_000)[0] for number in range(25)]

    assert answers[0]["is_queued"] is True
    assert answers[-1]["error"] == "Too much waits for the agent already."


def test_a_turn_that_codex_does_not_take_fails() -> None:
    codex = CodexThread()
    codex.end_turn()
    codex.command("message", "m", text="more")

    events = codex.answer("turn/start", error="out of order")

    assert [event["kind"] for event in events] == ["command", "turn_ended"]
    assert codex.adapter.is_finished
    assert codex.adapter.error == "out of order"


def test_model_and_permission_mode_take_effect_with_the_next_turn() -> None:
    codex = CodexThread()
    assert [event["kind"] for event in codex.command("set_model", model="m2")] == ["session", "command"]
    codex.command("set_permission_mode", permission_mode="untrusted")
    codex.end_turn()

    codex.command("message", "m", text="more")

    params = codex.last_sent["params"]
    assert (params["model"], params["approvalPolicy"]) == ("m2", "untrusted")
    assert params["sandboxPolicy"] == {"type": "workspaceWrite", "writableRoots": ["/more"]}
    codex.answer("turn/start", {"turn": {"id": "u2"}})
    codex.end_turn(turn_id="u2")
    codex.command("message", "m", text="and more")
    assert "sandboxPolicy" not in codex.last_sent["params"]


def test_plan_mode_is_codex_own_and_can_be_left() -> None:
    codex = CodexThread(permission_mode="plan")
    first = next(message for message in codex.sent if message.get("method") == "turn/start")["params"]
    codex.end_turn()
    codex.command("set_permission_mode", permission_mode="full-access")

    codex.command("message", "m", text="do it")

    assert first["collaborationMode"] == {"mode": "plan", "settings": {"model": "m1", "reasoning_effort": None}}
    assert codex.last_sent["params"]["collaborationMode"]["mode"] == "default"
    assert codex.last_sent["params"]["sandboxPolicy"] == {"type": "dangerFullAccess"}


@pytest.mark.parametrize(
    "command",
    [
        {"command_type": "set_permission_mode", "permission_mode": "acceptEdits"},
        {"command_type": "set_model", "model": " "},
        {"command_type": "message", "text": " "},
        {"command_type": "invented"},
    ],
)
def test_a_command_that_makes_no_sense_is_refused_and_nothing_is_sent(command: dict[str, str]) -> None:
    codex = CodexThread()
    sent = len(codex.sent)

    events = codex.command(**command)

    assert (events[0]["was_obeyed"], len(events), len(codex.sent)) == (False, 1, sent)
    assert events[0]["error"]


def test_the_key_of_an_answer_is_that_of_the_rollout_and_its_total_is_not_counted_beside_it() -> None:
    codex = CodexThread()

    billed = codex.say("rawResponse/completed", responseId="resp_1", usage=LAST)
    repeated = codex.say("rawResponse/completed", responseId="resp_1", usage=LAST)
    total = codex.say("thread/tokenUsage/updated", tokenUsage={"last": LAST, "total": TOTAL})

    assert billed == [
        {
            "kind": "usage",
            "key": "resp_1",
            "model": "m1",
            "provider": "openai",
            "prompt_tokens": 200,
            "cache_read_tokens": 900,
            "cache_write_5m_tokens": 100,
            "response_tokens": 30,
            "reasoning_tokens": 10,
            "is_key_provisional": False,
            "latency_ms": 0,
        }
    ]
    assert repeated + total == []


def test_the_latency_of_an_answer_runs_from_what_it_answers_to_its_end() -> None:
    codex = CodexThread()
    call = {"type": "commandExecution", "command": "ls", "commandActions": [], "id": "a"}

    def bill(key: str, after_ms: int) -> int:
        codex.at_ms += after_ms
        return int(of_kind(codex.say("rawResponse/completed", responseId=key, usage=LAST), "usage")[0]["latency_ms"])

    first = bill("resp_1", 1_500)
    codex.say("item/started", item={**call, "status": "inProgress"})
    codex.at_ms += 60_000
    codex.say("item/completed", item={**call, "status": "completed", "exitCode": 0})
    second = bill("resp_2", 700)
    codex.at_ms += 5_000
    codex.say("error", willRetry=True, error={"message": "overloaded"})
    repeated = bill("resp_3", 300)

    assert (first, second, repeated) == (1_500, 700, 300)


def test_each_failed_call_that_is_repeated_is_one_of_its_own() -> None:
    codex = CodexThread()

    keys = []
    for _ in range(3):
        codex.at_ms += 1_000
        (failed,) = of_kind(codex.say("error", willRetry=True, error={"message": "overloaded"}), "usage")
        keys.append(failed["key"])

    assert len(set(keys)) == 3


def test_a_call_names_the_answer_that_asked_for_it() -> None:
    codex = CodexThread()
    item = {"type": "commandExecution", "command": "ls", "commandActions": [], "status": "inProgress"}
    early = codex.say("item/started", item={**item, "id": "a"})

    named = codex.say("rawResponse/completed", responseId="resp_1", usage=LAST)
    late = codex.say("item/started", item={**item, "id": "b"})
    codex.say("thread/tokenUsage/updated", tokenUsage={"last": LAST, "total": TOTAL})
    later = codex.say("item/started", item={**item, "id": "c"})

    assert early[0]["answer_key"] is None
    assert [(event["tool_ref"], event["answer_key"]) for event in named[1:] + late] == [
        ("a", "resp_1"),
        ("b", "resp_1"),
    ]
    assert later[0]["answer_key"] is None


def test_usage_without_a_key_is_counted_once_for_each_running_total() -> None:
    codex = CodexThread(start="resume", session_ref="t")
    usage = {"last": LAST, "total": TOTAL}

    old = codex.say("thread/tokenUsage/updated", turnId="u0", tokenUsage=usage)
    first = codex.say("thread/tokenUsage/updated", tokenUsage=usage)
    again = codex.say("thread/tokenUsage/updated", tokenUsage=usage)
    second = codex.say("thread/tokenUsage/updated", tokenUsage={"last": LAST, "total": {**TOTAL, "inputTokens": 6_200}})

    assert old + again == []
    assert [(event["key"], event["is_key_provisional"]) for event in first + second] == [
        ("t:5000:3000:500:90:40", True),
        ("t:6200:3000:500:90:40", True),
    ]


def test_what_a_subagent_does_is_told_under_the_call_that_made_it() -> None:
    codex = CodexThread()
    spawn = {
        "type": "collabAgentToolCall",
        "id": "spawn",
        "tool": "spawnAgent",
        "prompt": "look",
        "status": "inProgress",
    }
    codex.write({"method": "thread/started", "params": {"thread": {"id": "s", "model": "m9", "modelProvider": "p9"}}})
    codex.say("item/started", item={**spawn, "receiverThreadIds": ["s"]})
    command = {"type": "commandExecution", "id": "x", "command": "ls", "status": "inProgress"}

    said = codex.say("item/completed", threadId="s", item={"type": "agentMessage", "id": "m", "text": "found"})
    ran = codex.say("item/started", threadId="s", item=command)
    billed = codex.say("thread/tokenUsage/updated", threadId="s", turnId="v", tokenUsage={"last": LAST, "total": TOTAL})
    ended = codex.say("turn/completed", threadId="s", turn={"id": "v", "status": "completed"})

    assert said[0]["parent_tool_ref"] == "spawn"
    assert ran[0]["parent_tool_ref"] == "spawn"
    assert (billed[0]["model"], billed[0]["provider"]) == ("m9", "p9")
    assert [(event["kind"], event["tool_ref"]) for event in ended] == [("tool_finished", "x")]
    assert not codex.adapter.is_finished


def test_a_subagent_that_is_only_marked_stands_as_one_call() -> None:
    codex = CodexThread()
    mark = {"type": "subAgentActivity", "id": "m1", "agentThreadId": "s", "agentPath": "/root/scout", "kind": "started"}

    started = codex.say("item/started", item=mark)
    again = codex.say("item/completed", item=mark)
    ended = codex.say("turn/completed", threadId="s", turn={"id": "v", "status": "completed"})

    assert [(event["tool_name"], event["target"]) for event in started] == [("agent", "/root/scout")]
    assert again == []
    assert ended == [{"kind": "tool_finished", "tool_ref": "agent-s", "status": "success"}]


def test_a_plan_is_told_whole() -> None:
    steps = [{"step": "look", "status": "completed"}, {"step": "mend", "status": "inProgress"}, {"step": 1}]

    events = CodexThread().say("turn/plan/updated", plan=steps)

    assert events == [
        {
            "kind": "plan",
            "steps": [
                {"text": "look", "status": "completed"},
                {"text": "mend", "status": "in_progress"},
                {"text": "", "status": "pending"},
            ],
        }
    ]


def test_changes_of_files_are_hunks_with_their_counts() -> None:
    changes = [
        {"path": "/w/new", "kind": {"type": "add"}, "diff": "a\nb\n"},
        {"path": "/w/old", "kind": {"type": "delete"}, "diff": "x"},
        {"path": "/w/from", "kind": {"type": "update", "move_path": "/w/to"}, "diff": "@@ -1 +1 @@\n-a\n+b\n"},
    ]
    item = {"type": "fileChange", "id": "p", "changes": changes, "status": "completed"}

    diffs = of_kind(CodexThread().say("item/completed", item=item), "diff")

    assert [(diff["path"], diff["change_type"], diff["added_lines"], diff["removed_lines"]) for diff in diffs] == [
        ("/w/new", "create", 2, 0),
        ("/w/old", "delete", 0, 1),
        ("/w/from", "delete", 0, 0),
        ("/w/to", "modify", 1, 1),
    ]
    assert diffs[0]["diff"] == "@@ -0,0 +1,2 @@\n+a\n+b\n"
    assert diffs[1]["diff"] == "@@ -1,1 +0,0 @@\n-x\n\\ No newline at end of file\n"


@pytest.mark.parametrize(
    ("item", "name", "operation", "target", "status", "error"),
    [
        ({"type": "webSearch", "query": "cats"}, "web_search", "query", "cats", "success", None),
        ({"type": "imageView", "path": "/w/a.png"}, "view_image", "read", "/w/a.png", "success", None),
        (
            {"type": "mcpToolCall", "server": "s", "tool": "t", "arguments": {"a": 1}, "status": "failed",
             "error": {"message": "no"}},
            "s.t", "execute", '{"a":1}', "failed", "no",
        ),
        (
            {"type": "commandExecution", "command": "/bin/bash -lc 'cat x'", "status": "failed", "exitCode": 2,
             "commandActions": [{"type": "read", "command": "cat x", "path": "x", "name": "x"}]},
            "shell", "read", "cat x", "failed", "exit code 2",
        ),
        ({"type": "dynamicToolCall", "tool": "t", "success": False}, "t", "execute", "null", "failed", None),
        ({"type": "imageGeneration", "savedPath": "/w/b.png", "status": "completed"}, "image_generation", "write",
         "/w/b.png", "success", None),
    ],
)  # fmt: skip
def test_each_kind_of_call_has_a_name_a_type_and_a_target(
    item: dict[str, object], name: str, operation: str, target: str, status: str, error: str | None
) -> None:
    started, finished = CodexThread().say("item/completed", item={"id": "i", **item})

    assert (started["tool_name"], started["type"], started["target"]) == (name, operation, target)
    assert (finished["status"], finished["error"]) == (status, error)


def test_a_long_message_comes_in_parts() -> None:
    text = "ä" * 130_000

    parts = CodexThread().say("item/completed", item={"type": "agentMessage", "id": "m", "text": text})

    assert [len(part["text"]) for part in parts] == [60_000, 60_000, 10_000]
    assert [part["continues"] for part in parts] == [False, True, True]
    assert "".join(part["text"] for part in parts) == text


def test_a_spent_budget_is_a_limit() -> None:
    codex = CodexThread()

    events = codex.end_turn("failed", error={"message": "spent", "codexErrorInfo": "sessionBudgetExceeded"})

    assert [(event["outcome"], event["error"]) for event in of_kind(events, "turn_ended")] == [("limit", "spent")]


def test_rate_limits_are_told_when_they_are_nearly_used_up() -> None:
    codex = CodexThread()
    low = {"primary": {"usedPercent": 12, "windowDurationMins": 300}}
    high = {"primary": {"usedPercent": 91, "windowDurationMins": 300, "resetsAt": 1_795_823_279}}

    assert codex.say("account/rateLimits/updated", rateLimits=low) == []
    told = codex.say("account/rateLimits/updated", rateLimits=high)
    assert [event["text"] for event in told] == ["90 % of the 5-hour limit is used, it resets at 2026-11-27 23:47 UTC"]
    assert codex.say("account/rateLimits/updated", rateLimits=high) == []


def test_unknown_messages_are_told_once_each() -> None:
    codex = CodexThread()

    first = codex.say("invented/news")
    second = codex.say("invented/news")
    item = codex.say("item/started", item={"type": "invented", "id": "x"})

    assert [event["topic"] for event in first + item] == ["unknown_message"] * 2
    assert second == []


def test_an_unknown_request_is_refused_so_that_codex_does_not_hang() -> None:
    codex = CodexThread()

    codex.ask("r1", "item/tool/call", tool="x")

    assert codex.last_sent == {
        "id": "r1",
        "error": {"code": -32601, "message": "agentmon does not know item/tool/call"},
    }


def test_malformed_lines_are_passed_over_and_told_a_few_times() -> None:
    codex = CodexThread()

    events = codex.write_bytes(b"Warning: hello\n[]\n" * 30 + b'{"id":[],"method":"x"}\n' + b"[" * 50_000 + b"\n")

    assert len(of_kind(events, "notice")) == 5
    assert codex.end_turn()[-1]["kind"] == "turn_ended"


def test_the_end_of_codex_closes_what_is_open() -> None:
    codex = CodexThread()
    codex.say("item/started", item={"type": "commandExecution", "id": "x", "command": "ls"})
    codex.ask(0, "item/commandExecution/requestApproval", itemId="x", command="ls")
    codex.command("message", "m", text="more")

    events = codex.end()

    assert [(event["kind"], event.get("outcome") or event.get("status")) for event in events] == [
        ("ask_closed", "withdrawn"),
        ("tool_finished", "cancelled"),
        ("command", None),
        ("turn_ended", "failed"),
    ]
    assert codex.adapter.error == "The agent ended in the middle of its work."
    assert codex.end() == []
    assert codex.command("message", text="hi")[0]["was_obeyed"] is False
    assert codex.write_bytes(b'{"method":"x"}\n') == []


def test_a_command_that_runs_on_after_its_turn_is_not_cut_short() -> None:
    codex = CodexThread()
    item = {"type": "commandExecution", "id": "x", "command": "serve", "status": "inProgress"}
    codex.say("item/started", item=item)

    assert of_kind(codex.end_turn(), "tool_finished") == []
    assert codex.say("item/completed", item={**item, "status": "completed", "exitCode": 0})[0]["status"] == "success"


def test_the_title_and_the_models_are_told() -> None:
    codex = CodexThread()

    models = codex.answer("model/list", {"data": [{"model": "a"}, {"model": "b", "hidden": True}, {"model": "c"}]})
    title = codex.say("thread/name/updated", threadName="Mend  the\nroof")

    assert models == [{"kind": "session", "models": ["a", "c"]}]
    assert title == [{"kind": "session", "title": "Mend the roof"}]


def test_what_was_being_said_is_kept_when_codex_dies_or_fails() -> None:
    for end in (CodexThread.end, lambda codex: codex.end_turn("failed", error={"message": "gone"})):
        codex = CodexThread()
        codex.say("item/agentMessage/delta", itemId="m", delta="Half ")
        codex.say("item/agentMessage/delta", itemId="m", delta="a word")
        events = end(codex)

        assert [(event["message_ref"], event["text"]) for event in of_kind(events, "message")] == [("m", "Half a word")]


def test_of_messages_whose_pieces_alternate_each_is_kept_whole() -> None:
    codex = CodexThread()
    for part in ("one ", "two"):
        codex.say("item/reasoning/textDelta", itemId="r", delta=f"think {part}")
        codex.say("item/agentMessage/delta", itemId="m", delta=f"say {part}")
    told = of_kind(codex.end_turn("interrupted"), "message")

    assert [(event["text"], event["is_thinking"]) for event in told] == [
        ("think one think two", True),
        ("say one say two", False),
        (INTERRUPTED, False),
    ]


def test_the_pieces_of_a_message_have_its_name_however_long_that_is() -> None:
    codex = CodexThread()
    name = "m" * 1_000
    pieces = codex.say("item/agentMessage/delta", itemId=name, delta="All of it")
    told = codex.say("item/completed", item={"type": "agentMessage", "id": name, "text": "All of it"})

    assert {event["message_ref"] for event in of_kind([*pieces, *told], "delta", "message")} == {"m" * 199 + "…"}
    assert [event["text"] for event in of_kind(codex.end_turn("interrupted"), "message")] == [INTERRUPTED]


def test_what_was_told_whole_is_not_told_again_when_the_turn_is_interrupted() -> None:
    codex = CodexThread()
    codex.say("item/agentMessage/delta", itemId="m", delta="All of it")
    codex.say("item/completed", item={"type": "agentMessage", "id": "m", "text": "All of it"})
    codex.say("item/agentMessage/delta", itemId="m", delta="late")

    assert [event["text"] for event in of_kind(codex.end_turn("interrupted"), "message")] == [INTERRUPTED]
