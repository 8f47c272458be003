"""The Agent Client Protocol: JSON-RPC 2.0, one message a line."""

from __future__ import annotations

from agentmon.domain.json_values import MAX_REF_CHARACTERS, TOO_DEEP, object_in, read_object, read_outline, text_in
from agentmon.domain.unheard import ENDED_UNANSWERED
from agentmon.runners.protocols.acp.asks import Ask
from agentmon.runners.protocols.acp.errors import error_line
from agentmon.runners.protocols.acp.updates import INVALID_PARAMS, UpdateReader
from agentmon.runners.protocols.adapter import Step
from agentmon.runners.protocols.asks import RefusedAnswerError
from agentmon.runners.protocols.conversation import (
    ENDED_AT_WORK,
    ENDED_BEFORE_BEGIN,
    MAX_PENDING,
    NOTHING_TO_INTERRUPT,
    TOO_MANY_COMMANDS,
    unknown_mode,
)
from agentmon.runners.protocols.messages import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class AcpAdapter(UpdateReader):
    """One session with one agent that speaks the protocol."""

    __slots__ = ()

    def start(self, at_ms: int) -> Step:
        """Greet the agent; the session and the first turn follow as it answers."""
        self._at_ms = at_ms
        prompt = self._launched("prompt")
        if prompt.strip():
            self._waiting.append(Message(prompt, None))
        self._set_activity("working", "", "launch")
        self._greet()
        return self._step()

    def receive(self, chunk: bytes, at_ms: int) -> Step:
        """Take what the agent wrote to its standard output, cut anywhere."""
        self._at_ms = at_ms
        if not self._is_ended:
            for line in self._lines.feed(chunk):
                self._take_line(line)
        return self._step()

    def receive_end(self, at_ms: int) -> Step:
        """Close what is open; a turn that had no result has failed."""
        self._at_ms = at_ms
        if self._is_ended:
            return Step()
        rest = self._lines.flush()
        if rest.strip():
            self._take_line(rest)
        for ask in list(self._asks.values()):
            self._close_ask(ask, "withdrawn", None)
        is_asked_for_more = bool(self._waiting)
        for message in self._waiting:
            self._refuse(message.command_id, ENDED_UNANSWERED)
        self._waiting.clear()
        for purpose, context in self._pending.values():
            if purpose == "set" and isinstance(context, tuple):
                self._refuse(str(context[0]), ENDED_UNANSWERED)
        self._pending.clear()
        is_at_work = self._is_turn_open
        if self._lacks_result(is_at_work=is_at_work, is_asked_for_more=is_asked_for_more):
            is_asked = self._is_interrupting
            self._has_broken_off = not is_asked
            error = None if is_asked else ENDED_AT_WORK if is_at_work else ENDED_BEFORE_BEGIN
            self._end_turn("interrupted" if is_asked else "failed", error)
        self._events += self._messages.end()
        self._events += self._calls.end_all("The agent ended before the call did.")
        self._send.clear()
        self._is_ended = True
        return self._step()

    def _take_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        message = read_object(text)
        if message is None:
            self._note_malformed(text, self._notices.malformed(text))
            outline = read_outline(text)
            server_id = outline.get("id")
            if text_in(outline, "method") and isinstance(server_id, int | str):
                self._respond_error(server_id, INVALID_PARAMS, TOO_DEEP)
            return
        message_id, method = message.get("id"), text_in(message, "method")
        is_id = type(message_id) is int or (isinstance(message_id, str) and len(message_id) <= MAX_REF_CHARACTERS)
        if method and isinstance(message_id, int | str) and is_id:
            self._take_request(message_id, method, object_in(message, "params"))
        elif method and "id" not in message:
            self._take_notification(method, object_in(message, "params"))
        elif not method and type(message_id) is int and message_id in self._pending:
            purpose, context = self._pending.pop(message_id)
            error = object_in(message, "error") if message.get("error") is not None else None
            self._take_response(purpose, context, object_in(message, "result"), error)
        elif not method and is_id:
            self._events += self._notices.unknown("an answer to nothing that was asked")
        else:
            self._note_malformed(text, self._notices.malformed(text))

    def _take_set(self, result: Mapping[str, object], error: Mapping[str, object] | None, context: object) -> None:
        command_id, name, value = context if isinstance(context, tuple) else ("", "", "")
        if error is not None:
            self._refuse(command_id, error_line(error))
            return
        self._note_choice(name, value, result)
        self._obey(command_id)

    def _say(self, command_id: str, text: str) -> None:
        self._has_person_the_word = False
        self._is_finish_wanted = False
        message = Message(text, command_id)
        if self._is_turn_open or self._waiting or not self._is_listening:
            self._let_wait(message, self._waiting)
        else:
            self._waiting.append(message)
            self._start_next_turn()

    def _take_answer(self, command_id: str, command: Mapping[str, object]) -> None:
        request_id = text_in(command, "request_id")
        ask = self._asks.get(request_id)
        if ask is None:
            self._refuse(command_id, self._closed_asks.refusal(request_id))
            return
        try:
            result, outcome = ask.answer(command)
        except RefusedAnswerError as error:
            self._refuse(command_id, str(error))
            return
        self._respond(ask.server_id, result)
        self._close_ask(ask, outcome, command_id)
        self._obey(command_id)
        if outcome == "denied":
            if isinstance(ask, Ask):
                self._calls.block(ask.tool_ref)
            self._note_denial(command)
            self._keep_reason(command)
            if command.get("interrupts") is True and self._is_turn_open:
                self._interrupt()
        self._set_activity_of_turn("answer")

    def _take_interrupt(self, command_id: str) -> None:
        if self._is_turn_open:
            self._interrupt()
            self._set_activity_of_turn("interrupt")
            self._obey(command_id)
        elif self._waiting:
            self._drop_first_message()
            self._obey(command_id)
        else:
            self._refuse(command_id, NOTHING_TO_INTERRUPT)

    def _choose(self, command_id: str, name: str, value: str) -> None:
        offered = self._options.mode.offered
        if name == "mode":
            value = self._options.mode.named(value)
        request = self._options.request(name, value)
        if not self._is_listening:
            self._refuse(command_id, "The conversation has not begun yet.")
        elif request is None:
            self._refuse(command_id, f"The agent offers no choice of a {name}.")
        elif name == "mode" and offered and value not in offered:
            self._refuse(command_id, unknown_mode(offered))
        elif len(self._pending) >= MAX_PENDING:
            self._refuse(command_id, TOO_MANY_COMMANDS)
        else:
            method, params = request
            told = {"sessionId": self._session_id, **params}
            self._request(method, told, "set", (command_id, name, value))
