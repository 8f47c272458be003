"""Journal entries into what the database keeps of them."""

from __future__ import annotations

import errno
import json
import re
import signal
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.conversation import TurnOutcome
from agentmon.domain.events import Event, EventLevel, EventType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import ExecutionEnding, ExecutionProgress, TimedNews
from agentmon.domain.ids import made_at_ms
from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import redact
from agentmon.runners.conversation_entries import read_news
from agentmon.runners.journal import (
    MAX_READ_BYTES,
    AgentEventEntry,
    AgentStartedEntry,
    CouldNotStopEntry,
    DamagedEntry,
    EndedEntry,
    Entry,
    HostOutcome,
    LeftOutEntry,
    OutputEntry,
    PausedEntry,
    ResumedEntry,
    StartFailedEntry,
    StorageFullEntry,
    StorageOkEntry,
    StragglersEntry,
    TimeLimitReachedEntry,
    UnknownEntry,
    read_entries,
)
from agentmon.worker.news_cleaning import card_line, clean_news, event_level_of, event_type_of, payload_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from agentmon.domain.ids import ExecutionId

LAST_LINE_MAX_CHARACTERS: Final = 200
ERROR_MAX_CHARACTERS: Final = 500
_WARNINGS: Final = (StragglersEntry, TimeLimitReachedEntry, StorageFullEntry, LeftOutEntry)
_OF_THE_MACHINE: Final = frozenset({errno.EAGAIN, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC})
"""What keeps any program from starting, whatever it is."""
_ERRORS: Final = (StartFailedEntry, CouldNotStopEntry, DamagedEntry)
NO_RESULT: Final = "it ended before its agent had answered"
_UNREAD_CHARACTERS: Final = 1000
"""Most of an agent's event that is kept when it cannot be read."""


def read_stretch(
    journal: Path,
    *,
    execution_id: ExecutionId,
    offset: int,
    mode: ExecutionMode = ExecutionMode.TEMPLATE,
    max_entries: int | None = None,
    may_end: Callable[[], bool] = lambda: True,
) -> ExecutionProgress | None:
    """Return what the journal says after the offset, or None when it says nothing new.

    The same bytes give the same stretch whenever they are read. A long journal comes in several stretches.

    Args:
        journal: The file.
        execution_id: Whose journal it is.
        offset: Bytes of it that are known already.
        mode: How the host speaks to the program. One that is spoken to in a protocol shows on its card what it says
            and does, and its newest line of output only when it failed without a word on that.
        max_entries: Most entries that the stretch has.
        may_end: Asked when the journal says that the run is over; if not, nothing is read from there on.

    Raises:
        OSError: The journal is there and cannot be read.
    """
    entries, end = read_entries(journal, offset, max_entries=max_entries)
    ends_at = next((index for index, entry in enumerate(entries) if isinstance(entry, EndedEntry)), None)
    if ends_at is not None and not may_end():
        entries, end = read_entries(journal, offset, max_entries=ends_at)
    if end == offset:
        return None
    times = _times(entries, journal, execution_id, offset)
    news = {index: _news(entry) for index, entry in enumerate(entries) if isinstance(entry, AgentEventEntry)}
    told = tuple(one for one in news.values() if one is not None)
    started = [entry for entry in entries if isinstance(entry, AgentStartedEntry)]
    outputs = [entry for entry in entries if isinstance(entry, OutputEntry)]
    ended = [entry for entry in entries if isinstance(entry, EndedEntry)]
    totals: OutputEntry | EndedEntry | None = ended[-1] if ended else outputs[-1] if outputs else None
    ending = _ending(ended[-1], mode, entries) if ended else None
    return ExecutionProgress(
        execution_id=execution_id,
        from_offset=offset,
        to_offset=end,
        pid=started[-1].pid if started else None,
        log_byte_size=None if totals is None else max(0, totals.output_bytes - totals.left_out_bytes),
        log_line_count=None if totals is None else totals.output_lines,
        log_updated_at=_moment(outputs[-1].at_ms) if outputs else None,
        last_line=_storage_line(entries, ending) or _last_line(told, outputs, ending, mode),
        is_paused=_is_paused(entries),
        complaint=_complaint(entries),
        events=tuple(
            _event(entry, execution_id, news.get(index), at_ms=times[index])
            for index, entry in enumerate(entries)
            if not isinstance(entry, OutputEntry)
        ),
        news=told,
        ending=ending,
    )


def without_content(stretch: ExecutionProgress, problem: str, *, at_ms: int) -> ExecutionProgress:
    """Return the stretch with an event that names the problem in the place of all that its agent said and did."""
    event = Event(
        execution_id=stretch.execution_id,
        trace_id=stretch.execution_id,
        type=EventType.ERROR,
        level=EventLevel.ERROR,
        timestamp_ms=at_ms,
        payload={"entry": "not_recorded", "problem": problem, "from": stretch.from_offset, "to": stretch.to_offset},
    )
    return ExecutionProgress(
        execution_id=stretch.execution_id,
        from_offset=stretch.from_offset,
        to_offset=stretch.to_offset,
        pid=stretch.pid,
        is_paused=stretch.is_paused,
        journal_problem=problem,
        events=(event,),
        ending=stretch.ending,
    )


def _times(entries: Sequence[Entry], journal: Path, execution_id: ExecutionId, offset: int) -> list[int]:
    """Return when each entry was written; a damaged one has the time of the one before it, or else of the one after.

    A journal of which no entry tells a time begins when its execution was queued.
    """
    told = [None if isinstance(entry, DamagedEntry) else entry.at_ms for entry in entries]
    before: list[Entry] = []
    if told[0] is None:
        start = max(0, offset - MAX_READ_BYTES)
        before = read_entries(journal, start, max_bytes=offset - start)[0]
    known = [entry.at_ms for entry in reversed(before) if not isinstance(entry, DamagedEntry)]
    newest = next(iter([*known, *(one for one in told if one is not None)]), made_at_ms(execution_id))
    times = []
    for one in told:
        newest = newest if one is None else one
        times.append(newest)
    return times


def _news(entry: AgentEventEntry) -> TimedNews | None:
    news = read_news(entry.event)
    return None if news is None else TimedNews(at_ms=entry.at_ms, news=clean_news(news))


def _storage_line(entries: Sequence[Entry], ending: ExecutionEnding | None) -> str | None:
    changes = [entry for entry in entries if isinstance(entry, (StorageFullEntry, StorageOkEntry))]
    if not changes or ending is not None:
        return None
    if isinstance(changes[-1], StorageFullEntry):
        return "the disk is full: it waits until there is space"
    # What it says or prints next is told in its place.
    return "there is space on the disk again" if entries[-1] is changes[-1] else None


def _last_line(
    told: Sequence[TimedNews], outputs: Sequence[OutputEntry], ending: ExecutionEnding | None, mode: ExecutionMode
) -> str | None:
    said = None
    for one in reversed(told):
        said = card_line(one.news, max_characters=LAST_LINE_MAX_CHARACTERS)
        if said is not None:
            break
    # Of a screen that is painted over, the newest bytes are no line.
    is_told_otherwise = said is not None or mode.is_protocol or mode is ExecutionMode.TMUX
    has_failed_silently = ending is not None and ending.status is ExecutionStatus.FAILED and ending.error is None
    if not outputs or (not has_failed_silently and is_told_otherwise):
        return said
    return plain_line(redact(outputs[-1].last_line), max_characters=LAST_LINE_MAX_CHARACTERS)


def _is_paused(entries: Sequence[Entry]) -> bool | None:
    changes = [entry for entry in entries if isinstance(entry, (PausedEntry, ResumedEntry))]
    return isinstance(changes[-1], PausedEntry) if changes else None


def _complaint(entries: Sequence[Entry]) -> str | None:
    stuck = [entry for entry in entries if isinstance(entry, CouldNotStopEntry)]
    if not stuck:
        return None
    named = ", ".join(f"{process.pid} ({process.command})" for process in stuck[-1].processes)
    return plain_line(redact(f"could not stop pid {named}"), max_characters=ERROR_MAX_CHARACTERS)


def _ending(entry: EndedEntry, mode: ExecutionMode, entries: Sequence[Entry]) -> ExecutionEnding:
    status, may_retry, reason = ExecutionStatus.FAILED, True, EndReason(entry.outcome.value)
    error = entry.error
    match entry.outcome:
        case HostOutcome.EXITED | HostOutcome.FINISHED:
            status, may_retry, failure = _agent_ending(entry, mode)
            error = error or failure
        case HostOutcome.STOPPED:
            status = ExecutionStatus.CANCELLED
            error = error or ("killed before it ended by itself" if entry.signal == signal.SIGKILL else None)
        case HostOutcome.TIMED_OUT:
            status = ExecutionStatus.TIMED_OUT
        case HostOutcome.START_FAILED:
            failures = [failure.errno for failure in entries if isinstance(failure, StartFailedEntry)]
            may_retry = any(number in _OF_THE_MACHINE for number in failures)
        case HostOutcome.TERMINATED:
            pass
    return ExecutionEnding(
        status=status,
        ended_at=_moment(entry.at_ms),
        reason=reason,
        exit_code=entry.exit_code,
        error=None if error is None else plain_line(redact(error), max_characters=ERROR_MAX_CHARACTERS),
        may_retry=may_retry,
        output_data={
            "outcome": entry.outcome.value,
            "output_bytes": entry.output_bytes,
            "output_lines": entry.output_lines,
            "left_out_bytes": entry.left_out_bytes,
            "duration_ms": entry.duration_ms,
        }
        | ({} if entry.agent_outcome is None else {"agent_outcome": entry.agent_outcome})
        | ({} if entry.signal is None else {"signal": entry.signal}),
    )


def _agent_ending(entry: EndedEntry, mode: ExecutionMode) -> tuple[ExecutionStatus, bool, str | None]:
    """Return the status of a run that ended by itself or had done its work, whether another try may help, and why.

    What an agent says of its last turn counts for more than its exit code, unless it says that all is well. One that is
    spoken to in a protocol and does not say how its turn went has failed, whatever its exit code.
    """
    is_done = entry.outcome is HostOutcome.FINISHED or entry.exit_code == 0
    failure = entry.agent_error or None
    match entry.agent_outcome:
        case TurnOutcome.COMPLETED:
            return (ExecutionStatus.SUCCEEDED if is_done else ExecutionStatus.FAILED), True, None
        case None if entry.outcome is HostOutcome.EXITED and not mode.is_protocol:
            return (ExecutionStatus.SUCCEEDED if is_done else ExecutionStatus.FAILED), True, None
        case None:
            return ExecutionStatus.FAILED, True, failure or (NO_RESULT if is_done else None)
        case TurnOutcome.LIMIT:
            return ExecutionStatus.FAILED, False, failure or "it reached its limit of turns or money"
        case TurnOutcome.INTERRUPTED:
            return ExecutionStatus.FAILED, False, "interrupted by a person, then it ended"
        case _:
            return ExecutionStatus.FAILED, True, failure or "its agent failed"


def _event(entry: Entry, execution_id: ExecutionId, told: TimedNews | None, *, at_ms: int) -> Event:
    if isinstance(entry, AgentEventEntry):
        return _agent_event(entry, execution_id, told)
    level = (
        EventLevel.ERROR if isinstance(entry, _ERRORS) else EventLevel.WARN if isinstance(entry, _WARNINGS) else None
    )
    return Event(
        execution_id=execution_id,
        trace_id=execution_id,
        type=EventType.ERROR if level is EventLevel.ERROR else EventType.STATUS_CHANGE,
        level=level,
        timestamp_ms=at_ms,
        payload={"entry": _entry_type(entry)} | _payload(entry),
    )


def _agent_event(entry: AgentEventEntry, execution_id: ExecutionId, told: TimedNews | None) -> Event:
    kind = redact(str(entry.event.get("kind", "")))[:_UNREAD_CHARACTERS]
    if told is None:
        event_text = redact(json.dumps(entry.event, ensure_ascii=False))
        return Event(
            execution_id=execution_id,
            trace_id=execution_id,
            type=EventType.LOG,
            level=EventLevel.WARN,
            timestamp_ms=entry.at_ms,
            payload={"entry": "unread_agent_event", "kind": kind, "event": event_text[:_UNREAD_CHARACTERS]},
        )
    return Event(
        execution_id=execution_id,
        trace_id=execution_id,
        type=event_type_of(told.news),
        level=event_level_of(told.news),
        timestamp_ms=entry.at_ms,
        payload=payload_of(kind, told.news),
    )


def _entry_type(entry: Entry) -> str:
    if isinstance(entry, UnknownEntry):
        return entry.entry_type
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(entry).__name__.removesuffix("Entry")).lower()


def _payload(entry: Entry) -> dict[str, object]:
    fields = asdict(entry)
    for name in ("number", "at_ms"):
        fields.pop(name, None)
    return {name: _cleaned(content) for name, content in fields.items()}


def _cleaned(content: object) -> object:
    match content:
        case StrEnum():
            return content.value
        case str():
            return redact(content)
        case dict():
            return {str(name): _cleaned(part) for name, part in content.items()}
        case list() | tuple():
            return [_cleaned(part) for part in content]
        case _:
            return content


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms // 1000, UTC).replace(microsecond=at_ms % 1000 * 1000)
