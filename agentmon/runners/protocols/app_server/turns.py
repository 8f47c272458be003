"""Turns of a Codex thread: begun one after the other, steered, interrupted, ended."""

from __future__ import annotations

from agentmon.runners.protocols.app_server.modes import collaboration_mode, turn_settings
from agentmon.runners.protocols.app_server.state import ThreadState
from agentmon.runners.protocols.conversation import TOO_MANY_COMMANDS
from agentmon.runners.protocols.messages import MAX_WAITING, Message

MAX_TURNS = 256


class TurnKeeper(ThreadState):
    """Keeps at most one turn running, and what people say meanwhile."""

    __slots__ = ()

    def _steer(self, message: Message) -> None:
        if len(self._pending) >= MAX_WAITING:
            self._let_wait(message, self._waiting)
            return
        params = {**self._input(message.text, message.command_id), "expectedTurnId": self._turn_id}
        self._request("turn/steer", params, "steer", message)

    def _start_turn(self, message: Message) -> None:
        message.text = self._with_reasons(message.text)
        params = self._input(message.text, message.command_id)
        if self._settings_changed:
            params |= turn_settings(self._mode, self._policy)
            if self._model:
                params["model"] = self._model
        if (self._mode == "plan" or self._is_plan_told) and self._model:
            params["collaborationMode"] = collaboration_mode(self._mode, self._model, self._effort)
            self._is_plan_told = self._mode == "plan"
        self._settings_changed = False
        self._is_starting_turn = True
        self._is_turn_running = False
        self._was_interrupted = False
        self._turn_refs = (message.command_id,) if message.command_id is not None else ()
        self._request("turn/start", params, "turn", message)

    def _input(self, text: str, command_id: str | None) -> dict[str, object]:
        params: dict[str, object] = {"threadId": self._thread_id, "input": [{"type": "text", "text": text}]}
        if command_id is not None:
            params["clientUserMessageId"] = command_id
        return params

    def _start_next_turn(self) -> None:
        if self._waiting and self._is_idle() and not self._is_over:
            self._has_person_the_word = False
            self._start_turn(self._waiting.pop(0))

    def _begin_turn(self, turn_id: str) -> None:
        if not turn_id or turn_id in self._begun_turns:
            return
        self._begun_turns[turn_id] = None
        if len(self._begun_turns) > MAX_TURNS:
            del self._begun_turns[next(iter(self._begun_turns))]
        self._turn_id = turn_id
        self._is_starting_turn = False
        self._last_text = ""
        self._events.append({"kind": "turn_started", "prompt_refs": list(self._turn_refs)})
        self._turn_refs = ()

    def _note_running_turn(self) -> None:
        self._is_turn_running = True
        waiting, self._interrupts = self._interrupts, []
        for command_id in waiting:
            self._interrupt(command_id)

    def _interrupt(self, command_id: str) -> None:
        if not self._is_turn_running and len(self._interrupts) < MAX_WAITING:
            self._interrupts.append(command_id)
            return
        if len(self._pending) >= MAX_WAITING:
            self._refuse(command_id, TOO_MANY_COMMANDS)
            return
        self._was_interrupted = True
        params: dict[str, object] = {"threadId": self._thread_id, "turnId": self._turn_id}
        self._request("turn/interrupt", params, "interrupt", command_id)

    def _end_turn(self, outcome: str, error: str | None) -> None:
        self._withdraw_asks(self._thread_id)
        if outcome != "completed":
            self._events += self._calls.cancel(self._thread_id)
        self._end_texts(outcome)
        self._has_person_the_word = self._was_interrupted and outcome == "interrupted"
        self._turn_id = ""
        self._is_turn_running = False
        self._answer_keys.pop(self._thread_id, None)
        self._is_starting_turn = False
        self._outcome = outcome
        self._error = error
        self._events.append({"kind": "turn_ended", "outcome": outcome, "text": self._last_text, "error": error})
        self._note_held_up(outcome)
        if self._has_person_to_answer and not self._waiting:
            self._set_activity("waiting", "", "turn/completed")
        waiting, self._interrupts = self._interrupts, []
        for command_id in waiting:
            self._refuse(command_id, "The turn was over already.")

    def _fail_to_begin(self, error: str) -> None:
        self._refuse_waiting(error)
        self._end_turn("failed", error)
        self._is_over = True

    def _refuse_waiting(self, error: str) -> None:
        pending, self._pending = self._pending, {}
        for purpose, context in pending.values():
            if purpose == "interrupt" and isinstance(context, str):
                self._refuse(context, error)
            elif isinstance(context, Message):
                self._refuse(context.command_id, error)
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            self._refuse(message.command_id, error)
        interrupts, self._interrupts = self._interrupts, []
        for command_id in interrupts:
            self._refuse(command_id, error)
