"""The sessions to which imported answers belong: those that ran here, else ones made of an agent's own history."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.ids import LOCAL_USER_ID, new_id
from agentmon.domain.sessions import SessionStatus
from agentmon.store.column_types import json_text
from agentmon.store.moments import moment_text, parse_moment
from agentmon.store.told_conversation import in_pieces, moment_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from agentmon.domain.billing import BilledAnswer, HistorySession
    from agentmon.domain.local_days import LocalDays

HISTORY: Final = "history"
"""The origin of a session that no execution made."""
IS_COPY: Final = "is_copy"
"""Key of a session's metadata: no answer that its file told is its own, so that it has no day and counts nowhere."""
AGENT_TITLE: Final = "agent_title"
"""Key of a session's metadata: the title that its agent gave it; one that a person gave is another."""
FORMER_REFS: Final = "former_refs"
"""Key of a session's metadata: the agent's own ids of conversations that went on as this one, in the same screen or by
another try."""
HAS_FORMER_REFS: Final = f"metadata LIKE '%\"{FORMER_REFS}\"%'"
"""The condition of an index, word for word."""
_BEGUN_BEFORE_MS: Final = 2_000
_TOLD_AFTER_MS: Final = 5_000
"""The clock of an answer may be this much outside of the execution that it belongs to."""
_COLUMNS: Final = (
    *("id", "user_id", "agent_id", "title", "workspace", "project", "session_ref", "status", "model"),
    *("started_at", "day_local", "ended_at", "metadata", "created_at", "updated_at"),
)
_INSERT: Final = f"INSERT INTO sessions ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRun:
    """One try of an execution of a conversation."""

    execution_id: str
    begun_ms: int
    ended_ms: int | None
    is_own_screen: bool
    """Whether only the agent's own file tells what is said and done; otherwise its journal does."""


@dataclass(slots=True, kw_only=True)
class Conversation:
    """One session while answers are brought into it."""

    id: str
    session_ref: str
    is_history: bool
    workspace: str = ""
    project: str = ""
    title: str = ""
    model: str = ""
    started_at_ms: int = 0
    ended_at_ms: int = 0
    metadata: dict[str, object] = field(default_factory=dict)
    executions: tuple[ConversationRun, ...] = ()
    """What ran it here, oldest first; each try of an execution by itself."""
    is_new: bool = False
    is_changed: bool = False

    @property
    def is_copy(self) -> bool:
        """Whether nothing that its file told is its own."""
        return IS_COPY in self.metadata

    @property
    def refs(self) -> list[str]:
        """The agent's own ids of it, oldest first."""
        former = self.metadata.get(FORMER_REFS)
        return [ref for ref in (*(former if isinstance(former, list) else ()), self.session_ref) if ref]

    def is_older_than(self, other: Conversation) -> bool:
        """Return whether copied answers that name no owner belong to this one rather than to the other.

        The conversation with the earlier beginning is the older one; of two that begin with the same record it is the
        one that ended earlier, since a copy goes on where the original stopped.
        """
        return (self.started_at_ms, self.ended_at_ms) < (other.started_at_ms, other.ended_at_ms)

    def run_at(self, at_ms: int) -> ConversationRun | None:
        """Return what ran when something was said."""
        for run in reversed(self.executions):
            if run.begun_ms - _BEGUN_BEFORE_MS <= at_ms:
                return run if run.ended_ms is None or at_ms <= run.ended_ms + _TOLD_AFTER_MS else None
        return None

    def execution_at(self, at_ms: int) -> str | None:
        """Return the execution that ran when an answer came."""
        run = self.run_at(at_ms)
        return None if run is None else run.execution_id


class Conversations:
    """The sessions of one agent inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, agent_id: str) -> None:
        self._connection = connection
        self._agent_id = agent_id
        self._by_ref: dict[str, Conversation] = {}
        self._by_id: dict[str, Conversation] = {}

    def load(self, sessions: Sequence[HistorySession], answers: Iterable[BilledAnswer]) -> None:
        """Find the sessions that are named, make those that are missing, and take what is told of them."""
        spans: dict[str, tuple[int, int]] = {}
        for answer in answers:
            span = spans.get(answer.session_ref)
            at_ms = answer.at_ms
            spans[answer.session_ref] = (
                (at_ms, at_ms) if span is None else (min(span[0] or at_ms, at_ms or span[0]), max(span[1], at_ms))
            )
        refs = list(dict.fromkeys([*(one.session_ref for one in sessions), *spans]))
        for piece in in_pieces(refs):
            marks = ", ".join("?" * len(piece))
            self._take_rows(
                f"SELECT * FROM sessions WHERE agent_id = ? AND session_ref IN ({marks}) ORDER BY created_at, id",
                (self._agent_id, *piece),
            )
        self._take_former([ref for ref in refs if ref not in self._by_ref])
        for ref in refs:
            if ref not in self._by_ref:
                self._add(Conversation(id=new_id(), session_ref=ref, is_history=True, is_new=True))
        for told in sessions:
            self._take_facts(self._by_ref[told.session_ref], told)
        for ref, (first_ms, last_ms) in spans.items():
            _widen(self._by_ref[ref], first_ms, last_ms)

    def find(self, session_ref: str) -> Conversation | None:
        """Return the conversation of this id, when there is one; none is made."""
        if session_ref not in self._by_ref:
            self._take_rows(
                "SELECT * FROM sessions WHERE agent_id = ? AND session_ref = ? ORDER BY created_at, id",
                (self._agent_id, session_ref),
            )
            self._take_former([ref for ref in (session_ref,) if ref not in self._by_ref])
        return self._by_ref.get(session_ref)

    def _take_former(self, refs: Sequence[str]) -> None:
        """Find the sessions that had these ids before."""
        if not refs:
            return
        rows = self._connection.execute(
            "SELECT sessions.id, former.value AS ref FROM sessions, "
            f"json_each(sessions.metadata, '$.{FORMER_REFS}') AS former "
            f"WHERE agent_id = ? AND {HAS_FORMER_REFS}",
            (self._agent_id,),
        ).fetchall()
        for row in rows:
            if row["ref"] in refs:
                self._by_ref[row["ref"]] = self.of_id(row["id"])

    def of_ref(self, session_ref: str) -> Conversation:
        """Return the session with the agent's own id; it was named to ``load``."""
        return self._by_ref[session_ref]

    def of_id(self, session_id: str) -> Conversation:
        """Return a session by its id."""
        if session_id not in self._by_id:
            self._take_rows("SELECT * FROM sessions WHERE id = ?", (session_id,))
        return self._by_id[session_id]

    def write(self, at: datetime, days: LocalDays) -> None:
        """Write the sessions that are new or about which something new was told, under the days of their beginning."""
        now = moment_text(at)
        for one in self._by_id.values():
            started = moment_of(one.started_at_ms) if one.started_at_ms else at
            started_at, day = moment_text(started), "" if one.is_copy else days.day_of_moment(started)
            ended_at = moment_text(moment_of(one.ended_at_ms)) if one.ended_at_ms else None
            if one.is_new:
                self._connection.execute(
                    _INSERT,
                    (
                        *(one.id, LOCAL_USER_ID, self._agent_id, one.title or None, one.workspace, one.project),
                        *(one.session_ref, SessionStatus.COMPLETED.value, one.model or None, started_at, day, ended_at),
                        *(json_text({"origin": HISTORY, **one.metadata}), now, now),
                    ),
                )
            elif one.is_changed and one.is_history:
                self._connection.execute(
                    "UPDATE sessions SET title = ?, workspace = ?, project = ?, model = ?, started_at = ?, "
                    "day_local = ?, ended_at = ?, metadata = ?, updated_at = ? WHERE id = ?",
                    (
                        *(one.title or None, one.workspace, one.project, one.model or None, started_at, day, ended_at),
                        *(json_text(one.metadata), now, one.id),
                    ),
                )

    def tell_copies(self, ids: Iterable[str], at: datetime, days: LocalDays) -> None:
        """Mark those conversations of history to which no answer belongs, and count those again to which one does.

        Args:
            ids: Of the conversations that were told answers, or lost some; those with a parent are looked at too.
            at: The present time.
            days: Give the days of those that count.
        """
        forks = (one.id for one in self._by_id.values() if one.metadata.get("parent_ref"))
        for one in map(self.of_id, {*ids, *forks}):
            if not one.is_history:
                continue
            found = self._connection.execute("SELECT 1 FROM session_usage WHERE session_id = ? LIMIT 1", (one.id,))
            if one.is_copy == (found.fetchone() is None):
                continue
            one.metadata = {name: fact for name, fact in one.metadata.items() if name != IS_COPY} | (
                {} if one.is_copy else {IS_COPY: True}
            )
            started = moment_of(one.started_at_ms) if one.started_at_ms else at
            self._connection.execute(
                "UPDATE sessions SET day_local = ?, metadata = ? WHERE id = ?",
                (
                    "" if one.is_copy else days.day_of_moment(started),
                    json_text({"origin": HISTORY, **one.metadata}),
                    one.id,
                ),
            )

    def _take_rows(self, statement: str, parameters: tuple[object, ...]) -> None:
        for row in self._connection.execute(statement, parameters).fetchall():
            metadata = json.loads(row["metadata"])
            one = Conversation(
                id=row["id"],
                session_ref=row["session_ref"] or "",
                is_history=metadata.get("origin") == HISTORY,
                workspace=row["workspace"],
                project=row["project"],
                title=row["title"] or "",
                model=row["model"] or "",
                started_at_ms=_ms_of(row["started_at"]),
                ended_at_ms=0 if row["ended_at"] is None else _ms_of(row["ended_at"]),
                metadata=metadata,
            )
            if not one.is_history:
                one.executions = self._executions(one.id)
            self._add(one)

    def _add(self, one: Conversation) -> None:
        self._by_id.setdefault(one.id, one)
        present = self._by_ref.get(one.session_ref)
        if present is None or (present.is_history and not one.is_history):
            self._by_ref[one.session_ref] = one

    def _executions(self, session_id: str) -> tuple[ConversationRun, ...]:
        rows = self._connection.execute(
            "SELECT id, task_id, attempt, started_at, ended_at, mode FROM executions WHERE session_id = ? "
            "AND (started_at IS NOT NULL OR attempt > 0)",
            (session_id,),
        ).fetchall()
        runs = []
        for row in rows:
            spans = self._earlier_tries(row) if row["attempt"] else []
            if row["started_at"] is not None:
                spans.append((row["started_at"], row["ended_at"]))
            runs += [
                ConversationRun(
                    execution_id=row["id"],
                    begun_ms=_ms_of(begun_at),
                    ended_ms=None if ended_at is None else _ms_of(ended_at),
                    is_own_screen=row["mode"] == ExecutionMode.TMUX.value,
                )
                for begun_at, ended_at in spans
            ]
        return tuple(sorted(runs, key=lambda run: (run.begun_ms, run.execution_id)))

    def _earlier_tries(self, execution: sqlite3.Row) -> list[tuple[str, str | None]]:
        """Return when the tries before the newest one began and ended, as far as the audit trail has it."""
        told = self._connection.execute(
            "SELECT event_type, created_at FROM task_events WHERE task_id = ? AND event_type IN (?, ?) "
            "AND json_extract(payload, '$.execution_id') = ? ORDER BY id",
            (execution["task_id"], TaskEventType.EXECUTION_STARTED, TaskEventType.EXECUTION_ENDED, execution["id"]),
        ).fetchall()
        begun_at = None
        spans: list[tuple[str, str | None]] = []
        for one in told:
            if one["event_type"] == TaskEventType.EXECUTION_STARTED:
                begun_at = one["created_at"]
            elif begun_at is not None:
                spans.append((begun_at, one["created_at"]))
                begun_at = None
        return spans[: execution["attempt"]]

    def _take_facts(self, one: Conversation, told: HistorySession) -> None:
        """Take what was told; of facts that differ the latest counts, but the folder is that of the earliest record.

        A title that a person has given stays.
        """
        if not one.is_history:
            return
        first_ms, last_ms = told.first_at_ms or 0, told.last_at_ms or 0
        is_latest = last_ms >= one.ended_at_ms
        is_named_here = one.title not in {"", one.metadata.get(AGENT_TITLE)}
        is_earliest = not one.started_at_ms or (first_ms != 0 and first_ms < one.started_at_ms)
        facts = {
            "title": told.title if (is_latest or not one.title) and not is_named_here else None,
            "model": told.model if is_latest or not one.model else None,
            "workspace": told.cwd if is_earliest or not one.workspace else None,
            "project": (told.project or told.cwd) if is_earliest or not one.project else None,
        }
        for name, fact in facts.items():
            if fact and fact != getattr(one, name):
                setattr(one, name, fact)
                one.is_changed = True
        more = {
            "parent_ref": told.parent_ref,
            "git_branch": told.git_branch if is_latest else None,
            AGENT_TITLE: facts["title"],
        }
        metadata = {**one.metadata, **{name: fact for name, fact in more.items() if fact}}
        if metadata != one.metadata:
            one.metadata = metadata
            one.is_changed = True
        _widen(one, first_ms, last_ms)


def _widen(one: Conversation, first_ms: int, last_ms: int) -> None:
    if not one.is_history:
        return
    if first_ms and (not one.started_at_ms or first_ms < one.started_at_ms):
        one.started_at_ms = first_ms
        one.is_changed = True
    if last_ms > one.ended_at_ms:
        one.ended_at_ms = last_ms
        one.is_changed = True


def _ms_of(text: str) -> int:
    return round(parse_moment(text).timestamp() * 1000)
