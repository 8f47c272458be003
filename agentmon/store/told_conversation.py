"""The conversation into which a stretch of a journal is written, and the pieces of news with their times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_Part = TypeVar("_Part")

MAX_NAMES: Final = 500
"""Most values in one condition, below what every SQLite allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldConversation:
    """Whose news are written."""

    execution_id: str
    session_id: str
    agent_id: str
    task_id: str
    attempt: int

    def ref(self, name: str) -> str:
        """Return the agent's own name of something, told apart from the same name in another try."""
        return f"{self.attempt}:{name}"


def moment_of(at_ms: int) -> datetime:
    """Return the aware UTC time of milliseconds since 1970, exactly."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).replace(microsecond=at_ms % 1000 * 1000)


def in_pieces(parts: Sequence[_Part]) -> Iterator[Sequence[_Part]]:
    """Yield the parts in pieces that one condition can hold."""
    for start in range(0, len(parts), MAX_NAMES):
        yield parts[start : start + MAX_NAMES]
