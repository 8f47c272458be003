"""Messages and tool calls of history on their way into rows, merged with what is known of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.billing import HistorySession
from agentmon.domain.operations import OperationStatus
from agentmon.store.history_ids import history_id, history_ref
from agentmon.store.moments import moment_text, parse_moment
from agentmon.store.told_conversation import in_pieces, moment_of
from agentmon.store.usage_conversations import HISTORY, Conversations

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from agentmon.domain.history import HistoryMessage, HistoryOperation
    from agentmon.domain.local_days import LocalDays
    from agentmon.store.usage_conversations import Conversation, ConversationRun

    Row = dict[str, object]

_LONGEST_PROMPT: Final = 4_000
_COUNT_CALLS: Final = (
    "UPDATE sessions SET operation_count = counted.calls, updated_at = :at "
    "FROM (SELECT count(*) AS calls FROM operations WHERE session_id = :session_id) AS counted "
    "WHERE id = :session_id AND operation_count <> counted.calls"
)
_TAKE_FIRST_PROMPT: Final = (
    "UPDATE sessions SET initial_prompt = first.prompt, updated_at = :at "
    f"FROM (SELECT coalesce((SELECT substr(content, 1, {_LONGEST_PROMPT}) FROM messages WHERE session_id = :session_id "
    "AND role = 'user' AND NOT is_thinking AND parent_ref IS NULL ORDER BY id LIMIT 1), '') AS prompt) AS first "
    f"WHERE id = :session_id AND json_extract(metadata, '$.origin') = '{HISTORY}' AND initial_prompt <> first.prompt"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """One of the two tables."""

    table: str
    ref: str
    """The column with the name of a part."""
    times: tuple[str, ...]
    """The columns of when it began, the first of which can be compared."""
    told: tuple[str, ...]
    """The columns of what is told of it."""
    is_better: Callable[[Mapping[str, object], Mapping[str, object]], bool]
    """Whether what the first row tells counts rather than what the second one does."""

    @property
    def changed(self) -> tuple[str, ...]:
        return ("id", "session_id", "execution_id", *self.times, *self.told)


_MESSAGES: Final = _Kind(
    table="messages",
    ref="message_ref",
    times=("created_at",),
    told=("role", "content", "is_thinking", "parent_ref"),
    is_better=lambda row, known: len(str(row["content"])) > len(str(known["content"])),
)
_OPERATIONS: Final = _Kind(
    table="operations",
    ref="operation_ref",
    times=("started_at", "created_at", "day_local"),
    told=(
        *("parent_ref", "answer_key", "tool_name", "type", "target", "input_summary", "output_summary", "status"),
        *("error", "finished_at", "duration_ms"),
    ),
    is_better=lambda row, known: known["finished_at"] is None or row["finished_at"] is not None,
)


class HistoryRows:
    """The content of one piece of a file inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, agent_slug: str, days: LocalDays, at: datetime) -> None:
        self._connection = connection
        self._slug = agent_slug
        self._days = days
        self._at = at
        self._now = moment_text(at)
        self._agent_id: str = connection.execute("SELECT id FROM agents WHERE slug = ?", (agent_slug,)).fetchone()["id"]
        self._conversations = Conversations(connection, self._agent_id)
        self._touched: dict[str, None] = {}

    def write(self, messages: Sequence[HistoryMessage], operations: Sequence[HistoryOperation]) -> None:
        """Write what the journal of no execution here tells, in the sessions to which it belongs.

        What an agent said and did in its own screen is told by its file alone, and belongs to the execution as well.
        What is there already keeps its earliest time; of a message the longer text counts, of a call the telling that
        has its end. It belongs to the conversation that its record names as the owner, else to the older one.
        """
        self._load(
            [
                *((one.session_ref, one.begin_ms) for one in messages),
                *((one.session_ref, one.begin_ms) for one in operations),
            ]
        )
        self._conversations.write(self._at, self._days)
        self._write(_MESSAGES, [(one, self._message(one)) for one in messages])
        self._write(_OPERATIONS, [(one, self._operation(one)) for one in operations])
        for session_id in self._touched:
            self._connection.execute(_COUNT_CALLS, {"at": self._now, "session_id": session_id})
            self._connection.execute(_TAKE_FIRST_PROMPT, {"at": self._now, "session_id": session_id})

    def _load(self, told: Sequence[tuple[str, int]]) -> None:
        """Find the sessions, and make those that the import of answers has not made."""
        spans: dict[str, tuple[int, int]] = {}
        for ref, at_ms in told:
            first_ms, last_ms = spans.get(ref, (at_ms, at_ms))
            spans[ref] = (min(first_ms or at_ms, at_ms or first_ms), max(last_ms, at_ms))
        known: set[str] = set()
        for piece in in_pieces(list(spans)):
            marks = ", ".join("?" * len(piece))
            rows = self._connection.execute(
                f"SELECT session_ref FROM sessions WHERE agent_id = ? AND session_ref IN ({marks})",
                (self._agent_id, *piece),
            )
            known.update(row["session_ref"] for row in rows)
        # When a conversation began and ended is told by its answers, by which copies of it are known.
        sessions = [
            HistorySession(session_ref=ref)
            if ref in known
            else HistorySession(session_ref=ref, first_at_ms=first_ms or None, last_at_ms=last_ms or None)
            for ref, (first_ms, last_ms) in spans.items()
        ]
        self._conversations.load(sessions, ())

    def _write(self, kind: _Kind, parts: Sequence[tuple[HistoryMessage | HistoryOperation, Row]]) -> None:
        tellers = {one.id: one for one in (self._conversations.of_ref(part.session_ref) for part, _ in parts)}
        own_screens = [run.execution_id for one in tellers.values() for run in one.executions if run.is_own_screen]
        present = self._present(kind, [row for _, row in parts], own_screens)
        added: list[Row] = []
        changed: list[tuple[object, ...]] = []
        for part, row in parts:
            teller = self._conversations.of_ref(part.session_ref)
            known = present.get(str(row[kind.ref]))
            if known is None:
                run = teller.run_at(part.begin_ms)
                if run is None or run.is_own_screen:
                    added.append(row | {"session_id": teller.id} | _of_run(row, run))
                    self._touched[teller.id] = None
                continue
            merged = self._merge(kind, known, row, teller, is_owner_marked=part.is_owner_marked)
            if any(merged[name] != known[name] for name in kind.changed):
                changed.append((*(merged[name] for name in kind.changed), known["id"]))
                self._touched |= {str(merged["session_id"]): None, known["session_id"]: None}
        if added:
            names = list(added[0])
            self._connection.executemany(
                f"INSERT INTO {kind.table} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})",
                added,
            )
        self._connection.executemany(
            f"UPDATE {kind.table} SET {', '.join(f'{name} = ?' for name in kind.changed)} WHERE id = ?", changed
        )

    def _present(self, kind: _Kind, parts: Sequence[Row], execution_ids: Sequence[str]) -> dict[str, sqlite3.Row]:
        """Return the rows that are there already, by the names of the parts."""
        found: dict[str, sqlite3.Row] = {}
        # A copy of what another own screen said has the same id there.
        places: list[tuple[str, str, tuple[str, ...]]] = [("id", "id IS NOT NULL", ())]
        places += [(kind.ref, "execution_id = ?", (execution_id,)) for execution_id in execution_ids]
        places.append((kind.ref, "execution_id IS NULL", ()))
        for column, condition, values in places:
            for piece in in_pieces([str(row[column]) for row in parts]):
                marks = ", ".join("?" * len(piece))
                rows = self._connection.execute(
                    f"SELECT * FROM {kind.table} WHERE {condition} AND {column} IN ({marks})", (*values, *piece)
                )
                found.update((row[kind.ref], row) for row in rows)
        return found

    def _merge(
        self, kind: _Kind, known: sqlite3.Row, row: Row, teller: Conversation, *, is_owner_marked: bool
    ) -> dict[str, object]:
        merged = {name: known[name] for name in kind.changed}
        if kind.is_better(row, dict(known)):
            merged |= {name: row[name] for name in kind.told}
        if str(row[kind.times[0]]) < known[kind.times[0]]:
            merged |= {name: row[name] for name in ("id", *kind.times)}
        if teller.id != known["session_id"] and (
            is_owner_marked or teller.is_older_than(self._conversations.of_id(known["session_id"]))
        ):
            merged["session_id"] = teller.id
        begin_ms = _milliseconds(str(merged[kind.times[0]]))
        run = self._conversations.of_id(str(merged["session_id"])).run_at(begin_ms)
        if run is None and merged["session_id"] == known["session_id"]:
            # An earlier try of an execution said it, whose time the audit trail has no more.
            return merged
        return merged | _of_run(merged, run)

    def _message(self, message: HistoryMessage) -> Row:
        ref = history_ref(self._slug, message.ref)
        return {
            "id": history_id(f"message {ref}", at_ms=message.at_ms, place=message.place),
            "message_ref": ref,
            "role": message.role.value,
            "content": message.text,
            "is_thinking": int(message.is_thinking),
            "parent_ref": message.parent_ref,
            "created_at": moment_text(moment_of(message.at_ms)),
        }

    def _operation(self, operation: HistoryOperation) -> Row:
        ref = history_ref(self._slug, operation.ref)
        began = moment_of(operation.started_at_ms)
        ended_ms = operation.finished_at_ms
        return {
            "id": history_id(f"operation {ref}", at_ms=operation.started_at_ms, place=operation.place),
            "operation_ref": ref,
            "parent_ref": operation.parent_ref,
            "answer_key": operation.answer_key,
            "tool_name": operation.tool_name,
            "type": operation.type.value,
            "target": operation.target,
            "input_summary": operation.input_summary,
            "output_summary": operation.output_summary,
            "status": operation.status.value,
            "error": operation.error,
            "started_at": moment_text(began),
            "finished_at": None if ended_ms is None else moment_text(moment_of(ended_ms)),
            "duration_ms": operation.duration_ms,
            "created_at": moment_text(began),
            "updated_at": self._now,
            "day_local": self._days.day_of_moment(began),
        }


def _of_run(row: Mapping[str, object], run: ConversationRun | None) -> Row:
    """Return the columns that follow from what ran when the part was said or done."""
    if run is None or not run.is_own_screen:
        return {"execution_id": None}
    columns: Row = {"execution_id": run.execution_id}
    if run.ended_ms is None and row.get("status") == OperationStatus.CANCELLED.value and row["finished_at"] is None:
        # What runs may still end it; the end of the execution cancels it otherwise.
        columns["status"] = OperationStatus.PENDING.value
    return columns


def move_content(connection: sqlite3.Connection, history_id: str, conversation: Conversation, at: datetime) -> None:
    """Give what a session of history holds to the one that turned out to have run here.

    What was said and done while an execution of it ran stays where it is when the journal of the execution tells it.
    """
    for table, time in (("messages", "created_at"), ("operations", "started_at")):
        rows = connection.execute(f"SELECT id, {time} FROM {table} WHERE session_id = ?", (history_id,)).fetchall()
        runs = {row["id"]: conversation.run_at(_milliseconds(row[time])) for row in rows}
        connection.executemany(
            f"UPDATE {table} SET session_id = ?, execution_id = ? WHERE id = ?",
            [
                (conversation.id, None if run is None else run.execution_id, row_id)
                for row_id, run in runs.items()
                if run is None or run.is_own_screen
            ],
        )
    connection.execute(_COUNT_CALLS, {"at": moment_text(at), "session_id": conversation.id})


def _milliseconds(text: str) -> int:
    return round(parse_moment(text).timestamp() * 1000)
