"""The usage lines of a help text, put together: one text for each form in which a program can be called."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.runners.capability_scanners.help_lines import HelpLine

DEFINITION: Final = re.compile(r"(?:where\s+)?([A-Z][A-Z_-]*)\s*:=\s*")
"""What a word of the usage stands for: ``OPTIONS := { … }``."""
_START: Final = re.compile(r"(?:(?:basic |quick )?usage|synopsis)\b(?:\s+(?:is|info))?\s*:?\s*", re.IGNORECASE)
_OR: Final = re.compile(r"(?:or|usage):?\s+(?=\S)", re.IGNORECASE)
_SECTION: Final = re.compile(r"[A-Z][^.<>\[\]]{0,60}:$")
_TOLD: Final = re.compile(r"(?<=\S) {3,}(?=[a-z(])")
"""Between a form and what is said about it."""
_OPTIONS_ALONE: Final = re.compile(r"\[--?\w")
_OPENING: Final = ("[", "<", "(", "{")
_MOST_FORMS: Final = 40
_MOST_LINES: Final = 200
_HEADING_GAP: Final = 2
"""How many empty lines may follow the word ``Usage`` alone."""
_OPTION_INDENT: Final = 8


def usage_forms(lines: Sequence[HelpLine], *, program: str, places: set[int]) -> list[str]:
    """Return each form, the program's name first, and definitions of words in it; add their lines' places."""
    forms: list[str] = []
    at = 0
    while at < len(lines) and len(forms) < _MOST_FORMS:
        rest = _first_form(lines[at].text, program)
        if rest is None:
            at += 1
            continue
        block = _Block(lines, at, rest, program=program)
        places.update(block.places)
        forms += block.forms
        at = block.end
    return [_TOLD.split(form, maxsplit=1)[0].split(f" | {_first_word(form)} ", maxsplit=1)[0] for form in forms]


def _first_form(text: str, program: str) -> str | None:
    """Return the form on a line that begins a usage, empty when it stands below; None for any other line."""
    if _OPTIONS_ALONE.match(text):
        # npm writes its options in brackets, with nothing before them.
        return f"OPTIONS := {text}"
    found = _START.match(text)
    if found is None:
        return None
    rest = text[found.end() :]
    return rest if not rest or ":" in found[0] or rest.startswith(program) else None


class _Block:
    """The lines of one usage, from the line that begins it."""

    def __init__(self, lines: Sequence[HelpLine], start: int, rest: str, *, program: str) -> None:
        self.forms = [rest] if rest else []
        self.places = {start}
        self._indent = lines[start].indent
        self._program = program
        self.end = start + 1
        if not rest:
            while self.end < len(lines) and not lines[self.end].text and self.end - start <= _HEADING_GAP:
                self.end += 1
            if self.end < len(lines) and lines[self.end].text.startswith("-"):
                return
        while self.end < len(lines) and self.end - start < _MOST_LINES and self._takes(lines[self.end]):
            self.places.add(self.end)
            self.end += 1

    def _takes(self, line: HelpLine) -> bool:
        """Take a line into the usage; return whether it belongs there."""
        alternative = _OR.match(line.text)
        if not line.text or (_SECTION.match(line.text) and not alternative):
            return False
        bare = line.text[alternative.end() :] if alternative else line.text
        known = {self._program, *(_first_word(form) for form in self.forms[:1])}
        if alternative or _first_word(bare) in known or DEFINITION.match(bare) or not self.forms:
            self.forms.append(bare)
            return True
        if line.indent <= self._indent and not line.text.startswith(_OPENING):
            return False
        if line.text.startswith("-") and line.indent <= self._indent + _OPTION_INDENT:
            return False
        is_remark = line.text.startswith("(") and line.text.endswith(")") and "|" not in line.text
        if not is_remark:
            self.forms[-1] += f" {line.text}"
        return True


def _first_word(text: str) -> str:
    return text.split(maxsplit=1)[0].removeprefix("$") if text else ""
