"""Messages and tool calls out of a rollout of Codex; see ``agentmon.usage.codex`` for its records.

Newer releases write whole items (``item_completed``) beside what the model is told; older ones the latter alone, and
what the person wrote as ``user_message``. Both name an answer and a call alike, so that each is one.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, ClassVar, Final, Self

from agentmon.domain.codex_items import MAX_TARGET_CHARACTERS, call_of, ending_of, message_texts, unified
from agentmon.domain.history import HistoryMessage, HistoryOperation
from agentmon.domain.json_values import objects_in, one_line
from agentmon.domain.letters import cut
from agentmon.domain.operations import MessageRole, OperationStatus, OperationType
from agentmon.usage.codex import MIN_FORK_PAUSE_MS, parent_thread
from agentmon.usage.fields import milliseconds_in, moment_in, object_in, parse_record, ref_in, text_in
from agentmon.usage.history.open_calls import OpenCalls
from agentmon.usage.history.reading import HistoryReading, Told, difference, message_text, summary
from agentmon.usage.history.rollout_items import call_output, called_item, completed_item, said_texts
from agentmon.usage.reading import ReadingProblem, without_byte_order_mark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.usage.history.reading import Differences
    from agentmon.usage.history.rollout_items import Item

_MARKS: Final = (b'"session_meta"', b'"response_item"', b'"item_completed"', b'"user_message"')
_TEXT_ITEMS: Final = frozenset({"userMessage", "agentMessage", "reasoning", "exitedReviewMode", "hookPrompt"})
_CALL_ITEMS: Final = frozenset({
    "commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall", "webSearch", "imageView", "imageGeneration",
    "collabAgentToolCall",
})  # fmt: skip
_OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_PROGRAM_WORDS: Final = (
    "<environment_context>", "<user_instructions>", "<skill>", "<turn_aborted>", "<user_shell_command>",
    "<subagent_notification>", "# AGENTS.md instructions",
)  # fmt: skip
"""How texts begin that the program wrote in the person's name."""
_MAX_TEXT: Final = 1_048_576


class CodexHistoryReader:
    """Reads one rollout."""

    parser_version: ClassVar[int] = 1

    __slots__ = (
        "_calls",
        "_forked_at_ms",
        "_has_items",
        "_is_copying",
        "_last_at_ms",
        "_owner_ref",
        "_parent_ref",
        "_thread_id",
    )

    def __init__(self, *, thread_id: str = "") -> None:
        """Begin at the start of a rollout; ``thread_id`` is that of one that does not say whose it is."""
        self._thread_id = ""
        self._owner_ref = thread_id
        self._parent_ref = ""
        self._is_copying = False
        self._has_items = False
        self._forked_at_ms = 0
        self._last_at_ms = 0
        self._calls = OpenCalls()

    @classmethod
    def restore(cls, state: Mapping[str, object]) -> Self:
        """Return a reader that goes on where the one with that state was."""
        reader = cls(thread_id=text_in(state, "owner_ref"))
        reader._thread_id = text_in(state, "thread_id")
        reader._parent_ref = text_in(state, "parent_ref")
        reader._is_copying = state.get("is_copying") is True
        reader._has_items = state.get("has_items") is True
        reader._forked_at_ms = milliseconds_in(state, "forked_at_ms")
        reader._last_at_ms = milliseconds_in(state, "last_at_ms")
        reader._calls = OpenCalls.restore(state, "calls")
        return reader

    def state(self) -> dict[str, object]:
        """Return what is to be known of the lines so far."""
        return {
            "thread_id": self._thread_id,
            "owner_ref": self._owner_ref,
            "parent_ref": self._parent_ref,
            "is_copying": self._is_copying,
            "has_items": self._has_items,
            "forked_at_ms": self._forked_at_ms,
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
                else:
                    self._take(record, told)
            begin += len(line) + 1
        return told.reading()

    def _take(self, record: Mapping[str, object], told: Told) -> None:
        payload = object_in(record, "payload")
        self._last_at_ms = moment_in(record, "timestamp") or self._last_at_ms
        kind = record.get("type")
        if kind == "session_meta":
            self._take_beginning(payload)
            return
        if self._is_copying and self._last_at_ms >= self._forked_at_ms + MIN_FORK_PAUSE_MS:
            self._is_copying = False
        if self._is_copying or not self._owner_ref:
            return
        if kind == "response_item":
            self._take_response(payload, told)
        elif kind == "event_msg" and payload.get("type") == "item_completed":
            self._take_item(payload, told)
        elif kind == "event_msg" and payload.get("type") == "user_message":
            self._say(
                self._own_ref(text_in(payload, "message", _MAX_TEXT)),
                "user",
                text_in(payload, "message", _MAX_TEXT),
                told,
            )

    def _take_beginning(self, payload: Mapping[str, object]) -> None:
        thread_id = ref_in(payload, "id")
        if self._thread_id:
            # A second beginning is the copy of the parent's.
            self._is_copying |= bool(thread_id) and thread_id != self._thread_id
            return
        self._thread_id = thread_id or self._owner_ref
        source = object_in(payload, "source")
        is_subagent = "subagent" in source or payload.get("thread_source") == "subagent"
        is_subagent |= bool(ref_in(payload, "parent_thread_id"))
        self._owner_ref = (parent_thread(payload) if is_subagent else "") or self._thread_id
        self._parent_ref = self._thread_id if is_subagent else ""
        self._forked_at_ms = self._last_at_ms
        self._is_copying = bool(ref_in(payload, "forked_from_id")) and payload.get("history_mode") != "paginated"

    def _take_response(self, payload: Mapping[str, object], told: Told) -> None:
        kind = text_in(payload, "type")
        if kind in _OUTPUTS:
            self._end(payload, told)
        elif kind == "message" and payload.get("role") == "assistant":
            text = said_texts(payload)
            self._say(ref_in(payload, "id") or self._own_ref(text), "assistant", text, told)
        elif kind == "reasoning":
            text = said_texts(payload)
            self._say(ref_in(payload, "id") or self._own_ref(text), "assistant", text, told, is_thinking=True)
        elif item := called_item(payload):
            ref = ref_in(payload, "call_id") or ref_in(payload, "id")
            if ref:
                operation = self._operation(item, ref, self._last_at_ms)
                told.call(operation if kind == "web_search_call" else self._calls.begin(operation))

    def _take_item(self, payload: Mapping[str, object], told: Told) -> None:
        self._has_items = True
        item = completed_item(object_in(payload, "item"))
        kind, ref = text_in(item, "type", 40), ref_in(item, "id")
        if not ref:
            return
        if kind in _TEXT_ITEMS:
            role, text, is_thinking = message_texts(item)
            self._say(ref, role, text, told, is_thinking=is_thinking)
        elif kind in _CALL_ITEMS:
            begun_at_ms = payload.get("started_at_ms")
            started_at_ms = begun_at_ms if type(begun_at_ms) is int and begun_at_ms > 0 else self._last_at_ms
            self._calls.begin(self._operation(item, ref, min(started_at_ms, self._last_at_ms)))
            status, output, error, duration_ms = ending_of(item)
            ended = self._calls.end(
                self._ref(ref),
                OperationStatus(status),
                at_ms=self._last_at_ms,
                output_summary=summary(output),
                error=one_line(error, 500) or None,
                duration_ms=duration_ms,
                differences=_differences_of(item),
            )
            if ended is not None:
                told.call(ended)

    def _end(self, payload: Mapping[str, object], told: Told) -> None:
        output, status = call_output(payload)
        ended = self._calls.end(
            self._ref(ref_in(payload, "call_id")),
            status,
            at_ms=self._last_at_ms,
            output_summary=summary(output),
            error=one_line(summary(output), 500) or None if status is not OperationStatus.SUCCESS else None,
        )
        if ended is not None:
            told.call(ended)

    def _operation(self, item: dict[str, object], ref: str, started_at_ms: int) -> HistoryOperation:
        name, operation_type, target, given = call_of(item)
        return HistoryOperation(
            session_ref=self._owner_ref,
            is_owner_marked=True,
            ref=self._ref(ref),
            tool_name=cut(name, 200),
            type=OperationType(operation_type),
            target=summary(cut(target, MAX_TARGET_CHARACTERS)),
            input_summary=summary(given),
            status=OperationStatus.CANCELLED,
            started_at_ms=started_at_ms,
            parent_ref=self._parent_ref or None,
        )

    def _say(self, ref: str, role: str, text: str, told: Told, *, is_thinking: bool = False) -> None:
        is_program = role == "user" and text.lstrip().startswith(_PROGRAM_WORDS)
        told.say(
            HistoryMessage(
                session_ref=self._owner_ref,
                is_owner_marked=True,
                ref=self._ref(ref),
                role=MessageRole.SYSTEM if is_program else MessageRole(role),
                text=message_text(text),
                is_thinking=is_thinking,
                parent_ref=self._parent_ref or None,
                at_ms=self._last_at_ms,
                place=0 if role == "user" else 1 if is_thinking else 2,
            )
        )

    def _ref(self, name: str) -> str:
        return f"{self._thread_id}:{name}"

    def _own_ref(self, text: str) -> str:
        """Return a name for a message that has none: when it came, and what it says."""
        return f"{self._last_at_ms}:{blake2b(text.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def _differences_of(item: Item) -> Differences:
    changes = objects_in(item, "changes") if item.get("type") == "fileChange" else []
    return tuple(one for change in changes for one in difference(text_in(change, "path"), unified(change)))
