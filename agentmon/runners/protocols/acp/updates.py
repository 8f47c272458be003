"""What an agent tells and asks while it works."""

from __future__ import annotations

from agentmon.domain.json_values import object_in, objects_in, one_line, ref_in, text_in
from agentmon.runners.protocols.acp.asks import CANCELLED, Ask
from agentmon.runners.protocols.acp.errors import METHOD_NOT_FOUND
from agentmon.runners.protocols.acp.opening import Opener
from agentmon.runners.protocols.acp.questions import CANCELLED_FORM, Question
from agentmon.runners.protocols.acp.usage import cost_nano
from agentmon.runners.protocols.asks import MAX_OPEN_ASKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import ClassVar

INVALID_PARAMS = -32602
PERMISSION = "session/request_permission"
FORM = "elicitation/create"
_CANCELLED = {PERMISSION: CANCELLED, FORM: CANCELLED_FORM}
MODE_MARK = "[MODE_UPDATE] "
"""Gemini says so as a message that another mode was chosen."""
MAX_STEPS = 100
MAX_STEP_CHARACTERS = 1_000
_STEP_STATUSES = ("pending", "in_progress", "completed")
_WORK = ("agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update")


class UpdateReader(Opener):
    """Reads ``session/update`` and the requests of an agent."""

    __slots__ = ()

    def _take_notification(self, method: str, params: dict[str, object]) -> None:
        if method == "session/update":
            self._take_update(params)
        elif method == "$/cancel_request":
            self._take_cancelled_request(params.get("requestId"))
        else:
            self._events += self._notices.unknown(method)

    def _take_update(self, params: dict[str, object]) -> None:
        update = object_in(params, "update")
        kind = text_in(update, "sessionUpdate")
        act = self._UPDATES.get(kind)
        if act is None:
            self._events += self._notices.unknown(f"session/update {kind}".strip())
        elif not self._is_listening:
            self._was_replayed = self._was_replayed or kind in _WORK or kind == "user_message_chunk"
            if kind in self._SETTINGS and text_in(params, "sessionId") in {self._session_id, ""}:
                act(self, update)
        elif params.get("sessionId") == self._session_id:
            if kind in _WORK:
                self._cancel_again_when_late()
            act(self, update)

    def _take_chunk(self, update: dict[str, object]) -> None:
        _, mark, mode = text_in(object_in(update, "content"), "text").partition(MODE_MARK)
        if mark and mode in self._options.mode.offered:
            self._take_mode({"currentModeId": mode})
        else:
            self._events += self._messages.chunk(update, is_thinking=False)

    def _take_thought(self, update: dict[str, object]) -> None:
        self._events += self._messages.chunk(update, is_thinking=True)

    def _take_call(self, update: dict[str, object]) -> None:
        events, _ = self._calls.note(update, is_interrupting=self._is_interrupting)
        if events:
            self._events += self._messages.end()
            self._messages.answer_id = ""
        self._events += events

    def _take_plan(self, update: dict[str, object]) -> None:
        self._events += self._messages.end()
        steps = []
        for entry in objects_in(update, "entries", MAX_STEPS):
            text, status = one_line(text_in(entry, "content"), MAX_STEP_CHARACTERS), text_in(entry, "status")
            if text:
                steps.append({"text": text, "status": status if status in _STEP_STATUSES else "pending"})
        self._events.append({"kind": "plan", "steps": steps})

    def _take_mode(self, update: dict[str, object]) -> None:
        mode = ref_in(update, "currentModeId")
        if mode:
            self._options.mode.current = mode
            self._note_session(permission_mode=mode)

    def _take_config(self, update: dict[str, object]) -> None:
        self._options.learn(update)
        self._note_session(**self._options.fields())

    def _take_session_info(self, update: dict[str, object]) -> None:
        self._note_session(title=text_in(update, "title"))

    def _take_usage(self, update: dict[str, object]) -> None:
        cost = cost_nano(update)
        if cost is not None:
            self._events.append({"kind": "cost", "cost_nano": cost})

    def _pass_over(self, update: dict[str, object]) -> None:
        """Do nothing: the message of the person is known, and commands of the agent are not offered."""

    def _take_request(self, server_id: int | str, method: str, params: dict[str, object]) -> None:
        cancelled = _CANCELLED.get(method)
        if cancelled is None:
            self._respond_error(server_id, METHOD_NOT_FOUND, f"Not offered: {one_line(method, 100)}")
            return
        is_ours = self._is_listening and params.get("sessionId") == self._session_id
        if not is_ours or len(self._asks) >= MAX_OPEN_ASKS:
            self._respond(server_id, cancelled)
            why = "too much is asked already" if is_ours else "it is of no conversation that runs here"
            self._events += self._notices.once("warn", f"A request of the agent was refused: {why}.", "permission")
            return
        self._take_cancelled_request(server_id)
        if self._is_interrupting:
            self._respond(server_id, cancelled)
            self._cancel_again_when_late()
        elif method == FORM:
            self._take_form(server_id, params)
        else:
            self._take_permission(server_id, params)

    def _take_permission(self, server_id: int | str, params: dict[str, object]) -> None:
        events, call = self._calls.note_asked(object_in(params, "toolCall"))
        if call is None:
            self._events += events
            self._respond_error(server_id, INVALID_PARAMS, "The call is not open.")
            return
        self._events += [*self._messages.end(), *events]
        self._ask_count += 1
        ask = Ask(f"permission-{self._ask_count}", server_id, params, call, self._launched("working_dir"))
        self._open_ask(ask, PERMISSION)

    def _take_form(self, server_id: int | str, params: dict[str, object]) -> None:
        if text_in(params, "mode") != "form":
            self._respond_error(server_id, INVALID_PARAMS, "Forms are shown, and nothing else.")
            return
        try:
            question = Question(
                f"question-{self._ask_count + 1}",
                server_id,
                params,
                self._calls.find_open(ref_in(params, "toolCallId")),
            )
        except ValueError as error:
            self._respond_error(server_id, INVALID_PARAMS, str(error))
            return
        self._ask_count += 1
        self._events += self._messages.end()
        self._open_ask(question, FORM)

    def _open_ask(self, ask: Ask | Question, source: str) -> None:
        self._asks[ask.request_id] = ask
        self._events.append(ask.event)
        self._set_activity_of_turn(source)

    def _take_cancelled_request(self, server_id: object) -> None:
        """Withdraw what was asked under the id; an id that is used again takes the place of the older request."""
        for ask in list(self._asks.values()):
            if ask.server_id == server_id:
                self._close_ask(ask, "withdrawn", None)
                self._set_activity_of_turn("$/cancel_request")

    _UPDATES: ClassVar[dict[str, Callable[[UpdateReader, dict[str, object]], None]]] = {
        "agent_message_chunk": _take_chunk,
        "agent_thought_chunk": _take_thought,
        "user_message_chunk": _pass_over,
        "tool_call": _take_call,
        "tool_call_update": _take_call,
        "plan": _take_plan,
        "current_mode_update": _take_mode,
        "config_option_update": _take_config,
        "session_info_update": _take_session_info,
        "usage_update": _take_usage,
        "available_commands_update": _pass_over,
    }
    _SETTINGS = frozenset({"current_mode_update", "config_option_update", "session_info_update"})

    def _take_response(
        self, purpose: str, context: object, result: Mapping[str, object], error: Mapping[str, object] | None
    ) -> None:
        if purpose == "initialize":
            self._take_greeting(result, error)
        elif purpose == "session":
            self._take_session(result, error, context)
        elif purpose == "history":
            self._take_history_passed()
        elif purpose == "choice":
            self._take_choice(result, error, context)
        elif purpose == "prompt":
            self._take_prompt_result(result, error)
        elif purpose == "set":
            self._take_set(result, error, context)

    def _take_set(self, result: Mapping[str, object], error: Mapping[str, object] | None, context: object) -> None:
        raise NotImplementedError
