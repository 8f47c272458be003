"""Diffs from the whole texts before and after that an agent shows."""

from __future__ import annotations

from agentmon.domain.json_values import object_in, text_in
from agentmon.runners.protocols.diffs import diff_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.adapter import Event

MAX_COMPARED_LINES = 400
"""Of more lines that differ, the old ones are shown as taken away and the new ones as added."""
CONTEXT_LINES = 3
_CHANGE_TYPES = {"add": "create", "delete": "delete", "modify": "modify"}


def shown_diff(content: Mapping[str, object], tool_ref: str) -> Event | None:
    """Return the change that a content block of type ``diff`` shows; None when it names no path or changes nothing."""
    path = text_in(content, "path")
    old, new = text_in(content, "oldText"), text_in(content, "newText")
    if not path or old == new:
        return None
    diff, added, removed = hunks(old, new)
    told = _CHANGE_TYPES.get(text_in(object_in(content, "_meta"), "kind"))
    return diff_event(path, told or ("modify" if old else "create"), diff, added, removed, tool_ref)


def hunks(old_text: str, new_text: str) -> tuple[str, int, int]:
    """Return unified hunks without a head, with the numbers of added and removed lines."""
    old, new = old_text.splitlines(), new_text.splitlines()
    shorter = min(len(old), len(new))
    head = next((place for place in range(shorter) if old[place] != new[place]), shorter)
    rest = shorter - head
    tail = next((place for place in range(rest) if old[-1 - place] != new[-1 - place]), rest)
    removed, added = old[head : len(old) - tail], new[head : len(new) - tail]
    start, after = max(0, head - CONTEXT_LINES), old[len(old) - tail :][:CONTEXT_LINES]
    if max(len(removed), len(added)) <= MAX_COMPARED_LINES and removed and added:
        return _compared(old[start:head], removed, added, after, start)
    before = old[start:head]
    old_count, new_count = (len(before) + len(lines) + len(after) for lines in (removed, added))
    lines = [
        f"@@ -{start + bool(old_count)},{old_count} +{start + bool(new_count)},{new_count} @@",
        *(f" {line}" for line in before),
        *(f"-{line}" for line in removed),
        *(f"+{line}" for line in added),
        *(f" {line}" for line in after),
    ]
    return "\n".join(lines) + "\n", len(added), len(removed)


def _compared(
    before: list[str], removed: list[str], added: list[str], after: list[str], start: int
) -> tuple[str, int, int]:
    from difflib import SequenceMatcher  # noqa: PLC0415 - most conversations change no file in part

    old, new = [*before, *removed, *after], [*before, *added, *after]
    lines: list[str] = []
    added_count = removed_count = 0
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT_LINES):
        first, last = group[0], group[-1]
        old_count, new_count = last[2] - first[1], last[4] - first[3]
        old_start, new_start = (start + place + 1 for place in (first[1], first[3]))
        lines.append(f"@@ -{old_start},{old_count} +{new_start},{new_count} @@")
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[old_from:old_to]]
                continue
            lines += [f"-{line}" for line in old[old_from:old_to]]
            lines += [f"+{line}" for line in new[new_from:new_to]]
            removed_count += old_to - old_from
            added_count += new_to - new_from
    return "\n".join(lines) + "\n", added_count, removed_count
