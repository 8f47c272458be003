"""A help text as plain lines: no colours, no overstriking, no frames, no tabs, and no more than is read at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_MOST_CHARACTERS: Final = 1024 * 1024
_MOST_LINES: Final = 20_000
_MOST_LINE_CHARACTERS: Final = 2_000
_ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-9;:?]{0,64}[ -/]?[@-~]|\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78M])"
)
_OVERSTRUCK: Final = re.compile(r".\x08")
_FRAME: Final = str.maketrans(dict.fromkeys("│┃║╭╮╰╯┌┐└┘├┤─━═╷╵╶╴┏┓┗┛┣┫╔╗╚╝╠╣", " "))
_TITLE: Final = re.compile(r"^[╭┏┌]─ ([^─\n]{1,80}) ─{1,500}[╮┓┐]$", re.MULTILINE)
_FRAMED_OPTION: Final = re.compile(r"│ [ *]{0,4}(?=-)")
_FRAMED_VALUE: Final = re.compile(r"<[^<>]{1,60}>|[A-Z][A-Z_ |]{0,60}(?:\[[^\]]{1,60}\])?|\[[^\]]{1,200}\]")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class HelpLine:
    """One line; ``text`` has no blanks around it and is empty for an empty line."""

    indent: int
    text: str


def help_lines(text: str) -> list[HelpLine]:
    """Return the lines of a help text; what is over 1 MiB, 20,000 lines or 2,000 characters of a line is left out.

    A tab inside a line becomes at least two blanks, for it divides an option from its description as they do.
    """
    text = _ESCAPES.sub("", text[:_MOST_CHARACTERS])
    text = _OVERSTRUCK.sub("", text).replace("\r\n", "\n")
    text = _TITLE.sub(r"\1:", text)
    lines = []
    for raw in text.split("\n", _MOST_LINES)[:_MOST_LINES]:
        line = raw[:_MOST_LINE_CHARACTERS].replace("\t", "  \t").expandtabs(8)
        if line.lstrip().startswith("│"):
            line = _framed(line)
        line = _CONTROL.sub("", line.translate(_FRAME)).rstrip()
        stripped = line.lstrip()
        lines.append(HelpLine(len(line) - len(stripped), stripped))
    return lines


def _framed(line: str) -> str:
    """Return a line of a frame as other programs write it: click's tables have names and values in columns."""
    line = line.strip().rstrip("│").rstrip()
    start = _FRAMED_OPTION.match(line)
    if start is None:
        return line
    cells = re.split(r" {2,}", line[start.end() :])
    names = [cell for cell in cells if cell.startswith("-")]
    rest = cells[len(names) :]
    value = f" {rest.pop(0)}" if rest and _FRAMED_VALUE.fullmatch(rest[0]) else ""
    return f"  {', '.join(names).replace(',-', ', -')}{value}  {'  '.join(rest)}"
