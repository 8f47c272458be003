"""An agent that plays a script: it speaks stream-json as far as the host needs it, in the standard library alone.

The first argument is a JSON list of acts, each a list of a word and its parameters.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Act = Sequence[Any]


def say(**message: Any) -> None:
    sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
    sys.stdout.buffer.flush()


def hear() -> dict[str, Any] | None:
    line = sys.stdin.buffer.readline()
    return json.loads(line) if line else None


class ScriptedAgent:
    """Plays the acts one after the other; what it is told meanwhile waits."""

    def __init__(self) -> None:
        self._number = 0
        self._written = ""

    def play(self, acts: Sequence[Act]) -> None:
        for word, *parameters in acts:
            getattr(self, f"act_{word}")(*parameters)

    def act_prompt(self) -> None:
        """Hear the greeting and the next message of a person."""
        while message := hear():
            if message["type"] == "control_request":
                request_id = message["request_id"]
                response = {"subtype": "success", "request_id": request_id, "response": {"models": []}}
                say(type="control_response", response=response)
            elif message["type"] == "user":
                say(type="system", subtype="init", session_id="s-1", model="scripted", claude_code_version="2.1.332")
                say(**{**message, "isReplay": True, "session_id": "s-1"})
                return

    def act_stream(self, *pieces: str) -> None:
        """Say one message, first in pieces and then whole."""
        self.act_write(*pieces)
        self.act_complete()

    def act_write(self, *pieces: str) -> None:
        """Begin a message and say it in pieces."""
        self._number += 1
        self._written = "".join(pieces)
        answer = {"id": f"msg_{self._number}", "model": "scripted", "role": "assistant", "usage": {}}
        self._event(type="message_start", message={**answer, "content": []})
        self._event(type="content_block_start", index=0, content_block={"type": "text", "text": ""})
        for piece in pieces:
            self._event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": piece})

    def act_complete(self) -> None:
        """Say whole what was written in pieces."""
        answer = {"id": f"msg_{self._number}", "model": "scripted", "role": "assistant", "usage": {}}
        content = [{"type": "text", "text": self._written}]
        say(type="assistant", message={**answer, "content": content}, parent_tool_use_id=None)

    def act_say(self, text: str, times: int = 1) -> None:
        self._number += 1
        content = [{"type": "text", "text": text * times}]
        answer = {"id": f"msg_{self._number}", "model": "scripted", "role": "assistant", "content": content}
        say(type="assistant", message={**answer, "usage": {}}, parent_tool_use_id=None)

    def act_tool(self, name: str, tool_input: dict[str, Any], result: str) -> None:
        self._call(name, tool_input)
        self._finish(result)

    def act_ask(self, name: str, tool_input: dict[str, Any]) -> None:
        """Ask whether a tool may be used, and act as the answer says."""
        self._call(name, tool_input)
        request = {"subtype": "can_use_tool", "tool_name": name, "input": tool_input}
        request["tool_use_id"] = f"tool_{self._number}"
        say(type="control_request", request_id=f"ask_{self._number}", request=request)
        while message := hear():
            if message["type"] == "control_response":
                self._finish(json.dumps(message["response"]["response"]))
                return

    def act_result(self, text: str = "done") -> None:
        say(
            type="result", subtype="success", is_error=False, result=text, terminal_reason="completed", session_id="s-1"
        )

    def act_until_interrupted(self) -> None:
        while message := hear():
            if message["type"] == "control_request" and message["request"]["subtype"] == "interrupt":
                response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
                say(type="control_response", response=response)
                say(type="result", subtype="error_during_execution", is_error=True, terminal_reason="aborted_streaming")
                return

    def act_raw(self, text: str, times: int = 1) -> None:
        """Write the text as Latin-1: every byte can be written."""
        sys.stdout.buffer.write(text.encode("latin-1") * times)
        sys.stdout.buffer.flush()

    def act_errors(self, text: str) -> None:
        os.write(2, text.encode())

    def act_flood(self, total_bytes: int, text_bytes: int) -> None:
        """Stream deltas as fast as they are taken."""
        self.act_stream("begin\n")
        event = {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "x y " * (text_bytes // 4)},
        }
        line = json.dumps({"type": "stream_event", "event": event, "parent_tool_use_id": None}).encode() + b"\n"
        block = line * max(1, 262_144 // len(line))
        for _ in range(total_bytes // len(block)):
            sys.stdout.buffer.write(block)
        sys.stdout.buffer.flush()

    def act_repeat(self, count: int, act: Act) -> None:
        """Do the same several times."""
        self.play([act] * count)

    def act_wait_for_end(self) -> None:
        while hear() is not None:
            pass

    def act_wait_for_file(self, path: str) -> None:
        while not Path(path).exists():
            time.sleep(0.02)

    def act_sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def act_close_output(self) -> None:
        sys.stdout.flush()
        os.close(1)
        os.open(os.devnull, os.O_WRONLY)

    def act_close_input(self) -> None:
        os.close(0)

    def act_ignore_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    def act_fork(self) -> None:
        """Leave a child behind that holds the pipes open."""
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])

    def act_exit(self, code: int) -> None:
        sys.stdout.flush()
        os._exit(code)

    def _event(self, **event: Any) -> None:
        say(type="stream_event", event=event, parent_tool_use_id=None)

    def _call(self, name: str, tool_input: dict[str, Any]) -> None:
        self._number += 1
        call = {"type": "tool_use", "id": f"tool_{self._number}", "name": name, "input": tool_input}
        answer = {"id": f"msg_{self._number}", "model": "scripted", "role": "assistant", "content": [call], "usage": {}}
        say(type="assistant", message=answer, parent_tool_use_id=None)

    def _finish(self, result: str) -> None:
        block = {"type": "tool_result", "tool_use_id": f"tool_{self._number}", "content": result}
        say(type="user", message={"role": "user", "content": [block]}, parent_tool_use_id=None)


if __name__ == "__main__":
    ScriptedAgent().play(json.loads(sys.argv[1]))
