"""JSON-RPC errors of an agent in one line for a person."""

from __future__ import annotations

from agentmon.domain.json_values import object_in, objects_in, one_line, read_object, text_in, texts_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

AUTH_REQUIRED = -32000
METHOD_NOT_FOUND = -32601
MAX_ERROR_CHARACTERS = 1_000
MAX_METHODS = 4
HTTP_ERRORS = range(400, 600)
"""Gemini passes on the status of its vendor's answer as the code of the error."""
_EMPTY_MESSAGES = ("", "Internal error")
"""Messages of errors that say less than their data."""


def error_line(error: Mapping[str, object]) -> str:
    """Return what the error says, with the vendor's status; an API's answer in JSON is reduced to its message."""
    message = _plain(text_in(error, "message"))
    data = error.get("data")
    if isinstance(data, str):
        details = data
    else:
        held = object_in(error, "data")
        details = text_in(held, "details") or text_in(held, "message")
    details = _plain(details)
    if message in _EMPTY_MESSAGES and details:
        message = details
    elif details and details not in message:
        message = f"{message} ({details})"
    told = one_line(message, MAX_ERROR_CHARACTERS - 20) or "The agent gave no reason."
    code = error.get("code")
    return f"{told} (HTTP {code})" if type(code) is int and code in HTTP_ERRORS and str(code) not in told else told


def is_login_needed(error: Mapping[str, object]) -> bool:
    """Return whether the agent knows nobody who pays for it."""
    return error.get("code") == AUTH_REQUIRED


def login_line(error: Mapping[str, object], methods: list[dict[str, object]]) -> str:
    """Return that a login is needed, and how the agent says it is done."""
    ways = [way for way in map(_way, methods[:MAX_METHODS]) if way]
    how = f" It offers: {'; '.join(ways)}." if ways else " Start it in a terminal and log in there."
    return one_line(f"The agent needs a login: {error_line(error).rstrip('.')}.{how}", MAX_ERROR_CHARACTERS)


def _way(method: dict[str, object]) -> str:
    name = text_in(method, "name") or text_in(method, "id")
    terminal = object_in(object_in(method, "_meta"), "terminal-auth")
    command = " ".join([text_in(terminal, "command"), *texts_in(terminal, "args")]).strip()
    variables = ", ".join(filter(None, (text_in(variable, "name") for variable in objects_in(method, "vars"))))
    told = f"`{command}`" if command else variables or text_in(method, "description")
    return one_line(f"{name} ({told})" if told and told != name else name, 300)


def _plain(text: str) -> str:
    """Return the text with the JSON at its end reduced to the message in it."""
    head, mark, tail = text.partition("{")
    if not mark:
        return text
    answer = read_object(mark + tail[:100_000])
    if answer is None:
        return text
    inner = text_in(object_in(answer, "error"), "message") or text_in(answer, "message")
    return head + inner if inner else text
