"""Journal entries into what the database keeps of them."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.events import Event, EventLevel, EventType
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import ExecutionEnding, ExecutionProgress
from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import redact
from agentmon.runners.journal import (
    AgentStartedEntry,
    CouldNotStopEntry,
    DamagedEntry,
    EndedEntry,
    Entry,
    HostOutcome,
    OutputEntry,
    PausedEntry,
    ResumedEntry,
    StartFailedEntry,
    StorageFullEntry,
    StragglersEntry,
    TimeLimitReachedEntry,
    UnknownEntry,
    read_entries,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from agentmon.domain.ids import ExecutionId

LAST_LINE_MAX_CHARACTERS: Final = 200
ERROR_MAX_CHARACTERS: Final = 500
_WARNINGS: Final = (StragglersEntry, TimeLimitReachedEntry, StorageFullEntry)
_ERRORS: Final = (StartFailedEntry, CouldNotStopEntry, DamagedEntry)


def read_stretch(journal: Path, *, execution_id: ExecutionId, offset: int) -> ExecutionProgress | None:
    """Return what the journal says after the offset, or None when it says nothing new.

    The same bytes give the same stretch whenever they are read. A long journal comes in several stretches.

    Raises:
        OSError: The journal is there and cannot be read.
    """
    entries, end = read_entries(journal, offset)
    if end == offset:
        return None
    started = [entry for entry in entries if isinstance(entry, AgentStartedEntry)]
    outputs = [entry for entry in entries if isinstance(entry, OutputEntry)]
    ended = [entry for entry in entries if isinstance(entry, EndedEntry)]
    totals: OutputEntry | EndedEntry | None = ended[-1] if ended else outputs[-1] if outputs else None
    return ExecutionProgress(
        execution_id=execution_id,
        from_offset=offset,
        to_offset=end,
        pid=started[-1].pid if started else None,
        log_byte_size=None if totals is None else max(0, totals.output_bytes - totals.left_out_bytes),
        log_line_count=None if totals is None else totals.output_lines,
        log_updated_at=_moment(outputs[-1].at_ms) if outputs else None,
        last_line=plain_line(redact(outputs[-1].last_line), max_characters=LAST_LINE_MAX_CHARACTERS)
        if outputs
        else None,
        is_paused=_is_paused(entries),
        complaint=_complaint(entries),
        events=tuple(_event(entry, execution_id) for entry in entries if not isinstance(entry, OutputEntry)),
        ending=_ending(ended[-1]) if ended else None,
    )


def _is_paused(entries: Sequence[Entry]) -> bool | None:
    changes = [entry for entry in entries if isinstance(entry, (PausedEntry, ResumedEntry))]
    return isinstance(changes[-1], PausedEntry) if changes else None


def _complaint(entries: Sequence[Entry]) -> str | None:
    stuck = [entry for entry in entries if isinstance(entry, CouldNotStopEntry)]
    if not stuck:
        return None
    named = ", ".join(f"{process.pid} ({process.command})" for process in stuck[-1].processes)
    return plain_line(redact(f"could not stop pid {named}"), max_characters=ERROR_MAX_CHARACTERS)


def _ending(entry: EndedEntry) -> ExecutionEnding:
    status, may_retry, reason = ExecutionStatus.FAILED, True, EndReason(entry.outcome.value)
    match entry.outcome:
        case HostOutcome.EXITED:
            if entry.exit_code == 0:
                status = ExecutionStatus.SUCCEEDED
        case HostOutcome.STOPPED:
            status = ExecutionStatus.CANCELLED
        case HostOutcome.TIMED_OUT:
            status = ExecutionStatus.TIMED_OUT
        case HostOutcome.START_FAILED:
            may_retry = False
        case HostOutcome.TERMINATED:
            pass
    return ExecutionEnding(
        status=status,
        ended_at=_moment(entry.at_ms),
        reason=reason,
        exit_code=entry.exit_code,
        error=None if entry.error is None else plain_line(redact(entry.error), max_characters=ERROR_MAX_CHARACTERS),
        may_retry=may_retry,
        output_data={
            "outcome": entry.outcome.value,
            "output_bytes": entry.output_bytes,
            "output_lines": entry.output_lines,
            "left_out_bytes": entry.left_out_bytes,
            "duration_ms": entry.duration_ms,
        },
    )


def _event(entry: Entry, execution_id: ExecutionId) -> Event:
    if isinstance(entry, DamagedEntry):
        at_ms, entry_type = 0, "damaged"
    else:
        at_ms, entry_type = entry.at_ms, _entry_type(entry)
    level = (
        EventLevel.ERROR if isinstance(entry, _ERRORS) else EventLevel.WARN if isinstance(entry, _WARNINGS) else None
    )
    return Event(
        execution_id=execution_id,
        trace_id=execution_id,
        type=EventType.ERROR if level is EventLevel.ERROR else EventType.STATUS_CHANGE,
        level=level,
        timestamp_ms=at_ms,
        payload={"entry": entry_type} | _payload(entry),
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
