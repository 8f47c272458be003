"""The reader's side of the messages that an agent is writing; see ``host.draft_log`` for the form of the file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from agentmon.domain.json_values import read_object, text_in
from agentmon.domain.plain_text import storable
from agentmon.domain.sessions import Draft
from agentmon.runners.execution_folder import open_at_once

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agentmon.domain.ids import ExecutionId

_MAX_READ_BYTES: Final = 8 * 1024 * 1024
"""Most that is read at once; more than a line."""
_MAX_KEPT: Final = 100
"""More messages than are written at one time."""
_MAX_AT_MS: Final = 253_370_764_799_999


@dataclass(slots=True)
class _Pieces:
    """What is known of one message."""

    begun_at: datetime
    is_thinking: bool
    parent_ref: str | None
    text: str = ""
    settled_at: int | None = None
    """Bytes of the journal that have what became of it; None while it is being written."""
    draft: Draft | None = field(default=None, compare=False)


class DraftReader:
    """Reads what was added to the file since it was read last.

    Args:
        path: The file, which may be missing.
        execution_id: Whose messages they are.
        attempt: Which try of it writes.
    """

    def __init__(self, path: Path, *, execution_id: ExecutionId, attempt: int) -> None:
        self._path = path
        self._execution_id = execution_id
        self._attempt = attempt
        self._inode = 0
        self._offset = 0
        self._number = 0
        """That of the last line that was read."""
        self._is_own = False
        """Whether the file is of this try, and not of one whose host was killed."""
        self._messages: dict[str, _Pieces] = {}

    def poll(self) -> bool:
        """Read what is new, and return whether there was anything; cheap when there was not."""
        try:
            stat = os.stat(self._path)  # noqa: PTH116 - asked ten times a second
            if (stat.st_ino, stat.st_size) == (self._inode, self._offset):
                return False
            if stat.st_ino != self._inode or stat.st_size < self._offset:
                self._inode, self._offset = stat.st_ino, 0
            start = self._offset
            added, end = self._read(start)
            if start and added and added[0].get("n") != self._number + 1:
                # Another file, which got the inode of the one before it.
                start = 0
                added, end = self._read(start)
            self._offset = end
        except FileNotFoundError:
            # Nothing more comes of what is unfinished.
            is_news, self._inode, self._offset = self._inode != 0, 0, 0
            self._settle(0)
            return is_news
        except OSError:
            return False
        if not start and added:
            self._is_own = added[0].get("attempt") == self._attempt
        if not self._is_own:
            return False
        known = self._number
        for line in added:
            number = line.get("n")
            if isinstance(number, int) and number > self._number:
                self._number = number
                self._take(line)
        return self._number > known

    def drafts(self, journal_offset: int) -> tuple[Draft, ...]:
        """Return the messages that are ahead of the database, in the order in which they were begun.

        Args:
            journal_offset: Bytes of the journal that were in the database before its messages were read.
        """
        ahead = []
        for ref, pieces in list(self._messages.items()):
            if pieces.settled_at is None or pieces.settled_at > journal_offset:
                ahead.append(self._draft(ref, pieces))
            else:
                del self._messages[ref]
        return tuple(ahead)

    def _read(self, offset: int) -> tuple[list[dict[str, object]], int]:
        """Return the whole lines from the offset on and where they end; one that is no JSON object is empty."""
        with open_at_once(self._path) as file:
            file.seek(offset)
            whole, line_feed, _ = file.read(_MAX_READ_BYTES).rpartition(b"\n")
        lines = [read_object(line) or {} for line in whole.split(b"\n")] if line_feed else []
        return lines, offset + len(whole + line_feed)

    def _draft(self, ref: str, pieces: _Pieces) -> Draft:
        if pieces.draft is None:
            pieces.draft = Draft(
                execution_id=self._execution_id,
                message_ref=ref,
                text=pieces.text,
                is_thinking=pieces.is_thinking,
                parent_ref=pieces.parent_ref,
                begun_at=pieces.begun_at,
            )
        return pieces.draft

    def _take(self, document: Mapping[str, object]) -> None:
        settled, at_ms = document.get("settled"), document.get("at_ms")
        ref, text = text_in(document, "message_ref"), text_in(document, "text")
        name = f"{self._attempt}:{storable(ref)}"
        known = self._messages.get(name)
        if type(settled) is int:
            if not ref:
                self._settle(settled)
            elif known is not None:
                known.settled_at = settled
            return
        if not ref or not text or type(at_ms) is not int or not 0 <= at_ms <= _MAX_AT_MS:
            return
        if known is None:
            if len(self._messages) >= _MAX_KEPT:
                whole = (other for other, pieces in self._messages.items() if pieces.settled_at is not None)
                del self._messages[next(whole, next(iter(self._messages)))]
            known = self._messages[name] = _Pieces(
                datetime.fromtimestamp(at_ms / 1000, UTC),
                document.get("is_thinking") is True,
                text_in(document, "parent_tool_ref") or None,
            )
        known.text += storable(text)
        known.settled_at = known.draft = None

    def _settle(self, journal_bytes: int) -> None:
        for pieces in self._messages.values():
            if pieces.settled_at is None:
                pieces.settled_at = journal_bytes
