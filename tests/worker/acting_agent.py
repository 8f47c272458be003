"""An agent that speaks as Claude Code does, and does with its tools what a file tells it to do.

Its prompt names the file: ``orders:/tmp/some/file``. Each line of it is a JSON object: ``tool`` and ``input`` are what
it says that it calls, ``do`` is a line of shell that it does meanwhile, ``asks`` whether it asks for leave before, and
``end`` ends it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

from agentmon.runners.demo_agent.wire import Wire


def orders_in(file: Path) -> list[dict[str, object]]:
    """Return the orders that are whole."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]


def main(session_id: str) -> None:
    wire = Wire(pace_s=0, session_id=session_id)
    prompt = wire.next_prompt() or ""
    found = re.search(r"orders:(\S+)", prompt)
    assert found is not None
    wire.begin_turn()
    wire.say("Ready.")
    done = 0
    while True:
        for order in orders_in(Path(found[1]))[done:]:
            done += 1
            if order.get("end"):
                wire.end_turn("Done.")
                return
            tool, tool_input = str(order["tool"]), dict(order["input"])  # type: ignore[call-overload]
            call_id = wire.call(tool, tool_input)
            if order.get("asks"):
                wire.ask(call_id, tool, tool_input)
            subprocess.run(["/bin/sh", "-c", str(order.get("do") or "true")], check=False, stdin=subprocess.DEVNULL)
            wire.result(call_id, "done")
        time.sleep(0.02)


if __name__ == "__main__":
    words = sys.argv[1:]
    main(words[words.index("--session-id") + 1] if "--session-id" in words else "0")
