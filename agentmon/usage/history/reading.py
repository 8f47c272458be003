"""What every reader of history gives, and how its texts are cleaned and cut."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.history import (
    MAX_MESSAGE_CHARACTERS,
    MAX_SUMMARY_CHARACTERS,
    HistoryMessage,
    HistoryOperation,
    merge_messages,
    merge_operations,
)
from agentmon.domain.letters import cut
from agentmon.domain.redaction import redact
from agentmon.usage.reading import GatheredReadings, Reading

if TYPE_CHECKING:
    from agentmon.usage.reading import ReadingProblem

Differences = tuple[tuple[str, str], ...]
"""Paths, each with unified hunks."""

_MAX_HUNKS: Final = 40_000
_BEHIND_CUT: Final = 2_000
"""So much more is looked at, so that a secret at the cut is seen whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryReading(Reading):
    """What some lines of a file tell of conversations; each message and each call occurs once."""

    messages: tuple[HistoryMessage, ...] = ()
    operations: tuple[HistoryOperation, ...] = ()


class Told:
    """The messages and calls of one reading."""

    __slots__ = ("_messages", "_operations", "problems")

    def __init__(self) -> None:
        self._messages: dict[str, HistoryMessage] = {}
        self._operations: dict[str, HistoryOperation] = {}
        self.problems: list[ReadingProblem] = []

    def say(self, message: HistoryMessage) -> None:
        """Take a message, which may have been told before; one without text is none."""
        if message.text.strip():
            earlier = self._messages.get(message.ref)
            self._messages[message.ref] = message if earlier is None else merge_messages(earlier, message)

    def call(self, operation: HistoryOperation) -> None:
        """Take a call, which may have been told before."""
        earlier = self._operations.get(operation.ref)
        self._operations[operation.ref] = operation if earlier is None else merge_operations(earlier, operation)

    def reading(self) -> HistoryReading:
        """Return what was taken."""
        return HistoryReading(
            messages=tuple(self._messages.values()),
            operations=tuple(self._operations.values()),
            problems=tuple(self.problems),
        )


class GatheredHistory(GatheredReadings):
    """Several readings that follow each other, as one."""

    __slots__ = ("_told",)

    def __init__(self) -> None:
        super().__init__()
        self._told = Told()

    def add(self, reading: Reading) -> None:
        """Take the next reading."""
        super().add(reading)
        if isinstance(reading, HistoryReading):
            for message in reading.messages:
                self._told.say(message)
            for operation in reading.operations:
                self._told.call(operation)

    def take(self) -> HistoryReading:
        """Return what came since the last time."""
        problems = super().take().problems
        reading, self._told = replace(self._told.reading(), problems=problems), Told()
        return reading


def difference(path: str, shown: str) -> Differences:
    """Return how a call changed a file, of which a unified difference is shown; nothing when that says too much."""
    at = shown.find("@@ -")
    return ((path, shown[at:]),) if path and at >= 0 and len(shown) <= _MAX_HUNKS else ()


def difference_of_new(path: str, text: str) -> Differences:
    """Return how a call made a file with that text."""
    lines = text.removesuffix("\n").split("\n") if text else []
    end = "" if text.endswith("\n") else "\\ No newline at end of file\n"
    return difference(path, f"@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}\n" for line in lines) + end)


def message_text(text: str) -> str:
    """Return what of a message is kept."""
    return _cleaned(text, MAX_MESSAGE_CHARACTERS)


def summary(text: str) -> str:
    """Return what is kept of what a call was given or gave back."""
    return _cleaned(text, MAX_SUMMARY_CHARACTERS)


def _cleaned(text: str, max_characters: int) -> str:
    near = text if len(text) <= max_characters else text[: max_characters + _BEHIND_CUT]
    kept = cut(redact(near), max_characters).replace("\0", "\ufffd")
    return kept if kept.isascii() else kept.encode("utf-8", "replace").decode()
