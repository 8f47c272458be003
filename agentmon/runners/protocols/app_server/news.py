"""What Codex says and asks by itself, of its own thread and of those of its subagents."""

from __future__ import annotations

import json

from agentmon.domain.json_values import (
    MAX_REF_CHARACTERS,
    TOO_DEEP,
    is_deeper,
    object_in,
    objects_in,
    one_line,
    read_outline,
    text_in,
    texts_in,
)
from agentmon.domain.letters import cut
from agentmon.runners.protocols.app_server import asks, items
from agentmon.runners.protocols.app_server.errors import error_line, is_limit, retry_status
from agentmon.runners.protocols.app_server.notices import SILENT
from agentmon.runners.protocols.app_server.replies import ReplyReader
from agentmon.runners.protocols.asks import MAX_OPEN_ASKS
from agentmon.runners.protocols.notices import failed_call, notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ClassVar


MAX_THREADS = 256

_METHOD_NOT_FOUND = -32601
_INVALID_REQUEST = -32600

_DECODE = json.JSONDecoder().raw_decode


class NewsReader(ReplyReader):
    """Reads messages, notifications and requests of Codex."""

    __slots__ = ()

    def _take_line(self, line: bytes) -> None:
        try:
            text = line.decode("utf-8", "replace").strip()
            message, end = _DECODE(text)
        except (RecursionError, ValueError):
            end, text, message = -1, line.decode("utf-8", "replace"), None
        if end != len(text):
            what = one_line(text, 200) or "an empty line, or one too long"
            self._note_malformed(text, self._notices.malformed(what))
            self._refuse_too_deep(text)
            return
        if not isinstance(message, dict) or is_deeper(message):
            self._events += self._notices.malformed(type(message).__name__)
            self._refuse_too_deep(text)
            return
        method = message.get("method")
        if isinstance(method, str):
            params = message.get("params")
            if not isinstance(params, dict):
                params = {}
            if "id" in message:
                self._take_request(message["id"], method, params)
                return
            act = self._NOTIFICATIONS.get(method)
            if act is not None:
                act(self, params)
            elif method not in SILENT:
                self._events += self._notices.unknown(method)
        elif "id" in message and method is None and ("result" in message or "error" in message):
            self._take_response(message)
        else:
            self._events += self._notices.malformed("an object that is neither a message nor an answer")

    def _has_place(self, params: dict[str, object]) -> bool:
        """Whether what the thread says can be told: it is ours, or that of a subagent we know."""
        return self._is_ours(params) or self._calls.parent_of(text_in(params, "threadId")) is not None

    def _thread_started(self, params: dict[str, object]) -> None:
        thread = object_in(params, "thread")
        thread_id = text_in(thread, "id")
        if thread_id and thread_id != self._thread_id:
            model = cut(text_in(thread, "model"), 200)
            provider = cut(text_in(thread, "modelProvider"), 200)
            self._thread_models[cut(thread_id, 500)] = (model, provider)
            if len(self._thread_models) > MAX_THREADS:
                del self._thread_models[next(iter(self._thread_models))]

    def _status_changed(self, params: dict[str, object]) -> None:
        if not self._is_ours(params):
            return
        status = object_in(params, "status")
        flags = texts_in(status, "activeFlags", 10)
        match status.get("type"):
            case "active" if "waitingOnApproval" in flags:
                self._set_activity("waiting", "permission", "thread/status/changed")
            case "active" if "waitingOnUserInput" in flags:
                self._set_activity("waiting", "question", "thread/status/changed")
            case "active":
                self._set_activity("working", "", "thread/status/changed")
            case "idle":
                self._set_activity("waiting", "nothing to do", "thread/status/changed")
            case "systemError":
                self._set_activity("waiting", "error", "thread/status/changed")
            case _:
                self._set_activity("unknown", "", "thread/status/changed")

    def _turn_started(self, params: dict[str, object]) -> None:
        self._usage.note_request(params, self._at_ms)
        if self._is_ours(params):
            self._begin_turn(text_in(object_in(params, "turn"), "id"))
            self._note_running_turn()

    def _turn_completed(self, params: dict[str, object]) -> None:
        turn = object_in(params, "turn")
        turn_id = text_in(turn, "id")
        status = text_in(turn, "status")
        if not self._is_ours(params):
            thread_id = text_in(params, "threadId")
            self._withdraw_asks(thread_id)
            self._events += self._calls.cancel(thread_id)
            self._events += self._calls.end_subagent(thread_id, status)
            return
        if not turn_id or turn_id != self._turn_id:
            return
        for item in objects_in(turn, "items", 1_000):
            if item.get("type") == "agentMessage" and text_in(item, "text"):
                self._last_text = cut(text_in(item, "text"), items.MAX_SUMMARY_CHARACTERS)
        error = object_in(turn, "error")
        if status == "completed":
            self._end_turn("completed", None)
        elif status == "interrupted":
            self._end_turn("interrupted", None)
        else:
            self._end_turn("limit" if is_limit(error) else "failed", error_line(error))
        self._start_next_turn()

    def _item_started(self, params: dict[str, object]) -> None:
        item = object_in(params, "item")
        kind = text_in(item, "type")
        if kind == "contextCompaction":
            if self._is_ours(params):
                self._events.append(notice("info", "Codex makes room in its memory of the conversation.", "compaction"))
        elif kind in items.TOOL_ITEMS or kind == "subAgentActivity":
            thread_id = text_in(params, "threadId")
            self._events += self._calls.start(item, thread_id, self._answer_keys.get(thread_id))
        elif kind not in items.TEXT_ITEMS and kind not in items.SILENT_ITEMS:
            self._events += self._notices.unknown(f"item {kind}")

    def _item_completed(self, params: dict[str, object]) -> None:
        item = object_in(params, "item")
        is_ours = self._is_ours(params)
        if items.is_text(item):
            if not self._has_place(params) or (item.get("type") == "userMessage" and not is_ours):
                return
            if is_ours and item.get("type") == "agentMessage" and text_in(item, "text"):
                self._last_text = cut(text_in(item, "text"), items.MAX_SUMMARY_CHARACTERS)
        else:
            self._usage.note_request(params, self._at_ms)
        self._events += self._calls.complete(item, text_in(params, "threadId"))

    def _text_delta(self, params: dict[str, object], *, is_thinking: bool = False) -> None:
        if params.get("threadId") == self._thread_id:
            text, ref = params.get("delta"), params.get("itemId")
            if isinstance(text, str) and isinstance(ref, str):
                ref = cut(ref, MAX_REF_CHARACTERS)
                self._events.append({"kind": "delta", "message_ref": ref, "text": text, "is_thinking": is_thinking})

    def _thinking_delta(self, params: dict[str, object]) -> None:
        self._text_delta(params, is_thinking=True)

    def _patch_updated(self, params: dict[str, object]) -> None:
        self._calls.change_patch(text_in(params, "itemId"), params.get("changes"))

    def _plan_updated(self, params: dict[str, object]) -> None:
        if self._is_ours(params):
            self._events.append(items.plan(params))

    def _response_billed(self, params: dict[str, object]) -> None:
        event = self._usage.take_response(params, *self._billed_model(params), self._at_ms)
        if event is None:
            return
        self._events.append(event)
        thread_id, key = text_in(params, "threadId"), str(event["key"])
        self._answer_keys[thread_id] = key
        if len(self._answer_keys) > MAX_THREADS:
            del self._answer_keys[next(iter(self._answer_keys))]
        self._events += self._calls.name_answer(thread_id, key)

    def _total_updated(self, params: dict[str, object]) -> None:
        # It comes when the calls of an answer are over, so what starts now belongs to the next one.
        self._answer_keys.pop(text_in(params, "threadId"), None)
        # After a resume or a fork Codex says the old total again, under a turn that was not begun here.
        if self._is_ours(params) and text_in(params, "turnId") not in self._begun_turns:
            return
        event = self._usage.take_total(params, *self._billed_model(params))
        if event is not None:
            self._events.append(event)

    def _billed_model(self, params: dict[str, object]) -> tuple[str, str]:
        ours = (self._model, self._provider)
        if self._is_ours(params):
            return ours
        model, provider = self._thread_models.get(text_in(params, "threadId"), ours)
        return model or ours[0], provider or ours[1]

    def _settings_updated(self, params: dict[str, object]) -> None:
        model = cut(text_in(object_in(params, "threadSettings"), "model"), 200)
        if self._is_ours(params) and model and model != self._model and not self._settings_changed:
            self._model = model
            self._events.append({"kind": "session", "model": model})

    def _model_rerouted(self, params: dict[str, object]) -> None:
        model = cut(text_in(params, "toModel"), 200)
        if self._is_ours(params) and model:
            self._model = model
            self._events.append({"kind": "session", "model": model})
            text = f"Codex goes on with the model {model} instead of {cut(text_in(params, 'fromModel'), 200)}."
            self._events.append(notice("warn", text, "model"))

    def _name_updated(self, params: dict[str, object]) -> None:
        title = one_line(text_in(params, "threadName"), 500)
        if self._is_ours(params) and title:
            self._events.append({"kind": "session", "title": title})

    def _error_told(self, params: dict[str, object]) -> None:
        if params.get("willRetry") is True and self._has_place(params):
            self._usage.note_request(params, self._at_ms)
            error = object_in(params, "error")
            self._events.append(notice("warn", error_line(error), "retry"))
            # What is not tried again stands in the rollout, under the name of the turn.
            model, provider = self._billed_model(params)
            key = f"{cut(text_in(params, 'turnId'), 200)}:retry{self._at_ms}"
            self._events.append(failed_call(key, model, provider, error_line(error), retry_status(error)))

    def _warned(self, params: dict[str, object]) -> None:
        self._events += self._notices.once("warn", text_in(params, "message"), "warning")

    def _told(self, params: dict[str, object]) -> None:
        text = text_in(params, "summary")
        if text:
            self._events += self._notices.once("info", text, "warning")

    def _rate_limited(self, params: dict[str, object]) -> None:
        self._events += self._notices.rate_limits(params)

    def _take_request(self, server_id: object, method: str, params: dict[str, object]) -> None:
        if not isinstance(server_id, int | str) or isinstance(server_id, bool):
            self._events += self._notices.malformed("a request whose id is neither a number nor a text")
            return
        if method not in asks.METHODS:
            self._events += self._notices.unknown(method)
            self._reject(server_id, _METHOD_NOT_FOUND, f"agentmon does not know {cut(method, 200)}")
            return
        known = self._asks.get(server_id)
        if known is not None:
            if known.method == method and known.params == params:
                return
            self._close_ask(known, "withdrawn", None)
        if len(self._asks) >= MAX_OPEN_ASKS:
            self._reject(server_id, _INVALID_REQUEST, "agentmon holds too many open requests")
            return
        self._ask_count += 1
        request_id = cut(f"{self._ask_count}-{server_id}", 100)
        item = self._calls.open_item(text_in(params, "itemId"))
        try:
            ask = asks.make_ask(request_id, server_id, method, params, item)
        except ValueError as error:
            self._reject(server_id, _INVALID_REQUEST, str(error))
            self._events += self._notices.malformed(f"{method}: {error}")
            return
        self._asks[server_id] = ask
        self._events.append(ask.event)

    def _refuse_too_deep(self, text: str) -> None:
        outline = read_outline(text)
        server_id = outline.get("id")
        if text_in(outline, "method") and isinstance(server_id, int | str):
            self._reject(server_id, _INVALID_REQUEST, TOO_DEEP)

    def _request_resolved(self, params: dict[str, object]) -> None:
        server_id = params.get("requestId")
        if isinstance(server_id, int | str) and server_id in self._asks:
            self._close_ask(self._asks[server_id], "withdrawn", None)

    _NOTIFICATIONS: ClassVar[dict[str, Callable[[NewsReader, dict[str, object]], None]]] = {
        "account/rateLimits/updated": _rate_limited,
        "configWarning": _told,
        "deprecationNotice": _told,
        "error": _error_told,
        "guardianWarning": _warned,
        "item/agentMessage/delta": _text_delta,
        "item/completed": _item_completed,
        "item/fileChange/patchUpdated": _patch_updated,
        "item/plan/delta": _text_delta,
        "item/reasoning/summaryTextDelta": _thinking_delta,
        "item/reasoning/textDelta": _thinking_delta,
        "item/started": _item_started,
        "model/rerouted": _model_rerouted,
        "rawResponse/completed": _response_billed,
        "serverRequest/resolved": _request_resolved,
        "thread/name/updated": _name_updated,
        "thread/settings/updated": _settings_updated,
        "thread/started": _thread_started,
        "thread/status/changed": _status_changed,
        "thread/tokenUsage/updated": _total_updated,
        "turn/completed": _turn_completed,
        "turn/plan/updated": _plan_updated,
        "turn/started": _turn_started,
        "warning": _warned,
    }
