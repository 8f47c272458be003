"""The writer of ``drafts.jsonl``: the messages that an agent is writing, in small batches, for whoever looks on."""

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
_FULL_FILE_BYTES = 256 * 1024
"""Size from which the next message begins a new file."""
_MAX_OPEN = 64


class _Draft:
    """One message that is being written."""

    __slots__ = ("event", "is_told", "mask", "pieces", "size")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.mask = StreamMask()
        self.pieces: list[str] = []
        """What was not written yet, as it came."""
        self.size = 0
        self.is_told = False


class DraftLog:
    """Appends what came since the last batch, masked. Nobody waits for this file: what cannot be written is left out.

    A line has a number ``n``, which goes on from one file to the next, and is a piece of a message: ``message_ref``,
    ``is_thinking``, ``parent_tool_ref``, ``at_ms`` (UTC, milliseconds) and ``text``; or it says with ``settled`` that
    what became of all before it is in so many bytes of the journal, or nowhere.
    """

    __slots__ = ("_count", "_drafts", "_earliest", "_file", "_is_lost", "_path", "_settled", "_size_bytes", "_waits")

    def __init__(self, path: str) -> None:
        """Note where the file goes; it comes with the first piece."""
        self._path = path
        self._file = -1
        self._size_bytes = 0
        self._count = 0
        self._settled = 0
        self._drafts: dict[str, _Draft] = {}
        self._waits = False
        self._is_lost = False
        """Whether a piece could not be written: what follows it would look like the whole."""
        self._earliest = float("-inf")

    @property
    def next_write(self) -> float:
        """When the next batch is due, on the monotonic clock."""
        return self._earliest if self._waits else float("inf")

    def add(self, event: Event) -> None:
        """Take a piece of a message, an event of the kind ``delta``."""
        if self._is_lost:
            return
        ref = str(event.get("message_ref"))
        draft = self._drafts.get(ref)
        if draft is None:
            if len(self._drafts) >= _MAX_OPEN:
                del self._drafts[next(iter(self._drafts))]
            draft = self._drafts[ref] = _Draft(event)
        text = str(event.get("text") or "")[: MAX_CHARACTERS - draft.size]
        if text:
            draft.size += len(text)
            draft.pieces.append(text)
            self._waits = True

    def write(self, now: float) -> None:
        """Write the batch that is due, if there is one."""
        if now < self.next_write:
            return
        self._waits = False
        self._earliest = now + INTERVAL_S
        for ref, draft in self._drafts.items():
            text = draft.mask.feed("".join(draft.pieces)) if draft.pieces else ""
            draft.pieces.clear()
            if text and not self._is_lost:
                self._append_piece(mask_text(ref), draft, text)

    def settle(self, journal_bytes: int) -> None:
        """Say that no message is being written any more: what became of them is in the journal up to there."""
        self._drafts.clear()
        self._waits = self._is_lost = False
        self._settled = journal_bytes
        if self._file >= 0:
            self._append({"settled": journal_bytes})

    def remove(self) -> None:
        """Remove the file: nothing is written any more."""
        self._close()
        try:
            os.unlink(self._path)
        except OSError:
            pass

    def _append_piece(self, ref: str, draft: _Draft, text: str) -> None:
        if self._file < 0 or (not draft.is_told and self._size_bytes > _FULL_FILE_BYTES):
            self._begin_file()
        draft.is_told = True
        parent = draft.event.get("parent_tool_ref")
        self._append(
            {
                "message_ref": ref,
                "is_thinking": bool(draft.event.get("is_thinking")),
                "parent_tool_ref": mask_text(parent) if isinstance(parent, str) else None,
                "at_ms": time.time_ns() // 1_000_000,
                "text": text,
            }
        )

    def _begin_file(self) -> None:
        self.remove()
        try:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError:
            self._is_lost = True
            return
        self._append({"settled": self._settled})

    def _append(self, document: dict[str, object]) -> None:
        if self._file < 0:
            return
        self._count += 1
        line = documents.encode({"n": self._count, **document}).encode() + b"\n"
        try:
            is_whole = os.write(self._file, line) == len(line)
        except OSError:
            is_whole = False
        if is_whole:
            self._size_bytes += len(line)
        else:
            self._is_lost = True
            self.remove()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1
        self._size_bytes = 0
