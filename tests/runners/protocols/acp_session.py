"""An agent that speaks ACP as a test writes its lines: what it answers, tells and asks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from agentmon.runners.protocols.acp.adapter import AcpAdapter
from tests.runners.protocols.fuzzing import ConversationCheck

if TYPE_CHECKING:
    from agentmon.runners.protocols.adapter import Step

SESSION: Final = "s1"
MODES: Final = {
    "currentModeId": "default",
    "availableModes": [{"id": "default", "name": "Default"}, {"id": "plan", "name": "Plan"}],
}
MODELS: Final = {
    "currentModelId": "small",
    "availableModels": [{"modelId": "small", "name": "Small"}, {"modelId": "large", "name": "Large"}],
}
OPTIONS: Final = [
    {"optionId": "o-once", "kind": "allow_once", "name": "Allow"},
    {"optionId": "o-always", "kind": "allow_always", "name": "Allow for this session"},
    {"optionId": "o-no", "kind": "reject_once", "name": "Reject"},
]


class AcpSession:
    """One adapter with the agent's side in the hands of a test; every step is checked against the contract."""

    def __init__(self, **launch: object) -> None:
        self.adapter = AcpAdapter({"prompt": "go", "working_dir": "/project", "client_version": "1.2", **launch})
        self._check = ConversationCheck(self.adapter)
        self.sent: list[dict[str, Any]] = []
        self.at_ms = 1_800_000_000_000
        self._commands = 0
        self.news: list[dict[str, Any]] = []
        """Events of the newest step."""
        self._take(self.adapter.start(self.at_ms))

    @property
    def events(self) -> list[dict[str, Any]]:
        return self._check.events

    def is_finished(self) -> bool:
        return self.adapter.is_finished

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]

    def methods(self) -> list[str]:
        """What was sent: methods, and ``answer`` for answers to the agent."""
        return [message.get("method", "answer") for message in self.sent]

    def write(self, *messages: dict[str, object]) -> None:
        """Let the agent write these messages."""
        lines = b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)
        self._take(self.adapter.receive(lines, self.at_ms))

    def write_bytes(self, chunk: bytes) -> None:
        self._take(self.adapter.receive(chunk, self.at_ms))

    def answer(self, result: dict[str, object] | None = None, error: dict[str, object] | None = None) -> None:
        """Let the agent answer the newest request."""
        request = [message for message in self.sent if "method" in message and "id" in message][-1]
        self.write({"id": request["id"], **({"result": result or {}} if error is None else {"error": error})})

    def greet(self, **capabilities: object) -> None:
        methods = [{"id": "login", "name": "Login", "description": "Run `agent login` in the terminal"}]
        agent = {"name": "gemini-cli", "version": "9.9"}
        told = {"protocolVersion": 1, "agentCapabilities": capabilities, "agentInfo": agent, "authMethods": methods}
        self.answer(told)

    def open(self, **told: object) -> None:
        """Greet, and open the session."""
        self.greet()
        self.answer({"sessionId": SESSION, **({"modes": MODES, "models": MODELS} | told)})

    def update(self, update: str, *, session: str = SESSION, **fields: object) -> None:
        params = {"sessionId": session, "update": {"sessionUpdate": update, **fields}}
        self.write({"method": "session/update", "params": params})

    def say(self, text: str, update: str = "agent_message_chunk", *, session: str = SESSION, **fields: object) -> None:
        self.update(update, session=session, content={"type": "text", "text": text}, **fields)

    def ask(
        self, request: int | str = 0, options: list[dict[str, str]] | None = None, **call: object
    ) -> dict[str, Any]:
        """Let the agent ask for a permission; return the event."""
        told = {"toolCallId": "t1", "title": "touch a", "kind": "execute", **call}
        params = {"sessionId": SESSION, "toolCall": told, "options": OPTIONS if options is None else options}
        self.write({"id": request, "method": "session/request_permission", "params": params})
        return self.of_kind("ask")[-1]

    def command(self, **command: object) -> dict[str, Any]:
        """Give a command; return what became of it at once, or an empty object."""
        self._commands += 1
        given = {"id": f"c{self._commands}", **command}
        self._check.note_command(given)
        self._take(self.adapter.command(given, self.at_ms))
        return next((event for event in self.news if event["kind"] == "command"), {})

    def decide(self, asked: dict[str, Any], decision: str, **more: object) -> dict[str, Any]:
        about = {"request_id": asked["request_id"], "input_digest": asked["input_digest"]}
        return self.command(**{"type": "answer", **about, "decision": decision, **more})

    def end(self) -> None:
        """Let the agent end, and check the whole conversation."""
        self._take(self.adapter.receive_end(self.at_ms))
        self._check.finish()

    def _take(self, step: Step) -> None:
        self._check.take(step)
        self.news = [dict(event) for event in step.events]
        self.sent += map(json.loads, step.send.splitlines())
