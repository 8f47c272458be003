"""The adapter for Claude Code's ``--input-format stream-json --output-format stream-json``.

One JSON object a line each way; its control requests are answered under their ids (Claude Code 2.1.332).
"""

from __future__ import annotations

import json

from agentmon.domain.json_values import (
    TOO_DEEP,
    object_in,
    objects_in,
    one_line,
    read_object,
    read_outline,
    ref_in,
    text_in,
)
from agentmon.domain.letters import cut
from agentmon.domain.unheard import ENDED_UNANSWERED
from agentmon.runners.protocols.asks import MAX_OPEN_ASKS
from agentmon.runners.protocols.conversation import (
    ENDED_AT_WORK,
    ENDED_BEFORE_BEGIN,
)
from agentmon.runners.protocols.messages import MAX_LAST_WORDS_CHARACTERS
from agentmon.runners.protocols.notices import notice
from agentmon.runners.protocols.stream_json.asks import Ask
from agentmon.runners.protocols.stream_json.commands import StreamJsonCommands
from agentmon.runners.protocols.stream_json.turns import cost_nano, result_error, result_outcome, transcript_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agentmon.runners.protocols.adapter import Event, Step

MAX_MODELS = 50
_INTERRUPT_MARK = "[Request interrupted by user"
PERMISSION_MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk")
"""Those that can be chosen while a session runs; ``bypassPermissions`` needs its flag at the start."""


class StreamJsonAdapter(StreamJsonCommands):
    """One process of Claude Code."""

    __slots__ = ("_handlers", "_has_begun")

    def __init__(self, launch: Mapping[str, object]) -> None:
        """``launch`` is the object ``conversation`` of ``spec.json``; see ``runners/protocols/__init__.py``."""
        super().__init__(launch)
        self._has_begun = False
        """Whether Claude has told of its conversation, so that what it says of errors is of the work."""
        self._handlers: dict[str, Callable[[dict[str, object]], None]] = {
            "stream_event": self._take_stream_event,
            "assistant": self._take_assistant,
            "user": self._take_user,
            "system": self._take_system,
            "result": self._take_result,
            "command_lifecycle": self._take_lifecycle,
            "control_request": self._take_control_request,
            "control_response": self._take_control_response,
            "control_cancel_request": self._take_cancel,
            "conversation_reset": self._take_reset,
        }

    def start(self, at_ms: int) -> Step:
        """Send ``initialize`` and the first message."""
        self._at_ms = at_ms
        self._request("", "initialize", "", {"hooks": None})
        prompt = text_in(self._launch, "prompt")
        if prompt:
            self._send_message(prompt, "")
            self._set_activity("working", "", "start")
        return self._step()

    def receive(self, chunk: bytes, at_ms: int) -> Step:
        """Take what Claude wrote."""
        self._at_ms = at_ms
        for line in self._lines.feed(chunk):
            self._take_line(line)
        return self._step()

    def receive_end(self, at_ms: int) -> Step:
        """Close all that is open; a turn that had no result has failed."""
        self._at_ms = at_ms
        rest = self._lines.flush()
        if rest:
            self._take_line(rest)
        self._is_ended = True
        for request_id in list(self._asks):
            self._close_ask(request_id, "withdrawn", None)
        self._events += self._calls.cancel_all("The agent ended before the call did.", with_subagents=True)
        self._events += self._usage.settle_all()
        for request in self._requests.values():
            self._refuse(request.command_id, ENDED_UNANSWERED)
        self._requests.clear()
        is_at_work = self._is_turn_open
        if self._lacks_result(is_at_work=is_at_work, is_asked_for_more=self._prompts.is_any_open):
            is_asked = self._is_interrupted
            self._has_broken_off = not is_asked
            error = None if is_asked else ENDED_AT_WORK if is_at_work else ENDED_BEFORE_BEGIN
            self._end_turn("interrupted" if is_asked else "failed", "", error)
        self._prompts.clear()
        return self._step()

    def _take_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        message = read_object(text) or {}
        kind = message.get("type")
        if not isinstance(kind, str):
            self._note_malformed(text, self._notices.malformed(text))
            outline = read_outline(text)
            if outline.get("type") == "control_request" and ref_in(outline, "request_id"):
                self._respond_error(ref_in(outline, "request_id"), TOO_DEEP)
            return
        handle = self._handlers.get(kind)
        if handle is not None:
            handle(message)
        else:
            self._events += self._notices.note(kind, message)

    def _take_stream_event(self, message: dict[str, object]) -> None:
        event = object_in(message, "event")
        kind = event.get("type")
        parent = ref_in(message, "parent_tool_use_id")
        if kind == "content_block_delta":
            self._events += self._messages.delta(parent, event)
        elif kind == "content_block_start":
            self._messages.begin_block(parent, event)
        elif kind == "message_start":
            self._begin_turn_of(parent, "stream_event")
            answer = object_in(event, "message")
            self._messages.begin(parent, ref_in(answer, "id"))
            waited_ms = message.get("ttft_ms")
            is_told = type(waited_ms) is int and 0 <= waited_ms < self._at_ms
            self._events += self._usage.note_answer(
                parent, answer, self._at_ms, waited_ms if is_told and isinstance(waited_ms, int) else 0
            )
        elif kind == "message_delta":
            self._events += self._usage.note_size(parent, object_in(event, "usage"), self._at_ms)

    def _take_assistant(self, message: dict[str, object]) -> None:
        parent = ref_in(message, "parent_tool_use_id")
        self._begin_turn_of(parent, "assistant")
        answer = object_in(message, "message")
        key = ref_in(answer, "id") or ref_in(message, "uuid")
        self._events += self._usage.note_answer(parent, answer, self._at_ms)
        role = "system" if message.get("is_api_error_message") is True else "assistant"
        for block in objects_in(answer, "content"):
            kind = text_in(block, "type")
            if kind in {"text", "thinking"}:
                self._events += self._messages.block(parent, key, role, text_in(block, kind), kind)
            else:
                self._messages.count_block(key)
            if kind.endswith("tool_use"):
                name, tool_input = text_in(block, "name"), object_in(block, "input")
                self._events += self._calls.start(ref_in(block, "id"), name, tool_input, parent, ref_in(answer, "id"))
            elif kind.endswith("tool_result"):
                self._events += self._calls.finish(block, {}, {}, is_interrupted=self._is_interrupted)

    def _take_user(self, message: dict[str, object]) -> None:
        content = object_in(message, "message").get("content")
        parent = ref_in(message, "parent_tool_use_id")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        results = [block for block in blocks if block.get("type") == "tool_result"]
        if results:
            self._take_results(message, results)
            return
        text = content if isinstance(content, str) else "\n".join(text_in(block, "text") for block in blocks)
        if message.get("isReplay") is True and not parent:
            if self._prompts.take_up(ref_in(message, "uuid"), text):
                return
            role = "user"
        else:
            role = "user" if parent else "system"
            self._is_interrupt_marked = self._is_interrupt_marked or text.startswith(_INTERRUPT_MARK)
        if text:
            self._events += self._messages.spoken(ref_in(message, "uuid"), role, text, parent)

    def _take_results(self, message: dict[str, object], results: list[dict[str, object]]) -> None:
        told = object_in(message, "tool_use_result") if len(results) == 1 else {}
        metas = objects_in(message, "tool_result_meta")
        for block in results:
            tool_ref = ref_in(block, "tool_use_id")
            meta = next((entry for entry in metas if entry.get("id") == tool_ref), {})
            self._events += self._usage.note_hand_back(tool_ref, object_in(told, "usage"))
            self._events += self._calls.finish(block, told, meta, is_interrupted=self._is_interrupted)

    def _take_system(self, message: dict[str, object]) -> None:
        subtype = text_in(message, "subtype")
        if subtype == "init":
            self._take_init(message)
        elif subtype == "session_state_changed":
            self._take_state(text_in(message, "state"))
        elif subtype == "status":
            self._note_session(permission_mode=text_in(message, "permissionMode"))
            if text_in(message, "status") == "compacting":
                self._events.append(notice("info", "The conversation is being shortened.", "compact"))
        elif subtype == "session_title_changed":
            self._note_session(title=text_in(message, "title"))
        else:
            if subtype == "permission_denied":
                self._calls.block(ref_in(message, "tool_use_id"))
            self._events += self._notices.note(f"system/{subtype}", message)

    def _take_init(self, message: dict[str, object]) -> None:
        session_ref = ref_in(message, "session_id")
        self._note_session(
            session_ref=session_ref,
            model=text_in(message, "model"),
            permission_mode=text_in(message, "permissionMode"),
            agent_version=text_in(message, "claude_code_version"),
            transcript_path=transcript_path(message),
        )
        self._has_begun = True
        self._begin_turn("init")

    def _take_state(self, state: str) -> None:
        self._has_state = True
        self._state = one_line(state, 40)
        if state == "running" and not self._asks:
            self._set_activity("working", "", "session_state_changed")
        elif state == "requires_action" and not self._asks:
            self._set_activity("waiting", "a decision", "session_state_changed")
        elif state == "idle" and not self._asks and not self._prompts.is_any_open:
            self._set_activity("waiting", "", "session_state_changed")

    def _take_lifecycle(self, message: dict[str, object]) -> None:
        state = text_in(message, "state")
        prompt_id = ref_in(message, "command_uuid")
        if state == "started":
            self._prompts.take_up(prompt_id, "")
            self._begin_turn("command_lifecycle")
        elif state == "completed":
            self._prompts.settle(prompt_id)
        elif state in {"cancelled", "discarded", "refused"} and self._prompts.settle(prompt_id):
            self._events.append(notice("warn", f"The agent did not take a message up: it was {state}.", "message"))

    def _take_result(self, message: dict[str, object]) -> None:
        self._begin_turn("result")
        for denial in objects_in(message, "permission_denials"):
            self._calls.block(ref_in(denial, "tool_use_id"))
        outcome = result_outcome(message)
        if outcome == "interrupted":
            for request_id in [request_id for request_id, ask in self._asks.items() if not ask.is_of_subagent]:
                self._close_ask(request_id, "withdrawn", None)
        self._events += self._calls.cancel_all("The turn ended before the call did.", with_subagents=False)
        self._events += self._usage.settle_all()
        cost = cost_nano(message.get("total_cost_usd"))
        if cost is not None:
            self._events.append({"kind": "cost", "cost_nano": cost})
        self._prompts.settle_turn()
        last_words = cut(text_in(message, "result"), MAX_LAST_WORDS_CHARACTERS)
        self._end_turn(outcome, last_words, self._error_at_begin(result_error(outcome, message)))

    def _error_at_begin(self, error: str | None) -> str | None:
        """Return the error, as a refused resume when nothing of the conversation has begun."""
        start = text_in(self._launch, "start")
        if error is None or self._has_begun or start not in {"resume", "fork"}:
            return error
        return self._cannot_go_on("Claude", start, error)

    def _take_control_request(self, message: dict[str, object]) -> None:
        request_id = ref_in(message, "request_id")
        request = object_in(message, "request")
        subtype = text_in(request, "subtype")
        if not request_id:
            self._events += self._notices.unknown("control_request without id", json.dumps(message))
        elif subtype == "can_use_tool":
            self._take_ask(request_id, request)
        else:
            name = f"control_request/{subtype}"
            self._events += self._notices.unknown(name, json.dumps(message, ensure_ascii=False))
            self._respond_error(request_id, f"Requests of the kind {one_line(subtype, 60)!r} are not answered here.")

    def _take_ask(self, request_id: str, request: dict[str, object]) -> None:
        if request_id in self._asks:
            return
        if request_id in self._closed_asks or len(self._asks) >= MAX_OPEN_ASKS:
            self._respond_error(request_id, "The request was settled before, or too many are open.")
            return
        tool_ref = ref_in(request, "tool_use_id")
        ask = Ask(request_id, tool_ref, request, self._calls.plan(tool_ref))
        self._events += self._calls.start(tool_ref, text_in(request, "tool_name"), ask.tool_input, "", "")
        self._asks[request_id] = ask
        self._events.append(dict(ask.event))
        self._set_activity("waiting", cut(str(ask.event["title"]), 200), "can_use_tool")

    def _take_cancel(self, message: dict[str, object]) -> None:
        request_id = ref_in(message, "request_id")
        if request_id in self._asks:
            self._close_ask(request_id, "withdrawn", None)
            self._note_activity_after_ask("control_cancel_request")

    def _take_control_response(self, message: dict[str, object]) -> None:
        response = object_in(message, "response")
        request = self._requests.pop(ref_in(response, "request_id"), None)
        if request is None:
            return
        if response.get("subtype") != "success":
            error = one_line(text_in(response, "error"), 500) or "The agent refused it."
            if request.name == "interrupt":
                self._is_interrupted = False
            if request.name == "initialize":
                self._events.append(notice("warn", f"Claude did not take the greeting: {error}", "initialize"))
            self._refuse(request.command_id, error)
            return
        answer = object_in(response, "response")
        if request.name == "initialize":
            self._take_greeting(answer)
        elif request.name == "set_model":
            self._note_session(model=request.value)
        elif request.name == "set_permission_mode":
            self._note_session(permission_mode=text_in(answer, "mode")[:200] or request.value)
        self._obey(request.command_id)

    def _take_greeting(self, answer: Mapping[str, object]) -> None:
        models = [ref_in(model, "value") for model in objects_in(answer, "models", MAX_MODELS)]
        event: Event = {
            "kind": "session",
            "models": [model for model in models if model],
            "permission_modes": list(PERMISSION_MODES),
        }
        version = ref_in(answer, "claude_code_version")
        if version:
            self._session["agent_version"] = version
            event["agent_version"] = version
        self._events.append(event)

    def _take_reset(self, message: dict[str, object]) -> None:
        self._note_session(session_ref=ref_in(message, "new_conversation_id"))
