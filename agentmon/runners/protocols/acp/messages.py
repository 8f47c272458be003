"""What is said, piece by piece while it is written, then whole."""

from __future__ import annotations

from agentmon.domain.json_values import object_in, one_line, ref_in, text_in
from agentmon.domain.letters import cut
from agentmon.runners.protocols.messages import MAX_LAST_WORDS_CHARACTERS, MAX_PART_CHARACTERS, in_parts, message_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.adapter import Event


class MessageBook:
    """Puts the chunks of one message after the other together; what is long is told in parts as it comes."""

    __slots__ = ("_count", "_is_begun", "_is_thinking", "_message_id", "_pieces", "_size", "answer_id", "last_words")

    def __init__(self) -> None:
        self._count = 0
        self._pieces: list[str] = []
        self._size = 0
        self._is_begun = False
        """Whether a part of the message was told already."""
        self._is_thinking = False
        self._message_id = ""
        self.last_words = ""
        """The beginning of the newest message that is no thought."""
        self.answer_id = ""
        """The agent's id of the newest message; empty when it told of a tool call since, which may be a newer one's."""

    @property
    def _ref(self) -> str:
        return f"message-{self._count}"

    def chunk(self, update: Mapping[str, object], *, is_thinking: bool) -> list[Event]:
        """Return the piece, after the message before it when that ends here."""
        text = chunk_text(object_in(update, "content"))
        if not text:
            return []
        message_id = self.answer_id = ref_in(update, "messageId")
        events: list[Event] = []
        if (is_thinking, message_id) != (self._is_thinking, self._message_id):
            events += self.end()
        if not self._pieces and not self._is_begun:
            self._count += 1
            self._is_thinking, self._message_id = is_thinking, message_id
            if not is_thinking:
                self.last_words = ""
        if not is_thinking and len(self.last_words) < MAX_LAST_WORDS_CHARACTERS:
            self.last_words = cut(self.last_words + text, MAX_LAST_WORDS_CHARACTERS)
        events += [
            {"kind": "delta", "message_ref": self._ref, "text": part, "is_thinking": is_thinking}
            for part in in_parts(text)
        ]
        self._pieces.append(text)
        self._size += len(text)
        if self._size > MAX_PART_CHARACTERS:
            events += self._told_but_the_rest()
        return events

    def end(self) -> list[Event]:
        """Return the message that was being written, or what is left of it; nothing when there is none."""
        events = self._told_but_the_rest()
        rest = "".join(self._pieces)
        if rest:
            events.append(self._part(rest))
        self._pieces.clear()
        self._size = 0
        self._is_begun = False
        return events

    def prompt(self, text: str) -> list[Event]:
        """Return a message of the person."""
        self._count += 1
        return message_events(self._ref, "user", text)

    def _told_but_the_rest(self) -> list[Event]:
        """Return the parts that are complete; ``goes_on`` tells the host that more of the message follows."""
        if self._size <= MAX_PART_CHARACTERS:
            return []
        *parts, rest = in_parts("".join(self._pieces))
        self._pieces = [rest]
        self._size = len(rest)
        return [{**self._part(part), "goes_on": True} for part in parts]

    def _part(self, text: str) -> Event:
        continues, self._is_begun = self._is_begun, True
        return {
            "kind": "message",
            "message_ref": self._ref,
            "role": "assistant",
            "text": text,
            "continues": continues,
            "is_thinking": self._is_thinking,
        }


def chunk_text(content: Mapping[str, object]) -> str:
    """Return the text of a content block; what is no text is named in brackets."""
    kind = text_in(content, "type")
    if kind == "text":
        return text_in(content, "text")
    if kind == "resource":
        resource = object_in(content, "resource")
        return text_in(resource, "text") or f"[{one_line(text_in(resource, 'uri') or 'resource', 500)}]"
    if kind == "resource_link":
        return f"[{one_line(text_in(content, 'uri') or 'link', 500)}]"
    return f"[{one_line(kind, 40)}]" if kind else ""
