"""Messages and tool calls out of a transcript of Claude Code; see ``agentmon.usage.claude`` for its records."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, ClassVar, Final, Self

from agentmon.domain.claude_tools import hunks_text, input_summary, result_text, tool_target, tool_type
from agentmon.domain.history import MAX_PLACE, HistoryMessage, HistoryOperation
from agentmon.domain.json_values import one_line
from agentmon.domain.operations import MessageRole, OperationStatus, OperationType
from agentmon.usage.claude import SYNTHETIC_MODEL
from agentmon.usage.fields import milliseconds_in, moment_in, object_in, objects_in, parse_record, ref_in, text_in
from agentmon.usage.history.open_calls import OpenCalls
from agentmon.usage.history.reading import (
    HistoryReading,
    Told,
    difference,
    difference_of_new,
    message_text,
    summary,
)
from agentmon.usage.reading import ReadingProblem, without_byte_order_mark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.usage.history.reading import Differences

SIDECHAIN: Final = "sidechain"
"""The parent of what subagents of older releases said, whose call is not told."""
_MARKS: Final = (b'"type":"user"', b'"type":"assistant"', b'"type": "user"', b'"type": "assistant"')
_REMINDER: Final = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_PROGRAM_WORDS: Final = (
    "<command-name>", "<command-message>", "<local-command-", "<bash-input>", "<bash-stdout>", "<bash-stderr>",
    "<task-notification>", "<user-memory-input>", "Caveat: The messages below were generated", "[Request interrupted",
)  # fmt: skip
"""How texts begin that the program wrote in the person's name."""
_PERSON: Final = "human"
_RESULTS: Final = ("tool_result", "web_search_tool_result", "web_fetch_tool_result", "mcp_tool_result")
_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_MAX_TEXT: Final = 1_048_576
_BLOCKS_PER_LINE: Final = 16


class ClaudeHistoryReader:
    """Reads one transcript of a conversation or of a subagent."""

    parser_version: ClassVar[int] = 1

    __slots__ = ("_calls", "_last_at_ms", "_parent_ref", "_session_ref")

    def __init__(self, *, session_ref: str = "", parent_ref: str = "") -> None:
        """Begin at the start of a file.

        Args:
            session_ref: The conversation of records that name none.
            parent_ref: The call of the subagent whose file it is; empty for the file of a conversation.
        """
        self._session_ref = session_ref
        self._parent_ref = parent_ref
        self._last_at_ms = 0
        self._calls = OpenCalls()

    @classmethod
    def restore(cls, state: Mapping[str, object]) -> Self:
        """Return a reader that goes on where the one with that state was."""
        reader = cls(session_ref=text_in(state, "session_ref"), parent_ref=text_in(state, "parent_ref"))
        reader._last_at_ms = milliseconds_in(state, "last_at_ms")
        reader._calls = OpenCalls.restore(state, "calls")
        return reader

    def state(self) -> dict[str, object]:
        """Return what is to be known of the lines so far."""
        return {
            "session_ref": self._session_ref,
            "parent_ref": self._parent_ref,
            "last_at_ms": self._last_at_ms,
            "calls": self._calls.state(),
        }

    def read(self, chunk: bytes, offset: int) -> HistoryReading:
        """Return what the lines tell; see ``agentmon.usage.reading.Reader``."""
        told, begin = Told(), 0
        for line in without_byte_order_mark(chunk, offset).split(b"\n"):
            if any(mark in line for mark in _MARKS):
                record = parse_record(line)
                if record is None:
                    told.problems.append(ReadingProblem(offset=offset + begin, reason="a damaged line"))
                elif text_in(record, "type", 40) in {"user", "assistant"} and record.get("isMeta") is not True:
                    self._take(record, told)
            begin += len(line) + 1
        return told.reading()

    def _take(self, record: Mapping[str, object], told: Told) -> None:
        message = object_in(record, "message")
        self._last_at_ms = moment_in(record, "timestamp") or self._last_at_ms
        line = _Line(
            record,
            message,
            session_ref=self._session_ref,
            parent_ref=self._parent_ref,
            at_ms=self._last_at_ms,
        )
        if not line.ref or not line.session_ref:
            return
        content = message.get("content")
        told_blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks = objects_in({"blocks": told_blocks}, "blocks")
        for number, block in enumerate(blocks):
            place = min(line.place + number, MAX_PLACE)
            kind = text_in(block, "type", 40)
            if kind in _CALLS:
                self._begin(block, line, place, told)
            elif kind in _RESULTS:
                self._end(block, line, told)
            elif record.get("type") == "user":
                told.say(line.of_person(block, number, place))
            elif kind in {"text", "thinking"}:
                told.say(line.of_model(block, place))

    def _begin(self, block: Mapping[str, object], line: _Line, place: int, told: Told) -> None:
        ref, name, given = ref_in(block, "id"), text_in(block, "name", 200), object_in(block, "input")
        if not ref or not name:
            return
        operation = HistoryOperation(
            session_ref=line.session_ref,
            is_owner_marked=line.is_owner_marked,
            ref=ref,
            tool_name=name,
            type=OperationType(tool_type(name)),
            target=summary(tool_target(name, given)),
            input_summary=summary(input_summary(given)),
            status=OperationStatus.CANCELLED,
            started_at_ms=line.at_ms,
            parent_ref=line.parent_ref or None,
            answer_key=line.key or None,
            place=place,
        )
        told.call(self._calls.begin(operation))

    def _end(self, block: Mapping[str, object], line: _Line, told: Told) -> None:
        output = summary(result_text(block.get("content")))
        status = line.status_of(block)
        has_failed = status is not OperationStatus.SUCCESS
        ended = self._calls.end(
            ref_in(block, "tool_use_id"),
            status,
            at_ms=line.at_ms,
            output_summary=output,
            error=(one_line(output, 500) or None) if has_failed else None,
            differences=_differences_of(object_in(line.record, "toolUseResult")),
        )
        if ended is not None:
            told.call(ended)


def _differences_of(told: Mapping[str, object]) -> Differences:
    path, hunks = text_in(told, "filePath"), objects_in(told, "structuredPatch")
    if not hunks and told.get("type") == "create":
        return difference_of_new(path, text_in(told, "content", _MAX_TEXT))
    return difference(path, hunks_text(hunks)[0]) if hunks else ()


class _Line:
    """One record: whose it is, and when and by what it was written."""

    __slots__ = ("at_ms", "is_owner_marked", "key", "parent_ref", "place", "record", "ref", "session_ref")

    def __init__(
        self,
        record: Mapping[str, object],
        message: Mapping[str, object],
        *,
        session_ref: str,
        parent_ref: str,
        at_ms: int,
    ) -> None:
        self.record = record
        self.at_ms = at_ms
        forked = object_in(record, "forkedFrom")
        owner_ref = ref_in(record, "requestSessionId") or ref_in(forked, "sessionId")
        self.session_ref = owner_ref or ref_in(record, "sessionId") or session_ref
        self.is_owner_marked = bool(owner_ref)
        self.ref = ref_in(forked, "messageUuid") or ref_in(record, "uuid") or ref_in(message, "id")
        is_answer = record.get("type") == "assistant"
        self.key = (ref_in(message, "id") or self.ref) if is_answer else ""
        is_sidechain = record.get("isSidechain") is True
        self.parent_ref = parent_ref or ((ref_in(record, "agentId") or SIDECHAIN) if is_sidechain else "")
        index = record.get("apiBlockIndex")
        self.place = min(index * _BLOCKS_PER_LINE, MAX_PLACE) if type(index) is int and index >= 0 else 0

    def of_person(self, block: Mapping[str, object], number: int, place: int) -> HistoryMessage:
        """Return a block of what was written to the agent; what the program wrote itself is of the system."""
        text = block.get("text")
        said = _REMINDER.sub("", text).strip() if isinstance(text, str) else f"[{text_in(block, 'type', 40)}]"
        return self._message(f"{self.ref}:{number}", self._role_of(said), said, place)

    def of_model(self, block: Mapping[str, object], place: int) -> HistoryMessage:
        """Return a block of an answer; it is known by its text, since each line may number its blocks anew."""
        is_thinking = block.get("type") == "thinking"
        text = text_in(block, "thinking" if is_thinking else "text", _MAX_TEXT)
        digest = blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()
        is_made_up = text_in(object_in(self.record, "message"), "model", 200) == SYNTHETIC_MODEL
        role = MessageRole.SYSTEM if is_made_up else MessageRole.ASSISTANT
        return self._message(f"{self.key}:{digest}", role, text, place, is_thinking=is_thinking)

    def status_of(self, block: Mapping[str, object]) -> OperationStatus:
        """Return how the call ended whose result the block is."""
        if object_in(self.record, "toolUseResult").get("interrupted") is True:
            return OperationStatus.CANCELLED
        decision = text_in(object_in(self.record, "permissionDecision"), "decision", 40)
        kind = text_in(self.record, "toolDenialKind", 40)
        if decision in {"reject", "deny"} or (kind and self.record.get("toolDenialBeforeRun") is True):
            return OperationStatus.BLOCKED
        if block.get("is_error") is not True:
            return OperationStatus.SUCCESS
        return OperationStatus.CANCELLED if kind or decision == "cancelled" else OperationStatus.FAILED

    def _role_of(self, said: str) -> MessageRole:
        origin = text_in(object_in(self.record, "origin"), "kind", 40)
        is_program = (
            self.record.get("isCompactSummary") is True
            or said.startswith(_PROGRAM_WORDS)
            or (origin not in {"", _PERSON})
        )
        return MessageRole.SYSTEM if is_program else MessageRole.USER

    def _message(
        self, ref: str, role: MessageRole, text: str, place: int, *, is_thinking: bool = False
    ) -> HistoryMessage:
        return HistoryMessage(
            session_ref=self.session_ref,
            is_owner_marked=self.is_owner_marked,
            ref=ref,
            role=role,
            text=message_text(text),
            is_thinking=is_thinking,
            parent_ref=self.parent_ref or None,
            at_ms=self.at_ms,
            place=place,
        )
