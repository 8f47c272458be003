from __future__ import annotations

import random

import pytest

from agentmon.runners.protocols.app_server.adapter import AppServerAdapter
from tests.runners.protocols.codex_replay import CAPTURES, CodexReplay, recordings, story
from tests.runners.protocols.fuzzing import check_conversation, check_event, interleaved, mutated, recorded_lines

MARK = "system: The turn was interrupted."


@pytest.mark.parametrize("name", recordings())
def test_the_adapter_sends_what_was_sent_in_the_recording_and_understands_all_of_it(name: str) -> None:
    replay = CodexReplay(name)

    assert not [event for event in replay.of_kind("notice") if event["topic"] in ("unknown_message", "malformed")]
    assert all(event.get("was_obeyed") for event in replay.of_kind("command"))
    for event in replay.events:
        check_event(event)
    calls = [event["tool_ref"] for event in replay.of_kind("tool_started")]
    assert sorted(set(calls)) == sorted(event["tool_ref"] for event in replay.of_kind("tool_finished"))
    asked = [event["request_id"] for event in replay.of_kind("ask")]
    assert asked == [event["request_id"] for event in replay.of_kind("ask_closed")]


def test_a_plain_conversation_of_two_turns() -> None:
    replay = CodexReplay("as_plain")

    assert story(replay.events) == [
        "turn of []",
        "user: hi #mock:plain",
        "assistant: Hello from the mock model.",
        "usage: (150, 1000, 20)",
        "completed: Hello from the mock model.",
        "command c1: True",
        "turn of ['c1']",
        "user: think #mock:think",
        "thinking: Let me think about it.",
        "assistant: Thought about it.",
        "usage: (150, 1000, 20)",
        "completed: Thought about it.",
    ]
    session = replay.of_kind("session")[0]
    assert session["session_ref"].endswith("d0972ba4de87")
    assert session["transcript_path"].endswith(f"{session['session_ref']}.jsonl")
    assert (session["model"], session["agent_version"]) == ("gpt-5.5", "0.171.0")
    assert "".join(event["text"] for event in replay.of_kind("delta")[:5]) == "Hello from the mock model."
    assert [event["activity"] for event in replay.of_kind("activity")] == ["working", "waiting", "working", "waiting"]


def test_tools_with_what_they_changed_and_wrote() -> None:
    assert story(CodexReplay("as_tools").events) == [
        "turn of []",
        "user: go #mock:tools",
        "assistant: I will write the file.",
        "apply_patch write: hello.txt",
        "diff create +1 -0",
        "-> success",
        "usage: (150, 1000, 20)",
        "assistant: Now I run a command.",
        "shell execute: cat hello.txt; echo ran",
        "-> success hello|ran",
        "usage: (150, 1000, 20)",
        "assistant: All done: wrote hello.txt and ran a command.",
        "usage: (150, 1000, 20)",
        "completed: All done: wrote hello.txt and ran a command.",
    ]


@pytest.mark.parametrize(
    ("name", "after_the_question"),
    [
        ("as_exec_accept", ["closed: allowed", "command c1: True", "-> success ran"]),
        ("as_exec_decline", ["closed: denied", "command c1: True", "-> blocked"]),
        ("as_exec_cancel", ["closed: denied", "command c1: True", "-> blocked"]),
        ("as_untrusted", ["closed: allowed", "command c1: True", "-> success ran"]),
        ("as_codemode_accept", ["closed: allowed", "command c1: True", "-> success ran"]),
        ("as_exec_accept_session", ["closed: allowed", "command c1: True", "-> success"]),
        ("as_patch_decline", ["closed: denied", "command c1: True", "-> blocked"]),
    ],
)
def test_what_follows_a_question_and_its_answer(name: str, after_the_question: list[str]) -> None:
    lines = story(CodexReplay(name).events)

    place = next(place for place, line in enumerate(lines) if line.startswith("ask "))
    assert lines[place + 1 : place + 4] == after_the_question


def test_a_question_shows_the_whole_command_or_the_patch_of_its_item() -> None:
    command = CodexReplay("as_exec_accept").of_kind("ask")[0]
    patch = CodexReplay("as_patch_decline").of_kind("ask")[0]

    assert command["title"] == "Run touch escalated && echo ran"
    assert command["detail"].startswith("/bin/bash -lc 'touch escalated && echo ran'\nIn /")
    assert command["reason"] == "May I touch a file?"
    assert command["tool_ref"] == "call_mock_000006"
    assert patch["detail"].endswith("hello.txt\n@@ -0,0 +1,1 @@\n+hello\n")
    assert (patch["tool_name"], patch["type"]) == ("apply_patch", "write")


def test_the_second_of_two_equal_commands_is_not_asked_about_when_the_first_was_allowed_for_the_session() -> None:
    replay = CodexReplay("as_exec_accept_session")

    assert len(replay.of_kind("ask")) == 1
    assert [event["status"] for event in replay.of_kind("tool_finished")] == ["success", "success"]


@pytest.mark.parametrize(
    ("name", "last_lines"),
    [
        ("as_interrupt_tool", ["command c1: True", "-> cancelled", MARK, "interrupted: Sleeping."]),
        ("as_interrupt_while_asking", ["closed: withdrawn", "-> cancelled", MARK, "interrupted: I need more rights."]),
    ],
)
def test_an_interrupt_ends_the_call_and_withdraws_the_question(name: str, last_lines: list[str]) -> None:
    assert story(CodexReplay(name).events)[-4:] == last_lines


def test_a_message_after_an_interrupt_begins_the_next_turn() -> None:
    lines = story(CodexReplay("as_interrupt_text").events)

    words = "assistant: word0 word1 word2 word3 word4 "
    assert lines[2:7] == ["command c1: True", words, MARK, "interrupted: ", "command c2: True"]
    assert lines[7] == "turn of ['c2']"


def test_a_message_while_a_command_runs_is_taken_into_the_turn() -> None:
    replay = CodexReplay("as_steer")

    assert len(replay.of_kind("turn_started")) == 1
    assert "user: also this #mock:think" in story(replay.events)
    assert replay.adapter.is_finished


def test_errors_are_one_line_each_and_retries_are_told() -> None:
    replay = CodexReplay("as_errors")

    assert [event["error"] for event in replay.of_kind("turn_ended")] == [
        "mock bad request",
        "unexpected status 401 Unauthorized: mock invalid api key, url: http://127.0.0.1:8155/v1/responses",
        "exceeded retry limit, last status: 429 Too Many Requests",
        "We’re currently experiencing high demand, which may cause temporary errors.",
    ]
    assert [event["topic"] for event in replay.of_kind("notice") if event["topic"] != "warning"] == ["retry"] * 3
    assert (replay.adapter.outcome, replay.adapter.error) == (
        "failed",
        "We’re currently experiencing high demand, which may cause temporary errors.",
    )


def test_a_resumed_thread_is_named_and_its_old_usage_is_not_counted_again() -> None:
    replay = CodexReplay("as_resume")

    assert len(replay.of_kind("usage")) == 1
    assert replay.of_kind("usage")[0]["is_key_provisional"] is True
    assert replay.of_kind("session")[-1] == {"kind": "session", "title": "my thread"}
    assert replay.sent[2]["method"] == "thread/resume"


def test_the_end_of_another_thread_is_not_ours() -> None:
    replay = CodexReplay("as_two_threads")

    assert [event["outcome"] for event in replay.of_kind("turn_ended")] == ["failed"]
    assert "Hello from the mock model." not in "".join(event["text"] for event in replay.of_kind("message"))
    assert len(replay.of_kind("usage")) == 1


@pytest.mark.proof
def test_broken_conversations_keep_the_contract() -> None:
    lines = [recorded_lines(CAPTURES / f"{name}.io.jsonl") for name in recordings()]
    for seed in range(600):
        chance = random.Random(seed)
        chosen = interleaved(chance.sample(lines, 2), chance) if chance.random() < 0.2 else chance.choice(lines)
        start = chance.choice(("fresh", "resume", "fork"))
        launch = {"prompt": "hi", "working_dir": "/", "start": start, "session_ref": "t", "permission_mode": "plan"}

        check_conversation(lambda launch=launch: AppServerAdapter(launch), mutated(chosen, chance), chance)  # type: ignore[misc]
