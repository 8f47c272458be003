"""A scripted model behind the APIs of four vendors, on loopback: ``python -m tests.agents.mock_llm PORT_FILE``.

``GET /asked`` tells every text of a user that came in, each once, in the order in which it came first; and
``GET /answered`` every answer to a request that offered tools: ``text``, portable names of ``tools``, ``status``,
``begun_at_ms``, ``usage`` as far as it was told, ``is_held``, and ``ended_at_ms``, null for one not sent whole.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tests.agents.mock_llm.dialects import DIALECTS, error_body, find_schema, find_tools
from tests.agents.mock_llm.scenarios import USAGE, Json, pick_step

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.agents.mock_llm.dialects import Part

_MODELS = ("mock-model", "claude-sonnet-4-5", "gpt-5.1-codex", "gemini-2.5-pro")
_EVERY_TRY = 10**9
_HELD_BEHIND = 4


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    apis: ClassVar = (
        ("/messages", "anthropic"),
        ("/responses", "responses"),
        ("/chat/completions", "chat"),
        (":generateContent", "gemini"),
        (":streamGenerateContent", "gemini"),
    )

    asked: ClassVar[dict[str, None]] = {}
    answered: ClassVar[list[Json]] = []
    released: ClassVar = threading.Event()

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in {"/v1/models", "/models"}:
            listed = [{"id": name, "type": "model", "object": "model", "display_name": name} for name in _MODELS]
            self._send(200, {"object": "list", "has_more": False, "data": listed})
        elif path == "/asked":
            self._send(200, {"asked": list(self.asked)})
        elif path == "/release":
            self.released.set()
            self._send(200, {"release": None})
        elif path == "/answered":
            self._send(200, {"answered": self.answered})
        elif path == "/v1beta/models":
            self._send(200, {"models": [{"name": f"models/{name}"} for name in _MODELS]})
        else:
            self._send(200 if path == "/" else 404, error_body("anthropic", 404, f"no such path: {path}"))

    do_HEAD = do_GET  # noqa: N815 - the name that http.server calls

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        if path.endswith(("/count_tokens", ":countTokens")):
            self._send(200, {"input_tokens": len(raw) // 4, "totalTokens": len(raw) // 4})
            return
        api = next((name for end, name in self.apis if path.endswith(end)), None)
        if api is None:
            self._send(404, error_body("anthropic", 404, f"no such path: {path}"))
            return
        body: Json = json.loads(raw or b"{}")
        if api == "gemini":
            named = re.search(r"models/([^:]+):", path)
            body |= {"_model": named[1] if named else "", "stream": ":stream" in path}
        try:
            self._answer(api, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _answer(self, api: str, body: Json) -> None:
        dialect, tools = DIALECTS[api], find_tools(body)
        conversation = list(dialect.read(body))
        self.asked.update(dict.fromkeys(text for role, text in conversation if role == "user"))
        step, tries = pick_step(conversation, has_tools=bool(tools), schema=find_schema(body))
        usage = USAGE | step.get("usage", {})
        told: Json = {
            "text": step.get("text", ""),
            "tools": [name for name, _ in step.get("tools", [])],
            # One API tells what is taken in before it answers.
            "usage": usage | {"output": 1} if api == "anthropic" and not step.get("status") else None,
            "status": 200,
            "is_held": False,
            "begun_at_ms": time.time() * 1000,
            "ended_at_ms": None,
        }
        if tools:
            self.answered.append(told)
        time.sleep(step.get("delay", 0))
        if step.get("status") and tries <= step.get("times", _EVERY_TRY):
            headers = {"Retry-After": str(step["retry_after"])} if "retry_after" in step else {}
            self._send(step["status"], error_body(api, step["status"], step.get("error", "mock error")), headers)
            told |= {"status": step["status"], "ended_at_ms": time.time() * 1000}
            return
        parts = dialect.answer(step, tools, body, usage)
        if not body.get("stream"):
            self._send(200, next(part for part in parts if isinstance(part, tuple))[1])
        elif not self._stream(parts, told, is_dropped=step.get("drop", False), holds=step.get("holds", False)):
            return
        told |= {"usage": usage, "ended_at_ms": time.time() * 1000}

    def _stream(self, parts: Iterable[Part | float], told: Json, *, is_dropped: bool, holds: bool) -> bool:
        """Send the parts, and return whether all were."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        pauses = 0
        for part in parts:
            if isinstance(part, float):
                pauses += 1
                if is_dropped and pauses == 2:
                    self.close_connection = True
                    self.connection.close()
                    return False
                if holds and pauses == _HELD_BEHIND:
                    told["is_held"] = True
                    self.released.wait()
                time.sleep(part)
                continue
            name, document = part
            text = document if isinstance(document, str) else json.dumps(document)
            piece = ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        return True

    def _send(self, status: int, document: Json, headers: dict[str, str] | None = None) -> None:
        raw = json.dumps(document).encode()
        self.send_response(status)
        fields = {"Content-Type": "application/json", "Content-Length": str(len(raw)), **(headers or {})}
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)


def main() -> None:
    """Listen on a free port, whose number is written into the file, until the process is ended."""
    ThreadingHTTPServer.daemon_threads = True
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port_file = Path(sys.argv[1])
    partial = port_file.with_suffix(".partial")
    partial.write_text(str(server.server_port))
    partial.replace(port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
