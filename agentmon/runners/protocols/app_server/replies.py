"""What Codex answers to the requests of the adapter: the thread, the turns, the models."""

from __future__ import annotations

from agentmon.domain.json_values import object_in, objects_in, text_in
from agentmon.domain.letters import cut
from agentmon.runners.protocols.adapter import encode_line
from agentmon.runners.protocols.app_server.errors import error_line
from agentmon.runners.protocols.app_server.modes import MODES, thread_settings
from agentmon.runners.protocols.app_server.turns import TurnKeeper
from agentmon.runners.protocols.messages import Message
from agentmon.runners.protocols.notices import notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ClassVar


MAX_MODELS = 100


class ReplyReader(TurnKeeper):
    """Acts on the answers of Codex."""

    __slots__ = ()

    def _take_response(self, message: dict[str, object]) -> None:
        message_id = message["id"]
        known = self._pending.pop(message_id, None) if isinstance(message_id, int | str) else None
        if known is None:
            self._events += self._notices.unknown("an answer to nothing that was asked")
            return
        purpose, context = known
        error = error_line(object_in(message, "error")) if message.get("error") is not None else None
        self._RESPONSES[purpose](self, object_in(message, "result"), error, context)

    def _initialized(self, result: dict[str, object], error: str | None, _context: object) -> None:
        if error is not None:
            self._fail_to_begin(f"Codex does not take agentmon's greeting: {error}")
            return
        agent = text_in(result, "userAgent").partition(" ")[0]
        self._version = cut(agent.rpartition("/")[2], 100)
        self._send.append(encode_line({"method": "initialized"}))
        begin = text_in(self._launch, "start") or "fresh"
        params: dict[str, object] = thread_settings(self._mode)
        for name, field in (("cwd", "working_dir"), ("model", "model"), ("developerInstructions", "instructions")):
            if text_in(self._launch, field):
                params[name] = text_in(self._launch, field)
        if begin in ("resume", "fork"):
            params |= {"threadId": text_in(self._launch, "session_ref"), "excludeTurns": True}
            self._request(f"thread/{begin}", params, "thread", begin)
        else:
            self._request("thread/start", {**params, "experimentalRawEvents": True}, "thread", "fresh")

    def _thread_begun(self, result: dict[str, object], error: str | None, context: object) -> None:
        thread = object_in(result, "thread")
        thread_id = text_in(thread, "id")
        if error is None and not thread_id:
            error = "Codex named no thread."
        if error is not None:
            if context == "fresh":
                self._fail_to_begin(f"Codex could not begin: {error}")
            else:
                self._fail_to_begin(self._cannot_go_on("Codex", str(context), error))
            return
        self._thread_id = thread_id
        self._model = cut(text_in(result, "model") or text_in(thread, "model") or self._model, 200)
        self._provider = cut(text_in(result, "modelProvider") or text_in(thread, "modelProvider"), 200)
        self._effort = result.get("reasoningEffort")
        self._policy = object_in(result, "sandbox")
        self._events.append(
            {
                "kind": "session",
                "session_ref": cut(thread_id, 500),
                "title": cut(text_in(thread, "name"), 500) or None,
                "model": self._model or None,
                "permission_mode": self._mode,
                "agent_version": cut(text_in(thread, "cliVersion"), 100) or self._version or None,
                "permission_modes": list(MODES),
                "transcript_path": cut(text_in(thread, "path"), 4_000) or None,
            }
        )
        if self._waiting:
            self._start_next_turn()
        else:
            self._set_activity("waiting", "nothing to do", "thread")
        self._request("model/list", {}, "models", request_id="models")

    def _models_listed(self, result: dict[str, object], _error: str | None, _context: object) -> None:
        offered = objects_in(result, "data", MAX_MODELS)
        names = [cut(text_in(model, "model"), 200) for model in offered if model.get("hidden") is not True]
        if any(names):
            self._events.append({"kind": "session", "models": list(filter(None, names))})

    def _turn_answered(self, result: dict[str, object], error: str | None, context: object) -> None:
        command_id = context.command_id if isinstance(context, Message) else None
        if error is not None:
            self._refuse(command_id, error)
            if self._is_starting_turn:
                self._end_turn("failed", error)
            self._start_next_turn()
            return
        self._obey(command_id)
        self._begin_turn(text_in(object_in(result, "turn"), "id"))

    def _steer_answered(self, _result: dict[str, object], error: str | None, context: object) -> None:
        if not isinstance(context, Message):
            return
        if error is None:
            self._obey(context.command_id)
        elif self._is_idle() and not self._waiting:
            self._start_turn(context)
        else:
            self._let_wait(context, self._waiting)
            self._start_next_turn()

    def _interrupt_answered(self, _result: dict[str, object], error: str | None, context: object) -> None:
        if not isinstance(context, str):
            return
        if error is None:
            self._obey(context)
            return
        self._was_interrupted = False
        self._has_person_the_word = False
        self._refuse(context, error)
        self._start_next_turn()

    def _denied_interrupt_answered(self, _result: dict[str, object], error: str | None, _context: object) -> None:
        if error is not None:
            self._events.append(notice("warn", f"The turn was not interrupted: {error}", "interrupt"))

    _RESPONSES: ClassVar[dict[str, Callable[[ReplyReader, dict[str, object], str | None, object], None]]] = {
        "initialize": _initialized,
        "thread": _thread_begun,
        "models": _models_listed,
        "turn": _turn_answered,
        "steer": _steer_answered,
        "reason": _steer_answered,
        "interrupt": _interrupt_answered,
        "interrupt_denied": _denied_interrupt_answered,
    }
