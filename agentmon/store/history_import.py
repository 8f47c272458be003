"""What files of agents tell of conversations into rows: a piece of a file and its cursor, in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.store.file_import import FileImport
from agentmon.store.history_rows import HistoryRows
from agentmon.store.message_index import INDEX_SOME
from agentmon.store.moments import moment_text
from agentmon.store.usage_conversations import AGENT_TITLE, HISTORY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.costs import FileCursor
    from agentmon.domain.history import HistoryMessage, HistoryOperation

_NAMED_OTHERWISE: Final = (
    "SELECT id, session_ref, title FROM sessions WHERE agent_id = (SELECT id FROM agents WHERE slug = ?) "
    "AND json_extract(metadata, '$.origin') = ? "
    f"AND (title IS NULL OR title = json_extract(metadata, '$.{AGENT_TITLE}'))"
)
_NAME: Final = (
    f"UPDATE sessions SET title = ?, metadata = json_set(metadata, '$.{AGENT_TITLE}', ?), updated_at = ? WHERE id = ?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPiece:
    """A piece of a file of an agent: what it tells of conversations, and the cursor before and after it."""

    before: FileCursor | None
    after: FileCursor
    messages: Sequence[HistoryMessage]
    """Each name once."""
    operations: Sequence[HistoryOperation]
    """Each name once."""


class HistoryImport(FileImport):
    """Writes what files tell of conversations; every call blocks."""

    files_table = "history_files"

    def paths_with_answers(self) -> set[str]:
        """Return the files that the import of answers has read to their end."""
        with self._translated():
            rows = self._connection.execute("SELECT path FROM usage_files WHERE mtime_ns <> 0").fetchall()
        return {row["path"] for row in rows}

    def write(self, piece: HistoryPiece) -> bool:
        """Write one piece with its cursor, all or nothing; see ``HistoryRows.write``.

        Returns:
            False when the cursor has moved since ``piece.before``: somebody else has read the file, nothing is written.

        Raises:
            StoreError: Nothing was written; the kinds are those of ``Database.writing``.
        """
        at = self._clock.now()
        with self._transaction() as connection:
            if self._keep_cursor(connection, piece.before, piece.after, at) is None:
                return False
            if piece.messages or piece.operations:
                rows = HistoryRows(connection, piece.after.agent_slug, self._days(at), at)
                rows.write(piece.messages, piece.operations)
                for statement in INDEX_SOME:
                    connection.execute(statement)
        return True

    def name_conversations(self, agent_slug: str, names: Mapping[str, str]) -> None:
        """Give conversations of history the names that the agent has for them, unless a person has named them here.

        Raises:
            StoreError: Nothing was written; the kinds are those of ``Database.writing``.
        """
        now = moment_text(self._clock.now())
        with self._translated():
            rows = self._connection.execute(_NAMED_OTHERWISE, (agent_slug, HISTORY)).fetchall()
        changed = [
            (names[row["session_ref"]], names[row["session_ref"]], now, row["id"])
            for row in rows
            if names.get(row["session_ref"], row["title"]) != row["title"]
        ]
        if changed:
            with self._transaction() as connection:
                connection.executemany(_NAME, changed)
