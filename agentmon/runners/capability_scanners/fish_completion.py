"""Completion files of fish: every ``complete`` line names one option or some words of one command."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import CapabilitySource
from agentmon.runners.capability_scanners.command_tree import CommandTree
from agentmon.runners.capability_scanners.scanned import ScannedCapability, ValueKind
from agentmon.runners.capability_scanners.shell_text import ShellText, Token, statements

if TYPE_CHECKING:
    from collections.abc import Sequence

_WITH_VALUE: Final = {
    "-c": "command",
    "--command": "command",
    "-p": "command",
    "--path": "command",
    "-n": "condition",
    "--condition": "condition",
    "-s": "short",
    "--short-option": "short",
    "-l": "long",
    "--long-option": "long",
    "-o": "old",
    "--old-option": "old",
    "-a": "arguments",
    "--arguments": "arguments",
    "-d": "description",
    "--description": "description",
    "-w": "wraps",
    "--wraps": "wraps",
    "-C": "asked",
    "--do-complete": "asked",
}
_SWITCHES: Final = {
    "-r": "requires",
    "--require-parameter": "requires",
    "-x": "requires",
    "--exclusive": "requires",
    "-e": "erases",
    "--erase": "erases",
}
_NO_COMMAND_YET: Final = re.compile(r"use_subcommand|needs?_(?:sub)?command|no_subcommand|is_first_(?:arg|token)")
_COMMAND_SEEN: Final = re.compile(r"(?:seen_subcommand_from|using_(?:sub)?command)\s+([^;&|)]+)")
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.:+-]*")
_LONGEST_CHOICES: Final = 40


@dataclass(slots=True)
class _Line:
    values: dict[str, list[Token]] = field(default_factory=dict)
    switches: set[str] = field(default_factory=set)

    def texts(self, name: str) -> list[str]:
        return [token.text for token in self.values.get(name, ())]


def read_fish(text: str, program: str) -> tuple[ScannedCapability, ...]:
    """Return what a completion file of fish tells of the program."""
    tree = CommandTree(program, CapabilitySource.SCAN_COMPLETION)
    for statement in statements(ShellText(text, is_fish=True).tokens()):
        if statement[0].text != "complete":
            continue
        line = _read_line(statement[1:])
        if program in line.texts("command") and "erases" not in line.switches:
            _note(tree, line)
    return tree.capabilities()


def _read_line(words: Sequence[Token]) -> _Line:
    line = _Line()
    waiting: str | None = None
    for token in words:
        if waiting is not None:
            line.values.setdefault(waiting, []).append(token)
            waiting = None
            continue
        name, equals, value = token.text.partition("=")
        if name in _WITH_VALUE and token.text.startswith("--") and equals:
            line.values.setdefault(_WITH_VALUE[name], []).append(Token(value, is_fixed=token.is_fixed))
        elif token.text in _WITH_VALUE:
            waiting = _WITH_VALUE[token.text]
        elif token.text.startswith("-"):
            waiting = _read_cluster(line, token)
        else:
            line.values.setdefault("command", []).append(token)
    return line


def _read_cluster(line: _Line, token: Token) -> str | None:
    """Note switches that stand together (``-xa``), and return what the next word is the value of."""
    if token.text in _SWITCHES:
        line.switches.add(_SWITCHES[token.text])
        return None
    if token.text.startswith("--"):
        return None
    for at, letter in enumerate(token.text[1:], start=1):
        if (name := _SWITCHES.get(f"-{letter}")) is not None:
            line.switches.add(name)
        elif (name := _WITH_VALUE.get(f"-{letter}")) is not None:
            rest = token.text[at + 1 :]
            if not rest:
                return name
            line.values.setdefault(name, []).append(Token(rest, is_fixed=token.is_fixed))
            return None
    return None


def _note(tree: CommandTree, line: _Line) -> None:
    commands = _commands(line)
    description = next(iter(line.texts("description")), "")
    names = [f"-{name}" for name in line.texts("short")]
    names += [f"--{name}" for name in line.texts("long")]
    names += [f"-{name}" for name in line.texts("old")]
    offered = [word for token in line.values.get("arguments", ()) if token.is_fixed for word in _offered(token.text)]
    if names:
        takes_value = "requires" in line.switches or bool(line.values.get("arguments"))
        choices = [word for word, _ in offered] if 1 < len(offered) <= _LONGEST_CHOICES else []
        for command in commands:
            tree.add_option(
                command,
                names,
                kind=ValueKind.STRING if takes_value else ValueKind.BOOLEAN,
                description=description,
                choices=choices,
            )
        return
    if _NO_COMMAND_YET.search(" ".join(line.texts("condition"))):
        for word, told in offered:
            if _NAME.fullmatch(word):
                tree.name((word,), told or (description if len(offered) == 1 else ""))


def _commands(line: _Line) -> list[tuple[str, ...]]:
    """Return the commands that a line is about."""
    condition = " ".join(line.texts("condition"))
    # What must not have been typed says nothing of where the line counts.
    seen = [found for found in _COMMAND_SEEN.finditer(condition) if not _is_denied(condition, found.start())]
    if not seen:
        return [()]
    first = [word for word in seen[0][1].split() if _NAME.fullmatch(word)]
    if len(seen) == 1:
        # Commands that share a line are named behind each other.
        return [(word,) for word in first] or [()]
    rest = [word for found in seen[1:] for word in found[1].split() if _NAME.fullmatch(word)]
    return [(first[0], word) for word in rest] if first and rest else [()]


def _is_denied(condition: str, at: int) -> bool:
    before = re.split(r"[;&|]", condition[:at])[-1]
    return re.search(r"\bnot\b", before) is not None


def _offered(text: str) -> list[tuple[str, str]]:
    """Return the words of ``-a`` with what is said of each; a description stands behind a tab up to the line's end."""
    if "$" in text or "(" in text:
        # fish works these out when they are asked for.
        return []
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].replace(",", "\n")
    found: list[tuple[str, str]] = []
    for line in text.replace("\\t", "\t").replace("\\n", "\n").splitlines():
        words, tab, told = line.partition("\t")
        if tab:
            found.append((words.strip(), told.strip("'\" ")))
        else:
            found += [(word, "") for word in words.split()]
    return [(word, told) for word, told in found if word]
