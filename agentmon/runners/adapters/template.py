"""The template adapter: a capability's words with their placeholders filled in, as one argument list."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import ArgumentsError
from agentmon.runners.adapters.arguments import check_arguments, coerce_arguments
from agentmon.runners.adapters.command_line import parse_command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.agents import Capability

__all__ = ["check_arguments", "coerce_arguments", "parse_command", "render_command"]

_PLACEHOLDER: Final = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_ARGUMENT_PREFIX: Final = "args."
_TASK_TITLE: Final = "task_title"
_PROMPT_ADDITIONS: Final = "input_context.prompt_additions"


def render_command(
    capability: Capability,
    *,
    binary: str,
    base_args: Sequence[str],
    task_title: str,
    args: Mapping[str, object],
    prompt_additions: str,
) -> tuple[str, ...]:
    """Return the complete argument list of a run: binary, base arguments, then the capability's words filled in.

    The binary is left out when it is empty; then the capability's first word names the program. A word that is one
    placeholder and nothing else becomes as many words as its list has. A word with a placeholder whose argument has no
    value vanishes as a whole. What is filled in is never looked at again, by no shell either: placeholders, quotes and
    dashes in it stay as they are. ``args`` are those that ``check_arguments`` returned.

    Raises:
        ArgumentsError: A placeholder is unknown, a value cannot be part of an argument list, or no program is named.
    """
    values: dict[str, object] = {_TASK_TITLE: task_title, _PROMPT_ADDITIONS: prompt_additions}
    described = capability.args_schema.get("properties")
    values |= {f"{_ARGUMENT_PREFIX}{name}": None for name in (described if isinstance(described, dict) else ())}
    values |= {f"{_ARGUMENT_PREFIX}{name}": value for name, value in args.items()}
    words = [binary] if binary else []
    words += base_args
    for token in capability.command_tokens:
        words += _filled(token, values)
    for word in words:
        _require_possible(word)
    if not words or not words[0]:
        raise ArgumentsError(f"{capability.label} names no program to run", hint="give it a command")
    return tuple(words)


def _filled(token: str, values: Mapping[str, object]) -> list[str]:
    names = _PLACEHOLDER.findall(token)
    for name in names:
        if name not in values:
            known = ", ".join(f"{{{{{known}}}}}" for known in values)
            raise ArgumentsError(f"the placeholder {{{{{name}}}}} is unknown", hint=f"known placeholders: {known}")
    if any(values[name] is None for name in names):
        return []
    if _PLACEHOLDER.fullmatch(token):
        value = values[names[0]]
        return [_text(item) for item in value] if isinstance(value, list | tuple) else [_text(value)]
    for name in names:
        if isinstance(values[name], list | tuple):
            raise ArgumentsError(
                f"{{{{{name}}}}} is a list and cannot be a part of the word {token}", hint="give it a word of its own"
            )
    return [_PLACEHOLDER.sub(lambda found: _text(values[found[1]]), token)]


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def _require_possible(word: str) -> None:
    if "\0" in word:
        raise ArgumentsError("an argument has a NUL character in it, which no program can be given")
    try:
        # As the host does, whatever the locale of this process.
        word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ArgumentsError("an argument has a character in it that cannot be written as bytes") from error
