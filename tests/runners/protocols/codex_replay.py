"""Plays recordings of ``codex app-server`` to the adapter, and compares what it sends with what was sent then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentmon.runners.protocols.app_server.adapter import AppServerAdapter
from agentmon.runners.protocols.app_server.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.runners.protocols.adapter import Step

CAPTURES: Final = Path(__file__).parent / "captures" / "codex"
OURS: Final = frozenset({
    "initialize", "initialized", "thread/start", "thread/resume", "turn/start", "turn/steer", "turn/interrupt",
})  # fmt: skip
AT_MS: Final = 1_800_000_000_000
DECISIONS: Final[dict[str, dict[str, object]]] = {
    "accept": {"decision": "allow"},
    "acceptForSession": {"decision": "allow_for_session"},
    "decline": {"decision": "deny"},
    "cancel": {"decision": "deny", "interrupts": True},
}


def recordings() -> list[str]:
    """Return the names of all recordings."""
    return sorted(path.name.removesuffix(".io.jsonl") for path in CAPTURES.glob("*.io.jsonl"))


class CodexReplay:
    """One recording, played to its end; ``events`` holds all that the adapter told, ``sent`` all that it wrote."""

    def __init__(self, name: str) -> None:
        text = (CAPTURES / f"{name}.io.jsonl").read_text()
        self._entries = [entry for entry in map(json.loads, text.splitlines()) if entry["dir"] != "exit"]
        self.events: list[dict[str, Any]] = []
        self.sent: list[dict[str, Any]] = []
        self._compared = 0
        self._ids: dict[object, object] = {}
        self._turns = 0
        self._commands = 0
        self._has_begun = False
        self.adapter = AppServerAdapter(self._launch())
        self._take(self.adapter.start(AT_MS))
        self.turn_is_over: list[bool] = []
        for entry in self._entries:
            if entry["dir"] == "in":
                self._replay_input(entry["msg"])
            else:
                self._replay_output(entry["msg"])
        self._take(self.adapter.receive_end(AT_MS))

    def _launch(self) -> dict[str, object]:
        launch: dict[str, object] = {
            "protocol": "app-server",
            "prompt": "hello",
            "working_dir": "/",
            "client_version": "0",
        }
        for message in (entry["msg"] for entry in self._entries if entry["dir"] == "in"):
            params = message.get("params", {})
            if message.get("method") == "thread/resume" and "start" not in launch:
                launch |= {"start": "resume", "session_ref": params["threadId"]}
            elif message.get("method") == "thread/start" and "start" not in launch:
                pair = (params.get("sandbox"), params.get("approvalPolicy"))
                mode = next((mode for mode, settings in MODES.items() if settings == pair), None)
                launch |= {"start": "fresh", "working_dir": params["cwd"], "model": params.get("model")}
                launch["permission_mode"] = mode
            elif message.get("method") == "turn/start":
                launch["prompt"] = params["input"][0]["text"]
                break
        return launch

    def _replay_input(self, recorded: dict[str, Any]) -> None:
        method = recorded.get("method")
        if method is None:
            self._answer(recorded["result"]["decision"])
        elif method not in OURS or (method in ("thread/start", "thread/resume") and self._has_begun):
            return
        elif method == "turn/start":
            self._turns += 1
            if not self._is_our_thread(recorded):
                return
            if self._turns > 1:
                self._command(type="message", text=recorded["params"]["input"][0]["text"])
        elif method == "turn/steer":
            self._command(type="message", text=recorded["params"]["input"][0]["text"])
        elif method == "turn/interrupt":
            self._command(type="interrupt")
        self._has_begun = self._has_begun or method in ("thread/start", "thread/resume")
        self._compare(recorded)

    def _is_our_thread(self, recorded: dict[str, Any]) -> bool:
        refs = [event["session_ref"] for event in self.events if event.get("session_ref")]
        return bool(recorded["params"]["threadId"] == refs[0])

    def _answer(self, decision: str) -> None:
        ask = [event for event in self.events if event["kind"] == "ask"][-1]
        named = {"request_id": ask["request_id"], "input_digest": ask["input_digest"]}
        self._command(type="answer", **named, **DECISIONS[decision])

    def _command(self, **command: object) -> None:
        self._commands += 1
        self._take(self.adapter.command({"id": f"c{self._commands}", **command}, AT_MS))

    def _compare(self, recorded: dict[str, Any]) -> None:
        ours = [message for message in self.sent if message.get("method") != "model/list"][self._compared]
        self._compared += 1
        assert ours.get("method") == recorded.get("method")
        if "id" in recorded:
            self._ids[recorded["id"]] = ours["id"]
        expected, given = recorded.get("params", {}), ours.get("params", {})
        for name, value in expected.items():
            if name in ("sandbox", "approvalPolicy") and (expected["sandbox"], expected["approvalPolicy"]) not in {
                *MODES.values()
            }:
                continue
            assert given[name] == value, name
        assert ours.get("result") == recorded.get("result")

    def _replay_output(self, recorded: dict[str, Any]) -> None:
        message = dict(recorded)
        if "method" not in message:
            if message["id"] not in self._ids:
                return
            message["id"] = self._ids[message["id"]]
        self._take(self.adapter.receive(json.dumps(message).encode() + b"\n", AT_MS))

    def _take(self, step: Step) -> None:
        self.events += step.events
        self.sent += [json.loads(line) for line in step.send.splitlines()]

    def of_kind(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the events of these kinds in their order."""
        return [event for event in self.events if event["kind"] in kinds]


def story(events: list[dict[str, Any]]) -> list[str]:
    """Return each event that a person would see as one line, ids and activities left out."""
    return [line for line in map(_line, events) if line]


def _line(event: dict[str, Any]) -> str:
    told = _LINES.get(event["kind"])
    return told(event) if told is not None else ""


def _message_line(event: dict[str, Any]) -> str:
    return f"{'thinking' if event['is_thinking'] else event['role']}: {event['text']}"


def _finished_line(event: dict[str, Any]) -> str:
    return f"-> {event['status']} {event.get('output_summary', '')}".strip().replace("\n", "|")


def _notice_line(event: dict[str, Any]) -> str:
    return "" if event["topic"] == "warning" else f"{event['topic']}: {event['text']}"


_LINES: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "message": _message_line,
    "tool_started": lambda event: f"{event['tool_name']} {event['type']}: {event['target'].rpartition('/')[2]}",
    "tool_finished": _finished_line,
    "diff": lambda event: f"diff {event['change_type']} +{event['added_lines']} -{event['removed_lines']}",
    "ask": lambda event: f"ask {event['ask_kind']}: {event['reason']}",
    "ask_closed": lambda event: f"closed: {event['outcome']}",
    "command": lambda event: f"command {event['command_id']}: {event.get('error') or event['was_obeyed']}",
    "usage": lambda event: f"usage: {(event['prompt_tokens'], event['cache_read_tokens'], event['response_tokens'])}",
    "turn_started": lambda event: f"turn of {event['prompt_refs']}",
    "turn_ended": lambda event: f"{event['outcome']}: {event['error'] or event['text']}",
    "notice": _notice_line,
}
