"""Asking a program for its help, and reading the answer: the source ``scan_help``."""

from __future__ import annotations

import re
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


async def scan_help(
    path: str,
    *,
    subcommand: Sequence[str] = (),
    timeout_s: float = _TIMEOUT_S,
    environ: Mapping[str, str] | None = None,
) -> tuple[ScannedCapability, ...]:
    """Ask a program for its help, and return what it tells.

    The command that was asked for comes first, then each subcommand that its help names; those are not learned until
    they are asked for themselves. The program is asked with ``--help``. Another way is tried only when the answer
    itself names it: a bare ``-h`` or ``help`` may be work to do for a program that does not know it as a question.

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
    text, problem = await _answer(path, (*subcommand, first), timeout_s=timeout_s, environ=environ)
    best = parse_help(text, program=program, subcommand=subcommand)
    for way in _further_ways(text, best, first, program):
        if _richness(best) and way not in _longer_ways(text):
            break
        told, other_problem = await _answer(path, (*subcommand, *way), timeout_s=timeout_s, environ=environ)
        other = parse_help(told, program=program, subcommand=subcommand)
        if _richness(other) > _richness(best):
            best, problem = other, other_problem
    if not _richness(best):
        words = " ".join((program, *subcommand, first))
        reason = problem or "the answer has no options and no commands in it"
        raise RunnerError(f"{words} tells nothing that can be learned: {reason}", hint=f"try it: {words}")
    return best


def _further_ways(text: str, found: Sequence[ScannedCapability], first: str, program: str) -> list[tuple[str, ...]]:
    """Return the other ways to ask that an answer itself names; once there was help, only those to a longer text."""
    longer = _longer_ways(text)
    if _richness(found):
        return longer
    others = [(word,) for word, named in _OTHER_WAYS if word != first and named.search(text)]
    return [*longer, *others, *([("help",)] if f"{program} help" in text else [])]


def _longer_ways(text: str) -> list[tuple[str, ...]]:
    return [way for way, named in _LONGER_WAYS if named.search(text)]


async def _answer(
    path: str, words: Sequence[str], *, timeout_s: float, environ: Mapping[str, str] | None
) -> tuple[str, str | None]:
    answer = await ask(path, words, timeout_s=timeout_s, environ=environ)
    return answer.output, answer.problem


def _richness(found: Sequence[ScannedCapability]) -> int:
    """Return how much was learned: options, arguments and subcommands."""
    return len(found[0].options) + len(found) - 1
