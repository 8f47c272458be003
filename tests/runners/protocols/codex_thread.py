"""An adapter whose thread has begun, and short ways to let Codex speak to it."""

from __future__ import annotations

import json
from typing import Any

from agentmon.runners.protocols.app_server.adapter import AppServerAdapter

AT_MS = 1_800_000_000_000


class CodexThread:
    """The adapter with the thread ``t`` and, when it has a prompt, the turn ``u1``."""

    def __init__(self, *, prompt: str = "hello", begins: bool = True, **launch: object) -> None:
        self.adapter = AppServerAdapter({"protocol": "app-server", "prompt": prompt, "working_dir": "/w", **launch})
        self.events: list[dict[str, Any]] = []
        self.sent: list[dict[str, Any]] = []
        self.at_ms = AT_MS
        self._take(self.adapter.start(AT_MS))
        if not begins:
            return
        self.answer("initialize", {"userAgent": "agentmon/0.171.0 (Debian)"})
        thread = {"id": "t", "path": "/r/rollout.jsonl", "cliVersion": "0.171.0", "name": None}
        policy = {"type": "workspaceWrite", "writableRoots": ["/more"]}
        begun = {"thread": thread, "model": "m1", "modelProvider": "openai", "sandbox": policy}
        self.answer(f"thread/{launch.get('start', 'fresh')}".replace("fresh", "start"), begun)
        if prompt:
            self.answer("turn/start", {"turn": {"id": "u1"}})
            self.say("turn/started", turn={"id": "u1"})

    def answer(self, method: str, result: object = None, *, error: str | None = None) -> list[dict[str, Any]]:
        """Let Codex answer the newest request of that method; returns the new events."""
        request = [message for message in self.sent if message.get("method") == method][-1]
        ending = {"result": result} if error is None else {"error": {"code": -32600, "message": error}}
        return self.write({"id": request["id"], **ending})

    def say(self, method: str, **params: object) -> list[dict[str, Any]]:
        """Let Codex say something about its thread; returns the new events."""
        return self.write({"method": method, "params": {"threadId": "t", "turnId": "u1", **params}})

    def ask(self, server_id: object, method: str, **params: object) -> list[dict[str, Any]]:
        """Let Codex ask something; returns the new events."""
        return self.write({"method": method, "id": server_id, "params": {"threadId": "t", "turnId": "u1", **params}})

    def end_turn(self, status: str = "completed", turn_id: str = "u1", **turn: object) -> list[dict[str, Any]]:
        """Let Codex end the turn; returns the new events."""
        return self.say("turn/completed", turn={"id": turn_id, "status": status, "items": [], **turn})

    def write(self, message: object) -> list[dict[str, Any]]:
        """Let Codex write any message; returns the new events."""
        return self.write_bytes(json.dumps(message).encode() + b"\n")

    def write_bytes(self, chunk: bytes) -> list[dict[str, Any]]:
        """Let Codex write any bytes; returns the new events."""
        return self._take(self.adapter.receive(chunk, self.at_ms))

    def end(self) -> list[dict[str, Any]]:
        """Let Codex end; returns the new events."""
        return self._take(self.adapter.receive_end(AT_MS))

    def command(self, command_type: str, command_id: str = "c", **fields: object) -> list[dict[str, Any]]:
        """Give a command; returns the new events."""
        return self._take(self.adapter.command({"id": command_id, "type": command_type, **fields}, AT_MS))

    def reply(self, ask: dict[str, Any], decision: str, **fields: object) -> list[dict[str, Any]]:
        """Answer a request; returns the new events."""
        named = {"request_id": ask["request_id"], "input_digest": ask["input_digest"]}
        return self.command("answer", decision=decision, **(named | fields))

    @property
    def last_sent(self) -> dict[str, Any]:
        """The newest message to Codex."""
        return self.sent[-1]

    def _take(self, step: Any) -> list[dict[str, Any]]:
        self.events += step.events
        self.sent += [json.loads(line) for line in step.send.splitlines()]
        new: list[dict[str, Any]] = step.events
        return new


def of_kind(events: list[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    """Return the events of these kinds in their order."""
    return [event for event in events if event["kind"] in kinds]
