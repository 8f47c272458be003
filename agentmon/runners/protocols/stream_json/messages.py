"""What Claude says, block by block: pieces while it is written, then the whole."""

from __future__ import annotations

from agentmon.domain.json_values import object_in, text_in
from agentmon.runners.protocols.messages import MAX_PART_CHARACTERS, message_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.adapter import Event

MAX_ANSWERS = 1_024
MAX_STREAMS = 64
MAX_BLOCK_INDEX = 100_000


class MessageBook:
    """Gives each block of an answer one id, the same for its pieces and for the whole."""

    __slots__ = ("_blocks", "_own_count", "_streams")

    def __init__(self) -> None:
        self._blocks: dict[str, int] = {}
        """Answer to the number of its blocks that are complete."""
        self._streams: dict[str, tuple[str, int]] = {}
        """Call of the subagent, or an empty text, to the answer and the place of the block that is being written."""
        self._own_count = 0

    def begin(self, parent: str, key: str) -> None:
        """Begin the pieces of an answer."""
        if parent not in self._streams and len(self._streams) >= MAX_STREAMS:
            del self._streams[next(iter(self._streams))]
        self._streams[parent] = (key, 0)

    def begin_block(self, parent: str, event: Mapping[str, object]) -> None:
        """Begin the pieces of one block."""
        key, _ = self._streams.get(parent, ("", 0))
        index = event.get("index")
        if key and type(index) is int and 0 <= index < MAX_BLOCK_INDEX:
            self._streams[parent] = (key, index)

    def delta(self, parent: str, event: Mapping[str, object]) -> list[Event]:
        """Return a piece of text; nothing for pieces of other sorts."""
        stream = self._streams.get(parent)
        delta = object_in(event, "delta")
        kind = text_in(delta, "type")
        text = text_in(delta, "text" if kind == "text_delta" else "thinking" if kind == "thinking_delta" else "")
        if stream is None or not text:
            return []
        key, index = stream
        piece: Event = {
            "kind": "delta",
            "message_ref": f"{key}:{max(index, self._blocks.get(key, 0))}",
            "text": text[:MAX_PART_CHARACTERS],
            "is_thinking": kind == "thinking_delta",
        }
        return [piece | {"parent_tool_ref": parent} if parent else piece]

    def block(self, parent: str, key: str, role: str, text: str, kind: str) -> list[Event]:
        """Return one complete block of an answer as messages."""
        if not key:
            key = self._own_key()
        index = self._index(parent, key)
        return message_events(f"{key}:{index}", role, text, parent or None, is_thinking=kind == "thinking")

    def count_block(self, key: str, parent: str = "") -> None:
        """Take note of a block that is no text, so that the next one gets the next place."""
        if key:
            self._index(parent, key)

    def spoken(self, uuid: str, role: str, text: str, parent: str) -> list[Event]:
        """Return a message that is not Claude's."""
        key = uuid or self._own_key()
        return message_events(f"{key}:{self._index('', key)}", role, text, parent or None)

    def _index(self, parent: str, key: str) -> int:
        index = self._blocks.pop(key, 0)
        stream = self._streams.get(parent)
        if stream is not None and stream[0] == key:
            index = max(index, stream[1])
        self._blocks[key] = index + 1
        if len(self._blocks) > MAX_ANSWERS:
            del self._blocks[next(iter(self._blocks))]
        return index

    def _own_key(self) -> str:
        self._own_count += 1
        return f"agentmon-{self._own_count}"
