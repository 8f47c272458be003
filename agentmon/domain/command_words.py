"""Command lines that agents want to run, read in two ways: strictly to trust one, loosely to suspect one.

Nothing here runs a shell. The strict way refuses whatever it does not fully understand, so that a rule that allows
never lets through more than its words; the loose way finds as many commands in a line as it can.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish", "ash"})
_SCRIPT_OPTION: Final = re.compile(r"-[a-z]*c")
_TRUSTED_SHELL: Final = re.compile(
    rf"(/bin/|/usr/bin/|/usr/local/bin/|/opt/homebrew/bin/)?({'|'.join(sorted(SHELLS))})"
)
"""A shell by its name or in a folder of the system: another file of that name may do anything."""
_TRUSTED_SCRIPT_OPTIONS: Final = frozenset({"-c", "-lc"})
"""``-norc`` is no ``-c``: the next word would be a file."""
_MAX_DEPTH: Final = 4
_MAX_SEGMENTS: Final = 2000
_MAX_PLAIN_CHARACTERS: Final = 128 * 1024
"""No shell can be given more in one word (source: execve(2), MAX_ARG_STRLEN)."""
_MAX_FURTHER_WORK: Final = 400_000
"""How many characters and words behind the line itself are looked at, since each script in it is read again."""
_LINES_REMEMBERED: Final = 16
"""A line is read for one rule after another."""

# Source: POSIX.1-2017, Shell Command Language, 2.2 Quoting. What is not named here is not plain.
_PLAIN_PIECE: Final = re.compile(
    r"""
      (?P<blanks>[ \t]+)
    | '(?P<single>[^'\n\r\0]*)'
    | "(?P<double>(?:[^"\\`$\n\r\0!]++|\\["\\])*)"
    | \\(?P<escaped>[^\n\r\0])
    | (?P<bare>[^\s'"\\|&;<>(){}`$#\0]+ | (?<=\S)(?:\#|\{(?:(?!\.\.)[^\s'"\\|&;<>(){}`$,\0])*\})+)
    """,
    re.VERBOSE,
)
_LOOSE_PIECE: Final = re.compile(
    r"""
      (?P<blanks>[ \t]+|\\\r?\n)
    | '(?P<single>[^']*)'?
    | "(?P<double>(?:[^"\\]++|\\.)*)"?
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
WRAPPERS: Final = frozenset(
    {
        *("sudo", "doas", "su", "nohup", "timeout", "gtimeout", "xargs", "parallel", "env", "nice", "ionice", "setsid"),
        *("stdbuf", "command", "builtin", "exec", "chroot", "watch", "flock", "caffeinate", "strace", "time"),
        *("systemd-run", "chrt", "taskset", "unshare", "script", "entr", "busybox"),
    }
)
"""Programs that run the command behind their own words."""
_TAKES_COMMAND: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


@lru_cache(maxsize=_LINES_REMEMBERED)
def plain_words(command: str) -> tuple[str, ...]:
    """Return the words of a single plain command; empty when the line is anything more than that.

    A line with an operator, a redirection, a substitution, a variable, a comment, braces, a line break, an open quote
    or an assignment in front is not plain, nor is one of more than 128 Ki characters. ``bash -c '…'`` counts as the
    line that the shell is given.
    """
    if len(command) > _MAX_PLAIN_CHARACTERS:
        return ()
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


@lru_cache(maxsize=_LINES_REMEMBERED)
def command_segments(command: str) -> tuple[tuple[str, ...], ...]:
    """Return the words of each command that may be run by a line, as far as can be told without running it.

    A command behind ``sudo``, ``nohup``, ``timeout 5``, ``xargs`` and the like, behind assignments, in a substitution,
    in a script for a shell or after ``find -exec`` is there by itself as well. Best effort: what a program or a
    variable turns into a command is not seen, nor what is left when a line leads to too many others.
    """
    suspicion = _Suspicion()
    suspicion.look_at(command)
    return tuple(dict.fromkeys(suspicion.found))


def leads_to_any(words: tuple[str, ...]) -> bool:
    """Return whether the next word behind these is the command that is run: ``env``, ``sudo -n``, ``bash``."""
    if not words or words[0].rpartition("/")[2] not in WRAPPERS | SHELLS:
        return False
    return len(words) in _starts_behind_wrapper((*words, ""))


def _split_plainly(line: str) -> tuple[str, ...]:
    words: list[list[str]] = []
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
            words.append([])
        is_inside_word = True
        words[-1].append(re.sub(r'\\(["\\])', r"\1", text) if kind == "double" else text)
    return _joined(words)


def _is_shell(word: str) -> bool:
    return word.rpartition("/")[2] in SHELLS


def _script_of(words: tuple[str, ...]) -> str | None:
    """Return the line that a shell of the system is given, and nothing else; None for another command."""
    match words:
        case (shell, option, script) if option in _TRUSTED_SCRIPT_OPTIONS and _TRUSTED_SHELL.fullmatch(shell):
            return script
    return None


class _Suspicion:
    """A search for commands, whose work is bounded whatever the line."""

    __slots__ = ("_seen", "_work_left", "found")

    def __init__(self) -> None:
        self.found: list[tuple[str, ...]] = []
        self._seen: dict[str, int] = {}
        """Lines that were looked at, each with its depth: deeper in, there is no more to find in it."""
        self._work_left = _MAX_FURTHER_WORK

    def look_at(self, line: str, *, depth: int = 0) -> None:
        """Add the commands of a line; ``depth`` says in how many others it stands."""
        if depth > _MAX_DEPTH or self._seen.get(line, depth + 1) <= depth or (depth and not self._may_take(len(line))):
            return
        self._seen[line] = depth
        for segment in self._split(line, depth=depth):
            self._unwrap(segment, depth=depth)
            if self._is_full:
                return

    @property
    def _is_full(self) -> bool:
        return len(self.found) >= _MAX_SEGMENTS or self._work_left < 0

    def _may_take(self, work: int) -> bool:
        self._work_left -= work + 1
        return self._work_left >= 0

    def _split(self, line: str, *, depth: int) -> list[tuple[str, ...]]:
        segments: list[tuple[str, ...]] = []
        words: list[list[str]] = []
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
                    segments.append(_joined(words))
                    words = []
                is_target_next = kind == "redirection" or (is_target_next and kind == "blanks")
                continue
            if kind == "double":
                if "`" in text or "$(" in text:
                    self.look_at(text, depth=depth + 1)
                text = re.sub(r'\\([$`"\\])', r"\1", text)
            if not is_inside_word:
                words.append([])
            is_inside_word = True
            words[-1].append(text)
        if is_inside_word and is_target_next:
            words.pop()
        segments.append(_joined(words))
        return [segment for segment in segments if segment]

    def _unwrap(self, words: tuple[str, ...], *, depth: int) -> None:
        """Add the command, and those that it only leads to."""
        waiting = [words]
        while waiting and not self._is_full:
            command = _without_preamble(waiting.pop())
            if not command:
                continue
            self.found.append(command)
            name = command[0].rpartition("/")[2]
            starts = [index + 1 for index, word in enumerate(command) if word in _TAKES_COMMAND]
            if name in WRAPPERS:
                starts += _starts_behind_wrapper(command)
            for start in starts:
                if not self._may_take(len(command) - start):
                    return
                waiting.append(command[start:])
            if name in SHELLS or name == "eval" or name in WRAPPERS:
                scripts = [" ".join(command[1:])] if name == "eval" else [word for word in command[1:] if " " in word]
                if name in SHELLS:
                    scripts += [command[index + 1] for index in _script_places(command)]
                for script in scripts:
                    self.look_at(script, depth=depth + 1)


def _joined(words: list[list[str]]) -> tuple[str, ...]:
    return tuple("".join(pieces) for pieces in words)


def _without_preamble(words: tuple[str, ...]) -> tuple[str, ...]:
    start = 0
    while start < len(words) and (_ASSIGNMENT.match(words[start]) or words[start] in _KEYWORDS):
        start += 1
    return words[start:]


def _starts_behind_wrapper(command: tuple[str, ...]) -> list[int]:
    """Return where the wrapped command may begin: behind options, which may take the next word, and amounts."""
    starts = []
    for index in range(1, len(command)):
        starts.append(index)
        word, before = command[index], command[index - 1]
        may_be_argument = word.startswith("-") or before.startswith("-") or bool(_ASSIGNMENT.match(word))
        if not may_be_argument and not _AMOUNT.fullmatch(word):
            break
    return starts


def _script_places(command: tuple[str, ...]) -> list[int]:
    return [index for index in range(1, len(command) - 1) if _SCRIPT_OPTION.fullmatch(command[index])]
