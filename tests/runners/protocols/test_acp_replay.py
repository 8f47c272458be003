from __future__ import annotations

import pytest

from agentmon.runners.protocols.conversation import INTERRUPTED
from tests.runners.protocols.acp_replay import (
    AcpReplay,
    entries_of,
    first_conversation,
    recordings,
    second_conversation,
    story,
)
from tests.runners.protocols.fuzzing import check_event


@pytest.mark.parametrize("name", recordings())
def test_the_adapter_sends_what_was_sent_in_the_recording_and_understands_all_of_it(name: str) -> None:
    replay = AcpReplay(first_conversation(entries_of(name)))
    # The recordings answered ``cancelled`` without a cancellation of the turn.
    sent = [message for message in replay.sent if "cancelled" not in name or message.get("method") != "session/cancel"]
    # They were made by a client that shows no forms.
    del sent[0]["params"]["clientCapabilities"]["elicitation"]

    assert sent == replay.wanted
    assert not [event for event in replay.of_kind("notice") if event["topic"] in ("unknown_message", "malformed")]
    assert all(event["was_obeyed"] for event in replay.of_kind("command"))
    for event in replay.events:
        check_event(event)
    calls = {event["tool_ref"] for event in replay.of_kind("tool_started")}
    assert sorted(calls) == sorted(event["tool_ref"] for event in replay.of_kind("tool_finished"))
    asked = [event["request_id"] for event in replay.of_kind("ask")]
    assert asked == [event["request_id"] for event in replay.of_kind("ask_closed")]
    assert replay.of_kind("activity")[-1]["activity"] == "waiting"


@pytest.mark.parametrize("name", ["claude-agent-acp.load", "codex-acp.load", "gemini.load_again", "opencode.load"])
def test_a_history_that_is_told_again_is_not_told_twice(name: str) -> None:
    entries = second_conversation(entries_of(name))

    replay = AcpReplay(entries, start="resume", session_ref=entries[2]["msg"]["params"]["sessionId"])

    sent = [message["method"] for message in replay.sent if message["method"] != "session/set_mode"]
    assert sent == ["initialize", "session/load", "session/prompt"]
    assert replay.of_kind("tool_started") == []
    assert [line for line in story(replay.events) if line.startswith(("user", "assistant"))] == [
        "user: again #mock:plain",
        "assistant: Hello from the mock model.",
    ]
    assert len(replay.of_kind("usage")) <= 1
    assert replay.of_kind("turn_ended")[-1]["outcome"] == "completed"
    assert replay.is_finished


def test_a_conversation_that_the_agent_does_not_find_cannot_be_resumed() -> None:
    replay = AcpReplay(second_conversation(entries_of("gemini.load"))[:4], start="resume", session_ref="gone")

    (ended,) = replay.of_kind("turn_ended")
    (told,) = [event for event in replay.of_kind("session") if "cannot_resume" in event]
    assert told["cannot_resume"] == "No previous sessions found for this project."
    assert ended["outcome"] == "failed"
    assert ended["error"] == (
        "The agent cannot resume the conversation; `agentmon sessions restart gone --message TEXT` starts a fresh one "
        "with its history. It says: No previous sessions found for this project."
    )
    assert replay.is_finished
    assert replay.adapter.outcome == "failed"


def test_a_plain_conversation() -> None:
    replay = AcpReplay(entries_of("opencode.plain"))

    assert story(replay.events) == [
        "turn of []",
        "user: hi #mock:plain",
        "cost: 290000",
        "assistant: Hello from the mock model.",
        "usage: (150, 1000, 0, 20)",
        "completed: Hello from the mock model.",
    ]
    session = replay.of_kind("session")[-1]
    assert session["session_ref"].startswith("ses_")
    assert session["model"] == "mock/mock-model"
    assert session["permission_modes"] == ["build", "plan"]
    assert "".join(event["text"] for event in replay.of_kind("delta")) == "Hello from the mock model."
    (usage,) = replay.of_kind("usage")
    assert (usage["provider"], usage["model"]) == ("mock", "mock-model")
    assert usage["key"] == "msg_21ef37221001f9e69SOkpPrVpm"


def test_gemini_asks_before_it_has_told_of_the_call() -> None:
    replay = AcpReplay(entries_of("gemini.allow"))

    assert story(replay.events) == [
        "turn of []",
        "user: go #mock:shell",
        "assistant: Running.",
        "run_shell_command execute: touch made-by-agent && echo ran",
        "asks: run_shell_command: touch made-by-agent && echo ran",
        "closed: allowed",
        "command c1: True",
        "-> success",
        "assistant: Finished running.",
        "usage: (2300, 0, 0, 40)",
        "completed: Finished running.",
    ]
    (asked,) = replay.of_kind("ask")
    assert asked["detail"] == asked["target"] == "touch made-by-agent && echo ran"
    assert asked["can_allow_for_session"]


def test_opencode_tells_more_of_a_call_until_it_runs() -> None:
    lines = story(AcpReplay(entries_of("opencode.allow")).events)

    assert lines[3:8] == [
        "bash execute: bash",
        "bash execute: touch made-by-agent && echo ran",
        "asks: bash: touch made-by-agent && echo ran",
        "closed: allowed",
        "command c1: True",
    ]
    assert "-> success ran" in lines


@pytest.mark.parametrize("name", ["gemini.reject", "opencode.reject", "claude-agent-acp.reject"])
def test_a_call_that_is_denied_is_blocked(name: str) -> None:
    replay = AcpReplay(entries_of(name))

    assert [event["status"] for event in replay.of_kind("tool_finished")] == ["blocked"]
    assert [event["outcome"] for event in replay.of_kind("ask_closed")] == ["denied"]


@pytest.mark.parametrize("agent", ["gemini", "opencode", "claude-agent-acp", "codex-acp"])
def test_a_turn_that_is_cancelled_leaves_the_word_to_the_person(agent: str) -> None:
    replay = AcpReplay(entries_of(f"{agent}.cancel"))

    (ended,) = replay.of_kind("turn_ended")
    assert ended["outcome"] == "interrupted"
    assert ended["text"].startswith("word0 word1 word2")
    said = [(event["role"], event["text"]) for event in replay.of_kind("message") if not event["is_thinking"]]
    assert said[-2:] == [("assistant", ended["text"]), ("system", INTERRUPTED)]
    assert not replay.is_finished


@pytest.mark.parametrize("agent", ["gemini", "opencode", "claude-agent-acp", "codex-acp"])
def test_an_error_of_the_vendor_fails_the_turn_with_its_words(agent: str) -> None:
    replay = AcpReplay(entries_of(f"{agent}.error"))

    (ended,) = replay.of_kind("turn_ended")
    assert ended["outcome"] == "failed"
    assert "mock bad request" in ended["error"]
    assert "{" not in ended["error"]


def test_an_error_of_geminis_vendor_is_told_with_its_status() -> None:
    (ended,) = AcpReplay(entries_of("gemini.error")).of_kind("turn_ended")

    assert ended["error"] == "mock bad request (HTTP 400)"
