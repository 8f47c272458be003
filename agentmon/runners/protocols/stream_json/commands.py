"""What a client may command of Claude Code."""

from __future__ import annotations

from agentmon.runners.protocols.json_values import text_in
from agentmon.runners.protocols.stream_json.asks import RefusedAnswerError
from agentmon.runners.protocols.stream_json.state import StreamJsonState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.adapter import Step

MAX_NAME_CHARACTERS = 200


class StreamJsonCommands(StreamJsonState):
    """Passes commands on to Claude, or says why not."""

    __slots__ = ()

    def command(self, command: Mapping[str, object], at_ms: int) -> Step:
        """Act on a command; see ``Adapter.command``."""
        self._at_ms = at_ms
        command_id = str(command.get("id") or "")
        kind = command.get("type")
        if self._is_over:
            self._note_command(command_id, "The agent has ended.")
        elif kind == "message":
            self._take_message(command_id, text_in(command, "text"))
        elif kind == "answer":
            self._take_answer(command_id, command)
        elif kind == "interrupt":
            self._interrupt(command_id)
        elif kind == "finish":
            self._is_finish_wanted = True
            self._note_command(command_id, None)
        elif kind == "set_model":
            self._set(command_id, "set_model", "model", text_in(command, "model"))
        elif kind == "set_permission_mode":
            self._set(command_id, "set_permission_mode", "mode", text_in(command, "permission_mode"))
        else:
            self._note_command(command_id, "This command is not known.")
        return self._step()

    def _take_message(self, command_id: str, text: str) -> None:
        if not text.strip():
            self._note_command(command_id, "A message needs a text.")
        elif self._prompts.is_full:
            self._note_command(command_id, "Too many messages wait for the agent.")
        else:
            self._is_interrupted = False
            self._is_finish_wanted = False
            self._say(text, command_id)
            self._note_command(command_id, None)
            if not self._asks:
                self._note_activity("working", "", "message")

    def _take_answer(self, command_id: str, command: Mapping[str, object]) -> None:
        request_id = text_in(command, "request_id")
        ask = self._asks.get(request_id)
        if ask is None:
            settled = self._settled_asks.get(request_id)
            known = f"That request is settled already: {settled}." if settled else "The agent does not ask this."
            self._note_command(command_id, known)
            return
        try:
            response, outcome = ask.answer(command)
        except RefusedAnswerError as error:
            self._note_command(command_id, str(error))
            return
        self._respond(request_id, response)
        if outcome == "denied":
            self._calls.block(ask.tool_ref)
            if "interrupt" in response:
                self._is_interrupted = True
        self._close_ask(request_id, outcome, command_id)
        self._note_command(command_id, None)
        self._note_activity_after_ask("answer")

    def _interrupt(self, command_id: str) -> None:
        if not self._is_turn_open and not self._prompts.is_any_open:
            self._note_command(command_id, "The agent does nothing that could be interrupted.")
        elif self._request(command_id, "interrupt", "", {}):
            self._is_interrupted = True

    def _set(self, command_id: str, name: str, field: str, value: str) -> None:
        if not value or len(value) > MAX_NAME_CHARACTERS:
            self._note_command(command_id, "It needs a name.")
            return
        self._request(command_id, name, value, {field: value})
