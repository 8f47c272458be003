"""Command lines that agents want to run, read in two ways: strictly to trust one, loosely to suspect one.

Nothing here runs a shell. The strict way refuses whatever it does not fully understand, so that a rule that allows
never lets through more than its words; the loose way finds as many commands in a line as it can.
"""

from __future__ import annotations

import re
from typing import Final

SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish", "ash"})
_SCRIPT_OPTION: Final = re.compile(r"-[a-z]*c")
_MAX_DEPTH: Final = 4
_MAX_SEGMENTS: Final = 2000

# Source: POSIX.1-2017, Shell Command Language, 2.2 Quoting. What is not named here is not plain.
_PLAIN_PIECE: Final = re.compile(
    r"""
      (?P<blanks>[ \t]+)
    | '(?P<single>[^'\n\r\0]*)'
    | "(?P<double>(?:[^"\\`$\n\r\0!]|\\["\\])*)"
    | \\(?P<escaped>[^\n\r\0])
    | (?P<bare>[^\s'"\\|&;<>(){}`$#\0]+ | (?<=[^\s])[#{}]+)
    """,
    re.VERBOSE,
)
_LOOSE_PIECE: Final = re.compile(
    r"""
      (?P<blanks>[ \t]+|\\\r?\n)
    | '(?P<single>[^']*)'?
    | "(?P<double>(?:[^"\\]|\\.)*)"?
    | \\(?P<escaped>.)?
    | (?P<redirection>[0-9]*(?:&>>?|>>|>\||>&|<&|<<<|<<-?|<>|[<>])(?!\())
    | (?P<boundary>\|\|?&?|&&?|;+&?|[()`\n\r\v\f]|\$\(|[<>]\()
    | (?P<bare>[^\s'"\\|&;<>()`$]+|\$|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_AMOUNT: Final = re.compile(r"[0-9.]+[smhd]?")
_KEYWORDS: Final = frozenset({"!", "{", "if", "then", "elif", "else", "while", "until", "do", "time", "coproc"})
_WRAPPERS: Final = frozenset(
    {
        *("sudo", "doas", "su", "nohup", "timeout", "gtimeout", "xargs", "parallel", "env", "nice", "ionice", "setsid"),
        *("stdbuf", "command", "builtin", "exec", "chroot", "watch", "flock", "caffeinate", "strace", "time"),
        *("systemd-run", "chrt", "taskset", "unshare", "script", "entr", "busybox"),
    }
)
_TAKES_COMMAND: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def plain_words(command: str) -> tuple[str, ...]:
    """Return the words of a single plain command; empty when the line is anything more than that.

    A line with an operator, a redirection, a substitution, a variable, a comment, braces, a line break, an open quote
    or an assignment in front is not plain. ``bash -c '…'`` counts as the line that the shell is given.
    """
    words = _split_plainly(command)
    for _ in range(_MAX_DEPTH):
        script = _script_of(words)
        if script is None:
            break
        words = _split_plainly(script)
    if not words or not words[0] or _ASSIGNMENT.match(words[0]) or words[0] in _KEYWORDS:
        return ()
    is_unread_script = _is_shell(words[0]) and any(_SCRIPT_OPTION.fullmatch(word) for word in words)
    return () if is_unread_script else words


def command_segments(command: str) -> tuple[tuple[str, ...], ...]:
    """Return the words of each command that may be run by a line, as far as can be told without running it.

    A command behind ``sudo``, ``nohup``, ``timeout 5``, ``xargs`` and the like, behind assignments, in a substitution,
    in a script for a shell or after ``find -exec`` is there by itself as well. Best effort: what a program or a
    variable turns into a command is not seen.
    """
    found: list[tuple[str, ...]] = []
    _collect(command, found, depth=0)
    return tuple(dict.fromkeys(found))


def _split_plainly(line: str) -> tuple[str, ...]:
    words: list[str] = []
    is_inside_word = False
    position = 0
    line = line.strip(" \t")
    while position < len(line):
        piece = _PLAIN_PIECE.match(line, position)
        if piece is None:
            return ()
        position = piece.end()
        kind, text = piece.lastgroup, piece[piece.lastgroup or 0]
        if kind == "blanks":
            is_inside_word = False
            continue
        if not is_inside_word:
            words.append("")
        is_inside_word = True
        words[-1] += re.sub(r'\\(["\\])', r"\1", text) if kind == "double" else text
    return tuple(words)


def _is_shell(word: str) -> bool:
    return word.rpartition("/")[2] in SHELLS


def _script_of(words: tuple[str, ...]) -> str | None:
    """Return the line that a shell is given by ``-c``; None for another command."""
    if not words or not _is_shell(words[0]):
        return None
    for index, word in enumerate(words[1:], 1):
        if _SCRIPT_OPTION.fullmatch(word):
            return words[index + 1] if index + 2 == len(words) else None
        if not word.startswith("-"):
            return None
    return None


def _collect(line: str, found: list[tuple[str, ...]], *, depth: int) -> None:
    if depth > _MAX_DEPTH:
        return
    for segment in _split_loosely(line, found, depth=depth):
        _collect_unwrapped(segment, found, depth=depth)
        if len(found) >= _MAX_SEGMENTS:
            return


def _split_loosely(line: str, found: list[tuple[str, ...]], *, depth: int) -> list[tuple[str, ...]]:
    segments: list[tuple[str, ...]] = []
    words: list[str] = []
    is_inside_word = False
    is_target_next = False
    for piece in _LOOSE_PIECE.finditer(line):
        kind, text = piece.lastgroup, piece[piece.lastgroup or 0] or ""
        if kind in {"blanks", "boundary", "redirection"}:
            if is_inside_word and is_target_next:
                words.pop()
                is_target_next = False
            is_inside_word = False
            if kind == "boundary":
                segments.append(tuple(words))
                words = []
            is_target_next = kind == "redirection" or (is_target_next and kind == "blanks")
            continue
        if kind == "double":
            if "`" in text or "$(" in text:
                _collect(text, found, depth=depth + 1)
            text = re.sub(r'\\([$`"\\])', r"\1", text)
        if not is_inside_word:
            words.append("")
        is_inside_word = True
        words[-1] += text
    if is_inside_word and is_target_next:
        words.pop()
    segments.append(tuple(words))
    return [segment for segment in segments if segment]


def _collect_unwrapped(words: tuple[str, ...], found: list[tuple[str, ...]], *, depth: int) -> None:
    """Add the command, and those that it only leads to."""
    waiting = [words]
    while waiting and len(found) < _MAX_SEGMENTS:
        command = waiting.pop()
        while command and (_ASSIGNMENT.match(command[0]) or command[0] in _KEYWORDS):
            command = command[1:]
        if not command:
            continue
        found.append(command)
        name = command[0].rpartition("/")[2]
        waiting += [command[index + 1 :] for index, word in enumerate(command) if word in _TAKES_COMMAND]
        if name in _WRAPPERS:
            waiting += _behind_wrapper(command)
        if name in SHELLS or name == "eval" or name in _WRAPPERS:
            scripts = [" ".join(command[1:])] if name == "eval" else [word for word in command[1:] if " " in word]
            if name in SHELLS:
                scripts += [command[index + 1] for index in _script_places(command)]
            for script in scripts:
                _collect(script, found, depth=depth + 1)


def _behind_wrapper(command: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return where the wrapped command may begin: behind options, which may take the next word, and amounts."""
    starts = []
    for index in range(1, len(command)):
        starts.append(command[index:])
        word, before = command[index], command[index - 1]
        may_be_argument = word.startswith("-") or before.startswith("-") or bool(_ASSIGNMENT.match(word))
        if not may_be_argument and not _AMOUNT.fullmatch(word):
            break
    return starts


def _script_places(command: tuple[str, ...]) -> list[int]:
    return [index for index in range(1, len(command) - 1) if _SCRIPT_OPTION.fullmatch(command[index])]
