"""The demo's agent, driven through the adapter that real ones are driven through."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.runners import demo_agent
from agentmon.runners.protocols.registry import make_adapter
from agentmon.services.demo import write_project

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.runners.protocols.adapter import Step

Event = dict[str, object]
_OLD = "return price * (100 - percent) // 100"


class Play:
    """One conversation with the demo agent; ``answer`` is asked for each request."""

    def __init__(self, project: Path, prompt: str, answer: Callable[[Event], Event]) -> None:
        program = Path(demo_agent.__file__).with_name("__main__.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(program), "--pace", "0"],
            cwd=project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._answer = answer
        self._at_ms = 1
        self.events: list[Event] = []
        self._adapter = make_adapter(
            {"protocol": "stream-json", "prompt": prompt, "working_dir": str(project), "start": "fresh"}
        )

    def to_end(self) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._take(self._adapter.start(self._at_ms))
        for line in self._process.stdout:
            self._at_ms += 1
            self._take(self._adapter.receive(line, self._at_ms))
            if self._adapter.is_finished and not self._process.stdin.closed:
                self._process.stdin.close()
        self._take(self._adapter.receive_end(self._at_ms))
        assert self._adapter.outcome
        self._process.stdout.close()
        return self._process.wait(timeout=30)

    def _take(self, step: Step) -> None:
        assert self._process.stdin is not None
        if step.send and not self._process.stdin.closed:
            self._process.stdin.write(step.send)
            self._process.stdin.flush()
        self.events += step.events
        for event in step.events:
            if event["kind"] == "ask":
                command = {"id": f"c{self._at_ms}", "type": "answer", "request_id": event["request_id"]}
                answer = command | {"input_digest": event.get("input_digest", "")} | self._answer(event)
                self._take(self._adapter.command(answer, self._at_ms))

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["kind"] == kind]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_project(tmp_path / "shop")
    return tmp_path / "shop"


def test_what_is_allowed_is_done_for_real_and_said_to_be_a_play(project: Path) -> None:
    play = Play(project, "Round half a cent up", lambda _: {"decision": "allow"})

    assert play.to_end() == 0

    assert _OLD not in (project / "shop" / "cart.py").read_text()
    assert [ask["tool_name"] for ask in play.of("ask")] == ["Edit", "Bash"]
    assert "no model is called" in str(play.of("message"))
    (diff,) = play.of("diff")
    assert (diff["added_lines"], diff["removed_lines"]) == (1, 1)
    steps = play.of("plan")[-1]["steps"]
    assert isinstance(steps, list)
    assert {step["status"] for step in steps} == {"completed"}
    assert {call["status"] for call in play.of("tool_finished")} == {"success"}
    assert play.of("cost")
    assert [turn["outcome"] for turn in play.of("turn_ended")] == ["completed"]


def test_what_is_denied_is_not_done(project: Path) -> None:
    play = Play(project, "Round half a cent up", lambda _: {"decision": "deny", "reason": "not today"})

    assert play.to_end() == 0

    assert _OLD in (project / "shop" / "cart.py").read_text()
    assert [ask["tool_name"] for ask in play.of("ask")] == ["Edit"]
    assert {call["status"] for call in play.of("tool_finished")} == {"success", "blocked"}


def test_a_question_is_answered_by_one_of_its_choices(project: Path) -> None:
    def choose(ask: Event) -> Event:
        questions = ask["questions"]
        assert isinstance(questions, list)
        return {"decision": "answer", "answers": {questions[0]["question"]: "CSV"}}

    play = Play(project, "Write the catalogue", choose)

    assert play.to_end() == 0

    assert "It will be CSV" in str(play.of("message")[-1]["text"])
