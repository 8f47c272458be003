"""Follows the branches of ``case`` in a completion script, and says for which command a line counts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.runners.capability_scanners.shell_text import Token

_NAME: Final = re.compile(r"[A-Za-z0-9][\w.+-]*")


@dataclass(slots=True)
class _Case:
    subject: str
    patterns: list[str] = field(default_factory=list)
    """Of the branch that is read now."""
    is_in_patterns: bool = True


class CaseBranches:
    """Told of each line and the sign behind it, in order.

    Args:
        program: Its name, which a branch may ask for too.
        commands: Finds in what a ``case`` looks at whether that is the command that was typed.
    """

    def __init__(self, program: str, commands: re.Pattern[str]) -> None:
        self._program = program
        self._commands = commands
        self._cases: list[_Case] = []

    @property
    def command(self) -> tuple[str, ...] | None:
        """The command for which the present line counts; None when it is another program's."""
        words: list[str] = []
        for case in self._cases:
            if case.is_in_patterns or not self._commands.search(case.subject):
                continue
            names = [pattern for pattern in case.patterns if _NAME.fullmatch(pattern)]
            if not names or self._program in names:
                continue
            if "service" in case.subject:
                return None
            words.append(names[0])
        return tuple(words)

    def branch_of(self, subject: re.Pattern[str]) -> tuple[str, ...] | None:
        """Return the patterns of the innermost branch when its ``case`` looks at such a thing, else None."""
        if not self._cases or self._cases[-1].is_in_patterns:
            return None
        case = self._cases[-1]
        return tuple(case.patterns) if subject.search(case.subject) else None

    def read(self, statement: Sequence[Token], sign: Token) -> None:
        """Take in a line and the sign that ends it."""
        words = [token.text for token in statement]
        while words and words[0] in {"do", "then", "else", "{"}:
            words = words[1:]
        if words and words[0] == "case" and "in" in words:
            place = words.index("in")
            self._cases.append(_Case(" ".join(words[1:place])))
            words = words[place + 1 :]
        if not self._cases:
            return
        case = self._cases[-1]
        if words and words[0] == "esac":
            self._cases.pop()
        elif case.is_in_patterns and sign.text in {"|", ")"}:
            case.patterns += words
            case.is_in_patterns = sign.text != ")"
        elif sign.text in {";;", ";&", ";;&"}:
            case.patterns, case.is_in_patterns = [], True
