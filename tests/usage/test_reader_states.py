"""What holds for each reader: it can be left behind any line, and no bytes make it fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.usage.amp import AmpReader
from agentmon.usage.claude import ClaudeReader
from agentmon.usage.codex import CodexReader, running_totals
from agentmon.usage.copilot import CopilotReader
from agentmon.usage.gemini import GeminiReader
from agentmon.usage.qwen import QwenReader
from tests.usage.histories import SAMPLES, History

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.usage.reading import Reader

FOLDER = Path(__file__).parent
PARENT = (FOLDER / "rollouts" / "repeated_counts.jsonl").read_bytes()
FILES = sorted(
    path
    for folder in (
        *(FOLDER / "rollouts", FOLDER / "chats", FOLDER / "qwen", FOLDER / "copilot"),
        *(SAMPLES / "claude", SAMPLES / "captured" / "claude"),
    )
    for path in folder.rglob("*.jsonl")
)


def reader_for(path: Path) -> Reader:
    if "rollouts" in path.parts:
        inherited = running_totals(PARENT) if path.stem == "copied_history" else None
        return CodexReader(thread_id="t", inherited=inherited)
    if "qwen" in path.parts:
        return QwenReader(session_ref="s")
    if "copilot" in path.parts:
        return CopilotReader(session_ref="s")
    return GeminiReader(session_ref="s", cwd="/p") if "chats" in path.parts else ClaudeReader(session_ref="s")


def told_by(reader: Reader, pieces: Sequence[bytes]) -> History:
    """Read the pieces, each with a reader that was restored from what JSON can hold."""
    history, offset = History(), 0
    for piece in pieces:
        history.keep("any", reader.read(piece, offset))
        reader = type(reader).restore(json.loads(json.dumps(reader.state())))
        offset += len(piece)
    return history


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_reader_that_is_left_behind_each_line_tells_the_same(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)

    whole, line_by_line = told_by(reader_for(path), [b"".join(lines)]), told_by(reader_for(path), lines)

    assert list(line_by_line.answers) == list(whole.answers)
    for place, answer in whole.answers.items():
        again = line_by_line.answers[place]
        assert (again.session_ref, again.at_ms, again.total_tokens) == (
            answer.session_ref,
            answer.at_ms,
            answer.total_tokens,
        )
        assert (again.model, again.confidence, again.is_subagent) == (
            answer.model,
            answer.confidence,
            answer.is_subagent,
        )
    assert line_by_line.sessions.keys() == whole.sessions.keys()


@pytest.mark.proof
@pytest.mark.parametrize("kind", [ClaudeReader, CodexReader, GeminiReader, QwenReader, CopilotReader, AmpReader])
@given(st.lists(st.binary(max_size=40), max_size=20))
def test_no_bytes_make_a_reader_fail(kind: type[Reader], pieces: list[bytes]) -> None:
    marks = [b'"usage"', b'"assistant"', b'"token_count"', b'"session_meta"', b'"tokens"', b'"sessionId"', b"\n", b"{"]
    marks += [b'"usageMetadata"', b'"qwen-code.api_response"', b'"session.shutdown"']
    chunk = b"".join(piece + marks[number % len(marks)] for number, piece in enumerate(pieces)) + b"\n"

    kind.restore({}).read(chunk, 0)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "type",
                        "payload",
                        "info",
                        "message",
                        "usage",
                        "tokens",
                        "id",
                        "sessionId",
                        "$set",
                        "messages",
                        "model",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_record_of_another_form_makes_a_reader_fail(value: object) -> None:
    shapes: list[object] = [
        {"type": "assistant", "message": value, "usage": value, "forkedFrom": value, "timestamp": value},
        {"type": "assistant", "message": {"id": "m", "usage": value, "model": value}, "costUSD": value, "cwd": value},
        {"type": "assistant", "message": {"id": "m", "usage": {"iterations": value, "cache_creation": value}}},
        {"type": "session_meta", "payload": value},
        {"type": "turn_context", "payload": value},
        {"type": "token_usage_record", "payload": {"response_id": "r", "usage": value, "thread_token_usage": value}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": value}},
        {"type": "gemini", "id": "m", "tokens": value, "model": value, "sessionId": value},
        {"$set": value, "messages": value, "tokens": 1},
        {"type": "assistant", "uuid": "u", "usageMetadata": value, "forkedFrom": value, "model": value},
        {"type": "system", "systemPayload": {"uiEvent": {"event.name": "qwen-code.api_response", "model": value}}},
        {"type": "system", "systemPayload": value, "subtype": "custom_title", "uuid": value},
        {"type": "session.start", "data": value, "timestamp": value},
        {"type": "session.shutdown", "data": {"modelMetrics": {"m": value, "": value}}, "id": value},
        {"type": "session.shutdown", "data": {"modelMetrics": {"m": {"usage": value, "requests": value}}}},
        {"usageLedger": {"events": [value, {"tokens": value, "toMessageId": value, "id": value}]}, "env": value},
        {"messages": [value, {"usage": value, "messageId": value}], "usageLedger": value, "created": value},
    ]
    chunk = b"".join(json.dumps(shape, separators=(",", ":")).encode() + b"\n" for shape in shapes)

    for kind in (ClaudeReader, CodexReader, GeminiReader, QwenReader, CopilotReader, AmpReader):
        reading = kind().read(chunk, 0)
        assert all(answer.total_tokens >= 0 for answer in reading.answers)
