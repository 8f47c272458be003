"""The template adapter: a capability's words with their placeholders filled in, as one argument list."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import CapabilitySource
from agentmon.domain.errors import ArgumentsError
from agentmon.runners.adapters.arguments import check_arguments, coerce_arguments
from agentmon.runners.adapters.command_line import parse_command
from agentmon.runners.mcp_servers import call_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.agents import Capability

__all__ = ["check_arguments", "coerce_arguments", "parse_command", "render_command"]

_PLACEHOLDER: Final = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_OPTION: Final = re.compile(r"\{\{\s*([^{}\s]+)\s+(args\.[^{}\s]+)\s*\}\}")
_MOST_TIMES: Final = 20
"""How often an option is given at most because of a number; no program counts further."""
_ARGUMENT_PREFIX: Final = "args."
_TASK_TITLE: Final = "task_title"
_TASK_DESCRIPTION: Final = "task_description"
_GAP: Final = "\0"
"""Stands where a placeholder had no value; no text of a person has one."""
_GAPS: Final = re.compile(r"\n\s*\0\s*\n")
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
    value vanishes as a whole. A word that is an option and an argument in one pair of braces is an option that is there
    or not: see ``_option_words``. What is filled in is never looked at again, by no shell either: placeholders, quotes
    and dashes in it stay as they are. The tool of an MCP server is called through a program that starts the server and
    prints what the tool gives back. ``args`` are those that ``check_arguments`` returned.

    Raises:
        ArgumentsError: A placeholder is unknown, a value cannot be part of an argument list, or no program is named.
    """
    words = [binary] if binary else []
    words += base_args
    tokens = render_tokens(capability, task_title=task_title, args=args, prompt_additions=prompt_additions)
    words = [*call_words(words, tokens)] if capability.source is CapabilitySource.SCAN_MCP else [*words, *tokens]
    for word in words:
        _require_possible(word)
    if not words or not words[0]:
        raise ArgumentsError(f"{capability.label} names no program to run", hint="give it a command")
    return tuple(words)


def render_tokens(
    capability: Capability, *, task_title: str, args: Mapping[str, object], prompt_additions: str
) -> tuple[str, ...]:
    """Return the capability's words filled in; see ``render_command``.

    Raises:
        ArgumentsError: A placeholder is unknown, or a value cannot be part of an argument list.
    """
    values = _values(capability, args, **{_TASK_TITLE: task_title, _PROMPT_ADDITIONS: prompt_additions})
    words = [word for token in capability.command_tokens for word in _filled(token, values)]
    for word in words:
        _require_possible(word)
    return tuple(words)


def fill_text(
    text: str,
    *,
    capability: Capability,
    task_title: str,
    task_description: str,
    args: Mapping[str, object],
    prompt_additions: str,
) -> str:
    """Return a text with its placeholders filled in; those without a value vanish, and so do the gaps they leave.

    Raises:
        ArgumentsError: A placeholder is unknown.
    """
    values = _values(
        capability,
        args,
        **{_TASK_TITLE: task_title, _TASK_DESCRIPTION: task_description, _PROMPT_ADDITIONS: prompt_additions},
    )

    def fill(found: re.Match[str]) -> str:
        if found[1] not in values:
            raise _unknown(found[1], values)
        value = values[found[1]]
        if value is None or value == "":
            return _GAP
        return ", ".join(map(_text, value)) if isinstance(value, list | tuple) else _text(value)

    filled = _PLACEHOLDER.sub(fill, text)
    return _GAPS.sub("\n\n", filled).replace(_GAP, "").strip()


def _values(capability: Capability, args: Mapping[str, object], **of_task: object) -> dict[str, object]:
    values: dict[str, object] = dict(of_task)
    described = capability.args_schema.get("properties")
    values |= {f"{_ARGUMENT_PREFIX}{name}": None for name in (described if isinstance(described, dict) else ())}
    values |= {f"{_ARGUMENT_PREFIX}{name}": value for name, value in args.items()}
    return values


def _filled(token: str, values: Mapping[str, object]) -> list[str]:
    option = _OPTION.fullmatch(token)
    if option and option[2] in values:
        return _option_words(option[1], values[option[2]])
    names = _PLACEHOLDER.findall(token)
    for name in names:
        if name not in values:
            raise _unknown(name, values)
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


def _option_words(option: str, value: object) -> list[str]:
    """Return an option with its value, as often as it is wanted.

    ``{{--all args.all}}`` is ``--all`` when the argument is true, nothing when it is false. With any other value the
    option is a word and the value the next one: ``-n``, ``20``. An option that ends in ``=`` has its value in the same
    word, and so has one that ends in ``+``, which is left out: ``{{-I+ args.folder}}`` is ``-Ilib``. A list gives the
    option once for each item. ``{{-v* args.verbose}}`` is ``-v`` as often as the number says.
    """
    if isinstance(value, list | tuple):
        return [word for item in value for word in _option_words(option, item)]
    if value is None or value is False:
        return []
    if option.endswith("*"):
        return [option[:-1]] * (min(value, _MOST_TIMES) if isinstance(value, int) else 1)
    if option.endswith(("=", "+")):
        return [option.removesuffix("+") + _text(value)]
    return [option] if value is True else [option, _text(value)]


def _unknown(name: str, values: Mapping[str, object]) -> ArgumentsError:
    known = ", ".join(f"{{{{{known}}}}}" for known in values)
    return ArgumentsError(f"the placeholder {{{{{name}}}}} is unknown", hint=f"known placeholders: {known}")


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
