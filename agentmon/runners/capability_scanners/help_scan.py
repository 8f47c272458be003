"""Asking a program for its help, and reading the answer: the source ``scan_help``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import RunnerError
from agentmon.runners.capability_scanners.help_text import parse_help
from agentmon.runners.discovery.probe import ask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.runners.capability_scanners.scanned import ScannedCapability

_FIRST: Final[Mapping[str, str]] = {"git": "-h"}
"""Programs that answer ``--help`` with a page of their manual, which may not be installed."""
_OTHER_WAYS: Final = (
    ("-help", re.compile(r"(?<![\w-])-help\b")),
    ("-h", re.compile(r"(?<![\w-])-h\b.{0,60}help|help.{0,60}(?<![\w-])-h\b|\[-h\]", re.IGNORECASE)),
)
_LONGER_WAYS: Final = (
    (("--help", "all"), re.compile(r"--help[ =]+[\"'<]?all\b|--help.{0,80}\"all\"|--help <[^>]{0,60}\ball>")),
    (("--help", "-v"), re.compile(r"--help -v\b")),
    (("-h", "full"), re.compile(r"^ {0,8}-h full\b", re.MULTILINE)),
    (("--help-all",), re.compile(r"(?<!\S)--help-all\b")),
    (("--help-full",), re.compile(r"(?<!\S)--help-full\b.{0,80}(?:detail|help)")),
)
_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class HelpAnswer:
    """A program's help, as it printed it and as it was read."""

    text: str
    commands: tuple[ScannedCapability, ...]
    """The command that was asked for first, then the subcommands that it names."""


async def scan_help(
    path: str,
    *,
    subcommand: Sequence[str] = (),
    timeout_s: float = _TIMEOUT_S,
    environ: Mapping[str, str] | None = None,
) -> tuple[ScannedCapability, ...]:
    """Ask a program for its help, and return what it tells; see ``ask_help``.

    The command that was asked for comes first, then each subcommand that its help names; those are not learned until
    they are asked for themselves.

    Raises:
        RunnerError: The program gives no answer, or none that is a help text.
    """
    answer = await ask_help(path, subcommand=subcommand, timeout_s=timeout_s, environ=environ)
    return answer.commands


async def ask_help(
    path: str,
    *,
    subcommand: Sequence[str] = (),
    timeout_s: float = _TIMEOUT_S,
    environ: Mapping[str, str] | None = None,
) -> HelpAnswer:
    """Ask a program for its help, and return the text of which most was learned.

    The program is asked with ``--help``. Another way is tried only when the answer itself names it: a bare ``-h`` or
    ``help`` may be work to do for a program that does not know it as a question.

    Args:
        path: The program, absolute or a name on the PATH.
        subcommand: The words of the subcommand to learn, such as ``("remote", "add")``.
        timeout_s: How long each answer may take.
        environ: Where the program's variables are taken from, this process's own by default.

    Raises:
        RunnerError: The program gives no answer, or none that is a help text.
    """
    program = PurePath(path).name
    first = _FIRST.get(program, "--help")
    answer = await ask(path, (*subcommand, first), timeout_s=timeout_s, environ=environ)
    best = HelpAnswer(answer.output, parse_help(answer.output, program=program, subcommand=subcommand))
    longer = _longer_ways(answer.output)
    others = _other_ways(answer.output, first, program)
    for way in (*longer, *others):
        if way not in longer and not _is_poor(best):
            break
        told = (await ask(path, (*subcommand, *way), timeout_s=timeout_s, environ=environ)).output
        other = HelpAnswer(told, parse_help(told, program=program, subcommand=subcommand))
        best = max(best, other, key=_richness)
    if not _richness(best):
        words = " ".join((program, *subcommand, first))
        reason = answer.problem or "the answer has no options and no commands in it"
        raise RunnerError(f"{words} tells nothing that can be learned: {reason}", hint=f"try it: {words}")
    return best


def _other_ways(text: str, first: str, program: str) -> list[tuple[str, ...]]:
    """Return the other ways to ask that an answer names, for when it was no help itself."""
    others = [(word,) for word, named in _OTHER_WAYS if word != first and named.search(text)]
    return [*others, *([("help",)] if f"{program} help" in text else [])]


def _longer_ways(text: str) -> list[tuple[str, ...]]:
    """Return the ways to ask for a longer text that an answer names."""
    return [way for way, named in _LONGER_WAYS if named.search(text)]


def _is_poor(answer: HelpAnswer) -> bool:
    """Tell whether nothing but positional arguments was learned."""
    return len(answer.commands) == 1 and all(option.is_positional for option in answer.commands[0].options)


def _richness(answer: HelpAnswer) -> int:
    """Return how much was learned: options, arguments and subcommands."""
    return len(answer.commands[0].options) + len(answer.commands) - 1
