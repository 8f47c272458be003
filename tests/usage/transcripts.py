"""Makes records as Claude Code writes them."""

from __future__ import annotations

import json

AT = "2026-11-10T14:00:00.000Z"


def usage(**counts: object) -> dict[str, object]:
    return {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 20, **counts}


def answered(
    key: str = "m1",
    *,
    session: str | None = "s1",
    model: str = "claude-opus-4-8",
    stop: str | None = "end_turn",
    counts: dict[str, object] | None = None,
    content: object = (),
    at: str | None = AT,
    **fields: object,
) -> bytes:
    """Return the line of one part of an answer, in the order of fields of the real program."""
    message = {
        "id": key,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage() if counts is None else counts,
    }
    told: dict[str, object] = {"parentUuid": None, "isSidechain": False, "message": message, "type": "assistant"}
    told |= {"uuid": f"u-{key}", "timestamp": at, "cwd": "/project", "sessionId": session, "gitBranch": "main"}
    written = {name: value for name, value in (told | fields).items() if value is not None}
    return json.dumps(written, separators=(",", ":")).encode() + b"\n"
