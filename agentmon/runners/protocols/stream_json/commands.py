"""What a client may command of Claude Code."""

from __future__ import annotations

from agentmon.domain.json_values import text_in
from agentmon.runners.protocols.asks import RefusedAnswerError
from agentmon.runners.protocols.conversation import NOTHING_TO_INTERRUPT, TOO_MUCH_WAITS
from agentmon.runners.protocols.stream_json.state import StreamJsonState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class StreamJsonCommands(StreamJsonState):
    """Passes commands on to Claude, or says why not."""

    __slots__ = ()

    def _say(self, command_id: str, text: str) -> None:
        if self._prompts.is_full:
            self._refuse(command_id, TOO_MUCH_WAITS)
            return
        self._is_interrupted = False
        self._is_finish_wanted = False
        self._send_message(self._with_reasons(text), command_id)
        self._obey(command_id)
        if not self._asks:
            self._set_activity("working", "", "message")

    def _take_answer(self, command_id: str, command: Mapping[str, object]) -> None:
        request_id = text_in(command, "request_id")
        ask = self._asks.get(request_id)
        if ask is None:
            self._refuse(command_id, self._closed_asks.refusal(request_id))
            return
        try:
            response, outcome = ask.answer(command)
        except RefusedAnswerError as error:
            self._refuse(command_id, str(error))
            return
        self._respond(request_id, response)
        if outcome == "denied":
            self._calls.block(ask.tool_ref)
            self._note_denial(command)
            if "interrupt" in response:
                self._is_interrupted = True
                self._keep_reason(command)
        self._close_ask(request_id, outcome, command_id)
        self._obey(command_id)
        self._note_activity_after_ask("answer")

    def _take_interrupt(self, command_id: str) -> None:
        if not self._is_turn_open and not self._prompts.is_any_open:
            self._refuse(command_id, NOTHING_TO_INTERRUPT)
        elif self._request(command_id, "interrupt", "", {}):
            self._is_interrupted = True

    def _choose(self, command_id: str, name: str, value: str) -> None:
        request = "set_model" if name == "model" else "set_permission_mode"
        self._request(command_id, request, value, {name: value})
