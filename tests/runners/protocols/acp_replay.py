"""Plays recordings of agents that speak ACP to the adapter, and compares what it sends with what was sent then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentmon.runners.protocols.acp.adapter import AcpAdapter

if TYPE_CHECKING:
    from agentmon.runners.protocols.adapter import Step

CAPTURES: Final = Path(__file__).parent / "captures" / "acp"
AT_MS: Final = 1_800_000_000_000


def recordings() -> list[str]:
    """Return the names of all recordings that begin with a fresh conversation."""
    fresh = (path for path in CAPTURES.glob("*.io.jsonl") if '"session/new"' in path.read_text())
    return sorted(path.name.removesuffix(".io.jsonl") for path in fresh)


def entries_of(name: str) -> list[dict[str, Any]]:
    """Return the lines of a recording that somebody wrote, ``dir`` and ``msg``."""
    entries = map(json.loads, (CAPTURES / f"{name}.io.jsonl").read_text().splitlines())
    return [entry for entry in entries if entry["dir"] != "exit"]


def first_conversation(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what comes before the recording lists its sessions."""
    end = next((place for place, entry in enumerate(entries) if entry["msg"].get("method") == "session/list"), None)
    return entries[:end]


def second_conversation(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the greeting and what follows from ``session/load``, as if it were a process of its own.

    The agents could resume without the history as well, which is the adapter's choice: here they say nothing of it.
    """
    greeting, answer = (dict(entry) for entry in entries[:2])
    told = answer["msg"]["result"]
    capabilities = {**told["agentCapabilities"], "sessionCapabilities": {}}
    answer["msg"] = {**answer["msg"], "result": {**told, "agentCapabilities": capabilities}}
    start = next(place for place, entry in enumerate(entries) if entry["msg"].get("method") == "session/load")
    return [greeting, answer, *entries[start:]]


class AcpReplay:
    """A recording, played to its end; ``events`` holds all that was told, ``sent`` and ``wanted`` what was written."""

    def __init__(self, entries: list[dict[str, Any]], **launch: object) -> None:
        self.events: list[dict[str, Any]] = []
        self.sent: list[dict[str, Any]] = []
        self.wanted = [entry["msg"] for entry in entries if entry["dir"] == "in"]
        self._ids: dict[object, object] = {}
        self._commands = 0
        prompts = [self._text(message) for message in self.wanted if message.get("method") == "session/prompt"]
        cwd = next((message["params"]["cwd"] for message in self.wanted if "cwd" in message.get("params", {})), "/")
        first = prompts[0] if prompts else "go"
        self.adapter = AcpAdapter({"prompt": first, "working_dir": cwd, "client_version": "0", **launch})
        self._take(self.adapter.start(AT_MS))
        for entry in entries:
            if entry["dir"] == "out":
                self._play_output(entry["msg"])
            else:
                self._play_input(entry["msg"], prompts)
        self.is_finished = self.adapter.is_finished
        self._take(self.adapter.receive_end(AT_MS))

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]

    @staticmethod
    def _text(message: dict[str, Any]) -> str:
        return str(message["params"]["prompt"][0]["text"])

    def _play_output(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            message = {**message, "id": self._ids.get(message["id"], message["id"])}
        self._take(self.adapter.receive(json.dumps(message).encode() + b"\n", AT_MS))

    def _play_input(self, message: dict[str, Any], prompts: list[str]) -> None:
        """Do what the person did then; what the adapter sends by itself is compared in the test."""
        method = message.get("method")
        if method == "session/prompt":
            self._answer_waits()
        if method is None:
            self._command(type="answer", **self._answer(message["result"]["outcome"]))
        elif method == "session/cancel":
            self._command(type="interrupt")
        elif method == "session/prompt" and self._text(message) != prompts[0]:
            self._command(type="message", text=self._text(message))
        if method is not None and "id" in message:
            ours = [sent for sent in self.sent if sent.get("method") == method and "id" in sent]
            self._ids[message["id"]] = ours[-1]["id"]

    def _answer_waits(self) -> None:
        """Answer what the adapter asked to see a history pass, of which the client of the recording knew nothing."""
        while self.sent[-1].get("method") == "session/set_mode":
            self._take(
                self.adapter.receive(json.dumps({"id": self.sent[-1]["id"], "result": {}}).encode() + b"\n", AT_MS)
            )

    def _answer(self, outcome: dict[str, Any]) -> dict[str, Any]:
        asked = self.of_kind("ask")[-1]
        about = {"request_id": asked["request_id"], "input_digest": asked["input_digest"]}
        if outcome["outcome"] == "cancelled":
            return {**about, "decision": "deny", "interrupts": True}
        is_denied = outcome["optionId"] in {"reject", "cancel"}
        return {**about, "decision": "deny" if is_denied else "allow"}

    def _command(self, **command: object) -> None:
        self._commands += 1
        self._take(self.adapter.command({"id": f"c{self._commands}", **command}, AT_MS))

    def _take(self, step: Step) -> None:
        self.events += step.events
        self.sent += map(json.loads, step.send.splitlines())


def story(events: list[dict[str, Any]]) -> list[str]:  # noqa: C901 - one flat case for each kind
    """Return the events in a few words each, without pieces, activities and what is said of the session."""
    told = []
    for event in events:
        match event["kind"]:
            case "turn_started":
                told.append(f"turn of {event['prompt_refs']}")
            case "message":
                told.append(f"{'thinking' if event.get('is_thinking') else event['role']}: {event['text']}")
            case "tool_started":
                told.append(f"{event['tool_name']} {event['type']}: {event['target']}")
            case "tool_finished":
                told.append(f"-> {event['status']} {event['output_summary'].strip()}".strip())
            case "ask":
                told.append(f"asks: {event['title']}")
            case "ask_closed":
                told.append(f"closed: {event['outcome']}")
            case "usage":
                counts = ("prompt_tokens", "cache_read_tokens", "cache_write_5m_tokens", "response_tokens")
                told.append(f"usage: {tuple(event[count] for count in counts)}")
            case "cost":
                told.append(f"cost: {event['cost_nano']}")
            case "turn_ended":
                told.append(f"{event['outcome']}: {event['error'] or event['text']}".strip())
            case "command":
                told.append(f"command {event['command_id']}: {event['was_obeyed']}")
            case "notice":
                told.append(f"{event['level']}: {event['text']}")
    return told
