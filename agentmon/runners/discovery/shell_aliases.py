"""Words that the start-up files of the person's shell define; the files are read, never sourced."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.programs import Program, ProgramKind

if TYPE_CHECKING:
    from collections.abc import Mapping

ALIAS_PREFIX: Final = "alias:"
_FILES: Final = (
    *(".profile", ".bash_profile", ".bashrc", ".bash_aliases", ".zprofile", ".zshrc", ".zshenv", ".aliases"),
    *(".config/fish/config.fish", ".config/fish/conf.d/aliases.fish"),
)
_ALIAS: Final = re.compile(r"^\s*alias\s+(?:-[gs]\s+)?(?P<name>[\w.:+@-]+)(?:=|\s+)(?P<rest>.+)$")
_MOST_BYTES: Final = 512 * 1024
_PREFIXES: Final = frozenset({"builtin", "command", "doas", "env", "exec", "nice", "noglob", "nohup", "sudo", "time"})
"""Words before the program that is meant."""
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")


def find_aliases(environ: Mapping[str, str]) -> tuple[Program, ...]:
    """Return the aliases by name; of one that is defined twice the last counts, as in the shell."""
    home = Path(environ.get("HOME") or Path.home())
    files = tuple(home / name for name in _FILES)
    zsh_home = environ.get("ZDOTDIR")
    if zsh_home:
        files = (*files, Path(zsh_home) / ".zshrc")
    found: dict[str, Program] = {}
    for path in files:
        for name, command in _read(path):
            found[name] = Program(
                path=f"{ALIAS_PREFIX}{name}", name=name, real_path=_program_of(command, home), kind=ProgramKind.ALIAS
            )
    return tuple(found[name] for name in sorted(found))


def _read(path: Path) -> list[tuple[str, str]]:
    with suppress(OSError):
        if not path.is_file():
            return []
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES).decode("utf-8", "replace")
        return [
            (match["name"], command)
            for line in text.splitlines()
            if (match := _ALIAS.match(line)) and (command := _unquoted(match["rest"]))
        ]
    return []


def _unquoted(rest: str) -> str:
    try:
        words = shlex.split(rest, comments=True)
    except ValueError:
        return ""
    return words[0] if words else ""


def _program_of(command: str, home: Path) -> str:
    """Return the first word that names a program, with the home filled in."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    has_prefix = False
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _PREFIXES or (has_prefix and words[0].startswith("-"))):
        has_prefix |= words[0] in _PREFIXES
        words = words[1:]
    first = words[0] if words else command
    for written in ("$HOME", "${HOME}", "~"):
        if first == written or first.startswith(written + os.sep):
            return str(home) + first[len(written) :]
    return first
