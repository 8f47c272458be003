"""Notices out of a protocol: each kind said as often as it helps, and no more."""

from __future__ import annotations

from agentmon.domain.json_values import one_line
from agentmon.domain.letters import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.protocols.adapter import Event

MAX_NOTICE_CHARACTERS = 2_000
MAX_SAID = 200
MAX_MALFORMED = 5


def notice(level: str, text: str, topic: str) -> Event:
    """Return one notice with its text cut to what is kept."""
    return {"kind": "notice", "level": level, "text": cut(text, MAX_NOTICE_CHARACTERS), "topic": topic}


def failed_call(key: str, model: str, provider: str, error: str, status: int | None) -> Event:
    """Return what is told of a call of a model that brought no answer; nothing of it is billed."""
    return {
        "kind": "usage",
        "key": key,
        "model": model or "unknown",
        "provider": provider or "unknown",
        "error": cut(error, MAX_NOTICE_CHARACTERS),
        "error_status": status,
    }


class NoticeBook:
    """Makes notices, and keeps those back that were given already."""

    __slots__ = ("_malformed", "_said")

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._malformed = 0

    def once(self, level: str, text: str, topic: str) -> list[Event]:
        """Return a notice of one line the first time its text comes."""
        line = one_line(text, MAX_NOTICE_CHARACTERS)
        return [notice(level, line, topic)] if self._is_new(line) else []

    def unknown(self, name: str, raw: str = "") -> list[Event]:
        """Return a notice of a message that this release does not know, once for each name; ``raw`` is all of it."""
        text = f"The agent sent a message that is not understood: {one_line(name, 100)}"
        return [notice("info", f"{text}: {raw}" if raw else text, "unknown_message")] if self._is_new(text) else []

    def malformed(self, line: str) -> list[Event]:
        """Return a notice of a line that is no message, the first few times."""
        self._malformed += 1
        if self._malformed > MAX_MALFORMED:
            return []
        shown = one_line(line, 200) or "an empty line, or one that is too long"
        last = " Further ones are passed over in silence." if self._malformed == MAX_MALFORMED else ""
        return [notice("warn", f"The agent wrote something that is no message: {shown}{last}", "malformed")]

    def _is_new(self, text: str) -> bool:
        if text in self._said or len(self._said) >= MAX_SAID:
            return False
        self._said.add(text)
        return True
