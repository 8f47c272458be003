"""Messages and tool calls out of a chat of Gemini CLI; see ``agentmon.usage.gemini`` for its records.

A message is written again when its tools are done, and a chat may be set back: what was taken back was still said.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar, Final, Self

from agentmon.domain.history import MAX_PLACE, HistoryMessage, HistoryOperation
from agentmon.domain.json_values import one_line
from agentmon.domain.letters import cut
from agentmon.domain.operations import MessageRole, OperationStatus, OperationType
from agentmon.domain.tool_kinds import MAX_TARGET_CHARACTERS, command_of, kind_type, named_target
from agentmon.usage.fields import milliseconds_in, moment_in, object_in, objects_in, parse_record, ref_in, text_in
from agentmon.usage.gemini import CONTEXT, text_of
from agentmon.usage.history.reading import HistoryReading, Told, difference, message_text, summary
from agentmon.usage.reading import ReadingProblem, without_byte_order_mark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.usage.history.reading import Differences

_MARKS: Final = (b'"sessionId"', b'"timestamp"')
_KINDS: Final = {
    "read_file": "read",
    "read_many_files": "read",
    "list_directory": "search",
    "glob": "search",
    "search_file_content": "search",
    "grep_search": "search",
    "google_web_search": "search",
    "web_fetch": "fetch",
    "replace": "edit",
    "write_file": "edit",
    "save_memory": "think",
    "write_todos": "think",
    "run_shell_command": "execute",
}
"""Kinds of Gemini's own tools, which it tells over the protocol and not in its chats. Source: Gemini CLI 0.61.0."""
_STATUSES: Final = {
    "success": OperationStatus.SUCCESS,
    "error": OperationStatus.FAILED,
    "cancelled": OperationStatus.CANCELLED,
}
_SYSTEM_TYPES: Final = frozenset({"info", "error", "warning"})
_MAX_TEXT: Final = 1_048_576
_SPOKEN: Final = MAX_PLACE // 2
"""Where the words of a message stand among its parts: behind its thoughts, before its calls."""


class GeminiHistoryReader:
    """Reads one chat of a conversation or of a subagent."""

    parser_version: ClassVar[int] = 1

    __slots__ = ("_is_subagent", "_last_at_ms", "_parent_ref", "_session_ref")

    def __init__(self, *, session_ref: str = "", parent_ref: str = "") -> None:
        """Begin at the start of a file.

        Args:
            session_ref: The conversation of a chat that does not say its own.
            parent_ref: The conversation whose subagent it is.
        """
        self._session_ref = session_ref
        self._parent_ref = parent_ref
        self._is_subagent = bool(parent_ref)
        self._last_at_ms = 0

    @classmethod
    def restore(cls, state: Mapping[str, object]) -> Self:
        """Return a reader that goes on where the one with that state was."""
        reader = cls(session_ref=text_in(state, "session_ref"), parent_ref=text_in(state, "parent_ref"))
        reader._is_subagent = state.get("is_subagent") is True
        reader._last_at_ms = milliseconds_in(state, "last_at_ms")
        return reader

    def state(self) -> dict[str, object]:
        """Return what is to be known of the lines so far."""
        return {
            "session_ref": self._session_ref,
            "parent_ref": self._parent_ref,
            "is_subagent": self._is_subagent,
            "last_at_ms": self._last_at_ms,
        }

    def read(self, chunk: bytes, offset: int) -> HistoryReading:
        """Return what the lines tell; see ``agentmon.usage.reading.Reader``."""
        told, begin = Told(), 0
        for line in without_byte_order_mark(chunk, offset).split(b"\n"):
            if any(mark in line for mark in _MARKS):
                record = parse_record(line)
                if record is None:
                    told.problems.append(ReadingProblem(offset=offset + begin, reason="a damaged line"))
                else:
                    self._take(record, told)
            begin += len(line) + 1
        return told.reading()

    def _take(self, record: Mapping[str, object], told: Told) -> None:
        changes = object_in(record, "$set")
        for holder in (record, changes):
            self._session_ref = ref_in(holder, "sessionId") or self._session_ref
            self._is_subagent |= holder.get("kind") == "subagent"
        for message in (record, *objects_in(record, "messages"), *objects_in(changes, "messages")):
            self._take_message(message, told)

    def _take_message(self, message: Mapping[str, object], told: Told) -> None:
        kind, name = text_in(message, "type", 40), ref_in(message, "id")
        if not name or not self._session_ref or kind not in {"user", "gemini", *_SYSTEM_TYPES}:
            return
        self._last_at_ms = at_ms = moment_in(message, "timestamp") or self._last_at_ms
        text = text_of(message.get("content"))
        if kind == "user" and text.startswith(CONTEXT):
            return
        role = {"user": MessageRole.USER, "gemini": MessageRole.ASSISTANT}.get(kind, MessageRole.SYSTEM)
        for number, thought in enumerate(objects_in(message, "thoughts")[:_SPOKEN]):
            words = (text_in(thought, "subject", _MAX_TEXT), text_in(thought, "description", _MAX_TEXT))
            said = "\n\n".join(filter(None, words))
            told.say(self._message(f"{name}:{number}", MessageRole.ASSISTANT, said, at_ms, number, is_thinking=True))
        told.say(self._message(name, role, text, at_ms, _SPOKEN))
        for number, call in enumerate(objects_in(message, "toolCalls")[: MAX_PLACE - _SPOKEN - 1]):
            self._take_call(call, name, at_ms, _SPOKEN + 1 + number, told)

    def _take_call(self, call: Mapping[str, object], answer_key: str, at_ms: int, place: int, told: Told) -> None:
        ref, name = ref_in(call, "id"), text_in(call, "name", 200)
        if not ref or not name:
            return
        given = object_in(call, "args")
        command = cut(command_of(given), MAX_TARGET_CHARACTERS)
        status = _STATUSES.get(text_in(call, "status", 40))
        output = summary(_output_of(call))
        ended_at_ms = moment_in(call, "timestamp")
        told.call(
            HistoryOperation(
                session_ref=self._owner_ref,
                ref=f"{self._session_ref}:{ref}",
                tool_name=name,
                type=OperationType(kind_type(_KINDS.get(name, ""))),
                target=summary(command or named_target(given) or one_line(text_in(call, "description"), 500)),
                input_summary=summary(json.dumps(given, ensure_ascii=False) if given else ""),
                output_summary=output,
                status=OperationStatus.CANCELLED if status is None else status,
                error=(one_line(output, 500) or None) if status is OperationStatus.FAILED else None,
                started_at_ms=at_ms,
                finished_at_ms=None if status is None else max(at_ms, ended_at_ms),
                duration_ms=None if status is None else max(0, ended_at_ms - at_ms),
                parent_ref=self._session_ref if self._is_subagent else None,
                answer_key=answer_key,
                place=place,
                differences=_differences_of(call) if status is OperationStatus.SUCCESS else (),
            )
        )

    @property
    def _owner_ref(self) -> str:
        return self._parent_ref or self._session_ref

    def _message(
        self, name: str, role: MessageRole, text: str, at_ms: int, place: int, *, is_thinking: bool = False
    ) -> HistoryMessage:
        return HistoryMessage(
            session_ref=self._owner_ref,
            ref=f"{self._session_ref}:{name}",
            role=role,
            text=message_text(text),
            is_thinking=is_thinking,
            parent_ref=self._session_ref if self._is_subagent else None,
            at_ms=at_ms,
            place=place,
        )


def _differences_of(call: Mapping[str, object]) -> Differences:
    shown = object_in(call, "resultDisplay")
    path = text_in(shown, "filePath") or text_in(object_in(call, "args"), "file_path")
    return difference(path, text_in(shown, "fileDiff", _MAX_TEXT))


def _output_of(call: Mapping[str, object]) -> str:
    shown = call.get("resultDisplay")
    for part in objects_in(call, "result"):
        answered = object_in(object_in(part, "functionResponse"), "response")
        said = text_in(answered, "output", _MAX_TEXT) or text_in(answered, "error", _MAX_TEXT)
        if said:
            return said
    return shown if isinstance(shown, str) else ""
