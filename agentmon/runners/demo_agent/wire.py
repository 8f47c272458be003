"""The demo agent's side of the stream-json protocol: messages out, answers and interruptions in."""

from __future__ import annotations

import itertools
import json
import os
import queue
import sys
import threading
import time
import uuid
from typing import Final

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MODEL: Final = "demo-model"
_USAGE: Final[dict[str, object]] = {
    "input_tokens": 420,
    "cache_creation_input_tokens": 80,
    "cache_read_input_tokens": 5200,
    "cache_creation": {"ephemeral_5m_input_tokens": 80, "ephemeral_1h_input_tokens": 0},
}
_OUTPUT_TOKENS: Final = 64
_COST_USD: Final = 0.0042
"""What one answer is said to cost, so that there is a figure to see; nothing is charged."""


class Interrupted(Exception):  # noqa: N818 - not an error
    """Somebody asked the agent to stop what it does."""


class Wire:
    """Speaks and listens; ``pace_s`` is the pause before each message."""

    def __init__(self, *, pace_s: float, session_id: str) -> None:
        self.session_id = session_id
        self.permission_mode = "manual"
        self._pace_s = pace_s
        self._incoming: queue.Queue[Mapping[str, object] | None] = queue.Queue()
        self._said: list[str] = []
        """What a person said that was not taken up yet."""
        self._allowed: set[str] = set()
        """Tools allowed for the session."""
        self._answers: dict[str, Mapping[str, object]] = {}
        self._numbers = itertools.count(1)
        self._cost_usd = 0.0
        self._answer_count = 0
        self._message_id = ""
        self._is_over = False
        self._is_interrupted = False
        threading.Thread(target=self._read, daemon=True).start()

    def next_prompt(self) -> str | None:
        """Wait for what a person says next; None when nothing comes any more."""
        while not self._said and not self._is_over:
            self._take(self._incoming.get())
        return self._said.pop(0) if self._said else None

    def begin_turn(self) -> None:
        """Tell who speaks, and from where."""
        self._is_interrupted = False
        self._send(
            {
                "type": "system",
                "subtype": "init",
                "session_id": self.session_id,
                "cwd": os.getcwd(),  # noqa: PTH109 - the same import as the rest
                "model": MODEL,
                "permissionMode": self.permission_mode,
                "tools": ["Read", "Edit", "Bash", "TodoWrite", "AskUserQuestion"],
            }
        )

    def say(self, text: str) -> None:
        """Say something, a few words at a time."""
        self._new_answer()
        words = text.split(" ")
        self._stream({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
        for position, word in enumerate(words):
            piece = word if position == 0 else f" {word}"
            self._stream({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}})
            self._rest(self._pace_s / 10)
        self._stream({"type": "content_block_stop", "index": 0})
        self._finish_answer({"type": "text", "text": text})

    def call(self, name: str, tool_input: Mapping[str, object]) -> str:
        """Say that a tool is called and return the id of the call."""
        self._new_answer()
        call_id = f"toolu_demo_{next(self._numbers)}"
        self._finish_answer({"type": "tool_use", "id": call_id, "name": name, "input": tool_input})
        return call_id

    def result(self, call_id: str, text: str, *, is_error: bool = False, details: object = None) -> None:
        """Say what the call brought."""
        self._rest(self._pace_s)
        self._send(
            {
                "type": "user",
                "message": {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": is_error}],
                },
                "parent_tool_use_id": None,
                "session_id": self.session_id,
                "tool_use_result": details,
            }
        )

    def ask(self, call_id: str, name: str, tool_input: Mapping[str, object], **more: object) -> Mapping[str, object]:
        """Ask whether a tool may be used, and return the answer: ``behavior`` and what belongs to it."""
        is_edit_allowed = name == "Edit" and self.permission_mode in {"acceptEdits", "bypassPermissions"}
        if not more and (name in self._allowed or is_edit_allowed):
            return {"behavior": "allow", "updatedInput": tool_input}
        request_id = f"demo-{next(self._numbers)}"
        suggestion = {"type": "addRules", "rules": [{"toolName": name}], "behavior": "allow", "destination": "session"}
        self._send(
            {
                "type": "control_request",
                "request_id": request_id,
                "request": {
                    "subtype": "can_use_tool",
                    "tool_name": name,
                    "display_name": name,
                    "input": tool_input,
                    "tool_use_id": call_id,
                    "permission_suggestions": [] if more else [suggestion],
                    **more,
                },
            }
        )
        while request_id not in self._answers:
            self._take(self._incoming.get())
            if self._is_over or self._is_interrupted:
                self._is_interrupted = False
                self._send({"type": "control_cancel_request", "request_id": request_id})
                raise Interrupted
        answer = self._answers.pop(request_id)
        if answer.get("updatedPermissions"):
            self._allowed.add(name)
        if answer.get("interrupt"):
            raise Interrupted
        return answer

    def end_turn(self, text: str, *, is_interrupted: bool = False) -> None:
        """Say that the turn is over and what all of it cost."""
        if is_interrupted:
            content = [{"type": "text", "text": "[Request interrupted by user]"}]
            self._send(
                {
                    "type": "user",
                    "message": {"role": "user", "content": content},
                    "parent_tool_use_id": None,
                    "session_id": self.session_id,
                }
            )
        count = self._answer_count
        self._send(
            {
                "type": "result",
                "subtype": "error_during_execution" if is_interrupted else "success",
                "is_error": is_interrupted,
                "result": text,
                "num_turns": count,
                "stop_reason": "end_turn",
                "terminal_reason": "aborted_streaming" if is_interrupted else "completed",
                "total_cost_usd": round(self._cost_usd, 6),
                "session_id": self.session_id,
                "usage": _usage(_OUTPUT_TOKENS * count),
                "permission_denials": [],
            }
        )

    def _new_answer(self) -> None:
        self._rest(self._pace_s)
        self._message_id = f"msg_demo_{uuid.uuid4().hex[:16]}"
        self._stream(
            {
                "type": "message_start",
                "message": {
                    "id": self._message_id,
                    "type": "message",
                    "role": "assistant",
                    "model": MODEL,
                    "content": [],
                    "usage": _usage(1),
                },
            }
        )

    def _finish_answer(self, block: Mapping[str, object]) -> None:
        self._answer_count += 1
        self._cost_usd += _COST_USD
        self._send(
            {
                "type": "assistant",
                "message": {
                    "id": self._message_id,
                    "type": "message",
                    "role": "assistant",
                    "model": MODEL,
                    "content": [block],
                    "usage": _usage(1),
                },
                "parent_tool_use_id": None,
                "session_id": self.session_id,
            }
        )
        self._stream({"type": "message_delta", "delta": {"stop_reason": None}, "usage": _usage(_OUTPUT_TOKENS)})
        self._stream({"type": "message_stop"})

    def _stream(self, event: Mapping[str, object]) -> None:
        self._send({"type": "stream_event", "event": event, "session_id": self.session_id, "parent_tool_use_id": None})

    def _send(self, message: Mapping[str, object]) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    def _rest(self, seconds: float) -> None:
        """Pause, and hear meanwhile whether somebody interrupts."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self._take(self._incoming.get(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                return
            if self._is_over:
                # The input is closed: what was begun is finished without a pause.
                return
            if self._is_interrupted:
                self._is_interrupted = False
                raise Interrupted

    def _read(self) -> None:
        for line in sys.stdin:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict):
                self._incoming.put(message)
        self._incoming.put(None)

    def _take(self, message: Mapping[str, object] | None) -> None:
        if message is None:
            self._is_over = True
            self._incoming.put(None)
            return
        kind = message.get("type")
        if kind == "user":
            self._said.append(_text_of(message.get("message")))
        elif kind == "control_response":
            response = message.get("response")
            if isinstance(response, dict) and isinstance(response.get("response"), dict):
                self._answers[str(response.get("request_id"))] = response["response"]
        elif kind == "control_request":
            self._obey(str(message.get("request_id")), message.get("request"))

    def _obey(self, request_id: str, request: object) -> None:
        request = request if isinstance(request, dict) else {}
        subtype = request.get("subtype")
        if subtype == "interrupt":
            self._is_interrupted = True
        elif subtype == "set_permission_mode":
            self.permission_mode = str(request.get("mode"))
        response: dict[str, object] = {"subtype": "success", "request_id": request_id, "response": {}}
        if subtype not in {"initialize", "interrupt", "set_permission_mode", "set_model"}:
            response = {"subtype": "error", "request_id": request_id, "error": f"the demo agent knows no {subtype}"}
        self._send({"type": "control_response", "response": response})


def _usage(output_tokens: int) -> dict[str, object]:
    return {**_USAGE, "output_tokens": output_tokens}


def _text_of(message: object) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
