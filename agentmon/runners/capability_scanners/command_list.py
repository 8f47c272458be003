"""The subcommands that a help text lists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.runners.capability_scanners.help_lines import HelpLine

_HEADING: Final = re.compile(
    r"\b(?:sub)?commands?\b(?![ -]line)|^groups$|^group is one of|\bfunctions:|\bactions:", re.IGNORECASE
)
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
_CELL_GAP: Final = re.compile(r" {2,}")
_NO_NAMES: Final = frozenset({"usage", "note", "or", "see", "e.g", "where"})
_NO_NAMES_ELSEWHERE: Final = _NO_NAMES | {"options", "example", "commands", "default"}
_MOST_COMMANDS: Final = 400
_PLACEHOLDER: Final = re.compile(r"\{[^{}\s]{1,400}\}|[A-Za-z][\w-]{0,40}")
_ARGPARSE_STEP: Final = 2
_DEEPEST_HEADING: Final = 4
_MOST_HEADING_BLANKS: Final = 10
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
    reader = _CommandReader(lines, program=program, subcommand=subcommand, takes_command=takes_command)
    for at, line in enumerate(lines):
        if line.text:
            reader.read(at, line)
        reader.was_empty = not line.text
        if len(reader.found) >= _MOST_COMMANDS:
            break
    return tuple(reader.found.values())


class _CommandReader:
    def __init__(
        self, lines: Sequence[HelpLine], *, program: str, subcommand: Sequence[str], takes_command: bool
    ) -> None:
        self.found: dict[str, ListedCommand] = {}
        self.was_empty = True
        self._lines = lines
        self._prefixes = (" ".join((program, *subcommand)) + " ", program + " ")
        self._program = program
        self._takes_command = takes_command
        self._is_inside = False
        """Whether the lines below a heading of commands are read."""
        self._is_open = False
        """Whether the heading says nothing of what stands below it."""
        self._indent = -1
        """Where the commands of this list begin; -1 before the first."""

    def read(self, at: int, line: HelpLine) -> None:
        if _is_heading(self._lines, at, was_empty=self.was_empty):
            self._begin(line.text.split("(", 1)[0])
            if not (self._is_open and _ENTRY.fullmatch(line.text)):
                return
        if _stands_for_commands(self._lines, at):
            self._is_inside, self._indent = True, self._lines[at + 1].indent
            return
        is_deeper = 0 <= self._indent < line.indent - 1
        if not (self._is_inside or self._is_open) or line.text.startswith("-") or is_deeper:
            return
        listed = _read_line(self._lines, at, self._prefixes, is_inside=self._is_inside)
        if listed and line.indent <= _DEEPEST:
            self._indent = line.indent
            for command in listed:
                if command.name != self._program:
                    self.found.setdefault(command.name, command)

    def _begin(self, heading: str) -> None:
        self._is_inside = _HEADING.search(heading) is not None
        is_other = not self._is_inside and _OTHER_HEADING.search(heading) is not None
        self._is_open = self._takes_command and not is_other and not self._is_inside
        self._indent = -1


def _stands_for_commands(lines: Sequence[HelpLine], at: int) -> bool:
    """Tell whether a line is the name of argparse for a subcommand, which the subcommands follow two blanks deeper."""
    following = lines[at + 1] if at + 1 < len(lines) else None
    is_name = lines[at].indent == _ARGPARSE_STEP and _PLACEHOLDER.fullmatch(lines[at].text) is not None
    if following is None or not is_name or following.indent != 2 * _ARGPARSE_STEP:
        return False
    return _ENTRY.fullmatch(following.text) is not None or _ALONE.fullmatch(following.text) is not None


def _is_heading(lines: Sequence[HelpLine], at: int, *, was_empty: bool) -> bool:
    line = lines[at]
    if line.indent > _DEEPEST_HEADING or line.text.count(" ") > _MOST_HEADING_BLANKS:
        return False
    if line.text.startswith("-") or _ENTRY.fullmatch(line.text):
        return False
    following = next((later for later in lines[at + 1 : at + 4] if later.text), None)
    if following is None:
        return False
    if line.text.endswith(":") and following.indent >= line.indent:
        return True
    if was_empty and line.text.isupper():
        return True
    return was_empty and (following.indent > line.indent or _COLUMNS.fullmatch(following.text) is not None)


def _read_line(
    lines: Sequence[HelpLine], at: int, prefixes: tuple[str, ...], *, is_inside: bool
) -> list[ListedCommand]:
    text = lines[at].text.removeprefix("o ").removeprefix("* ").removeprefix("$ ")
    for prefix in prefixes:
        text = text.removeprefix(prefix)
    entry = _ENTRY.fullmatch(text)
    is_table = is_inside and len(_CELL_GAP.findall(text)) > 1 and _COLUMNS.fullmatch(text) is not None
    if entry and not is_table:
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
