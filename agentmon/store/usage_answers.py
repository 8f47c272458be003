"""Answers that a piece of a file tells into rows, merged with what is known of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import itemgetter
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from agentmon.domain.billing import Confidence
from agentmon.domain.ids import new_id
from agentmon.store.moments import moment_text
from agentmon.store.told_conversation import in_pieces
from agentmon.store.usage_conversations import Conversations
from agentmon.store.usage_stand_ins import drop_stand_ins
from agentmon.store.usage_sums import SumChanges
from agentmon.store.usage_totals import COUNTED

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from agentmon.domain.billing import FailedCall, HistorySession
    from agentmon.domain.costs import PricedAnswer
    from agentmon.domain.local_days import LocalDays
    from agentmon.store.usage_conversations import Conversation

_ANSWER: Final = (
    *("id", "key", "session_id", "execution_id", "agent_id", "model", "provider"),
    *("prompt_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens"),
    *("response_tokens", "reasoning_tokens", "success", "cost_nano", "cost_source", "price_version"),
    *("is_provisional", "at_ms", "day_local", "created_at", "project", "is_owner_marked", "web_searches", "speed"),
    *("geo", "is_subagent", "reported_cost_nano", "confidence", "source_file_id", "source_offset"),
)
_NEVER_CHANGED: Final = frozenset({"id", "key", "agent_id", "created_at", "success"})
_CHANGED: Final = tuple(name for name in _ANSWER if name not in _NEVER_CHANGED)
_INSERT: Final = f"INSERT INTO llm_interactions ({', '.join(_ANSWER)}) VALUES ({', '.join('?' * len(_ANSWER))})"
_UPDATE: Final = f"UPDATE llm_interactions SET {', '.join(f'{name} = ?' for name in _CHANGED)} WHERE id = ?"
_INSERT_FAILURE: Final = (
    "INSERT INTO llm_interactions (id, key, session_id, execution_id, agent_id, model, provider, error_message, "
    "error_status, at_ms, day_local, created_at, project, is_subagent, source_file_id, source_offset, "
    "success, cost_nano, cost_source, price_version) "
    f"VALUES ({', '.join('?' * 16)}, 0, 0, 'none', 'failed') ON CONFLICT DO NOTHING"
)
_columns_of_answer: Final = itemgetter(*_ANSWER)
_changed_columns: Final = itemgetter(*_CHANGED)
_counted_tokens: Final = itemgetter(*COUNTED)
_DAY_MS: Final = 86_400_000
_SHORT_REF: Final = 8
"""So much of an id Gemini CLI has in the name of its file."""
_TOLD: Final = (
    *("cost_nano", "cost_source", "price_version", "confidence", "source_file_id", "source_offset"),
    *("prompt_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens"),
    *("response_tokens", "reasoning_tokens", "web_searches", "model", "provider", "speed", "geo", "is_subagent"),
)
"""What belongs to the telling that counts, and stays when another one counts less."""
_NO_LETTERS: Final = re.compile(r"[^A-Za-z0-9]")
"""What Claude Code writes as a dash when it names a folder after the one in which it works."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A file of an agent."""

    path: PurePath
    mtime_ns: int

    def nearness(self, owner: Conversation) -> tuple[int, bool]:
        """Return how sure this is a conversation's own file; larger is surer, and (0, False) is another one's.

        Agents name the file of a conversation, or the folder of its subagents' files, after its id or the first letters
        of that. Of several ids the oldest is that of the original, and of several files the one in the folder that
        Claude Code names after the place of work.
        """
        stem = self.path.name.partition(".")[0]
        for place, ref in enumerate(owner.refs):
            if ref in self.path.name or ref in self.path.parts or stem.endswith(f"-{ref[:_SHORT_REF]}"):
                return len(owner.refs) - place, _NO_LETTERS.sub("-", owner.workspace) in self.path.parts
        return 0, False


class ToldAnswers:
    """The answers of one piece on their way into rows."""

    def __init__(
        self, connection: sqlite3.Connection, agent_slug: str, file_id: str, days: LocalDays, at: datetime
    ) -> None:
        self._connection = connection
        self._agent_id: str = connection.execute("SELECT id FROM agents WHERE slug = ?", (agent_slug,)).fetchone()["id"]
        self._file_id = file_id
        self._days = days
        self._at = at
        self._created_at = moment_text(at)
        self._conversations = Conversations(connection, self._agent_id)
        self._sums = SumChanges()
        self._files: dict[str, _File] = {}

    def write(
        self,
        answers: Sequence[PricedAnswer],
        sessions: Sequence[HistorySession],
        failures: Sequence[FailedCall] = (),
    ) -> None:
        """Write the answers, the sessions to which they belong, all sums that follow, and the calls that failed.

        A failed call makes no session: one whose conversation is not known otherwise is left out.
        """
        self._conversations.load(sessions, [priced.answer for priced in answers])
        self._conversations.write(self._at, self._days)
        present = self._present([priced.answer.key for priced in answers])
        added, changed, touched, claimed = [], [], dict[str, "Conversation"](), set[str]()
        for priced in answers:
            teller = self._conversations.of_ref(priced.answer.session_ref)
            earlier = present.get(priced.answer.key)
            claimed |= {teller.id} if earlier is None else {teller.id, str(earlier["session_id"])}
            row = self._row(priced, teller) if earlier is None else self._merge(earlier, priced, teller)
            if earlier is None:
                added.append(_columns_of_answer(row))
            elif _changed_columns(row) == _changed_columns(earlier):
                continue
            else:
                changed.append((*_changed_columns(row), row["id"]))
                self._sums.take_away(earlier)
            self._sums.add(row)
            if not teller.is_history:
                touched[teller.id] = teller
        self._connection.executemany(_INSERT, added)
        self._connection.executemany(_UPDATE, changed)
        self._connection.executemany(_INSERT_FAILURE, self._failure_rows(failures))
        for one in touched.values():
            drop_stand_ins(self._connection, one.id, self._sums)
        for statement, parameters in self._sums.statements():
            self._connection.executemany(statement, parameters)
        self._conversations.tell_copies(claimed, self._at, self._days)

    def _failure_rows(self, failures: Sequence[FailedCall]) -> list[tuple[object, ...]]:
        rows: list[tuple[object, ...]] = []
        for failure in failures:
            teller = self._conversations.find(failure.session_ref)
            if teller is not None:
                rows.append(
                    (
                        *(new_id(), failure.key, teller.id, teller.execution_at(failure.at_ms), self._agent_id),
                        *(failure.model, failure.provider, failure.error, failure.status, failure.at_ms),
                        *(self._days.day_of(failure.at_ms), self._created_at, teller.workspace),
                        *(int(failure.is_subagent), self._file_id, failure.offset),
                    )
                )
        return rows

    def _present(self, keys: Sequence[str]) -> dict[str, sqlite3.Row]:
        found: dict[str, sqlite3.Row] = {}
        for some in in_pieces(keys):
            marks = ", ".join("?" * len(some))
            rows = self._connection.execute(
                f"SELECT * FROM llm_interactions WHERE agent_id = ? AND key IN ({marks})", (self._agent_id, *some)
            )
            found.update((row["key"], row) for row in rows)
        return found

    def _row(self, priced: PricedAnswer, teller: Conversation) -> dict[str, object]:
        answer = priced.answer
        return {
            "id": new_id(),
            "key": answer.key,
            "session_id": teller.id,
            "execution_id": teller.execution_at(answer.at_ms) if teller.executions else None,
            "agent_id": self._agent_id,
            "model": answer.model,
            "provider": answer.provider,
            "prompt_tokens": answer.prompt_tokens,
            "cache_read_tokens": answer.cache_read_tokens,
            "cache_write_5m_tokens": answer.cache_write_5m_tokens,
            "cache_write_1h_tokens": answer.cache_write_1h_tokens,
            "response_tokens": answer.response_tokens,
            "reasoning_tokens": answer.reasoning_tokens,
            "success": 1,
            "cost_nano": priced.cost_nano,
            "cost_source": priced.cost_source,
            "price_version": priced.price_version,
            "is_provisional": 0,
            "at_ms": answer.at_ms,
            "day_local": self._days.day_of(answer.at_ms),
            "created_at": self._created_at,
            "project": priced.project or teller.workspace,
            "is_owner_marked": int(answer.is_owner_marked),
            "web_searches": answer.web_searches,
            "speed": answer.speed,
            "geo": answer.geo,
            "is_subagent": int(answer.is_subagent),
            "reported_cost_nano": answer.reported_cost_nano,
            "confidence": answer.confidence.value,
            "source_file_id": self._file_id,
            "source_offset": answer.offset,
        }

    def _merge(self, earlier: sqlite3.Row, priced: PricedAnswer, teller: Conversation) -> dict[str, object]:
        row = self._row(priced, teller) | {"id": earlier["id"], "created_at": earlier["created_at"]}
        kept_owner = self._conversations.of_id(earlier["session_id"])
        is_told_again = earlier["source_file_id"] is not None
        is_taken = kept_owner.id != teller.id and (
            priced.answer.is_owner_marked > bool(earlier["is_owner_marked"])
            or (
                priced.answer.is_owner_marked == bool(earlier["is_owner_marked"])
                and (
                    teller.is_older_than(kept_owner)
                    or (is_told_again and self._is_rather_original(row, teller, earlier, kept_owner))
                )
            )
        )
        if is_told_again:
            row |= self._merge_tellings(earlier, row, teller if is_taken else kept_owner)
        if not is_taken:
            row["session_id"] = kept_owner.id
            row["execution_id"] = earlier["execution_id"] or kept_owner.execution_at(int(str(row["at_ms"])))
            if is_told_again:
                is_same = kept_owner.id == teller.id
                row["is_owner_marked"] = earlier["is_owner_marked"] or int(is_same and priced.answer.is_owner_marked)
                row["project"] = earlier["project"] or priced.project or teller.workspace
        return row

    def _is_rather_original(
        self, row: Mapping[str, object], teller: Conversation, earlier: sqlite3.Row, kept_owner: Conversation
    ) -> bool:
        """Return whether an answer of two conversations that began and ended alike is rather the teller's.

        It is that of the one which has a file of its own, else of the one whose file was left alone first.
        """
        if kept_owner.is_older_than(teller):
            return False
        ours, theirs = self._file(row["source_file_id"]), self._file(earlier["source_file_id"])
        return (-ours.nearness(teller)[0], ours.mtime_ns, teller.session_ref) < (
            *(-theirs.nearness(kept_owner)[0], theirs.mtime_ns),
            kept_owner.session_ref,
        )

    def _file(self, file_id: object) -> _File:
        name = str(file_id)
        if name not in self._files:
            statement = "SELECT path, mtime_ns FROM usage_files WHERE id = ?"
            found = self._connection.execute(statement, (name,)).fetchone()
            path, mtime_ns = ("", 0) if found is None else found
            self._files[name] = _File(path=PurePath(path), mtime_ns=mtime_ns)
        return self._files[name]

    def _rank(self, row: Mapping[str, object] | sqlite3.Row, owner: Conversation) -> tuple[object, ...]:
        """Return how much a telling of the owner's answer counts; larger is more.

        First comes a whole one, then one of the owner's own file, then one of itself rather than of its subagent; of
        copies alone the larger one.
        """
        file = self._file(row["source_file_id"])
        is_whole = row["confidence"] != Confidence.INCOMPLETE
        return is_whole, file.nearness(owner), not row["is_subagent"], _size(row), _counted_tokens(row), str(file.path)

    def _merge_tellings(
        self, earlier: sqlite3.Row, row: Mapping[str, object], owner: Conversation
    ) -> dict[str, object]:
        """Return the columns that an earlier telling of a file decides; see ``_rank`` for which one counts."""
        is_same_file = earlier["source_file_id"] == self._file_id
        is_read_again = is_same_file and int(str(row["source_offset"])) <= earlier["source_offset"]
        times = [int(str(at_ms)) for at_ms in (earlier["at_ms"], row["at_ms"]) if at_ms]
        at_ms = min(times, default=0)
        columns: dict[str, object] = {"at_ms": at_ms, "day_local": self._days.day_of(at_ms)}
        if not is_read_again and self._rank(row, owner) < self._rank(earlier, owner):
            columns |= {name: earlier[name] for name in _TOLD}
        told_ms = int(str(earlier["at_ms"] if columns.keys() & _TOLD else row["at_ms"]))
        if told_ms // _DAY_MS != at_ms // _DAY_MS:
            # It was priced for the time of a copy: whoever prices what nobody looked up yet does so for its own time.
            columns["price_version"] = ""
        if earlier["reported_cost_nano"] is not None and (columns.keys() & _TOLD or row["reported_cost_nano"] is None):
            columns["reported_cost_nano"] = earlier["reported_cost_nano"]
        return columns


def _size(row: Mapping[str, object] | sqlite3.Row) -> tuple[int, int, int]:
    """Return by what tellings of one answer are compared, as ``agentmon.domain.billing.merge_answers`` does."""
    tokens: int = sum(_counted_tokens(row))
    return int(str(row["response_tokens"])), tokens, int(str(row["web_searches"]))
