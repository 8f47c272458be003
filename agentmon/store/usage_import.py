"""What files of agents tell into rows: a piece of a file, its cursor and the sums that follow, in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.limit_readings import LimitSource
from agentmon.store.file_import import FileImport
from agentmon.store.history_rows import move_content
from agentmon.store.limit_rows import MOVE_CONTEXT, context_statements, limit_statements
from agentmon.store.moments import moment_text
from agentmon.store.usage_answers import ToldAnswers
from agentmon.store.usage_conversations import FORMER_REFS, HAS_FORMER_REFS, HISTORY, Conversations
from agentmon.store.usage_stand_ins import STAND_IN_SPAN_MS, STAND_INS, drop_stand_ins
from agentmon.store.usage_sums import SumChanges

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import datetime

    from agentmon.domain.billing import FailedCall, HistorySession
    from agentmon.domain.costs import FileCursor, PricedAnswer
    from agentmon.domain.limit_readings import ContextReading, LimitReading

_OF_BOTH: Final = (
    "SELECT history_id, id, agent_id FROM ("
    "SELECT h.id AS history_id, s.id, s.agent_id FROM sessions h "
    "JOIN sessions s ON s.session_ref = h.session_ref AND s.agent_id = h.agent_id AND s.id <> h.id "
    "WHERE json_extract(h.metadata, '$.origin') = :history AND json_extract(s.metadata, '$.origin') IS NOT :history "
    # In this order: the few sessions with former ids first.
    "UNION SELECT h.id, s.id, s.agent_id FROM sessions s "
    f"CROSS JOIN json_each(s.metadata, '$.{FORMER_REFS}') AS former "
    "CROSS JOIN sessions h ON h.session_ref = former.value AND h.agent_id = s.agent_id AND h.id <> s.id "
    f"WHERE s.{HAS_FORMER_REFS} AND json_extract(h.metadata, '$.origin') = :history) GROUP BY history_id"
)
"""Sessions of history with the one that ran here under the same name, or did before."""

_FOLDERS: Final = (
    "SELECT root_path FROM workspaces UNION SELECT workspace FROM sessions UNION SELECT project FROM daily_usage"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePiece:
    """A piece of a file of an agent: what it tells, and the cursor before and after it."""

    before: FileCursor | None
    after: FileCursor
    answers: Sequence[PricedAnswer]
    """Each key once."""
    failures: Sequence[FailedCall] = ()
    sessions: Sequence[HistorySession] = ()
    limits: Sequence[LimitReading] = ()
    contexts: Sequence[ContextReading] = ()


class UsageImport(FileImport):
    """Writes what files tell of answers; every call blocks."""

    files_table = "usage_files"

    def known_folders(self) -> list[str]:
        """Return the folders of workspaces, and those in which agents have worked."""
        with self._translated():
            return [str(row[0]) for row in self._connection.execute(_FOLDERS)]

    def write(self, piece: FilePiece) -> bool:
        """Write one piece with its cursor and its part of the sums, all or nothing.

        Of an answer that is there already the larger telling counts; a file wins over what a conversation here told
        before. See ``agentmon.domain.billing.merge_answers`` and ``Conversation.is_older_than`` for whose it is.

        Returns:
            False when the cursor has moved since ``piece.before``: somebody else has read the file, nothing is written.

        Raises:
            StoreError: Nothing was written; the kinds are those of ``Database.writing``.
        """
        at = self._clock.now()
        with self._transaction() as connection:
            file_id = self._keep_cursor(connection, piece.before, piece.after, at)
            if file_id is None:
                return False
            if piece.answers or piece.sessions or piece.failures:
                told = ToldAnswers(connection, piece.after.agent_slug, file_id, self._days(at), at)
                told.write(piece.answers, piece.sessions, piece.failures)
            _write_limits(connection, piece, at)
        return True

    def adopt_conversations(self) -> int:
        """Give answers of history to the sessions that turned out to have run here; return how many of these there are.

        A file may be read before the agent has told the worker its own id of the conversation.
        """
        with self._translated():
            pairs = self._connection.execute(_OF_BOTH, {"history": HISTORY}).fetchall()
        if pairs:
            at = self._clock.now()
            with self._transaction() as connection:
                pairs = connection.execute(_OF_BOTH, {"history": HISTORY}).fetchall()
                for pair in pairs:
                    _adopt(connection, pair["history_id"], pair["id"], pair["agent_id"], at)
        return len(pairs)

    def drop_stand_ins(self, *, since_ms: int) -> None:
        """Remove rows since then that stood in for what a file had told already when a conversation told it.

        See ``agentmon.store.usage_stand_ins.STAND_IN_SPAN_MS``.
        """
        with self._translated():
            rows = self._connection.execute(
                "SELECT DISTINCT session_id FROM llm_interactions WHERE at_ms >= ? AND is_provisional", (since_ms,)
            ).fetchall()
            dropped = [
                row["session_id"]
                for row in rows
                if self._connection.execute(
                    STAND_INS, (row["session_id"], row["session_id"], STAND_IN_SPAN_MS)
                ).fetchone()
            ]
        if dropped:
            sums = SumChanges()
            with self._transaction() as connection:
                for session_id in dropped:
                    drop_stand_ins(connection, session_id, sums)
                _write_sums(connection, sums)


def _adopt(connection: sqlite3.Connection, history_id: str, session_id: str, agent_id: str, at: datetime) -> None:
    conversations = Conversations(connection, agent_id)
    conversation = conversations.of_id(session_id)
    sums = SumChanges()
    moved = []
    for row in connection.execute("SELECT * FROM llm_interactions WHERE session_id = ?", (history_id,)).fetchall():
        execution_id = row["execution_id"] or conversation.execution_at(row["at_ms"])
        sums.take_away(row)
        sums.add(dict(row) | {"session_id": session_id, "execution_id": execution_id})
        moved.append((session_id, execution_id, row["id"]))
    connection.executemany("UPDATE llm_interactions SET session_id = ?, execution_id = ? WHERE id = ?", moved)
    _write_sums(connection, sums)
    move_content(connection, history_id, conversation, at)
    connection.execute(MOVE_CONTEXT, {"other": history_id, "session_id": session_id})
    connection.execute("DELETE FROM sessions WHERE id = ?", (history_id,))
    connection.execute("UPDATE sessions SET updated_at = ? WHERE id = ?", (moment_text(at), session_id))


def _write_sums(connection: sqlite3.Connection, sums: SumChanges) -> None:
    for statement, parameters in sums.statements():
        connection.executemany(statement, parameters)


def _write_limits(connection: sqlite3.Connection, piece: FilePiece, at: datetime) -> None:
    slug = piece.after.agent_slug
    for statement, parameters in limit_statements(slug, piece.limits, LimitSource.TRANSCRIPT, at):
        connection.execute(statement, parameters)
    for statement, parameters in context_statements(slug, piece.contexts):
        connection.execute(statement, parameters)
