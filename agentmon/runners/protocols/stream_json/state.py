"""What is open in a conversation with Claude Code, and what every change of it is told as."""

from __future__ import annotations

from agentmon.domain.json_values import text_in
from agentmon.runners.protocols.adapter import encode_line
from agentmon.runners.protocols.conversation import MAX_PENDING, TOO_MANY_COMMANDS, Conversation
from agentmon.runners.protocols.messages import message_events
from agentmon.runners.protocols.stream_json.messages import MessageBook
from agentmon.runners.protocols.stream_json.notices import NewsBook
from agentmon.runners.protocols.stream_json.tools import CallBook
from agentmon.runners.protocols.stream_json.turns import PromptBook
from agentmon.runners.protocols.stream_json.usage import UsageBook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.stream_json.asks import Ask

MAX_SESSION_CHARACTERS = 4_096


class ControlRequest:
    """A control request of ours that Claude has not answered."""

    __slots__ = ("command_id", "name", "value")

    def __init__(self, command_id: str, name: str, value: str) -> None:
        self.command_id = command_id
        self.name = name
        self.value = value


class StreamJsonState(Conversation):
    """The open asks, calls, messages and requests of one process of Claude Code."""

    __slots__ = (
        "_asks", "_calls", "_has_state", "_is_interrupt_marked", "_is_interrupted", "_is_turn_open", "_messages",
        "_notices", "_prompts", "_request_count", "_requests", "_session", "_state", "_usage",
    )  # fmt: skip

    def __init__(self, launch: Mapping[str, object]) -> None:
        """``launch`` is the object ``conversation`` of ``spec.json``; see ``runners/protocols/__init__.py``."""
        super().__init__(launch)
        self._is_turn_open = False
        self._is_interrupted = False
        self._is_interrupt_marked = False
        """Whether Claude has marked in the conversation that this turn was interrupted."""
        self._state = ""
        self._has_state = False
        self._session: dict[str, str] = {}
        self._asks: dict[str, Ask] = {}
        self._requests: dict[str, ControlRequest] = {}
        self._request_count = 0
        self._calls = CallBook()
        self._usage = UsageBook()
        self._notices = NewsBook()
        self._messages = MessageBook()
        self._prompts = PromptBook(text_in(launch, "session_id") or text_in(launch, "session_ref"))

    @property
    def is_finished(self) -> bool:
        """Whether the last turn has ended, nothing is open, and nobody has interrupted it."""
        if not self._outcome or self._is_turn_open or self._asks or self._prompts.is_any_open:
            return False
        if self._has_state and self._state != "idle":
            return False
        return self._is_finish_wanted or not (self._is_interrupted or self._has_person_to_answer)

    def _request(self, command_id: str, name: str, value: str, fields: Mapping[str, object]) -> bool:
        if len(self._requests) >= MAX_PENDING:
            self._refuse(command_id, TOO_MANY_COMMANDS)
            return False
        self._request_count += 1
        request_id = f"agentmon-{self._request_count}"
        self._requests[request_id] = ControlRequest(command_id, name, value)
        request = {"subtype": name, **fields}
        self._send.append(encode_line({"type": "control_request", "request_id": request_id, "request": request}))
        return True

    def _respond(self, request_id: str, response: Mapping[str, object]) -> None:
        answer = {"subtype": "success", "request_id": request_id, "response": response}
        self._send.append(encode_line({"type": "control_response", "response": answer}))

    def _respond_error(self, request_id: str, error: str) -> None:
        answer = {"subtype": "error", "request_id": request_id, "error": error}
        self._send.append(encode_line({"type": "control_response", "response": answer}))

    def _send_message(self, text: str, command_id: str) -> None:
        prompt_id = self._prompts.add(text, command_id, self._at_ms)
        message = {"role": "user", "content": text}
        self._send.append(
            encode_line({"type": "user", "message": message, "parent_tool_use_id": None, "uuid": prompt_id})
        )
        self._events += message_events(prompt_id, "user", text)

    def _begin_turn_of(self, parent: str, source: str) -> None:
        if not parent:
            self._begin_turn(source)

    def _begin_turn(self, source: str) -> None:
        if self._is_turn_open:
            return
        self._is_turn_open = True
        self._is_interrupt_marked = False
        refs = self._prompts.turn_refs()
        if refs:
            self._is_interrupted = False
        self._events.append({"kind": "turn_started", "prompt_refs": refs})
        if not self._asks:
            self._set_activity("working", "", source)

    def _end_turn(self, outcome: str, last_words: str, error: str | None) -> None:
        self._is_turn_open = False
        self._end_texts(outcome, is_marked=self._is_interrupt_marked)
        self._outcome = outcome
        self._error = error
        self._events.append({"kind": "turn_ended", "outcome": outcome, "text": last_words, "error": error})
        self._note_held_up(outcome)
        is_idle = not self._has_state or self._state == "idle" or self._is_ended
        if is_idle and not self._prompts.is_any_open:
            self._set_activity("waiting", "", "result")

    def _close_ask(self, request_id: str, outcome: str, command_id: str | None) -> None:
        del self._asks[request_id]
        self._events.append(self._closed_asks.add(request_id, outcome, command_id))

    def _note_activity_after_ask(self, source: str) -> None:
        for ask in self._asks.values():
            self._set_activity("waiting", str(ask.event["title"]), source)
            return
        self._set_activity("working", "", source)

    def _note_session(self, **told: str) -> None:
        changed = {
            name: value
            for name, value in told.items()
            if value and len(value) <= MAX_SESSION_CHARACTERS and self._session.get(name) != value
        }
        if changed:
            self._session.update(changed)
            self._events.append({"kind": "session", **changed})
