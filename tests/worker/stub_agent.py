"""A program with a screen of its own: a box to type into, and whatever a test wants it to do with what it gets.

It speaks no protocol. Its argument is a Python expression of a dict:

``dialog``: a text that it shows first and that a line feed answers; what is typed meanwhile is dropped.
``quits``: a text that it prints before it ends with 0, without a box.
``deaf_s``: for how long it drops what is typed before it draws its box.
``received``: a file into which each text that is submitted goes, one JSON string a line; an empty one too.
``swallows``: how many return keys it takes for line feeds.
``slow_s``: for how long after a submitted text it draws nothing but a clock, as if it had not been submitted.
``thinks_s``: for how long it works on a text before it writes anything down.
``lost_keys``: how many keys it loses after it has drawn a permission dialog.
``turn``: what it does with a text: ``work`` (for 0.2 s), ``ask`` (asks for a permission), ``strange`` (prints in words
that no rule knows, for ever), ``background`` (its prompt comes back while something prints on), ``bye`` (says goodbye
and never ends), ``fail`` (ends with 1), ``leave`` (ends with 0).
``writes``: the agent as which it keeps a file of what is said in its home: ``claude``, under the id that it is given,
or ``codex``, under one that nobody is told.
"""

from __future__ import annotations

import ast
import json
import os
import select
import signal
import sys
import termios
import time
import tty
from datetime import UTC, datetime
from pathlib import Path

PASTE_START, PASTE_END = b"\x1b[200~", b"\x1b[201~"
LONG_PASTE = 400


class Stub:
    def __init__(self, wishes: dict[str, object]) -> None:
        self.wishes = wishes
        self.waiting = b""
        self.box = b""
        self.above: list[str] = []
        self.pasted = self.said = 0
        self.swallows = int(str(wishes.get("swallows", 0)))

    def read(self, within_s: float) -> bytes:
        ready, _, _ = select.select([0], [], [], within_s)
        return os.read(0, 65536) if ready else b""

    def draw(self, *, footer: str = "? for help") -> None:
        text = self.box.decode(errors="replace")
        shown = f"[Pasted text #{self.pasted}]" if len(text) > LONG_PASTE else text.replace("\n", "\r\n  ")
        rule = "=" * 40
        lines = "\r\n".join(self.above[-8:])
        sys.stdout.write(f"\x1b[2J\x1b[H{lines}\r\n{rule}\r\n> {shown}\r\n{rule}\r\n  {footer}")
        sys.stdout.flush()

    def drop_for(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def run(self) -> None:
        if "quits" in self.wishes:
            sys.stderr.write(str(self.wishes["quits"]))
            return
        tty.setraw(0, termios.TCSANOW)
        self.drop_for(float(str(self.wishes.get("deaf_s", 0))))
        dialog = self.wishes.get("dialog")
        if dialog:
            sys.stdout.write(f"\x1b[2J\x1b[H{dialog}\r\n\r\n> 1. Yes\r\n  2. No\r\n\r\nEnter to confirm")
            sys.stdout.flush()
            while b"\r" not in self.read(1.0):
                pass
        sys.stdout.write("\x1b[?2004h")
        self.draw()
        while True:
            self.take(self.read(60.0))

    def take(self, chunk: bytes) -> None:
        self.waiting += chunk
        while self.waiting:
            if self.waiting.startswith(PASTE_START):
                text, end, rest = self.waiting.removeprefix(PASTE_START).partition(PASTE_END)
                if not end:
                    return
                # A terminal gives a pasted line feed as the return key.
                self.box, self.waiting, self.pasted = self.box + text.replace(b"\r", b"\n"), rest, self.pasted + 1
            elif PASTE_START.startswith(self.waiting):
                return
            else:
                key, self.waiting = self.waiting[:1], self.waiting[1:]
                if key == b"\r" and self.swallows:
                    self.swallows -= 1
                    self.box += b"\n"
                elif key == b"\r":
                    self.submit()
                elif key == b"\x1b":
                    self.above.append("interrupted")
                else:
                    self.box += key
        self.draw()

    def submit(self) -> None:
        self.seem_deaf_for(float(str(self.wishes.get("slow_s", 0))))
        text, self.box = self.box.decode(errors="surrogateescape"), b""
        with Path(str(self.wishes["received"])).open("a") as file:
            file.write(json.dumps(text) + "\n")
        if not text:
            return
        self.above.append("a text came")
        if thinks_s := float(str(self.wishes.get("thinks_s", 0))):
            self.draw(footer="working (esc to interrupt)")
            time.sleep(thinks_s)
        if self.wishes.get("writes") in {"claude", "codex"}:
            getattr(self, f"write_as_{self.wishes['writes']}")(text)
        getattr(self, f"turn_{self.wishes.get('turn', 'work')}")()

    def write_as_claude(self, text: str) -> None:
        ref, self.said = sys.argv[sys.argv.index("--session-id") + 1], self.said + 1
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        same = {"sessionId": ref, "cwd": str(Path.cwd()), "timestamp": at, "isSidechain": False, "parentUuid": None}
        call = {"type": "tool_use", "id": f"toolu_{self.said}", "name": "Bash", "input": {"command": "touch it"}}
        usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 20}
        content: list[object] = [{"type": "text", "text": "On it."}, call]
        answer: dict[str, object] = {"id": f"msg_{ref}_{self.said}", "type": "message", "role": "assistant"}
        answer |= {"model": "claude-opus-4-8", "usage": usage, "stop_reason": "tool_use", "content": content}
        records = [
            {"type": "user", "uuid": f"user-{ref}-{self.said}", "message": {"role": "user", "content": text}, **same},
            {"type": "assistant", "uuid": f"answer-{ref}-{self.said}", "message": answer, **same},
        ]
        folder = Path.home() / ".claude" / "projects" / "a-project"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{ref}.jsonl").open("a") as file:
            file.write("".join(json.dumps(record) + "\n" for record in records))

    def write_as_codex(self, text: str) -> None:
        ref, self.said = f"019a0000-0000-7000-8000-{os.getpid():012d}", self.said + 1
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        spent = {"input_tokens": 15, "cached_input_tokens": 5, "output_tokens": 20, "total_tokens": 35}
        said = {"type": "input_text", "text": text}, {"type": "output_text", "text": "On it."}
        call: dict[str, object] = {
            "type": "function_call",
            "name": "shell",
            "call_id": f"call_{self.said}",
            "arguments": "{}",
        }
        records: list[tuple[str, dict[str, object]]] = [
            ("session_meta", {"id": ref, "timestamp": at, "cwd": str(Path.cwd())}),
            ("turn_context", {"model": "gpt-5.5", "cwd": str(Path.cwd())}),
            ("response_item", {"type": "message", "role": "user", "content": [said[0]]}),
            ("event_msg", {"type": "user_message", "message": text}),
            ("response_item", {"type": "message", "role": "assistant", "id": f"msg_{ref}", "content": [said[1]]}),
            ("response_item", call),
            ("event_msg", {"type": "token_count", "info": {"total_token_usage": spent, "last_token_usage": spent}}),
        ]
        folder = Path.home() / ".codex" / "sessions" / "2026" / "11" / "29"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"rollout-2026-11-29T05-06-40-{ref}.jsonl").open("a") as file:
            for kind, payload in records:
                file.write(json.dumps({"timestamp": at, "type": kind, "payload": payload}) + "\n")

    def seem_deaf_for(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.draw(footer=f"? for help, {left:.1f}")
            time.sleep(min(left, 0.4))

    def turn_work(self) -> None:
        self.draw(footer="working (esc to interrupt)")
        time.sleep(0.2)
        self.draw()

    def turn_ask(self) -> None:
        sys.stdout.write("\x1b[2J\x1b[HMay I run this?\r\n  $ touch it\r\n> 1. Yes\r\n  2. No\r\n\r\nallow or deny")
        sys.stdout.flush()
        lost = int(str(self.wishes.get("lost_keys", 0)))
        while not {b"1", b"\x1b"} & {key := self.read(60.0)} or lost > 0:
            lost -= bool(key)
        self.above.append("denied" if key == b"\x1b" else "allowed")
        self.turn_work()

    def turn_strange(self) -> None:
        count = 0
        while True:
            sys.stdout.write(f"\x1b[2J\x1b[Hnever seen before: {count}")
            sys.stdout.flush()
            count += 1
            time.sleep(0.3)

    def turn_background(self) -> None:
        for count in range(10_000):
            self.above.append(f"helper token {count}")
            self.draw(footer="2 helpers running")
            time.sleep(0.2)

    def turn_bye(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.above.append("goodbye")
        self.draw()
        while True:
            time.sleep(1)

    def turn_fail(self) -> None:
        sys.exit(1)

    def turn_leave(self) -> None:
        sys.exit(0)


if __name__ == "__main__":
    Stub(ast.literal_eval(sys.argv[1])).run()
