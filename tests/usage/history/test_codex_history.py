"""Messages and tool calls out of rollouts of Codex."""

from __future__ import annotations

import json

import pytest

from agentmon.domain.history import HistoryOperation
from agentmon.usage.history.codex import CodexHistoryReader
from tests.usage.history.conversations_read import line, parts_of, told

AT = "2026-05-01T10:00:00.000Z"


def begun(thread: str = "t1", *, at: str = AT, **fields: object) -> bytes:
    return line(timestamp=at, type="session_meta", payload={"id": thread, "cwd": "/project", **fields})


def record(kind: str, *, at: str = AT, **payload: object) -> bytes:
    return line(timestamp=at, type=kind, payload=payload)


def asked(text: str, *, at: str = AT) -> bytes:
    return record("event_msg", at=at, type="user_message", message=text)


def answered(text: str, *, at: str = AT, ref: str | None = None) -> bytes:
    content = [{"type": "output_text", "text": text}]
    return record("response_item", at=at, type="message", role="assistant", content=content, id=ref)


def called(name: str, arguments: object, *, ref: str = "call_1") -> bytes:
    return record("response_item", type="function_call", name=name, arguments=json.dumps(arguments), call_id=ref)


def gave(output: str, *, ref: str = "call_1", at: str = AT) -> bytes:
    return record("response_item", at=at, type="function_call_output", call_id=ref, output=output)


def item(kind: str, ref: str, **fields: object) -> bytes:
    return record("event_msg", type="item_completed", item={"type": kind, "id": ref, **fields})


def read(*lines: bytes) -> list[tuple[str, str]]:
    return told(parts_of(CodexHistoryReader().read(b"".join(lines), 0)))


def test_older_rollouts_tell_questions_answers_and_calls() -> None:
    heard = read(
        begun(),
        asked("list it"),
        called("shell", {"command": ["bash", "-lc", "ls -l"]}),
        gave(json.dumps({"output": "a\n", "metadata": {"exit_code": 0}})),
        answered("There is one file.", at="2026-05-01T10:00:05.000Z"),
    )

    assert heard == [("user", "list it"), ("shell", "execute ls -l: success"), ("assistant", "There is one file.")]


def test_newer_rollouts_tell_each_item_once() -> None:
    heard = read(
        begun(),
        record("response_item", type="message", role="user", content=[{"type": "input_text", "text": "go"}]),
        item("UserMessage", "i1", content=[{"type": "text", "text": "go"}]),
        answered("Running.", ref="msg_1"),
        item("AgentMessage", "msg_1", content=[{"type": "Text", "text": "Running."}]),
        called("exec_command", {"cmd": "cat a.txt"}),
        item(
            "CommandExecution",
            "call_1",
            command=["/bin/bash", "-lc", "cat a.txt"],
            parsed_cmd=[{"type": "read", "cmd": "cat a.txt"}],
            status="completed",
            exit_code=0,
            aggregated_output="a\n",
        ),
        gave("Chunk ID: 1\nProcess exited with code 0\nOutput:\na\n"),
    )

    assert heard == [("user", "go"), ("shell", "read cat a.txt: success"), ("assistant", "Running.")]


def test_context_and_instructions_are_no_messages() -> None:
    context = [{"type": "input_text", "text": "<environment_context>\n  <cwd>/project</cwd>"}]

    assert read(
        begun(),
        record("response_item", type="message", role="user", content=context),
        record("response_item", type="message", role="developer", content=context),
        asked("# AGENTS.md instructions for /project"),
    ) == [("system", "# AGENTS.md instructions for /project")]


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ("Exit code: 0\nOutput:\nfine", "success"),
        ("Process exited with code 2\nOutput:\nno", "failed"),
        ('exec_command failed: CreateProcess { message: "Rejected(\\"rejected by user\\")" }', "blocked"),
        ("Wall time: 0.1 seconds\naborted by user", "cancelled"),
        ('{"output": "no", "metadata": {"exit_code": 1}}', "failed"),
    ],
)
def test_a_call_ends_as_its_output_says(output: str, status: str) -> None:
    assert read(begun(), called("shell", {"command": "make"}), gave(output)) == [("shell", f"execute make: {status}")]


def test_a_patch_names_its_files() -> None:
    patch = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** Update File: b/c.py\n@@\n-x\n+y\n*** End Patch\n"
    heard = read(
        begun(), record("response_item", type="custom_tool_call", name="apply_patch", input=patch, call_id="call_1")
    )

    assert heard == [("apply_patch", "write a.txt, b/c.py: cancelled")]


def test_the_copied_beginning_of_a_fork_is_left_to_its_parent() -> None:
    own = "2026-05-02T09:01:00.000Z"
    heard = read(
        begun("t2", at="2026-05-02T09:00:00.000Z", forked_from_id="t1"),
        begun("t1"),
        asked("the old question", at="2026-05-02T09:00:00.200Z"),
        answered("the old answer", at="2026-05-02T09:00:00.300Z"),
        asked("the new question", at=own),
        answered("the new answer", at=own),
    )

    assert heard == [("user", "the new question"), ("assistant", "the new answer")]


def test_a_fork_that_copies_nothing_is_read_from_its_beginning() -> None:
    assert read(begun("t2", forked_from_id="t1", history_mode="paginated"), asked("go on")) == [("user", "go on")]


def test_a_subagent_speaks_within_the_conversation_that_spawned_it() -> None:
    reading = CodexHistoryReader().read(begun("t2", parent_thread_id="t1", source={"subagent": {}}) + asked("sub"), 0)

    assert [(one.session_ref, one.parent_ref) for one in reading.messages] == [("t1", "t2")]


def test_a_state_goes_on_where_it_was_left() -> None:
    lines = [
        begun(),
        asked("go"),
        called("shell", {"command": "make"}),
        gave("Exit code: 1\nOutput:\nno", at="2026-05-01T10:00:09.000Z"),
        answered("It fails."),
    ]
    reader, parts = CodexHistoryReader(), []
    for part in lines:
        parts += parts_of(reader.read(part, 0))
        reader = CodexHistoryReader.restore(json.loads(json.dumps(reader.state())))

    whole = parts_of(CodexHistoryReader().read(b"".join(lines), 0))
    assert {part.ref: part for part in parts} == {part.ref: part for part in whole}


def test_a_patch_that_was_applied_has_its_hunks() -> None:
    changes = {
        "/p/a": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-x\n+y\n", "move_path": None},
        "/p/b": {"type": "add", "content": "x\n"},
        "/p/c": {"type": "delete", "content": "x\n"},
    }
    for status, expected in (
        (
            "completed",
            {"/p/a": "@@ -1 +1 @@\n-x\n+y\n", "/p/b": "@@ -0,0 +1,1 @@\n+x\n", "/p/c": "@@ -1,1 +0,0 @@\n-x\n"},
        ),
        ("declined", {}),
    ):
        (operation,) = parts_of(
            CodexHistoryReader().read(begun() + item("FileChange", "call_1", changes=changes, status=status), 0)
        )
        assert isinstance(operation, HistoryOperation)
        assert dict(operation.differences) == expected
