"""Command lines as people type them, split into words the way a shell does, without any of its other powers."""

from __future__ import annotations

import re
import shlex
from typing import Final

from agentmon.domain.errors import UsageError

# Source: POSIX.1-2017, Shell Command Language, 2.2 Quoting and 2.10 operators.
_PIECE: Final = re.compile(
    r"""
      (?P<blanks>[ \t]+)
    | (?P<line_join>\\\n)
    | '(?P<single_quoted>[^']*)'
    | "(?P<double_quoted>(?:[^"\\`$]|\\.|\$(?!\())*)"
    | \\(?P<escaped>.)
    | (?P<operator>\|\||\|&?|&&|&>>?|>&|&|;;?|>>|>\||>|<<<?|<&|<>|<|\(|\)|`|\$\(|\n)
    | (?P<plain>[^ \t\n'"\\|&;<>()`$]+|\$)
    """,
    re.VERBOSE | re.DOTALL,
)
_SUBSTITUTION_IN_QUOTES: Final = re.compile(r'"(?:[^"\\`$]|\\.|\$(?!\())*(`|\$\()', re.DOTALL)
_ESCAPE_IN_QUOTES: Final = re.compile(r'\\([$`"\\]|\n)')
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_LINE_BREAKS_AT_END: Final = re.compile(r"[\r\n]\s*\Z")


def parse_command(text: str) -> tuple[str, ...]:
    """Return the words of a command line; quotes and backslashes group as in a POSIX shell.

    Variables, wildcards and ``~`` stay as typed, since no shell runs.

    Raises:
        UsageError: The line is empty, a quote is open at its end, or it uses something only a shell can do: an
            operator outside quotes, a command substitution, or an assignment before the program. The hint is then the
            line that hands the whole text to a shell.
    """
    line = _LINE_BREAKS_AT_END.sub("", text.lstrip())
    if "\0" in line:
        raise UsageError("the command has a NUL character in it, which no program can be given")
    words = _split(line)
    if not words or not words[0]:
        raise UsageError("the command is empty", hint="give a program and its arguments, such as: make test")
    if _ASSIGNMENT.match(line):
        raise _needs_shell(line, "sets a variable before the program")
    return tuple(words)


def _split(line: str) -> list[str]:
    words: list[str] = []
    is_inside_word = False
    position = 0
    while position < len(line):
        piece = _PIECE.match(line, position)
        if piece is None:
            raise _unfinished(line, position)
        position = piece.end()
        kind, text = piece.lastgroup, piece[piece.lastgroup or 0]
        if kind == "operator":
            shown = "a line break" if text == "\n" else text
            raise _needs_shell(line, f"uses {shown}, which only a shell understands")
        if kind == "blanks":
            is_inside_word = False
        elif kind != "line_join":
            if not is_inside_word:
                words.append("")
            is_inside_word = True
            words[-1] += _unescaped(text) if kind == "double_quoted" else text
    return words


def _unescaped(text: str) -> str:
    return _ESCAPE_IN_QUOTES.sub(lambda found: found[1].replace("\n", ""), text)


def _unfinished(line: str, position: int) -> UsageError:
    substitution = _SUBSTITUTION_IN_QUOTES.match(line, position)
    if substitution is not None:
        return _needs_shell(line, f"uses {substitution[1]}, which only a shell understands")
    if line[position] == "\\":
        return UsageError("the command ends with a backslash", hint="write \\\\ for a backslash itself")
    return UsageError(
        f"a quote ({line[position]}) of the command is not closed", hint="close it, or write a backslash before it"
    )


def _needs_shell(line: str, why: str) -> UsageError:
    return UsageError(f"the command {why}", hint=f"sh -c {shlex.quote(line)}")
