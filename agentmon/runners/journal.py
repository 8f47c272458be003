"""The reader's side of the host's journal: lines in, typed entries out.

Knows the form of ``journal.jsonl`` and nothing of the host's code; reads nothing else and writes nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.json_values import read_object
from agentmon.runners.execution_folder import open_at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

MAX_READ_BYTES: Final = 1024 * 1024
_MAX_DAMAGED_CHARACTERS: Final = 1000
_LARGEST_INTEGER: Final = 2**63 - 1
_LATEST_AT_MS: Final = 253_370_764_799_999
"""The end of the year 9998: ``datetime`` knows one more, and no zone's clock may be past it."""


class HostOutcome(StrEnum):
    """How the host says that a run ended."""

    EXITED = "exited"
    STOPPED = "stopped"
    TIMED_OUT = "timed_out"
    START_FAILED = "start_failed"
    TERMINATED = "terminated"
    FINISHED = "finished"
    """The agent had done its work, and was ended since it did not end by itself."""


class StopKind(StrEnum):
    """How hard a run was asked to stop."""

    STOP = "stop"
    KILL = "kill"


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """What every entry has."""

    number: int
    """1, 2, 3 … without gaps in one journal."""
    at_ms: int
    """UTC, milliseconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStartedEntry(JournalEntry):
    """The host runs; pid, start time and boot together name its process for good."""

    pid: int
    start_time: str
    boot_id: str
    """Empty where the system does not tell."""
    python: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStartedEntry(JournalEntry):
    """The program runs."""

    pid: int
    argv: tuple[str, ...]
    """At most 200 arguments of at most 1000 characters; ``spec.json`` has them whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFailedEntry(JournalEntry):
    """The program did not start; ``ended`` follows."""

    error: str
    """One line for a person."""
    errno: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputEntry(JournalEntry):
    """How far the output has come, counted from the start."""

    output_bytes: int
    output_lines: int
    """An unfinished last line counts."""
    left_out_bytes: int
    last_line: str
    """The newest line with visible text, without escape sequences, at most 200 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequestedEntry(JournalEntry):
    """The host has read a command to stop."""

    command_id: str
    kind: StopKind


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedEntry(JournalEntry):
    """A terminal shows the run, and may type into it."""

    client: str
    """As tmux calls it."""
    is_read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachedEntry(JournalEntry):
    """A terminal shows it no more."""

    client: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedEntry(JournalEntry):
    """Keys went to the program: from an attached terminal, or by ``send``."""

    keys: int
    pasted: int
    """Characters that were pasted, which are no keys."""
    text: str | None = None
    """Masked; None unless the setting says to keep it."""
    command_id: str | None = None
    """Of the command that sent them; None for keys of a terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PausedEntry(JournalEntry):
    """Every process of the run is halted, and its time limit stands still.

    The pause ends with ``resumed``, ``stop_requested`` or ``exited``. The entry comes again, with the same command,
    when processes that were still running have halted too.
    """

    command_id: str
    pids: tuple[int, ...]
    """Empty when the program had not started yet: it waits for ``resumed``."""
    still_running: tuple[int, ...] = ()
    """Pids that could not be halted, such as those of another user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedEntry(JournalEntry):
    """A command ended the pause, and everything goes on."""

    command_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimitReachedEntry(JournalEntry):
    """The program ran for longer than it may; paused time does not count."""

    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalSentEntry(JournalEntry):
    """Processes of the run were signalled."""

    signal: str
    """``INT``, ``TERM``, ``HUP``, ``QUIT`` or ``KILL``."""
    pids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessNote:
    """A process of the run, for a person."""

    pid: int
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StragglersEntry(JournalEntry):
    """Processes that outlived the program and were therefore ended."""

    processes: tuple[ProcessNote, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CouldNotStopEntry(JournalEntry):
    """Processes that live on although they were killed for 10 s.

    It comes again whenever they are others than before. Once none is left, ``ended`` follows: so a run whose last entry
    is ``ended`` with the outcome ``stopped`` was stopped after all.
    """

    processes: tuple[ProcessNote, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFullEntry(JournalEntry):
    """The disk is full; the program waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageOkEntry(JournalEntry):
    """The disk has space again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutEntry(JournalEntry):
    """So many entries are missing here, since the disk was full; no run and no person depends on what they told."""

    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitedEntry(JournalEntry):
    """The program itself ended, by itself with a code or by a signal."""

    exit_code: int | None
    signal: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedEntry(JournalEntry):
    """The run is over; always the last entry."""

    outcome: HostOutcome
    exit_code: int | None
    """128+N for signal N; ``None`` when the program never ran."""
    output_bytes: int
    output_lines: int
    left_out_bytes: int
    duration_ms: int
    """From the start of the program on, paused time included."""
    error: str | None
    agent_outcome: str | None = None
    """How its agent's last turn ended, in the words of ``TurnOutcome``; None where no agent was spoken to."""
    agent_error: str | None = None
    signal: int | None = None
    """The signal that ended the program; None where it exited by itself, with whatever code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEventEntry(JournalEntry):
    """Something that the agent said or did; ``conversation_entries`` reads it."""

    event: Mapping[str, object]
    """As the adapter made it: ``kind`` and the fields of that kind, not checked yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownEntry(JournalEntry):
    """An entry of a type that this release does not know."""

    entry_type: str
    line: str
    """The whole line as it stands in the journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedEntry:
    """A line that is no entry: not JSON, without number or time, or with a field of the wrong form."""

    offset: int
    """Where the line starts in the file."""
    text: str
    """The line with undecodable bytes replaced, at most 1000 characters."""


Entry = (
    HostStartedEntry
    | AgentStartedEntry
    | StartFailedEntry
    | OutputEntry
    | StopRequestedEntry
    | AttachedEntry
    | DetachedEntry
    | TypedEntry
    | PausedEntry
    | ResumedEntry
    | TimeLimitReachedEntry
    | SignalSentEntry
    | StragglersEntry
    | CouldNotStopEntry
    | StorageFullEntry
    | StorageOkEntry
    | LeftOutEntry
    | ExitedEntry
    | EndedEntry
    | AgentEventEntry
    | UnknownEntry
    | DamagedEntry
)


def read_entries(
    path: Path, offset: int, *, max_bytes: int = MAX_READ_BYTES, max_entries: int | None = None
) -> tuple[list[Entry], int]:
    """Return the entries in complete lines from the offset on, and the offset to read from next time.

    At most ``max_bytes`` and ``max_entries`` are read, so the new offset may lie before the end of the file: call again
    until it stays where it is. A line longer than ``max_bytes`` comes out as damaged pieces. A missing file reads as an
    empty one.

    Raises:
        OSError: The file is there and cannot be read.
    """
    try:
        with open_at_once(path) as file:
            file.seek(offset)
            entries: list[Entry] = []
            left = max_bytes
            while max_entries is None or len(entries) < max_entries:
                line = file.readline(left)
                if not line.endswith(b"\n"):
                    if len(line) == max_bytes:
                        return [_damaged(line, offset)], offset + len(line)
                    break
                entries.append(parse_entry(line[:-1], offset))
                offset += len(line)
                left -= len(line)
    except FileNotFoundError:
        return [], offset
    return entries, offset


def parse_entry(line: bytes, offset: int = 0) -> Entry:
    """Return the entry that the line holds; never raises, since a damaged line is an entry too."""
    try:
        fields = _Fields(read_object(line))
        build = _BUILDERS.get(fields.text("type"))
        if build is None:
            return UnknownEntry(**fields.base(), entry_type=fields.text("type"), line=line.decode())
        return build(fields)
    except ValueError:
        return _damaged(line, offset)


def _damaged(line: bytes, offset: int) -> DamagedEntry:
    text = line[: 4 * _MAX_DAMAGED_CHARACTERS].decode("utf-8", "replace")
    return DamagedEntry(offset=offset, text=text[:_MAX_DAMAGED_CHARACTERS])


class _Fields:
    """A JSON object whose values are asked for by their type.

    Raises (every method):
        ValueError: It is no object, or the value is missing or has another type.
    """

    def __init__(self, document: object) -> None:
        if not isinstance(document, dict):
            raise ValueError("not an object")  # noqa: TRY004 - one error for every damage
        self._document: Mapping[str, object] = document

    def base(self) -> dict[str, int]:
        """Return what every entry has."""
        at_ms = self.integer("at_ms")
        if not 0 <= at_ms <= _LATEST_AT_MS:
            raise ValueError("no time")
        return {"number": self.integer("n"), "at_ms": at_ms}

    def text(self, key: str) -> str:
        """Return a text."""
        value = self._document.get(key)
        if not isinstance(value, str):
            raise ValueError(key)  # noqa: TRY004 - one error for every damage
        return value

    def find_text(self, key: str) -> str | None:
        """Return a text or null."""
        return None if self._document.get(key) is None else self.text(key)

    def integer(self, key: str) -> int:
        """Return a whole number."""
        return _integer(self._document.get(key))

    def find_integer(self, key: str) -> int | None:
        """Return a whole number or null."""
        return None if self._document.get(key) is None else self.integer(key)

    def count(self, key: str) -> int:
        """Return a whole number that is not negative."""
        count = self.integer(key)
        if count < 0:
            raise ValueError(key)
        return count

    def flag(self, key: str) -> bool:
        """Return true or false."""
        value = self._document.get(key)
        if not isinstance(value, bool):
            raise ValueError(key)  # noqa: TRY004 - one error for every damage
        return value

    def number(self, key: str) -> float:
        """Return a number."""
        value = self._document.get(key)
        number = value if isinstance(value, float) else float(_integer(value))
        if not math.isfinite(number):
            raise ValueError(key)
        return number

    def array(self, key: str) -> list[object]:
        """Return a list."""
        value = self._document.get(key)
        if not isinstance(value, list):
            raise ValueError(key)  # noqa: TRY004 - one error for every damage
        return value

    def mapping(self, key: str) -> Mapping[str, object]:
        """Return an object."""
        value = self._document.get(key)
        if not isinstance(value, dict):
            raise ValueError(key)  # noqa: TRY004 - one error for every damage
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        texts = tuple(text for text in self.array(key) if isinstance(text, str))
        if len(texts) != len(self.array(key)):
            raise ValueError(key)
        return texts

    def integers(self, key: str) -> tuple[int, ...]:
        """Return a list of whole numbers."""
        return tuple(_integer(number) for number in self.array(key))

    def find_integers(self, key: str) -> tuple[int, ...]:
        """Return a list of whole numbers, empty for null."""
        return () if self._document.get(key) is None else self.integers(key)

    def processes(self) -> tuple[ProcessNote, ...]:
        """Return the processes that the entry names."""
        notes = [_Fields(note) for note in self.array("processes")]
        return tuple(ProcessNote(pid=note.integer("pid"), command=note.text("command")) for note in notes)


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("not a whole number")  # noqa: TRY004 - one error for every damage
    if abs(value) > _LARGEST_INTEGER:
        raise ValueError("larger than the database can hold")
    return value


def _build_host_started(fields: _Fields) -> Entry:
    return HostStartedEntry(
        **fields.base(),
        pid=fields.integer("pid"),
        start_time=fields.text("start_time"),
        boot_id=fields.text("boot_id"),
        python=fields.text("python"),
    )


def _build_agent_started(fields: _Fields) -> Entry:
    return AgentStartedEntry(**fields.base(), pid=fields.integer("pid"), argv=fields.texts("argv"))


def _build_start_failed(fields: _Fields) -> Entry:
    return StartFailedEntry(**fields.base(), error=fields.text("error"), errno=fields.find_integer("errno"))


def _build_output(fields: _Fields) -> Entry:
    return OutputEntry(
        **fields.base(),
        output_bytes=fields.count("bytes"),
        output_lines=fields.count("lines"),
        left_out_bytes=fields.count("left_out_bytes"),
        last_line=fields.text("last_line"),
    )


def _build_stop_requested(fields: _Fields) -> Entry:
    return StopRequestedEntry(**fields.base(), command_id=fields.text("command_id"), kind=StopKind(fields.text("kind")))


def _build_attached(fields: _Fields) -> Entry:
    return AttachedEntry(**fields.base(), client=fields.text("client"), is_read_only=fields.flag("is_read_only"))


def _build_detached(fields: _Fields) -> Entry:
    return DetachedEntry(**fields.base(), client=fields.text("client"))


def _build_typed(fields: _Fields) -> Entry:
    return TypedEntry(
        **fields.base(),
        keys=fields.count("keys"),
        pasted=fields.count("pasted"),
        text=fields.find_text("text"),
        command_id=fields.find_text("command_id"),
    )


def _build_paused(fields: _Fields) -> Entry:
    return PausedEntry(
        **fields.base(),
        command_id=fields.text("command_id"),
        pids=fields.integers("pids"),
        still_running=fields.find_integers("still_running"),
    )


def _build_resumed(fields: _Fields) -> Entry:
    return ResumedEntry(**fields.base(), command_id=fields.text("command_id"))


def _build_time_limit_reached(fields: _Fields) -> Entry:
    return TimeLimitReachedEntry(**fields.base(), timeout_s=fields.number("timeout_s"))


def _build_signal_sent(fields: _Fields) -> Entry:
    return SignalSentEntry(**fields.base(), signal=fields.text("signal"), pids=fields.integers("pids"))


def _build_stragglers(fields: _Fields) -> Entry:
    return StragglersEntry(**fields.base(), processes=fields.processes())


def _build_could_not_stop(fields: _Fields) -> Entry:
    return CouldNotStopEntry(**fields.base(), processes=fields.processes())


def _build_storage_full(fields: _Fields) -> Entry:
    return StorageFullEntry(**fields.base())


def _build_storage_ok(fields: _Fields) -> Entry:
    return StorageOkEntry(**fields.base())


def _build_left_out(fields: _Fields) -> Entry:
    return LeftOutEntry(**fields.base(), entries=fields.count("entries"))


def _build_exited(fields: _Fields) -> Entry:
    return ExitedEntry(
        **fields.base(), exit_code=fields.find_integer("exit_code"), signal=fields.find_integer("signal")
    )


def _build_ended(fields: _Fields) -> Entry:
    return EndedEntry(
        **fields.base(),
        outcome=HostOutcome(fields.text("outcome")),
        exit_code=fields.find_integer("exit_code"),
        output_bytes=fields.count("output_bytes"),
        output_lines=fields.count("output_lines"),
        left_out_bytes=fields.count("left_out_bytes"),
        duration_ms=fields.count("duration_ms"),
        error=fields.find_text("error"),
        agent_outcome=fields.find_text("agent_outcome"),
        agent_error=fields.find_text("agent_error"),
        signal=fields.find_integer("signal"),
    )


def _build_agent_event(fields: _Fields) -> Entry:
    return AgentEventEntry(**fields.base(), event=fields.mapping("event"))


_BUILDERS: Final[Mapping[str, Callable[[_Fields], Entry]]] = {
    "host_started": _build_host_started,
    "agent_started": _build_agent_started,
    "start_failed": _build_start_failed,
    "output": _build_output,
    "stop_requested": _build_stop_requested,
    "attached": _build_attached,
    "detached": _build_detached,
    "typed": _build_typed,
    "paused": _build_paused,
    "resumed": _build_resumed,
    "time_limit_reached": _build_time_limit_reached,
    "signal_sent": _build_signal_sent,
    "stragglers": _build_stragglers,
    "could_not_stop": _build_could_not_stop,
    "storage_full": _build_storage_full,
    "storage_ok": _build_storage_ok,
    "left_out": _build_left_out,
    "exited": _build_exited,
    "ended": _build_ended,
    "agent_event": _build_agent_event,
}
