"""Codex's app-server protocol: JSON-RPC without its version field, one message a line (Codex 0.171.0, 2026-11-28)."""

from __future__ import annotations

from agentmon.domain.json_values import text_in
from agentmon.domain.letters import cut
from agentmon.domain.unheard import ENDED_UNANSWERED
from agentmon.runners.protocols.adapter import Step, encode_line
from agentmon.runners.protocols.app_server import asks
from agentmon.runners.protocols.app_server.modes import MODES
from agentmon.runners.protocols.app_server.news import NewsReader
from agentmon.runners.protocols.app_server.notices import UNWANTED
from agentmon.runners.protocols.asks import RefusedAnswerError
from agentmon.runners.protocols.conversation import (
    ENDED_AT_WORK,
    ENDED_BEFORE_BEGIN,
    NOTHING_TO_INTERRUPT,
    unknown_mode,
)
from agentmon.runners.protocols.messages import MAX_WAITING, Message
from agentmon.runners.protocols.notices import notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


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
            text = f"Codex knows no permission mode {cut(wanted_mode, 100)!r}; {self._mode} is used."
            self._events.append(notice("warn", text, "permission_mode"))
        self._set_activity("working", "", "launch")
        version = text_in(self._launch, "client_version") or "0"
        capabilities = {"experimentalApi": True, "optOutNotificationMethods": list(UNWANTED)}
        client = {"name": "agentmon", "title": "agentmon", "version": version}
        self._request("initialize", {"clientInfo": client, "capabilities": capabilities}, "initialize")
        return self._step()

    def receive(self, chunk: bytes, at_ms: int) -> Step:
        """Take what Codex wrote to its standard output, cut anywhere."""
        self._at_ms = at_ms
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
        is_asked_for_more = bool(self._waiting) or self._has_pending_steer()
        self._refuse_waiting(ENDED_UNANSWERED)
        is_at_work = bool(self._turn_id) or self._is_starting_turn
        if self._lacks_result(is_at_work=is_at_work, is_asked_for_more=is_asked_for_more):
            self._has_broken_off = not self._was_interrupted
            error = None if self._was_interrupted else ENDED_AT_WORK if is_at_work else ENDED_BEFORE_BEGIN
            self._end_turn("interrupted" if self._was_interrupted else "failed", error)
        self._is_ended = True
        return self._step()

    def _say(self, command_id: str, text: str) -> None:
        self._has_person_the_word = False
        message = Message(text, command_id)
        if self._turn_id and not self._was_interrupted:
            self._steer(message)
        elif self._is_idle() and not self._waiting:
            self._start_turn(message)
        else:
            self._let_wait(message, self._waiting)

    def _take_answer(self, command_id: str, command: Mapping[str, object]) -> None:
        request_id = text_in(command, "request_id")
        ask = next((ask for ask in self._asks.values() if ask.request_id == request_id), None)
        if ask is None:
            self._refuse(command_id, self._closed_asks.refusal(request_id))
            return
        try:
            result, outcome, is_interrupting = asks.make_answer(ask, command)
        except RefusedAnswerError as error:
            self._refuse(command_id, str(error))
            return
        self._send.append(encode_line({"id": ask.server_id, "result": result}))
        self._close_ask(ask, outcome, command_id)
        self._obey(command_id)
        if outcome == "denied":
            self._follow_denial(ask, command, is_interrupting=is_interrupting)

    def _follow_denial(self, ask: asks.Ask, command: Mapping[str, object], *, is_interrupting: bool) -> None:
        """Interrupt the turn where the answer itself does not, or tell the reason, which no answer has a place for."""
        self._note_denial(command)
        reason = text_in(command, "reason").strip()
        turn = {"threadId": ask.thread_id}
        if command.get("interrupts") is True:
            self._keep_reason(command)
            self._was_interrupted = self._was_interrupted or ask.thread_id == self._thread_id
            if is_interrupting and ask.turn_id:
                self._request("turn/interrupt", {**turn, "turnId": ask.turn_id}, "interrupt_denied")
        elif reason and ask.turn_id:
            told = {"expectedTurnId": ask.turn_id, "input": [{"type": "text", "text": reason}]}
            self._request("turn/steer", {**turn, **told}, "reason", Message(reason, None))

    def _take_interrupt(self, command_id: str) -> None:
        if self._turn_id:
            self._interrupt(command_id)
        elif (self._is_starting_turn or self._waiting) and len(self._interrupts) < MAX_WAITING:
            self._interrupts.append(command_id)
        else:
            self._refuse(command_id, NOTHING_TO_INTERRUPT)

    def _choose(self, command_id: str, name: str, value: str) -> None:
        if name == "mode" and value not in MODES:
            self._refuse(command_id, unknown_mode(list(MODES)))
            return
        if name == "mode":
            self._mode = value
        else:
            self._model = value
        self._settings_changed = True
        self._events.append({"kind": "session", "permission_mode" if name == "mode" else "model": value})
        self._obey(command_id)
