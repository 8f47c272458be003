"""The subcommands that a help text lists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.runners.capability_scanners.help_lines import HelpLine

_HEADING: Final = re.compile(r"\b(?:sub)?commands?\b|\bfunctions:|\bactions:", re.IGNORECASE)
_OTHER_HEADING: Final = re.compile(
    r"\b(?:options?|flags?|arguments?|examples?|environment|usage|see also|aliases|exit|notes?|topics?)\b",
    re.IGNORECASE,
)
_NAME: Final = r"[a-z0-9][\w.:+-]{0,40}"
_ENTRY: Final = re.compile(
    rf"({_NAME}?)[*:]?((?:(?:, ?|\|| \| ){_NAME}){{0,6}})"
    r"((?: (?:<[^<>]{1,60}>|\[[^\[\]]{1,60}(?:\[[^\[\]]{0,40}\][^\[\]]{0,20})?\]|[A-Z][A-Z_=|.]{0,40}|\.\.\.)"
    r"(?:\.\.\.)?){0,6})"
    r"(?: {2,}| - | -- |: +)(\S.*)"
)
_ALONE: Final = re.compile(rf"({_NAME})[*:]?")
_COMMA_LIST: Final = re.compile(rf"(?:{_NAME}, ?)+(?:{_NAME})?,?")
_COLUMNS: Final = re.compile(rf"{_NAME}(?: {{2,60}}{_NAME}){{0,12}}")
_NO_NAMES: Final = frozenset({"usage", "note", "or", "see", "e.g", "where"})
_NO_NAMES_ELSEWHERE: Final = _NO_NAMES | {"options", "example", "commands", "default"}
_MOST_COMMANDS: Final = 400
_DEEPEST: Final = 12


@dataclass(frozen=True, slots=True)
class ListedCommand:
    """One subcommand and what is said about it."""

    name: str
    description: str


def read_commands(
    lines: Sequence[HelpLine], *, program: str, subcommand: Sequence[str], takes_command: bool
) -> tuple[ListedCommand, ...]:
    """Return the subcommands in the order of the text.

    Args:
        lines: The help text.
        program: Its name, which some texts write before each subcommand.
        subcommand: The words of the subcommand whose help this is.
        takes_command: Whether the usage names a command; then also lists under other headings are looked through.
    """
    found: dict[str, ListedCommand] = {}
    prefixes = (" ".join((program, *subcommand)) + " ", program + " ")
    is_inside, indent, was_empty, is_open = False, -1, True, False
    for at, line in enumerate(lines):
        if not line.text:
            was_empty = True
            continue
        if _is_heading(lines, at, was_empty=was_empty):
            heading = line.text.split("(", 1)[0]
            is_inside = _HEADING.search(heading) is not None
            is_other = not is_inside and _OTHER_HEADING.search(heading) is not None
            is_open = takes_command and not is_other and not is_inside
            indent = -1
            was_empty = False
            if not (is_open and _ENTRY.fullmatch(line.text)):
                continue
        was_empty = False
        if not (is_inside or is_open) or line.text.startswith("-"):
            continue
        if indent >= 0 and line.indent > indent + 1:
            continue
        listed = _read_line(lines, at, prefixes, is_inside=is_inside)
        if listed and line.indent <= _DEEPEST:
            indent = line.indent
            for command in listed:
                found.setdefault(command.name, command)
        if len(found) >= _MOST_COMMANDS:
            break
    return tuple(found.values())


def _is_heading(lines: Sequence[HelpLine], at: int, *, was_empty: bool) -> bool:
    line = lines[at]
    if line.text.startswith("-") or _ENTRY.fullmatch(line.text):
        return False
    following = next((later for later in lines[at + 1 : at + 4] if later.text), None)
    if following is None:
        return False
    if line.text.endswith(":") and following.indent >= line.indent:
        return True
    if was_empty and line.text.isupper() and following.indent > line.indent:
        return True
    return was_empty and (following.indent > line.indent or _COLUMNS.fullmatch(following.text) is not None)


def _read_line(
    lines: Sequence[HelpLine], at: int, prefixes: tuple[str, ...], *, is_inside: bool
) -> list[ListedCommand]:
    text = lines[at].text.removeprefix("o ").removeprefix("* ").removeprefix("$ ")
    for prefix in prefixes:
        text = text.removeprefix(prefix)
    entry = _ENTRY.fullmatch(text)
    if entry:
        no_names = _NO_NAMES if is_inside else _NO_NAMES_ELSEWHERE
        return [] if entry[1] in no_names else [ListedCommand(entry[1], entry[4].strip())]
    if not is_inside:
        return []
    if _COMMA_LIST.fullmatch(text) and "," in text:
        return [ListedCommand(word.strip(), "") for word in text.split(",") if word.strip()]
    words = text.split()
    if len(words) > 1 and _COLUMNS.fullmatch(text):
        return [ListedCommand(word, "") for word in words if word not in _NO_NAMES]
    alone = _ALONE.fullmatch(text)
    if alone and alone[1] not in _NO_NAMES:
        following = lines[at + 1] if at + 1 < len(lines) else None
        told = following.text if following is not None and following.indent > lines[at].indent else ""
        return [ListedCommand(alone[1], told)]
    return []
