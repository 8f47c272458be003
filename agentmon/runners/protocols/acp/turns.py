"""Turns: one after the other, each begun by a message, ended by the answer to it."""

from __future__ import annotations

from agentmon.domain.json_values import one_line, text_in
from agentmon.runners.protocols.acp.errors import error_line, is_login_needed, login_line
from agentmon.runners.protocols.acp.state import AcpState
from agentmon.runners.protocols.acp.usage import failed_turn, turn_usage
from agentmon.runners.protocols.conversation import INTERRUPTED
from agentmon.runners.protocols.messages import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_UNHEARD = 10
CANCEL_AGAIN_MS = 1_000
_ENDS: dict[str, tuple[str, str | None]] = {
    "end_turn": ("completed", None),
    "max_tokens": ("limit", "The model reached the most tokens that it may write."),
    "max_turn_requests": ("limit", "The agent reached the most requests that one turn may make."),
    "refusal": ("failed", "The agent refuses to go on with this."),
    "cancelled": ("interrupted", None),
}


class TurnKeeper(AcpState):
    """Keeps at most one turn running, and what people say meanwhile."""

    __slots__ = ()

    def _start_next_turn(self) -> None:
        if not self._waiting or self._is_turn_open or not self._is_listening or self._is_over:
            return
        message = self._waiting.pop(0)
        self._has_person_the_word = False
        message.text = self._with_reasons(message.text)
        self._begin_turn(message)
        texts = [*self._unheard, message.text]
        self._unheard = []
        blocks = [{"type": "text", "text": text} for text in texts]
        self._request("session/prompt", {"sessionId": self._session_id, "prompt": blocks}, "prompt", self._turn_count)

    def _begin_turn(self, message: Message) -> None:
        self._turn_count += 1
        self._turn_key = f"{self._session_id}:{self._turn_count}"
        if self._launched("start") in {"resume", "fork"}:
            self._turn_key = f"{self._session_id}:{self._at_ms}-{self._turn_count}"
        self._is_turn_open = True
        self._is_interrupting = False
        refs = [message.command_id] if message.command_id is not None else []
        self._events += self._messages.end()
        self._messages.last_words = ""
        self._messages.answer_id = ""
        self._events.append({"kind": "turn_started", "prompt_refs": refs})
        self._events += self._messages.prompt(message.text)
        self._obey(message.command_id)
        self._set_activity("working", "", "session/prompt")

    def _end_turn(self, outcome: str, error: str | None) -> None:
        self._events += self._messages.end()
        self._withdraw_asks()
        reason = INTERRUPTED if outcome == "interrupted" else "The turn ended before the call did."
        self._events += self._calls.end_all(reason)
        self._end_texts(outcome)
        self._is_turn_open = False
        self._is_interrupting = False
        self._outcome = outcome
        self._error = error
        last_words = self._messages.last_words
        self._events.append({"kind": "turn_ended", "outcome": outcome, "text": last_words, "error": error})
        self._note_held_up(outcome)
        if not self._waiting:
            self._set_activity("waiting", "", "turn_ended")

    def _take_prompt_result(self, result: Mapping[str, object], error: Mapping[str, object] | None) -> None:
        is_interrupted = self._is_interrupting
        if error is not None:
            told = login_line(error, self._login_methods) if is_login_needed(error) else error_line(error)
            if not is_interrupted:
                self._events += failed_turn(error, self._turn_key, self._options.model.current, self._agent_name, told)
            self._end_turn(*(("interrupted", None) if is_interrupted else ("failed", told)))
        else:
            self._events += self._messages.end()
            self._events += turn_usage(
                result, self._turn_key, self._options.model.current, self._agent_name, self._messages.answer_id
            )
            reason = text_in(result, "stopReason")
            unknown = f"The agent did not say how the turn ended: {one_line(reason, 100) or 'no reason'}."
            outcome, why = ("interrupted", None) if is_interrupted else _ENDS.get(reason, ("failed", unknown))
            if self._reasons and outcome == "completed" and not self._waiting:
                self._waiting.append(Message(self._with_reasons(), None))
            self._end_turn(outcome, why)
        self._start_next_turn()

    def _interrupt(self) -> None:
        """Ask the agent to end the turn; what it asks meanwhile is withdrawn."""
        self._withdraw_asks()
        self._is_interrupting = True
        self._has_person_the_word = True
        self._cancel()

    def _cancel(self) -> None:
        self._cancelled_at_ms = self._at_ms
        self._notify("session/cancel", {"sessionId": self._session_id})

    def _cancel_again_when_late(self) -> None:
        """Repeat the cancellation to an agent that still works: it may have come before the turn began there."""
        if self._is_interrupting and self._at_ms - self._cancelled_at_ms >= CANCEL_AGAIN_MS:
            self._cancel()

    def _drop_first_message(self) -> None:
        """Interrupt a turn that the agent has not heard of yet; it hears that text with the next message."""
        message = self._waiting.pop(0)
        self._begin_turn(message)
        self._unheard = [*self._unheard, message.text][-MAX_UNHEARD:]
        self._has_person_the_word = True
        self._end_turn("interrupted", None)
