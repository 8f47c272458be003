"""Conversations with a recorded Claude Code: what was written goes in, what the adapter says and sends comes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from agentmon.runners.protocols.stream_json.adapter import StreamJsonAdapter
from tests.runners.protocols.fuzzing import check_event, recorded_lines

CAPTURES: Final = Path(__file__).parent / "captures" / "claude"
SESSION_ID: Final = "00000000-0000-4000-8000-000000000000"


class ClaudeRun:
    """One adapter with all that came of it."""

    def __init__(self, prompt: str = "go", **launch: object) -> None:
        given = {"protocol": "stream-json", "prompt": prompt, "working_dir": "/project", "session_id": SESSION_ID}
        self.adapter = StreamJsonAdapter({**given, "start": "fresh", **launch})
        self.events: list[dict[str, Any]] = []
        self.sent: list[dict[str, Any]] = []
        self._at_ms = 1_800_000_000_000
        self._command_count = 0
        self._take(self.adapter.start(self._at_ms))

    def _take(self, step: Any) -> list[dict[str, Any]]:
        for event in step.events:
            check_event(event)
        self.events += step.events
        sent = [json.loads(line) for line in step.send.splitlines()]
        self.sent += sent
        return sent

    def hear(self, *messages: dict[str, Any] | bytes) -> list[dict[str, Any]]:
        """Feed messages or lines; return what was sent in answer."""
        sent = []
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self._at_ms += 10
            sent += self._take(self.adapter.receive(line + b"\n", self._at_ms))
        return sent

    def replay(self, name: str) -> ClaudeRun:
        """Feed a whole recording."""
        self.hear(*recorded_lines(CAPTURES / name))
        return self

    def command(self, kind: str, **fields: object) -> tuple[str, list[dict[str, Any]]]:
        """Give a command; return its id and what was sent."""
        self._command_count += 1
        command_id = f"c{self._command_count}"
        return command_id, self._take(self.adapter.command({"id": command_id, "type": kind, **fields}, self._at_ms))

    def end(self) -> ClaudeRun:
        """Let the agent end."""
        self._take(self.adapter.receive_end(self._at_ms))
        return self

    def all(self, kind: str, *names: str) -> list[Any]:
        """Return the events of a kind, or only these fields of theirs."""
        found = [event for event in self.events if event["kind"] == kind]
        if not names:
            return found
        if len(names) == 1:
            return [event.get(names[0]) for event in found]
        return [tuple(event.get(name) for name in names) for event in found]

    def fate(self, command_id: str) -> tuple[bool, str | None]:
        """Return whether the command was obeyed, and its error."""
        ((was_obeyed, error),) = [
            (event["was_obeyed"], event.get("error"))
            for event in self.all("command")
            if event["command_id"] == command_id
        ]
        return was_obeyed, error


def ask_of(run: ClaudeRun, place: int = -1) -> dict[str, Any]:
    """Return one of the asks."""
    ask: dict[str, Any] = run.all("ask")[place]
    return ask


def permission(
    request_id: str = "r1", tool_name: str = "Bash", tool_input: object = None, **fields: object
) -> dict[str, Any]:
    """Return a request of Claude's to use a tool."""
    request = {
        "subtype": "can_use_tool",
        "tool_name": tool_name,
        "input": {"command": "touch a"} if tool_input is None else tool_input,
        "tool_use_id": f"toolu_{request_id}",
        **fields,
    }
    return {"type": "control_request", "request_id": request_id, "request": request}


def answered(request_id: str, **response: object) -> dict[str, Any]:
    """Return Claude's answer to a request of the adapter's."""
    told = {"subtype": "success", "request_id": request_id, "response": response}
    return {"type": "control_response", "response": told}


def result(**fields: object) -> dict[str, Any]:
    """Return the end of a turn."""
    told = {"type": "result", "subtype": "success", "is_error": False, "terminal_reason": "completed", "result": "ok"}
    return {**told, "total_cost_usd": 0.001, **fields}
