"""What the answers of Claude's models used: one event when an answer begins, one when its size is known."""

from __future__ import annotations

from agentmon.domain.json_values import count_in, object_in, ref_in, text_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.adapter import Event

MAX_OPEN = 64
MAX_SETTLED = 1_024
SYNTHETIC_MODEL = "<synthetic>"
"""Names the answers that the program itself makes up, such as the text of an error: nothing is billed."""


class UsageBook:
    """One answer at a time for the main conversation, and one for each subagent."""

    __slots__ = ("_begun_at_ms", "_open", "_settled")

    def __init__(self) -> None:
        self._open: dict[str, Event] = {}
        self._begun_at_ms: dict[str, int] = {}
        self._settled: dict[str, None] = {}

    def note_answer(self, parent: str, message: Mapping[str, object], at_ms: int, waited_ms: int = 0) -> list[Event]:
        """Take an answer at its beginning, or a part of it; ``waited_ms`` passed before its first word."""
        key = ref_in(message, "id")
        model = text_in(message, "model")
        usage = object_in(message, "usage")
        if not key or not usage or model == SYNTHETIC_MODEL or key in self._settled:
            return []
        present = self._open.get(parent)
        if present is not None and present["key"] == key:
            return []
        events = self._settle(parent, None)
        if len(self._open) >= MAX_OPEN:
            events += self._settle(next(iter(self._open)), None)
        event: Event = {"kind": "usage", "key": key, "model": model[:200], "provider": "anthropic", "is_final": False}
        event.update(_tokens(usage))
        _note_writes(event, usage)
        self._open[parent] = event
        self._begun_at_ms[parent] = at_ms - waited_ms
        return [*events, dict(event)]

    def note_size(self, parent: str, usage: Mapping[str, object], at_ms: int) -> list[Event]:
        """Take the final numbers of the answer that is open."""
        present = self._open.get(parent)
        if present is None or not usage:
            return []
        for name, tokens in _tokens(usage).items():
            if tokens:
                present[name] = tokens
        _note_writes(present, usage)
        return self._settle(parent, at_ms)

    def note_hand_back(self, parent: str, usage: Mapping[str, object]) -> list[Event]:
        """Take the numbers that a subagent's report gives for its last answer."""
        present = self._open.get(parent)
        if present is None or not usage:
            return []
        final = _tokens(usage)
        if final["prompt_tokens"] == present["prompt_tokens"] and (
            final["cache_read_tokens"] == present["cache_read_tokens"]
        ):
            present.update(final)
            _note_writes(present, usage)
        return self._settle(parent, None)

    def settle_all(self) -> list[Event]:
        """Say of every answer that is open that nothing more is told of it."""
        return [event for parent in list(self._open) for event in self._settle(parent, None)]

    def _settle(self, parent: str, at_ms: int | None) -> list[Event]:
        event = self._open.pop(parent, None)
        if event is None:
            return []
        begun_at_ms = self._begun_at_ms.pop(parent)
        event["is_final"] = True
        if at_ms is not None:
            event["latency_ms"] = max(0, at_ms - begun_at_ms)
        self._settled[str(event["key"])] = None
        if len(self._settled) > MAX_SETTLED:
            del self._settled[next(iter(self._settled))]
        return [event]


def _tokens(usage: Mapping[str, object]) -> dict[str, int]:
    return {
        "prompt_tokens": count_in(usage, "input_tokens"),
        "cache_read_tokens": count_in(usage, "cache_read_input_tokens"),
        "response_tokens": count_in(usage, "output_tokens"),
        "reasoning_tokens": count_in(object_in(usage, "output_tokens_details"), "thinking_tokens"),
    }


def _note_writes(event: Event, usage: Mapping[str, object]) -> None:
    """Take what was written to caches; what is not told as long-lived is assumed to live for five minutes.

    A sum without its parts says nothing new of parts that were told before and add up to it.
    """
    parts, written = object_in(usage, "cache_creation"), count_in(usage, "cache_creation_input_tokens")
    long_writes, short_writes = (count_in(parts, f"ephemeral_{span}_input_tokens") for span in ("1h", "5m"))
    known = sum(count_in(event, name) for name in ("cache_write_5m_tokens", "cache_write_1h_tokens"))
    if "cache_write_5m_tokens" in event and not long_writes + short_writes and written in {0, known}:
        return
    unsplit = written - long_writes
    event |= {"cache_write_5m_tokens": max(unsplit, short_writes), "cache_write_1h_tokens": long_writes}
    event.pop("confidence", None)
    if unsplit > short_writes:
        event["confidence"] = "assumed"
