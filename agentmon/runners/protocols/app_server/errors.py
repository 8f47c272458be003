"""Codex's errors in one line for a person."""

from __future__ import annotations

from agentmon.domain.json_values import object_in, one_line, read_object, text_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_ERROR_CHARACTERS = 1_000


def error_line(error: Mapping[str, object]) -> str:
    """Return the message of a turn's or a JSON-RPC error; an API's answer in JSON is reduced to its message."""
    message = text_in(error, "message")
    if message.startswith("{"):
        message = _inner_message(message) or message
    details = text_in(error, "additionalDetails")
    if details:
        message = f"{message} ({details})" if message.strip() else details
    return one_line(message, MAX_ERROR_CHARACTERS) or "The agent gave no reason."


def retry_status(error: Mapping[str, object]) -> int | None:
    """Return with which status of HTTP a call failed that is tried again; None when Codex does not tell it."""
    info = error.get("codexErrorInfo")
    for part in info.values() if isinstance(info, dict) else ():
        status = part.get("httpStatusCode") if isinstance(part, dict) else None
        if isinstance(status, int):
            return status
    return None


def is_limit(error: Mapping[str, object]) -> bool:
    """Return whether the turn ended since a budget that it was given is spent."""
    return error.get("codexErrorInfo") == "sessionBudgetExceeded"


def _inner_message(text: str) -> str:
    answer = read_object(text[:100_000]) or {}
    return text_in(object_in(answer, "error"), "message") or text_in(answer, "message")
