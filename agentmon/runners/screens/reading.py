"""Reading one look at a pane with the rules of its agent."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import redact
from agentmon.runners.screens.states import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.runners.screens.rules import ScreenRule, ScreenRules

NOTE_MAX_CHARACTERS: Final = 200
_FRAME: Final = " │┃║"
_BOX_WITHIN_LINES: Final = 45
_MENU_WITHIN_LINES: Final = 20
_CHOICE: Final = re.compile(r"[ │┃║]*([❯›>▶●◉]?)\s*\d{1,2}[.)] \S")


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
    box_line_count: int | None = None
    for rule in rules.rules:
        if rule.is_for_title is not is_for_title:
            continue
        count = rule.last_lines
        if rule.state.is_asking and not rule.is_above_box:
            box_line_count = len(_drawn_box(rules, screen)) if box_line_count is None else box_line_count
            count = min(count, box_line_count or count)
        found = _fits(rule, screen.title if is_for_title else screen.last(count))
        if found is None:
            continue
        return Finding(
            state=rule.state,
            note=_note(rule, found),
            source=f"{'title rule' if is_for_title else 'rule'} {rules.agent}/{rule.name}",
            where=rule.where,
            evidence=_line(found.group(0)),
        )
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
