"""Messages as events, and those of a person that wait for the agent."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.protocols.adapter import Event

MAX_PART_CHARACTERS = 60_000
MAX_LAST_WORDS_CHARACTERS = 4_000
MAX_WAITING = 50
_KEY_BEGIN, _KEY_END = "-----BEGIN ", "-----END "
MAX_WAITING_CHARACTERS = 2_000_000


class Message:
    """A message of a person on its way to the agent."""

    __slots__ = ("command_id", "text")

    def __init__(self, text: str, command_id: str | None) -> None:
        """``command_id`` is None for the message that the conversation is launched with."""
        self.text = text
        self.command_id = command_id


def has_room(waiting: list[Message], message: Message) -> bool:
    """Return whether one more message may wait behind the others."""
    size = sum(len(other.text) for other in waiting) + len(message.text)
    return len(waiting) < MAX_WAITING and size <= MAX_WAITING_CHARACTERS


def in_parts(text: str) -> list[str]:
    """Return the text in pieces of at most ``MAX_PART_CHARACTERS``, which are masked one by one: no secret is cut."""
    parts: list[str] = []
    while len(text) > MAX_PART_CHARACTERS:
        from agentmon.domain.redaction import last_gap  # noqa: PLC0415 - seldom needed

        part = text[:MAX_PART_CHARACTERS]
        key = part.rfind(_KEY_BEGIN)
        if key > 0 and _KEY_END not in part[key:]:
            part = part[:key]
        part = part[: last_gap(part)] or part
        parts.append(part)
        text = text[len(part) :]
    return [*parts, text] if text else parts


def message_events(
    message_ref: str, role: str, text: str, parent_tool_ref: str | None = None, *, is_thinking: bool = False
) -> list[Event]:
    """Return the text as one message, in parts when it is long."""
    return [
        {
            "kind": "message",
            "message_ref": message_ref,
            "role": role,
            "text": part,
            "continues": number > 0,
            "is_thinking": is_thinking,
            "parent_tool_ref": parent_tool_ref,
        }
        for number, part in enumerate(in_parts(text))
    ]
