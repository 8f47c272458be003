"""Runs of the host with an agent that is spoken to in a protocol, and their replay."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmon.runners.protocols.registry import make_adapter
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.runners.host.conftest import PrepareRun
    from tests.runners.host.host_runs import Document, HostRun
    from tests.runners.host.scripted_agent import Act

_AGENT = Path(__file__).with_name("scripted_agent.py")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Conversation:
    """One run, and what can be asked of it."""

    def __init__(
        self,
        prepare_run: PrepareRun,
        acts: Sequence[Act],
        *,
        prompt: str = "do it",
        protocol: str = "stream-json",
        **spec: Any,
    ) -> None:
        conversation = {"protocol": protocol, "prompt": prompt, "working_dir": "/", "start": "fresh"}
        argv = (sys.executable, "-I", "-S", str(_AGENT), json.dumps(acts))
        self.run: HostRun = prepare_run(*argv, mode=protocol, conversation=conversation, **spec)

    def start(self, **options: Any) -> Conversation:
        self.run.start(**options)
        return self

    def events(self, kind: str | None = None) -> list[Document]:
        events = [entry["event"] for entry in self.run.entries("agent_event")]
        return [event for event in events if kind in {None, event["kind"]}]

    def wait_for(self, kind: str, count: int = 1) -> Document:
        return wait_for(lambda: self.events(kind)[count - 1 :], f"{kind} in {self.events()}")[0]

    def command(self, kind: str, command_id: str, **payload: object) -> None:
        with (self.run.folder / "control.jsonl").open("a") as file:
            file.write(json.dumps({"id": command_id, "type": kind, **payload}) + "\n")
        with (self.run.folder / "wake").open("wb", buffering=0) as wake:
            wake.write(b"!")

    def answer(self, command_id: str, decision: str = "allow") -> None:
        ask = self.wait_for("ask")
        self.command(
            "answer", command_id, request_id=ask["request_id"], input_digest=ask["input_digest"], decision=decision
        )

    def outcome_of(self, command_id: str) -> Document:
        def find() -> list[Document]:
            return [event for event in self.events("command") if event["command_id"] == command_id]

        return wait_for(find, f"what became of {command_id}")[-1]

    def shown(self) -> str:
        return _STYLE.sub("", self.run.output.decode())

    def protocol(self) -> list[Document]:
        return [json.loads(line) for line in (self.run.folder / "protocol.jsonl").read_text().splitlines()]

    def replay(self) -> list[Document]:
        """Return the events that the record of the protocol leads to."""
        adapter = make_adapter(self.run.spec["conversation"])
        events = []
        for entry in self.protocol():
            at_ms = entry["at_ms"]
            if entry["dir"] == "start":
                step = adapter.start(at_ms)
            elif entry["dir"] == "out":
                step = adapter.receive(entry["line"].encode() + b"\n", at_ms)
            elif entry["dir"] == "command":
                step = adapter.command(entry["command"], at_ms)
            elif entry["dir"] == "end":
                step = adapter.receive_end(at_ms)
            else:
                continue
            events += step.events
        return [json.loads(json.dumps(event)) for event in events]

    def end(self) -> Document:
        """Wait for the end; the record replays to what was journaled."""
        ended = self.run.wait_for_end()
        assert _told(self.replay()) == _told(self.events())
        return ended


def _told(events: list[Document]) -> list[Document]:
    # Not journaled: that an agent waits whose input is about to be closed, and what became of a line typed in the pane.
    told = [event for event in events if event["kind"] not in {"delta", "activity"}]
    return [event for event in told if not str(event.get("command_id")).startswith("pane-")]


def peak_bytes(pid: int) -> int:
    """Return the most memory that a living process has used so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024
