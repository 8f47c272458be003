"""Messages and tool calls out of chats of Gemini CLI."""

from __future__ import annotations

from agentmon.usage.history.gemini import GeminiHistoryReader
from tests.usage.history.conversations_read import line, parts_of, told

AT = "2026-11-12T09:00:00.000Z"
BEGUN = line(sessionId="s1", startTime=AT, kind="main")


def message(kind: str, ref: str, content: object, **fields: object) -> dict[str, object]:
    return {"id": ref, "timestamp": AT, "type": kind, "content": content, **fields}


def read(*lines: bytes, parent_ref: str = "") -> list[tuple[str, str]]:
    return told(parts_of(GeminiHistoryReader(parent_ref=parent_ref).read(b"".join(lines), 0)))


def test_words_thoughts_and_calls_are_told_in_their_order() -> None:
    call = {"id": "c1", "name": "run_shell_command", "args": {"command": "ls"}, "status": "success", "timestamp": AT}
    thought = {"subject": "Files", "description": "I list them."}

    heard = read(BEGUN, line(**message("gemini", "m1", "Listing.", thoughts=[thought], toolCalls=[call])))

    assert heard == [
        ("thought", "Files\n\nI list them."),
        ("assistant", "Listing."),
        ("run_shell_command", "execute ls: success"),
    ]


def test_a_message_that_is_written_again_is_one() -> None:
    call = {"id": "c1", "name": "read_file", "args": {"file_path": "a"}, "status": "error", "timestamp": AT}
    first, again = message("gemini", "m1", ""), message("gemini", "m1", "Done.", toolCalls=[call])

    assert read(BEGUN, line(**first), line(**again), line(**again)) == [
        ("assistant", "Done."),
        ("read_file", "read a: failed"),
    ]


def test_the_context_before_a_conversation_is_left_out() -> None:
    context = message("user", "c0", [{"text": "<session_context>\nThis is the Gemini CLI."}])

    assert read(BEGUN, line(**{"$set": {"messages": [context]}}), line(**message("user", "u1", "hi"))) == [
        ("user", "hi")
    ]


def test_what_a_tool_gave_back_is_no_message() -> None:
    answer = [{"functionResponse": {"id": "c1", "name": "glob", "response": {"output": "a"}}}]

    assert read(BEGUN, line(**message("user", "u1", answer))) == []


def test_a_chat_that_is_one_document_is_read() -> None:
    document = line(
        sessionId="s1", startTime=AT, messages=[message("user", "u1", "hi"), message("gemini", "m1", "yes")]
    )

    assert read(document) == [("user", "hi"), ("assistant", "yes")]


def test_a_message_that_was_taken_back_was_said() -> None:
    assert read(BEGUN, line(**message("user", "u1", "wrong way")), line(**{"$rewindTo": "u1"})) == [
        ("user", "wrong way")
    ]


def test_a_subagent_speaks_within_its_conversation() -> None:
    reading = GeminiHistoryReader(parent_ref="s0").read(BEGUN + line(**message("user", "u1", "sub")), 0)

    assert [(one.session_ref, one.parent_ref) for one in reading.messages] == [("s0", "s1")]


def test_a_call_that_went_well_has_how_it_changed_a_file() -> None:
    diff = "Index: a\n====\n--- a\tCurrent\n+++ a\tProposed\n@@ -1,1 +1,1 @@\n-x\n+y\n"
    call = {"name": "replace", "args": {"file_path": "a"}, "timestamp": AT, "resultDisplay": {"fileDiff": diff}}
    calls = [{**call, "id": "c1", "status": "success"}, {**call, "id": "c2", "status": "cancelled"}]

    reading = GeminiHistoryReader().read(BEGUN + line(**message("gemini", "m1", "", toolCalls=calls)), 0)

    assert [one.differences for one in reading.operations] == [(("a", "@@ -1,1 +1,1 @@\n-x\n+y\n"),), ()]
