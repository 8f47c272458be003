"""Messages and tool calls out of transcripts of Claude Code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentmon.domain.history import MAX_MESSAGE_CHARACTERS, HistoryOperation
from agentmon.domain.redaction import MASK
from agentmon.usage.history.claude import ClaudeHistoryReader
from tests.usage.history.conversations_read import line, parts_of, told
from tests.usage.transcripts import answered

AT = "2026-11-10T14:00:00.000Z"
LATER = "2026-11-10T14:00:02.500Z"


def said(text: object, *, uuid: str = "u1", at: str = AT, **fields: Any) -> bytes:
    return line(
        type="user", message={"role": "user", "content": text}, uuid=uuid, timestamp=at, sessionId="s1", **fields
    )


def called(**given: object) -> bytes:
    return answered("m1", content=[{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": given}], at=AT)


def ended(output: object = "hello", *, is_error: bool = False, **fields: Any) -> bytes:
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": output, "is_error": is_error}
    return said([block], uuid="u9", at=LATER, **fields)


def read(*lines: bytes) -> list[tuple[str, str]]:
    return told(parts_of(ClaudeHistoryReader(session_ref="s1").read(b"".join(lines), 0)))


def test_words_thoughts_and_calls_are_told() -> None:
    content = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "I look."}]

    heard = read(said("where is it?"), answered("m0", content=content), called(command="ls"), ended())

    assert heard == [
        ("user", "where is it?"),
        ("thought", "Hm."),
        ("Bash", "execute ls: success"),
        ("assistant", "I look."),
    ]


def test_a_call_that_never_ended_is_cancelled() -> None:
    assert read(called(command="ls")) == [("Bash", "execute ls: cancelled")]


@pytest.mark.parametrize(
    ("fields", "is_error", "status"),
    [
        ({}, False, "success"),
        ({}, True, "failed"),
        ({"toolUseResult": {"interrupted": True}}, False, "cancelled"),
        ({"permissionDecision": {"decision": "reject"}}, True, "blocked"),
        ({"toolDenialKind": "user-rejected", "toolDenialBeforeRun": True}, True, "blocked"),
        ({"toolDenialKind": "user-rejected"}, True, "cancelled"),
    ],
)
def test_a_call_ends_as_its_result_says(fields: dict[str, Any], is_error: bool, status: str) -> None:
    assert read(called(command="ls"), ended(is_error=is_error, **fields)) == [("Bash", f"execute ls: {status}")]


def test_a_call_that_is_open_at_the_end_of_a_piece_ends_in_the_next_one() -> None:
    reader = ClaudeHistoryReader(session_ref="s1")
    reader.read(called(command="ls"), 0)

    state = json.loads(json.dumps(reader.state()))
    (operation,) = ClaudeHistoryReader.restore(state).read(ended(), 500).operations

    assert (operation.target, operation.status, operation.output_summary) == ("ls", "success", "hello")
    assert operation.duration_ms == 2500


@pytest.mark.parametrize(
    "text",
    [
        "<command-name>/clear</command-name>",
        "<local-command-stdout>done</local-command-stdout>",
        "<task-notification>\n<task-id>a</task-id>",
        "[Request interrupted by user]",
    ],
)
def test_what_the_program_wrote_is_no_message_of_a_person(text: str) -> None:
    assert read(said(text)) == [("system", text)]


def test_a_summary_of_what_came_before_is_no_message_of_a_person() -> None:
    assert read(said("It was about carts.", isCompactSummary=True)) == [("system", "It was about carts.")]


def test_meta_records_and_reminders_are_left_out() -> None:
    reminder = "<system-reminder>\nYou may look.\n</system-reminder>"

    assert read(said("hidden", isMeta=True), said(reminder, uuid="u2"), said(f"go on{reminder}", uuid="u3")) == [
        ("user", "go on")
    ]


def test_a_message_of_several_records_is_told_once_for_each_text() -> None:
    part = answered("m1", content=[{"type": "text", "text": "ok"}])

    assert read(part, part, answered("m1", content=[{"type": "text", "text": "done"}])) == [
        ("assistant", "ok"),
        ("assistant", "done"),
    ]


def test_a_copy_in_a_fork_belongs_to_the_conversation_that_it_was_copied_from() -> None:
    original = ClaudeHistoryReader(session_ref="s1").read(said("hi") + answered("m1", content=[_text("yes")]), 0)
    copied = said("hi", uuid="u7", forkedFrom={"sessionId": "s1", "messageUuid": "u1"}).replace(b'"s1","f', b'"s2","f')
    copied += answered("m1", session="s2", content=[_text("yes")], requestSessionId="s1")

    fork = ClaudeHistoryReader(session_ref="s2").read(copied, 0)

    assert {message.session_ref for message in fork.messages} == {"s1"}
    assert [message.ref for message in fork.messages] == [message.ref for message in original.messages]


def test_a_subagent_speaks_within_its_call() -> None:
    reader = ClaudeHistoryReader(session_ref="s1", parent_ref="toolu_5")

    reading = reader.read(said("sub work", isSidechain=True, agentId="a1") + called(command="ls"), 0)

    assert {part.parent_ref for part in parts_of(reading)} == {"toolu_5"}


def test_secrets_are_masked_in_words_and_calls() -> None:
    key = "sk-ant-" + "a1B2" * 8

    heard = read(said(f"use {key}"), called(command=f"curl -H {key}"), ended(output=f"got {key}"))

    assert MASK in heard[0][1]
    assert key not in str(heard)


def test_a_secret_at_the_cut_is_not_kept_in_part() -> None:
    key = "sk-ant-" + "a1B2" * 50
    text = "x " * (MAX_MESSAGE_CHARACTERS // 2 - 10) + key

    ((_, kept),) = read(said(text))

    assert len(kept) <= MAX_MESSAGE_CHARACTERS
    assert "sk-ant" not in kept


def test_long_outputs_are_cut() -> None:
    reading = ClaudeHistoryReader(session_ref="s1").read(called(command="ls") + ended(output="y" * 100_000), 0)

    (operation,) = (part for part in parts_of(reading) if isinstance(part, HistoryOperation))
    assert len(operation.output_summary) == 1000


def test_damage_is_passed_over_and_reported() -> None:
    reading = ClaudeHistoryReader(session_ref="s1").read(b'{"type":"user","message":{\n' + said("hi"), 40)

    assert told(parts_of(reading)) == [("user", "hi")]
    assert [problem.offset for problem in reading.problems] == [40]


def _text(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("told_of_it", "is_error", "expected"),
    [
        (
            {
                "filePath": "/p/a",
                "structuredPatch": [
                    {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-x", "+y"]}
                ],
            },
            False,
            (("/p/a", "@@ -1,1 +1,1 @@\n-x\n+y\n"),),
        ),
        (
            {"type": "create", "filePath": "/p/a", "content": "x\ny", "structuredPatch": []},
            False,
            (("/p/a", "@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n"),),
        ),
        ({"type": "create", "filePath": "/p/a", "content": "x\n", "structuredPatch": []}, True, ()),
        ({"stdout": "", "structuredPatch": "damaged"}, False, ()),
    ],
)
def test_a_call_that_went_well_has_how_it_changed_a_file(
    told_of_it: dict[str, object], is_error: bool, expected: tuple[tuple[str, str], ...]
) -> None:
    (operation,) = parts_of(
        ClaudeHistoryReader(session_ref="s1").read(
            called(command="x") + ended(is_error=is_error, toolUseResult=told_of_it), 0
        )
    )
    assert isinstance(operation, HistoryOperation)
    assert operation.differences == expected
