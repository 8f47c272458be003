"""Codex's app-server protocol: JSON-RPC without its version field, one message a line (Codex 0.171.0, 2026-11-28)."""

from __future__ import annotations

from agentmon.runners.protocols.adapter import Step, clip, encode_line
from agentmon.runners.protocols.app_server import asks, items
from agentmon.runners.protocols.app_server.modes import MODES
from agentmon.runners.protocols.app_server.news import NewsReader
from agentmon.runners.protocols.app_server.notices import UNWANTED, notice
from agentmon.runners.protocols.app_server.state import Message
from agentmon.runners.protocols.app_server.turns import MAX_WAITING
from agentmon.runners.protocols.json_values import text_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import ClassVar


class AppServerAdapter(NewsReader):
    """One thread of ``codex app-server``; what subagents say is told under the call that made them."""

    __slots__ = ()

    def start(self, at_ms: int) -> Step:  # noqa: ARG002 - nothing here depends on the time
        """Greet Codex; the thread and the first turn follow as it answers."""
        prompt = text_in(self._launch, "prompt")
        if prompt.strip():
            self._waiting.append(Message(prompt, None))
        wanted_mode = text_in(self._launch, "permission_mode")
        if wanted_mode and wanted_mode != self._mode:
            text = f"Codex knows no permission mode {clip(wanted_mode, 100)!r}; {self._mode} is used."
            self._events.append(notice("warn", text, "permission_mode"))
        self._set_activity("working", "", "launch")
        version = text_in(self._launch, "client_version") or "0"
        capabilities = {"experimentalApi": True, "optOutNotificationMethods": list(UNWANTED)}
        client = {"name": "agentmon", "title": "agentmon", "version": version}
        self._request("initialize", {"clientInfo": client, "capabilities": capabilities}, "initialize")
        return self._step()

    def receive(self, chunk: bytes, at_ms: int) -> Step:  # noqa: ARG002 - nothing here depends on the time
        """Take what Codex wrote to its standard output, cut anywhere."""
        if not self._is_ended:
            for line in self._lines.feed(chunk):
                self._take_line(line)
        return self._step()

    def receive_end(self, at_ms: int) -> Step:  # noqa: ARG002 - nothing here depends on the time
        """Close what is open: Codex writes nothing any more."""
        if self._is_ended:
            return Step()
        rest = self._lines.flush()
        if rest.strip():
            self._take_line(rest)
        self._send.clear()
        self._withdraw_asks(None)
        self._events += self._calls.cancel()
        self._refuse_waiting("Codex has ended.")
        if self._turn_id or self._is_starting_turn or not (self._outcome or self._thread_id):
            is_interrupted = self._was_interrupted
            error = None if is_interrupted else "Codex ended before it had finished."
            self._end_turn("interrupted" if is_interrupted else "failed", error)
        self._is_ended = True
        return self._step()

    def command(self, command: Mapping[str, object], at_ms: int) -> Step:  # noqa: ARG002 - see start
        """Act on a command of a client."""
        command_id = str(command.get("id"))
        act = self._COMMANDS.get(text_in(command, "type"))
        if self._is_ended or self._is_over:
            self._refuse(command_id, "Codex has ended; nothing reaches it any more.")
        elif act is None:
            self._refuse(command_id, "The command is unknown.")
        else:
            act(self, command_id, command)
        return self._step()

    def _command_message(self, command_id: str, command: Mapping[str, object]) -> None:
        text = text_in(command, "text")
        if not text.strip():
            self._refuse(command_id, "A message needs a text.")
            return
        self._has_person_the_word = False
        message = Message(text, command_id)
        if self._turn_id and not self._was_interrupted:
            self._steer(message)
        elif self._is_idle() and not self._waiting:
            self._start_turn(message)
        else:
            self._queue(message)

    def _command_answer(self, command_id: str, command: Mapping[str, object]) -> None:
        request_id = text_in(command, "request_id")
        ask = next((ask for ask in self._asks.values() if ask.request_id == request_id), None)
        if ask is None:
            became = self._closed_asks.get(request_id)
            self._refuse(command_id, f"The request is closed already: {became}." if became else "Nothing asks that.")
            return
        try:
            result, outcome, is_interrupting = asks.make_answer(ask, command)
        except asks.AnswerError as error:
            self._refuse(command_id, str(error))
            return
        self._send.append(encode_line({"id": ask.server_id, "result": result}))
        self._close_ask(ask, outcome, command_id)
        self._obey(command_id)
        if outcome == "denied":
            self._follow_denial(ask, command, is_interrupting=is_interrupting)

    def _follow_denial(self, ask: asks.Ask, command: Mapping[str, object], *, is_interrupting: bool) -> None:
        """Interrupt the turn where the answer itself does not, or tell the reason, which no answer has a place for."""
        reason = text_in(command, "reason")
        turn = {"threadId": ask.thread_id}
        if command.get("interrupts") is True:
            self._was_interrupted = self._was_interrupted or ask.thread_id == self._thread_id
            if is_interrupting and ask.turn_id:
                self._request("turn/interrupt", {**turn, "turnId": ask.turn_id}, "interrupt_denied")
        elif reason.strip() and ask.turn_id:
            told = {"expectedTurnId": ask.turn_id, "input": [{"type": "text", "text": reason}]}
            self._request("turn/steer", {**turn, **told}, "reason")

    def _command_interrupt(self, command_id: str, _command: Mapping[str, object]) -> None:
        if self._turn_id:
            self._interrupt(command_id)
        elif (self._is_starting_turn or self._waiting) and len(self._interrupts) < MAX_WAITING:
            self._interrupts.append(command_id)
        else:
            self._refuse(command_id, "Codex does nothing that could be interrupted.")

    def _command_finish(self, command_id: str, _command: Mapping[str, object]) -> None:
        self._is_finishing = True
        self._obey(command_id)

    def _command_set_model(self, command_id: str, command: Mapping[str, object]) -> None:
        model = text_in(command, "model").strip()
        if not model or len(model) > items.MAX_REF_CHARACTERS:
            self._refuse(command_id, "The name of a model is needed.")
            return
        self._model = model
        self._settings_changed = True
        self._events.append({"kind": "session", "model": model})
        self._obey(command_id)

    def _command_set_permission_mode(self, command_id: str, command: Mapping[str, object]) -> None:
        mode = text_in(command, "permission_mode")
        if mode not in MODES:
            self._refuse(command_id, f"Codex has these permission modes: {', '.join(MODES)}.")
            return
        self._mode = mode
        self._settings_changed = True
        self._events.append({"kind": "session", "permission_mode": mode})
        self._obey(command_id)

    _COMMANDS: ClassVar[dict[str, Callable[[AppServerAdapter, str, Mapping[str, object]], None]]] = {
        "message": _command_message,
        "answer": _command_answer,
        "interrupt": _command_interrupt,
        "finish": _command_finish,
        "set_model": _command_set_model,
        "set_permission_mode": _command_set_permission_mode,
    }
