"""A conversation as text, for a fresh one that goes on where its agent cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.domain.letters import cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.operations import Operation
    from agentmon.domain.sessions import Message

MAX_HISTORY_CHARACTERS: Final = 60_000
MAX_MESSAGE_CHARACTERS: Final = 8_000


def history_text(messages: Sequence[Message], operations: Sequence[Operation]) -> str:
    """Return what was said and done, oldest first: the first message and the newest that there is room for.

    Thoughts and what subagents said are left out. Empty when nothing was said.
    """
    said = [one for one in messages if not one.is_thinking and one.parent_ref is None]
    if not said:
        return ""
    parts = [(one.created_at, f"[{one.role.value}]\n{cut(one.content, MAX_MESSAGE_CHARACTERS)}") for one in said]
    parts += [
        (one.started_at, f"[tool] {one.tool_name}: {cut(one.target, MAX_MESSAGE_CHARACTERS)} ({one.status.value})")
        for one in operations
        if one.parent_ref is None
    ]
    texts = [text for _, text in sorted(parts, key=lambda part: part[0])]
    kept: list[str] = []
    room = MAX_HISTORY_CHARACTERS - len(texts[0])
    for text in reversed(texts[1:]):
        room -= len(text)
        if room < 0:
            break
        kept.append(text)
    left_out = len(texts) - 1 - len(kept)
    gap = [f"[{left_out:,} earlier entries left out]"] if left_out else []
    return "\n\n".join([texts[0], *gap, *reversed(kept)])


def with_history(history: str, text: str) -> str:
    """Return the first message of a conversation that is handed the history of another one."""
    if not history:
        return text
    return (
        "An earlier conversation about this task cannot be resumed. This is what was said and done in it:\n\n"
        f"<history>\n{history}\n</history>\n\nGo on from there:\n\n{text}"
    )
