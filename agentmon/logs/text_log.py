"""A log that is no file: its text is handed over, and may be replaced by another one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from agentmon.logs.log_file import LogFile

_NOWHERE: Final = Path()


class TextLog(LogFile):
    """A text with the lines and offsets of a log; ``refresh`` takes up what was handed over last."""

    def __init__(self, text: bytes = b"") -> None:
        super().__init__(_NOWHERE)
        self._text = b""
        self._next = text

    def replace(self, text: bytes) -> None:
        """Hand over another text, known from the next refresh on."""
        self._next = text

    def refresh(self) -> bool:
        """Take up the newest text and return whether it is another one."""
        before, self._text = self._text, self._next
        if self._text == before:
            return False
        if self._text.startswith(before):
            self._take_size(len(self._text))
        else:
            self._begin_generation(len(self._text))
        return True

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` up to ``end``, fewer where the text ends."""
        return self._text[max(0, start) : max(0, min(end, self.size))]

    def twin(self) -> TextLog:
        """Return another reader of the same text."""
        twin = TextLog(self._next)
        twin.refresh()
        twin.generation = self.generation
        return twin

    def _read_file(self, start: int, end: int) -> bytes:
        return self._text[start:end]

    def _read_into(self, view: memoryview, offset: int) -> int:
        part = self._text[offset : offset + len(view)]
        view[: len(part)] = part
        return len(part)
