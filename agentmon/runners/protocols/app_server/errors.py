"""Codex's errors in one line for a person."""

from __future__ import annotations

import json

from agentmon.runners.protocols.adapter import clip
from agentmon.runners.protocols.app_server.values import as_line, as_object, as_text

MAX_ERROR_CHARACTERS = 1_000


def error_line(error: object) -> str:
    """Return the message of a turn's or a JSON-RPC error; an API's answer in JSON is reduced to its message."""
    known = as_object(error)
    message = as_text(known.get("message"))
    if message.startswith("{"):
        message = _inner_message(message) or message
    details = as_text(known.get("additionalDetails"))
    line = as_line(message)
    if details:
        line = f"{line} ({as_line(details)})" if line else as_line(details)
    return clip(line, MAX_ERROR_CHARACTERS) or "Codex gave no reason."


def is_limit(error: object) -> bool:
    """Return whether the turn ended since a budget that it was given is spent."""
    return as_object(error).get("codexErrorInfo") == "sessionBudgetExceeded"


def _inner_message(text: str) -> str:
    try:
        answer = json.loads(text[:100_000])
    except (RecursionError, ValueError):
        return ""
    return as_text(as_object(as_object(answer).get("error")).get("message")) or as_text(
        as_object(answer).get("message")
    )
