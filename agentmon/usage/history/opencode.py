"""Messages and tool calls out of a database of opencode (1.2 to 1.18.33); see ``agentmon.usage.opencode_database``.

A message has its role and how it failed, its parts have the words and the calls. A part is written when it begins and
again when it has ended. What a fork copied is told by its original.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from agentmon.domain.history import MAX_PLACE, HistoryMessage, HistoryOperation
from agentmon.domain.json_values import one_line
from agentmon.domain.letters import cut
from agentmon.domain.operations import MessageRole, OperationStatus, OperationType
from agentmon.domain.tool_kinds import MAX_TARGET_CHARACTERS, command_of, kind_type, named_target
from agentmon.usage.fields import milliseconds_in, object_in, parse_record, ref_in, text_in
from agentmon.usage.history.reading import (
    HistoryReading,
    Told,
    difference,
    difference_of_new,
    message_text,
    summary,
)
from agentmon.usage.opencode import created_ms, has_ended, is_answer
from agentmon.usage.opencode_database import MAX_MESSAGE_CHARACTERS, OpencodeTables, text_of
from agentmon.usage.reading import ReadingProblem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.usage.history.reading import Differences

_KINDS: Final = {
    "read": "read",
    "list": "search",
    "glob": "search",
    "grep": "search",
    "websearch": "search",
    "codesearch": "search",
    "webfetch": "fetch",
    "edit": "edit",
    "multiedit": "edit",
    "write": "edit",
    "patch": "edit",
    "apply_patch": "edit",
    "todowrite": "think",
    "todoread": "think",
    "skill": "think",
    "question": "think",
    "task": "think",
}
"""Kinds of opencode's own tools, which it tells over the protocol and not in its database."""
_DENIED: Final = ("rejected permission", "specified a rule", "user dismissed", "QuestionRejectedError")
"""By these words its own screen tells a call that was not allowed from one that failed."""
_ABORTED: Final = "Tool execution aborted"
_PART_ID: Final = re.compile(r"prt_[0-9a-f]{9}([0-9a-f]{3})")
_MAX_TEXT: Final = 1_048_576
_Reading = tuple[HistoryReading, tuple[int, str] | None, int]
_WHOLE_BODY: Final = f"CASE WHEN length(data) <= {MAX_MESSAGE_CHARACTERS} THEN data END"


class _Row(NamedTuple):
    """One row, as far as the conversation is about it."""

    number: int
    key: str
    """By which the message is known."""
    session_ref: str
    parent_ref: str | None
    at_ms: int
    place: int


class OpencodeHistoryTables(OpencodeTables):
    """Reads what was said and done."""

    parser_version: ClassVar[int] = 1
    tables: ClassVar[tuple[str, ...]] = ("message", "part")

    def about_sessions(self) -> HistoryReading:
        """Return nothing: the answers tell of the sessions."""
        return HistoryReading()

    def reading(self, table: str, where: str, parameters: list[int]) -> _Reading:
        """Return what the rows tell; see ``OpencodeTables.reading``."""
        told, last, count = Told(), None, 0
        owner = "id" if table == "message" else "message_id"
        rows = self.connection.execute(
            f"SELECT rowid, id, {owner}, session_id, time_created, {_WHOLE_BODY} FROM {table} WHERE {where}", parameters
        )
        for number, row_id, message_id, session_id, created, written in rows:
            count += 1
            last = number, text_of(row_id)
            record = parse_record(written) if isinstance(written, bytes) else None
            if record is None:
                reason = "a damaged row" if written is not None else "a row that is too long"
                told.problems.append(ReadingProblem(offset=number, reason=f"{reason} in the table {table}"))
                continue
            self._take(table, number, text_of(row_id), text_of(message_id), text_of(session_id), created, record, told)
        return told.reading(), last, count

    def _take(
        self,
        table: str,
        number: int,
        row_id: str,
        message_id: str,
        session_id: str,
        created: object,
        record: Mapping[str, object],
        told: Told,
    ) -> None:
        message = record if table == "message" else self._message(message_id)
        if not is_answer(message) and message.get("role") != "user":
            return
        at_ms = milliseconds_in({"at": created}, "at")
        is_whole = has_ended(message) or not is_answer(message) if table == "message" else _is_whole(record, message)
        self.is_read_again(table, number, at_ms, has_ended=is_whole)
        key = self.key_of(message_id, message)
        root = self.root_of(session_id)
        row_id = ref_in({"row": row_id}, "row")
        if not row_id or not ref_in({"key": key}, "key") or not ref_in({"root": root}, "root"):
            return
        if key != message_id:
            # The original is gone: all copies have its time.
            row_id = f"{key}:{self._place_in_message(row_id, message_id)}"
            at_ms = created_ms(message)
        found = _PART_ID.match(row_id)
        row = _Row(
            number=number,
            key=key,
            session_ref=root,
            parent_ref=None if root == session_id else session_id,
            at_ms=at_ms,
            place=int(found[1], 16) if found else 0,
        )
        if table == "message":
            _say_error(record, row, told)
        elif record.get("type") == "tool":
            _call(record, row_id, row, told)
        else:
            _say(record, message, row_id, row, told)

    def _message(self, message_id: str) -> Mapping[str, object]:
        found = self.connection.execute(f"SELECT {_WHOLE_BODY} FROM message WHERE id = ?", (message_id,)).fetchone()
        written = None if found is None else found[0]
        return (parse_record(written) if isinstance(written, bytes) else None) or {"role": "none"}

    def _place_in_message(self, part_id: str, message_id: str) -> int:
        before = "SELECT count(*) FROM part WHERE message_id = ? AND id < ?"
        count: int = self.connection.execute(before, (message_id, part_id)).fetchone()[0]
        return min(count, MAX_PLACE)


def _is_whole(part: Mapping[str, object], message: Mapping[str, object]) -> bool:
    """Return whether nothing of the part changes any more."""
    kind = text_in(part, "type", 40)
    if kind == "tool":
        return text_in(object_in(part, "state"), "status", 40) in {"completed", "error"}
    is_written = kind in {"text", "reasoning"} and is_answer(message)
    return not is_written or milliseconds_in(object_in(part, "time"), "end") > 0


def _say(part: Mapping[str, object], message: Mapping[str, object], ref: str, row: _Row, told: Told) -> None:
    is_thinking = part.get("type") == "reasoning"
    if not is_thinking and part.get("type") != "text":
        return
    is_of_program = part.get("synthetic") is True or part.get("ignored") is True or message.get("summary") is True
    role = MessageRole.ASSISTANT if is_answer(message) else MessageRole.USER
    text = text_in(part, "text", _MAX_TEXT).strip()
    told.say(_said(MessageRole.SYSTEM if is_of_program else role, text, ref, row, is_thinking=is_thinking))


def _say_error(message: Mapping[str, object], row: _Row, told: Told) -> None:
    """Tell why an answer failed or was cut off."""
    error = object_in(message, "error")
    text = text_in(object_in(error, "data"), "message", _MAX_TEXT) or text_in(error, "name", 200)
    at_ms = milliseconds_in(object_in(message, "time"), "completed") or row.at_ms
    if text:
        told.say(_said(MessageRole.SYSTEM, text, row.key, row._replace(at_ms=at_ms, place=MAX_PLACE)))


def _said(role: MessageRole, text: str, ref: str, row: _Row, *, is_thinking: bool = False) -> HistoryMessage:
    return HistoryMessage(
        session_ref=row.session_ref,
        ref=ref,
        role=role,
        text=message_text(text),
        is_thinking=is_thinking,
        parent_ref=row.parent_ref,
        at_ms=row.at_ms,
        place=row.place,
    )


def _call(part: Mapping[str, object], ref: str, row: _Row, told: Told) -> None:
    name, state = text_in(part, "tool", 200), object_in(part, "state")
    if not name:
        return
    given, times = object_in(state, "input"), object_in(state, "time")
    error = text_in(state, "error", _MAX_TEXT)
    ended_ms = milliseconds_in(times, "end")
    status = _status_of(text_in(state, "status", 40), error)
    told.call(
        HistoryOperation(
            session_ref=row.session_ref,
            ref=ref,
            tool_name=name,
            type=OperationType(kind_type(_KINDS.get(name, ""))),
            target=summary(
                cut(command_of(given), MAX_TARGET_CHARACTERS)
                or named_target(given)
                or one_line(text_in(state, "title"), MAX_TARGET_CHARACTERS)
            ),
            input_summary=summary(json.dumps(given, ensure_ascii=False) if given else ""),
            output_summary=summary(text_in(state, "output", _MAX_TEXT) or error),
            status=OperationStatus.CANCELLED if status is None else status,
            error=one_line(error, 500) or None,
            started_at_ms=row.at_ms,
            finished_at_ms=None if status is None else max(row.at_ms, ended_ms),
            duration_ms=None if status is None else max(0, ended_ms - milliseconds_in(times, "start")),
            parent_ref=row.parent_ref,
            answer_key=row.key,
            place=row.place,
            differences=_differences_of(given, object_in(state, "metadata"))
            if status is OperationStatus.SUCCESS
            else (),
        )
    )


def _differences_of(given: Mapping[str, object], told: Mapping[str, object]) -> Differences:
    path = text_in(object_in(told, "filediff"), "file") or text_in(told, "filepath") or text_in(given, "filePath")
    if told.get("exists") is False:
        return difference_of_new(path, text_in(given, "content", _MAX_TEXT))
    return difference(path, text_in(told, "diff", _MAX_TEXT))


def _status_of(status: str, error: str) -> OperationStatus | None:
    """Return how a call ended; None when it has not."""
    if status == "completed":
        return OperationStatus.SUCCESS
    if status != "error":
        return None
    if any(words in error for words in _DENIED):
        return OperationStatus.BLOCKED
    return OperationStatus.CANCELLED if error == _ABORTED else OperationStatus.FAILED
