"""An edit that met somebody else's: what differs, in words, and both put together."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.labels import labels_text
from agentmon.domain.tasks import InputContext, TaskDraft
from agentmon.widgets.cells import even_line

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST: Final = 50
_NAMES: Final = {
    "assignee_agent_id": "program",
    "input_context": "what the program is given",
    "due_at": "due date",
    "parent_task_id": "parent",
}


def merged(base: TaskDraft, mine: TaskDraft, theirs: TaskDraft) -> TaskDraft:
    """Return their draft with everything that I changed since the base."""
    changes = {name: getattr(mine, name) for name in _changed(base, mine) if name != "input_context"}
    own, first = mine.input_context, base.input_context
    given = {
        field.name: getattr(own, field.name)
        for field in fields(InputContext)
        if getattr(own, field.name) != getattr(first, field.name)
    }
    if mine.assignee_agent_id != base.assignee_agent_id:
        # Capability and arguments are those of the program.
        given |= {"capability_key": own.capability_key, "args": own.args}
    return replace(theirs, **changes, input_context=replace(theirs.input_context, **given))


def clashes(base: TaskDraft, mine: TaskDraft, theirs: TaskDraft) -> list[str]:
    """Return in words what both changed since the base, each in another way."""
    return [
        _NAMES.get(name, name)
        for name in _changed(base, mine)
        if name in _changed(base, theirs) and getattr(mine, name) != getattr(theirs, name)
    ]


def merged_numbers(base: Sequence[int], mine: Sequence[int], theirs: Sequence[int]) -> tuple[int, ...]:
    """Return their numbers with those that I added, without those that I took away."""
    kept = [number for number in theirs if number in mine or number not in base]
    return tuple(sorted({*kept, *(number for number in mine if number not in base)}))


def difference_lines(before: TaskDraft, after: TaskDraft) -> list[str]:
    """Return what changed between two drafts, a line for each field."""
    lines = []
    for name in _changed(before, after):
        word = _NAMES.get(name, name)
        if name == "labels":
            lines.append(f"{word}: {labels_text(before.labels) or 'none'} → {labels_text(after.labels) or 'none'}")
        elif name in {"title", "priority", "schedule"}:
            lines.append(f"{word}: {_shown(getattr(before, name))} → {_shown(getattr(after, name))}")
        else:
            lines.append(word)
    return lines


def _changed(before: TaskDraft, after: TaskDraft) -> list[str]:
    return [field.name for field in fields(TaskDraft) if getattr(before, field.name) != getattr(after, field.name)]


def _shown(value: object) -> str:
    if value is None:
        return "none"
    cron = getattr(value, "cron", None)
    if cron is not None:
        return even_line(f"{cron} in {getattr(value, 'zone', '')}", max_characters=_LONGEST)
    return f"P{value:d}" if isinstance(value, int) else f"“{even_line(str(value), max_characters=_LONGEST)}”"
