"""An MCP server for tests: a program of its own that speaks the protocol with the standard library alone.

Its first argument chooses how it behaves: ``notes`` as it should, ``silent`` never answers, ``noisy`` says more,
``crash`` ends at once with a last word, ``pages`` tells its tools one by one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Final

TOOLS: Final[list[dict[str, object]]] = [
    {
        "name": "find_notes",
        "title": "Find notes",
        "description": "Finds notes\nby words",
        "annotations": {"readOnlyHint": True},
        "inputSchema": {
            "type": "object",
            "properties": {
                "words": {"type": "string", "description": "What to look for"},
                "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
                "most": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
                "whole": {"type": "boolean"},
                "place": {"$ref": "#/$defs/Place"},
            },
            "required": ["words"],
            "$defs": {"Place": {"type": "object", "properties": {"folder": {"type": "string"}}}},
        },
    },
    {
        "name": "delete_note",
        "description": "Deletes a note",
        "annotations": {"destructiveHint": True},
        "inputSchema": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
    },
    {"name": "add_note", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
    {"name": "odd", "inputSchema": {"type": "object", "properties": {"a b": {"type": "string"}}}},
]


def answer_to(method: str, params: dict[str, object], *, is_paged: bool) -> dict[str, object] | None:
    """Return what a request is answered; None for one that is not known."""
    match method:
        case "initialize":
            version = params["protocolVersion"]
            info = {"name": "notes", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            if not is_paged:
                return {"tools": TOOLS}
            at = int(str(params.get("cursor") or 0))
            return {"tools": [TOOLS[at]]} | ({"nextCursor": str(at + 1)} if at + 1 < len(TOOLS) else {})
        case "tools/call" if params["name"] == "delete_note":
            return {"content": [{"type": "text", "text": "there is no such note"}], "isError": True}
        case "tools/call":
            told = json.dumps(params["arguments"], sort_keys=True)
            picture = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
            return {"content": [{"type": "text", "text": f"{params['name']} {told}"}, picture]}
        case _:
            return None


def main(behaviour: str) -> None:
    """Serve until the input ends."""
    sys.stderr.write("the server of notes has started\n")
    sys.stderr.flush()
    if behaviour == "crash":
        sys.exit("no notes today")
    if behaviour == "silent":
        # One that it starts must go with it, also when it has left its group.
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        time.sleep(600)
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        if behaviour == "noisy":
            sys.stdout.write("a banner that is no message\n")
        answer = answer_to(request["method"], request.get("params") or {}, is_paged=behaviour == "pages")
        told = {"error": {"code": -32601, "message": "unknown"}} if answer is None else {"result": answer}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"]} | told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
