"""The adapter for Claude Code's ``--input-format stream-json --output-format stream-json``.

One JSON object a line each way; its control requests are answered under their ids (Claude Code 2.1.332).
"""

from __future__ import annotations

import json

from agentmon.runners.protocols.adapter import Adapter, JsonLines, Step, clip, encode_line
from agentmon.runners.protocols.json_values import object_in, objects_in, one_line, ref_in, text_in
from agentmon.runners.protocols.stream_json_asks import MAX_OPEN_ASKS, MAX_SETTLED_ASKS, Ask, RefusedAnswerError
from agentmon.runners.protocols.stream_json_messages import MessageBook
from agentmon.runners.protocols.stream_json_notices import NoticeBook, notice
from agentmon.runners.protocols.stream_json_tools import CallBook
from agentmon.runners.protocols.stream_json_turns import (
    PromptBook,
    cost_nano,
    result_error,
    result_outcome,
    transcript_path,
)
from agentmon.runners.protocols.stream_json_usage import UsageBook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agentmon.runners.protocols.adapter import Event

MAX_OPEN_REQUESTS = 64
MAX_MODELS = 50
MAX_SESSION_CHARACTERS = 4_096
MAX_LAST_WORDS_CHARACTERS = 4_000
PERMISSION_MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk")
"""Those that can be chosen while a session runs; ``bypassPermissions`` needs its flag at the start."""


class _Request:
    """A control request of ours that Claude has not answered."""

    __slots__ = ("command_id", "name", "value")

    def __init__(self, command_id: str, name: str, value: str) -> None:
        self.command_id = command_id
        self.name = name
        self.value = value


class StreamJsonAdapter(Adapter):
    """One process of Claude Code."""

    __slots__ = (
        "_activity", "_asks", "_at_ms", "_calls", "_error", "_events", "_handlers", "_has_state", "_is_finish_wanted",
        "_is_interrupted", "_is_over", "_is_turn_open", "_launch", "_lines", "_messages", "_notices", "_outcome",
        "_prompts", "_request_count", "_requests", "_send", "_session", "_settled_asks", "_state", "_usage",
    )  # fmt: skip

    def __init__(self, launch: Mapping[str, object]) -> None:
        """``launch`` is the object ``conversation`` of ``spec.json``; see ``runners/protocols/__init__.py``."""
        super().__init__(launch)
        self._launch = dict(launch)
        self._lines = JsonLines()
        self._events: list[Event] = []
        self._send: list[bytes] = []
        self._at_ms = 0
        self._outcome = ""
        self._error: str | None = None
        self._is_turn_open = False
        self._is_interrupted = False
        self._is_finish_wanted = False
        self._is_over = False
        self._state = ""
        self._has_state = False
        self._activity: tuple[str, str] = ("", "")
        self._session: dict[str, str] = {}
        self._asks: dict[str, Ask] = {}
        self._settled_asks: dict[str, str] = {}
        self._requests: dict[str, _Request] = {}
        self._request_count = 0
        self._calls = CallBook()
        self._usage = UsageBook()
        self._notices = NoticeBook()
        self._messages = MessageBook()
        self._prompts = PromptBook(text_in(launch, "session_id") or text_in(launch, "session_ref"))
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

    @property
    def is_finished(self) -> bool:
        """Whether the last turn has ended, nothing is open, and nobody has interrupted it."""
        if not self._outcome or self._is_turn_open or self._asks or self._prompts.is_any_open:
            return False
        if self._has_state and self._state != "idle":
            return False
        return self._is_finish_wanted or not self._is_interrupted

    @property
    def outcome(self) -> str:
        """The ``TurnOutcome`` of the newest turn that ended, or an empty text."""
        return self._outcome

    @property
    def error(self) -> str | None:
        """One line for a person, when the newest turn failed or nothing could be begun."""
        return self._error

    def start(self, at_ms: int) -> Step:
        """Send ``initialize`` and the first message."""
        self._at_ms = at_ms
        self._request("", "initialize", "", {"hooks": None})
        prompt = text_in(self._launch, "prompt")
        if prompt:
            self._say(prompt, "")
            self._note_activity("working", "", "start")
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
        self._is_over = True
        for request_id in list(self._asks):
            self._close_ask(request_id, "withdrawn", None)
        self._events += self._calls.cancel_all("The agent ended before the call did.", with_subagents=True)
        self._events += self._usage.settle_all()
        for request in self._requests.values():
            self._note_command(request.command_id, "The agent ended before it answered.")
        self._requests.clear()
        if self._is_turn_open or not self._outcome:
            is_asked = self._is_interrupted
            error = None if is_asked else "The agent ended in the middle of its work."
            if self._is_turn_open:
                self._end_turn("interrupted" if is_asked else "failed", "", error)
            else:
                self._error = "The agent ended before it began."
        self._prompts.clear()
        return self._step()

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

    # What a client commands

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
        if not self._asks:
            self._note_activity("working", "", "answer")

    def _interrupt(self, command_id: str) -> None:
        if not self._is_turn_open and not self._prompts.is_any_open:
            self._note_command(command_id, "The agent does nothing that could be interrupted.")
        elif self._request(command_id, "interrupt", "", {}):
            self._is_interrupted = True

    def _set(self, command_id: str, name: str, field: str, value: str) -> None:
        if not value or len(value) > 200:  # noqa: PLR2004 - no name is as long
            self._note_command(command_id, "It needs a name.")
            return
        self._request(command_id, name, value, {field: value})

    def _request(self, command_id: str, name: str, value: str, fields: Mapping[str, object]) -> bool:
        if len(self._requests) >= MAX_OPEN_REQUESTS:
            self._note_command(command_id, "Too many commands wait for the agent.")
            return False
        self._request_count += 1
        request_id = f"agentmon-{self._request_count}"
        self._requests[request_id] = _Request(command_id, name, value)
        request = {"subtype": name, **fields}
        self._send.append(encode_line({"type": "control_request", "request_id": request_id, "request": request}))
        return True

    def _respond(self, request_id: str, response: Mapping[str, object]) -> None:
        answer = {"subtype": "success", "request_id": request_id, "response": response}
        self._send.append(encode_line({"type": "control_response", "response": answer}))

    def _respond_error(self, request_id: str, error: str) -> None:
        answer = {"subtype": "error", "request_id": request_id, "error": error}
        self._send.append(encode_line({"type": "control_response", "response": answer}))

    def _say(self, text: str, command_id: str) -> None:
        prompt_id = self._prompts.add(text, command_id)
        message = {"role": "user", "content": text}
        self._send.append(
            encode_line({"type": "user", "message": message, "parent_tool_use_id": None, "uuid": prompt_id})
        )
        self._events += self._messages.whole(prompt_id, "user", text)

    # What Claude writes

    def _take_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict) or not isinstance(message.get("type"), str):
            self._events += self._notices.malformed(text)
            return
        kind = message["type"]
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
        self._begin_turn("init")

    def _take_state(self, state: str) -> None:
        self._has_state = True
        self._state = one_line(state, 40)
        if state == "running" and not self._asks:
            self._note_activity("working", "", "session_state_changed")
        elif state == "requires_action" and not self._asks:
            self._note_activity("waiting", "a decision", "session_state_changed")
        elif state == "idle" and not self._asks and not self._prompts.is_any_open:
            self._note_activity("waiting", "", "session_state_changed")

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
        last_words = clip(text_in(message, "result"), MAX_LAST_WORDS_CHARACTERS)
        self._end_turn(outcome, last_words, result_error(outcome, message))

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
        if request_id in self._settled_asks or len(self._asks) >= MAX_OPEN_ASKS:
            self._respond_error(request_id, "The request was settled before, or too many are open.")
            return
        tool_ref = ref_in(request, "tool_use_id")
        ask = Ask(request_id, tool_ref, request, self._calls.plan(tool_ref))
        self._events += self._calls.start(tool_ref, text_in(request, "tool_name"), ask.tool_input, "", "")
        self._asks[request_id] = ask
        self._events.append(ask.event)
        self._note_activity("waiting", clip(str(ask.event["title"]), 200), "can_use_tool")

    def _take_cancel(self, message: dict[str, object]) -> None:
        request_id = ref_in(message, "request_id")
        if request_id in self._asks:
            self._close_ask(request_id, "withdrawn", None)
            if not self._asks and self._is_turn_open:
                self._note_activity("working", "", "control_cancel_request")

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
            self._note_command(request.command_id, error)
            return
        answer = object_in(response, "response")
        if request.name == "initialize":
            self._take_greeting(answer)
        elif request.name == "set_model":
            self._note_session(model=request.value)
        elif request.name == "set_permission_mode":
            self._note_session(permission_mode=text_in(answer, "mode")[:200] or request.value)
        self._note_command(request.command_id, None)

    def _take_greeting(self, answer: Mapping[str, object]) -> None:
        models = [ref_in(model, "value") for model in objects_in(answer, "models")[:MAX_MODELS]]
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

    # What both lead to

    def _step(self) -> Step:
        step = Step(self._events, b"".join(self._send))
        self._events = []
        self._send = []
        return step

    def _begin_turn_of(self, parent: str, source: str) -> None:
        if not parent:
            self._begin_turn(source)

    def _begin_turn(self, source: str) -> None:
        if self._is_turn_open:
            return
        self._is_turn_open = True
        refs = self._prompts.turn_refs()
        if refs:
            self._is_interrupted = False
        self._events.append({"kind": "turn_started", "prompt_refs": refs})
        if not self._asks:
            self._note_activity("working", "", source)

    def _end_turn(self, outcome: str, last_words: str, error: str | None) -> None:
        self._is_turn_open = False
        self._outcome = outcome
        self._error = error
        self._events.append({"kind": "turn_ended", "outcome": outcome, "text": last_words, "error": error})
        is_idle = not self._has_state or self._state == "idle" or self._is_over
        if is_idle and not self._prompts.is_any_open:
            self._note_activity("waiting", "", "result")

    def _close_ask(self, request_id: str, outcome: str, command_id: str | None) -> None:
        del self._asks[request_id]
        self._settled_asks[request_id] = outcome
        if len(self._settled_asks) > MAX_SETTLED_ASKS:
            del self._settled_asks[next(iter(self._settled_asks))]
        self._events.append(
            {"kind": "ask_closed", "request_id": request_id, "outcome": outcome, "command_id": command_id}
        )

    def _note_command(self, command_id: str, error: str | None) -> None:
        if command_id:
            self._events.append(
                {"kind": "command", "command_id": command_id, "was_obeyed": error is None, "error": error}
            )

    def _note_activity(self, activity: str, note: str, source: str) -> None:
        if (activity, note) != self._activity and not (self._is_over and activity == "working"):
            self._activity = (activity, note)
            self._events.append({"kind": "activity", "activity": activity, "note": note, "source": source})

    def _note_session(self, **told: str) -> None:
        changed = {
            name: value
            for name, value in told.items()
            if value and len(value) <= MAX_SESSION_CHARACTERS and self._session.get(name) != value
        }
        if changed:
            self._session.update(changed)
            self._events.append({"kind": "session", **changed})
