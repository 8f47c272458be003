"""The messages that an agent is writing, masked: piece by piece for the pane, in small batches in ``drafts.jsonl``."""

from __future__ import annotations

import os
import time

from agentmon.runners.host import documents
from agentmon.runners.host.masking import StreamMask, mask_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.protocols.adapter import Event

INTERVAL_S = 0.2
"""Least time between two batches."""
MAX_CHARACTERS = 1_000_000
"""Most of one message; the rest comes with the whole message."""
_MAX_LINE_CHARACTERS = 60_000
_FULL_FILE_BYTES = 256 * 1024
"""Above this size the file is started over as soon as no message in it is open."""
_MAX_FILE_BYTES = 16 * 1024 * 1024
"""Above this size it is started over even if messages are open; a single message is smaller."""
_MAX_DRAFTS = 64


class _Draft:
    """One message that is being written."""

    __slots__ = ("event", "is_begun", "is_lost", "is_whole", "mask", "pieces", "size")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.mask = StreamMask()
        self.pieces: list[str] = []
        """What was not written yet, masked."""
        self.size = 0
        self.is_begun = False
        """Whether some of it is in the file, or was."""
        self.is_lost = False
        """Whether that is there no more: what follows it would look like the whole."""
        self.is_whole = False
        """Whether the journal has it; what comes of it later is nothing new."""


class DraftLog:
    """Appends what came since the last batch, masked. Nobody waits for this file: what cannot be written is left out.

    A line has a number ``n``, which goes on from one file to the next, and is a piece of a message: ``message_ref``,
    ``is_thinking``, ``parent_tool_ref``, ``at_ms`` (UTC, milliseconds) and ``text``; or it says with ``settled`` that
    what became of the message ``message_ref``, or without one of all before it, is in so many bytes of the journal, or
    nowhere. The first line of a file is one of the latter and names the ``attempt`` that writes.
    """

    __slots__ = (
        "_attempt", "_count", "_drafts", "_earliest", "_file", "_is_full", "_path", "_settled", "_size_bytes", "_waits",
    )  # fmt: skip

    def __init__(self, path: str, attempt: int = 0) -> None:
        """Note where the file goes; it comes with the first piece."""
        self._path = path
        self._attempt = attempt
        self._file = -1
        self._size_bytes = 0
        self._count = 0
        self._settled = 0
        self._drafts: dict[str, _Draft] = {}
        """Messages of this turn, by their names."""
        self._waits = False
        self._is_full = False
        """Whether there were too many of them: of a message that is unknown it is not known where it begins."""
        self._earliest = float("-inf")

    @property
    def next_write(self) -> float:
        """When the next batch is due, on the monotonic clock."""
        return self._earliest if self._waits else float("inf")

    def add(self, event: Event) -> str:
        """Take a piece of a message, an event of the kind ``delta``; return what can be shown now."""
        ref, piece = str(event.get("message_ref")), str(event.get("text") or "")
        if not piece:
            return ""
        draft = self._drafts.get(ref)
        if draft is None:
            self._make_room()
            if self._is_full:
                return ""
            draft = self._drafts[ref] = _Draft(event)
        if draft.is_whole:
            return ""
        text = draft.mask.feed(piece)
        kept = text[: MAX_CHARACTERS - draft.size]
        if kept and not draft.is_lost:
            draft.size += len(kept)
            draft.pieces.append(kept)
            self._waits = True
        return text

    def write(self, now: float) -> None:
        """Write the batch that is due, if there is one."""
        if now < self.next_write:
            return
        self._waits = False
        self._earliest = now + INTERVAL_S
        for ref, draft in self._drafts.items():
            text = "".join(draft.pieces)
            draft.pieces.clear()
            for start in range(0, len(text), _MAX_LINE_CHARACTERS):
                self._append_piece(ref, draft, text[start : start + _MAX_LINE_CHARACTERS])

    def settle(self, journal_bytes: int, message_ref: str | None = None) -> list[Event]:
        """Say that what became of the message is in the journal up to there; without one, of all of them.

        Return what was held back, as pieces.
        """
        self._settled = journal_bytes
        if message_ref is None:
            rests = [rest for draft in self._drafts.values() for rest in self._end(draft)]
            if self._file >= 0:
                self._append({"settled": journal_bytes})
            self._drafts.clear()
            self._waits = self._is_full = False
            return rests
        draft = self._drafts.get(message_ref)
        if draft is None:
            return []
        rests = self._end(draft)
        if self._file >= 0 and draft.is_begun:
            self._append({"message_ref": mask_text(message_ref), "settled": journal_bytes})
        return rests

    def remove(self) -> None:
        """Remove the file: nothing is written any more."""
        self._close()
        try:
            os.unlink(self._path)
        except OSError:
            pass

    def _end(self, draft: _Draft) -> list[Event]:
        rest = draft.mask.flush()
        draft.is_whole = True
        draft.pieces.clear()
        return [{**draft.event, "text": rest}] if rest else []

    def _make_room(self) -> None:
        if len(self._drafts) >= _MAX_DRAFTS:
            oldest = next((ref for ref, draft in self._drafts.items() if draft.is_whole), None)
            if oldest is None:
                self._is_full = True
            else:
                del self._drafts[oldest]

    def _append_piece(self, ref: str, draft: _Draft, text: str) -> None:
        is_open = any(other.is_begun and not (other.is_whole or other.is_lost) for other in self._drafts.values())
        if self._size_bytes > (_MAX_FILE_BYTES if is_open else _FULL_FILE_BYTES):
            self._close()
            self._lose()
        if draft.is_lost:
            return
        draft.is_begun = True
        parent = draft.event.get("parent_tool_ref")
        self._append(
            {
                "message_ref": mask_text(ref),
                "is_thinking": bool(draft.event.get("is_thinking")),
                "parent_tool_ref": mask_text(parent) if isinstance(parent, str) else None,
                "at_ms": time.time_ns() // 1_000_000,
                "text": text,
            }
        )

    def _append(self, document: dict[str, object]) -> None:
        try:
            if self._file < 0:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
                self._file = os.open(self._path, flags, 0o600)
                self._write_line({"settled": self._settled, "attempt": self._attempt})
            self._write_line(document)
        except OSError:
            self.remove()
            self._lose()

    def _write_line(self, document: dict[str, object]) -> None:
        self._count += 1
        line = documents.encode({"n": self._count, **document}).encode() + b"\n"
        if os.write(self._file, line) < len(line):
            raise OSError
        self._size_bytes += len(line)

    def _lose(self) -> None:
        for draft in self._drafts.values():
            draft.is_lost |= draft.is_begun

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1
        self._size_bytes = 0
