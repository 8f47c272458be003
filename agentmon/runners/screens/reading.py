"""Reading one look at a pane with the rules of its agent."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import redact
from agentmon.runners.screens.states import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.conversation import AskDecision
    from agentmon.runners.screens.rules import ScreenRule, ScreenRules

NOTE_MAX_CHARACTERS: Final = 200
_FRAME: Final = " │┃║"
_BOX_WITHIN_LINES: Final = 45
_MENU_WITHIN_LINES: Final = 20
_CHOICE: Final = re.compile(r"[ │┃║]*([❯›>▶●◉]?)\s*\d{1,2}[.)] \S")


_DRAWN: Final = re.compile(r"[\s\u2500-\u259f❯›●]+")
"""Blanks, frames and marks of choice: what differs when the same words are drawn in another width."""


_EDGE_CELLS: Final = 4
"""So many blanks may stand between the last word of a dialog and its edge."""
_OF_UNSURE_WIDTH: Final = re.compile("[^ -~\u2500-\u259f△⇆•]")
_KEY_NAMES: Final = {"\x1b[27u": "esc", "\x1b[A": "↑", "\x1b[B": "↓", "\x1b": "esc", "\r": "⏎", "\t": "tab"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One option of a dialog, and the keys that choose it."""

    label: str
    moves: str
    """Typed first, to bring the mark of choice to the option; empty when it needs none."""
    keys: str
    marked: re.Pattern[str] | None = None
    """What the coloured lines show while the keys mean this option; None where the keys say it all."""

    @property
    def keys_text(self) -> str:
        """What is typed, as a person reads it: ``↓ ⏎``."""
        typed = self.moves + self.keys
        for sequence, name in _KEY_NAMES.items():
            typed = typed.replace(sequence, f" {name} ")
        return " ".join(typed.split())

    def is_marked(self, coloured: Sequence[str]) -> bool:
        """Return whether the keys would choose it now, by the lines with their colours."""
        return self.marked is None or self.marked.search("\n".join(coloured)) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialog:
    """What an agent asks in its screen, known whole from its first line to the last one of the screen."""

    rule: ScreenRule
    text: str
    command: tuple[str, ...]
    """The lines of what it wants to run or to write, as they are drawn."""
    path: str
    """The file that it wants to write, as it is drawn; empty when it does not tell one."""
    digest: str
    """SHA-256 of its words, wherever the mark of choice is, and of the command and the path to the blank."""
    answers: Mapping[AskDecision, Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenText:
    """What a pane shows: its title and its lines, without blank ends."""

    title: str
    lines: tuple[str, ...]

    @classmethod
    def of(cls, title: str, lines: tuple[str, ...] | list[str]) -> ScreenText:
        """Return what a pane shows, with all blanks alike."""
        clean = [line.replace("\xa0", " ").rstrip() for line in lines]
        while clean and not clean[-1]:
            clean.pop()
        return cls(title=title.strip(), lines=tuple(clean))

    def last(self, count: int) -> str:
        """Return the last lines as one text."""
        return "\n".join(self.lines[-count:])


def read_title(rules: ScreenRules, screen: ScreenText) -> Finding | None:
    """Return what the title says, by the first rule that fits it; None when none does."""
    return _first(rules, screen, is_for_title=True)


def read_screen(rules: ScreenRules, screen: ScreenText) -> Finding | None:
    """Return what the lines say, by the first rule that fits them; None when none does.

    While the agent draws its input box, it asks below the box alone: above it stands what was said.
    """
    return _first(rules, screen, is_for_title=False)


def read_dialog(rules: ScreenRules, screen: ScreenText) -> Dialog | None:
    """Return what is asked, where a rule knows all of it and how it is answered; None where only attaching answers it.

    An option counts where it stands last: above the options stands what the agent wants, which may be written like one.
    """
    found = _find(rules, _within_edge(rules, screen), is_for_title=False)
    if found is None or not found[0].answers or found[1].end() != len(found[1].string):
        return None
    rule, match = found
    text = match.group(0)
    answers: dict[AskDecision, Answer] = {}
    for one in rule.answers:
        options = list(one.pattern.finditer(text))
        if options and one.decision not in answers:
            named = options[-1].groupdict()
            label = _line(named.get("label") or options[-1].group(0))
            keys = one.keys.replace("{key}", named.get("key") or "")
            answers[one.decision] = Answer(label=label, moves=one.moves, keys=keys, marked=one.marked)
    if not answers:
        return None
    command, path = (match.groupdict().get(name) or "" for name in ("command", "path"))
    rows = command.strip("\n").split("\n") if command.strip() else []
    asked = "\n".join((_DRAWN.sub("", text), path.strip(), *(row.rstrip(_FRAME) for row in rows)))
    return Dialog(
        rule=rule,
        text=text,
        command=tuple(row.strip(_FRAME) for row in rows),
        path=path.strip(),
        digest=hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest(),
        answers=answers,
    )


def _within_edge(rules: ScreenRules, screen: ScreenText) -> ScreenText:
    """Return the screen without what stands to the right of the dialog.

    A row with characters whose width is not known for sure keeps all of it, so that nothing of a dialog is left out.
    """
    ends = [found.end() for line in screen.lines if rules.right_edge and (found := rules.right_edge.search(line))]
    if not ends:
        return screen
    edge = ends[-1] + _EDGE_CELLS
    lines = [line[:edge] if not _OF_UNSURE_WIDTH.search(line) else line for line in screen.lines]
    return ScreenText.of(screen.title, lines)


def count_signs(pattern: re.Pattern[str] | None, screen: ScreenText) -> int:
    """Return how often the screen shows a mark of what was decided."""
    return 0 if pattern is None else len(pattern.findall("\n".join(screen.lines)))


def shows_menu(screen: ScreenText) -> bool:
    """Return whether the end of the screen has numbered choices, one of them chosen: somebody is asked something."""
    lines = screen.lines[-_MENU_WITHIN_LINES:]
    numbers = [match for line in lines if (match := _CHOICE.match(line)) is not None]
    return len(numbers) > 1 and any(match[1] for match in numbers)


def box_text(rules: ScreenRules, screen: ScreenText) -> str | None:
    """Return what stands in the agent's input box, empty for an empty one; None when no box is seen."""
    if rules.box is None:
        return None
    boxes = [found.group(1) or "" for found in rules.box.finditer(screen.last(_BOX_WITHIN_LINES))]
    if not boxes:
        return None
    text = "\n".join(inside for line in boxes[-1].split("\n") if (inside := line.strip(_FRAME)))
    return "" if any(hint.fullmatch(text) for hint in rules.box_hints) else text


def box_rows(rules: ScreenRules, screen: ScreenText) -> tuple[str, ...]:
    """Return the rows from the begin of the agent's input box to the end of the screen; none when no box is seen."""
    if rules.box is None:
        return ()
    shown = screen.last(_BOX_WITHIN_LINES)
    boxes = list(rules.box.finditer(shown))
    return tuple(shown[boxes[-1].start() :].lstrip("\n").split("\n")) if boxes else ()


def shows_new_line(before: Sequence[str], now: Sequence[str]) -> bool:
    """Return whether the box of the rows ``now`` is that of the rows ``before`` with an empty line at its end.

    So it looks when the return key was taken for a line feed. A box that is full has lost its first line to it.
    """
    return _has_blank_added(before, now) or _has_blank_added(before[2:], now[1:])


def _has_blank_added(before: Sequence[str], now: Sequence[str]) -> bool:
    first = next((at for at, (old, new) in enumerate(zip(before, now, strict=False)) if old != new), 0)
    is_added = 0 < first < len(now) - 1 and now[first + 1] == before[first]
    return is_added and not now[first].strip(_FRAME)


def _first(rules: ScreenRules, screen: ScreenText, *, is_for_title: bool) -> Finding | None:
    fitting = _find(rules, screen, is_for_title=is_for_title)
    if fitting is None:
        return None
    rule, found = fitting
    return Finding(
        state=rule.state,
        note=_note(rule, found),
        source=f"{'title rule' if is_for_title else 'rule'} {rules.agent}/{rule.name}",
        where=rule.where,
        evidence=_line(found.group(0)),
    )


def _find(rules: ScreenRules, screen: ScreenText, *, is_for_title: bool) -> tuple[ScreenRule, re.Match[str]] | None:
    box_line_count: int | None = None
    for rule in rules.rules:
        if rule.is_for_title is not is_for_title:
            continue
        count = rule.last_lines
        if rule.state.is_asking and not rule.is_above_box:
            box_line_count = len(_drawn_box(rules, screen)) if box_line_count is None else box_line_count
            count = min(count, box_line_count or count)
        found = _fits(rule, screen.title if is_for_title else screen.last(count))
        if found is not None:
            return rule, found
    return None


def _fits(rule: ScreenRule, text: str) -> re.Match[str] | None:
    found = rule.pattern.search(text)
    return None if found is None or (rule.unless is not None and rule.unless.search(text)) else found


def _drawn_box(rules: ScreenRules, screen: ScreenText) -> tuple[str, ...]:
    """Return the rows from the input box of an agent on that takes a prompt now; none while something else is drawn."""
    is_free = any(
        rule.state.is_free and not rule.is_for_title and _fits(rule, screen.last(rule.last_lines)) is not None
        for rule in rules.rules
    )
    return box_rows(rules, screen) if is_free else ()


def _note(rule: ScreenRule, found: re.Match[str]) -> str:
    note = rule.note
    for name, text in found.groupdict().items():
        note = note.replace("{" + name + "}", (text or "").strip(_FRAME + "\n"))
    return _line(note)


def _line(text: str) -> str:
    joined = " ".join(part for line in text.split("\n") if (part := line.strip(_FRAME)))
    return plain_line(redact(joined), max_characters=NOTE_MAX_CHARACTERS)
