"""Everything that the checks look at, gathered from files: rows, journals, ledgers, samples and what chaos did."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from benchmarks.chaos.ledger import read_ledgers
from benchmarks.chaos.stop_times import read_stop_times

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.chaos.actions import Actions
    from benchmarks.chaos.ledger import ProcessLedger
    from benchmarks.chaos.stop_times import StopTime

_COMMANDS: Final = (
    "SELECT type || ' of ' || cause AS what, count(*) FROM execution_commands WHERE cause IS NOT NULL GROUP BY what"
)
_REQUESTS: Final = (
    "SELECT status || CASE WHEN rule_id IS NULL THEN '' ELSE ' by a rule' END AS what, count(*) FROM approvals "
    "GROUP BY what"
)

_FINISHED_LATE: Final = """
SELECT what, count(*) FROM (
    SELECT CASE WHEN event_type = 'merge_broken_off' THEN 'merges taken back'
        WHEN json_extract(payload, '$.cause') LIKE 'finished after%' THEN 'merges finished'
        WHEN json_extract(payload, '$.is_late') THEN 'undos finished' END AS what
    FROM task_events WHERE event_type IN ('merge_broken_off', 'branch_merged', 'merge_undone', 'changes_undone')
) WHERE what IS NOT NULL GROUP BY what
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a chaos run keeps its things; only ``home`` is agentmon's."""

    home: Path
    ledgers: Path
    samples: Path

    @property
    def stop_times(self) -> Path:
        """What was seen of commands on their way."""
        return self.samples.with_name("stops.jsonl")

    @property
    def project(self) -> Path:
        """The folder in which all works, a repository."""
        return self.home.with_name("project")

    @property
    def repository_facts(self) -> Path:
        """What must not change in the repository."""
        return self.samples.with_name("repository.json")

    @property
    def trunk(self) -> Path:
        """The repository into which branches of tasks are merged."""
        return self.home.with_name("trunk")

    @property
    def trunk_facts(self) -> Path:
        """What must not change in that one."""
        return self.samples.with_name("trunk.json")

    @property
    def clock_offset(self) -> Path:
        """How far ahead the clock of some workers is."""
        return self.samples.with_name("clock")

    @property
    def database(self) -> Path:
        """The database file."""
        return self.home / "agentmon.db"

    @property
    def executions_dir(self) -> Path:
        """The folders of the executions."""
        return self.home / "executions"

    @property
    def worker_log(self) -> Path:
        """What workers said."""
        return self.home / "logs" / "worker.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One execution as the database has it."""

    id: str
    task_id: str
    task_number: int
    agent_slug: str
    status: str
    exit_code: int | None
    error: str
    retry_count: int
    max_retries: int
    log_byte_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One line of the audit trail that names an execution."""

    execution_id: str
    event_type: str
    retry_count: int | None
    reason: str | None = None

    @property
    def is_put_back(self) -> bool:
        """Whether its run could not be started, so that the same try begins again."""
        return (self.event_type, self.reason) == ("execution_parked", "not_started")


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """What one try of an execution left in its folder."""

    number: int
    """From 1."""
    is_last: bool
    """Whether the row tells of it."""
    output: bytes | None
    """None: there is no log."""
    entries: tuple[dict[str, object], ...]
    """The journal, line by line; a damaged line is ``{"type": "damaged"}``."""

    def find(self, entry_type: str) -> dict[str, object] | None:
        """Return the first entry of the type."""
        return next((entry for entry in self.entries if entry.get("type") == entry_type), None)

    @property
    def host_pid(self) -> int | None:
        """The pid of its host, as that said."""
        entry = self.find("host_started")
        pid = None if entry is None else entry.get("pid")
        return pid if isinstance(pid, int) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What lived at one moment, by execution, or what became known at it."""

    at: float
    marked: dict[str, frozenset[tuple[int, str]]] = field(default_factory=dict)
    hosts: dict[str, frozenset[tuple[int, str]]] = field(default_factory=dict)
    over: tuple[str, str] | None = None
    """An execution that was over, or finalizing, between this moment and the next samples, with its status."""
    secret: str = ""
    """A command line that held the secret."""

    @property
    def is_of_processes(self) -> bool:
        """Whether it says what lived."""
        return self.over is None and not self.secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All of it; nothing in here was computed by agentmon's code."""

    place: Place
    rows: tuple[Row, ...]
    tries: dict[str, tuple[Try, ...]]
    """By execution, oldest first."""
    events: dict[str, tuple[tuple[str, int], ...]]
    """By execution: the entry and its time in milliseconds, in the order of the table."""
    audit: dict[str, tuple[AuditEntry, ...]]
    depends_on: dict[str, tuple[str, ...]]
    """By task id: the ids of the tasks that it waits for."""
    ledgers: dict[str, tuple[ProcessLedger, ...]]
    samples: tuple[Sample, ...]
    sample_count: int
    longest_gap_s: float
    commands: dict[str, int]
    """How many there are of each type and cause."""
    requests: dict[str, int]
    """How many there are of each status and, when a rule decided them, of that."""
    finished_late: dict[str, int]
    """What a kill had broken off, and the trail says so."""
    integrity: str
    """What PRAGMA integrity_check says."""
    actions: Actions
    stop_times: tuple[StopTime, ...]
    running_limit: int
    agent_limits: dict[str, int]
    """By slug; agents that are not named have none."""
    secret: str
    remaining: dict[str, frozenset[int]]
    """Living processes at the very end: marked ones and hosts, by execution."""


def gather(
    place: Place,
    actions: Actions,
    *,
    running_limit: int,
    agent_limits: dict[str, int],
    secret: str,
    remaining: dict[str, frozenset[int]],
) -> Evidence:
    """Read all there is; the home has to be at rest."""
    with closing(sqlite3.connect(place.database, timeout=10)) as connection:
        rows = _rows(connection)
        events = _events(connection)
        audit = _audit(connection)
        depends_on: dict[str, tuple[str, ...]] = {}
        for task_id, on in connection.execute("SELECT task_id, depends_on_task_id FROM task_dependencies"):
            depends_on[task_id] = (*depends_on.get(task_id, ()), on)
        commands = dict(connection.execute(_COMMANDS).fetchall())
        requests = dict(connection.execute(_REQUESTS).fetchall())
        finished_late = dict(connection.execute(_FINISHED_LATE).fetchall())
        integrity = _integrity(connection)
    ledgers: dict[str, tuple[ProcessLedger, ...]] = {}
    for ledger in read_ledgers(place.ledgers):
        ledgers[ledger.execution_id] = (*ledgers.get(ledger.execution_id, ()), ledger)
    samples, count, gap_s = _samples(place.samples)
    return Evidence(
        place=place,
        rows=rows,
        tries={row.id: _tries(place.executions_dir / row.id, row.retry_count) for row in rows},
        events=events,
        audit=audit,
        depends_on=depends_on,
        ledgers=ledgers,
        samples=samples,
        sample_count=count,
        longest_gap_s=gap_s,
        commands=commands,
        requests=requests,
        finished_late=finished_late,
        integrity=integrity,
        actions=actions,
        stop_times=read_stop_times(place.stop_times),
        running_limit=running_limit,
        agent_limits=agent_limits,
        secret=secret,
        remaining=remaining,
    )


def _integrity(connection: sqlite3.Connection) -> str:
    try:
        return "; ".join(str(line) for (line,) in connection.execute("PRAGMA integrity_check"))
    except sqlite3.DatabaseError as error:
        return str(error)


def _rows(connection: sqlite3.Connection) -> tuple[Row, ...]:
    found = connection.execute(
        "SELECT e.id, e.task_id, t.number AS task_number, a.slug AS agent_slug, e.status, e.exit_code, "
        "coalesce(e.error, '') AS error, e.retry_count, e.max_retries, e.log_byte_size "
        "FROM executions e JOIN tasks t ON t.id = e.task_id JOIN agents a ON a.id = e.agent_id ORDER BY e.id"
    )
    names = [column[0] for column in found.description]
    return tuple(Row(**dict(zip(names, values, strict=True))) for values in found)


def _events(connection: sqlite3.Connection) -> dict[str, tuple[tuple[str, int], ...]]:
    events: dict[str, list[tuple[str, int]]] = {}
    statement = "SELECT execution_id, payload, timestamp_ms FROM events WHERE execution_id IS NOT NULL ORDER BY id"
    for execution_id, payload, at_ms in connection.execute(statement):
        said = json.loads(payload)
        if "operation_id" in said:
            # What a look at the folder found, and no program has told.
            continue
        is_told = "kind" in said and said.get("entry") in {None, "unread_agent_event"}
        entry = f"agent_event {said['kind']}" if is_told else said.get("entry")
        if entry not in {None, "budget_reached"}:
            events.setdefault(execution_id, []).append((entry, at_ms))
    return {execution_id: tuple(found) for execution_id, found in events.items()}


def _audit(connection: sqlite3.Connection) -> dict[str, tuple[AuditEntry, ...]]:
    audit: dict[str, list[AuditEntry]] = {}
    for event_type, payload in connection.execute("SELECT event_type, payload FROM task_events ORDER BY id"):
        particulars = json.loads(payload)
        execution_id = particulars.get("execution_id")
        if execution_id is not None:
            entry = AuditEntry(
                execution_id=execution_id,
                event_type=event_type,
                retry_count=particulars.get("retry_count"),
                reason=particulars.get("reason"),
            )
            audit.setdefault(execution_id, []).append(entry)
    return {execution_id: tuple(entries) for execution_id, entries in audit.items()}


def _tries(folder: Path, retry_count: int) -> tuple[Try, ...]:
    # A retry that never started has not set the files of the try before it aside.
    earlier = sorted(folder.glob("try-*"), key=lambda path: int(path.name.removeprefix("try-").split(".")[0]))
    folders = [*earlier, folder]
    return tuple(
        Try(
            number=number,
            is_last=path == folder and len(earlier) >= retry_count,
            output=(path / "output.log").read_bytes() if (path / "output.log").exists() else None,
            entries=_journal(path / "journal.jsonl"),
        )
        for number, path in enumerate(folders, 1)
    )


def _journal(path: Path) -> tuple[dict[str, object], ...]:
    if not path.exists():
        return ()
    entries = []
    for line in path.read_bytes().split(b"\n")[:-1]:  # a host that was killed leaves the last one unfinished
        try:
            entries.append(json.loads(line))
        except ValueError:
            entries.append({"type": "damaged", "line": line[:200].decode("utf-8", "replace")})
    return tuple(entries)


def _samples(path: Path) -> tuple[tuple[Sample, ...], int, float]:
    samples: list[Sample] = []
    count, gap_s = 0, 0.0
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        match entry["type"]:
            case "live":
                marked, hosts = (
                    {name: frozenset((pid, start) for pid, start in found) for name, found in entry[part].items()}
                    for part in ("marked", "hosts")
                )
                samples.append(Sample(at=entry["at"], marked=marked, hosts=hosts))
            case "over":
                samples.append(Sample(at=entry["at"], over=(entry["execution"], entry["status"])))
            case "secret":
                samples.append(Sample(at=entry["at"], secret=f"pid {entry['pid']}: {entry['command']}"))
            case "count":
                count, gap_s = entry["samples"], entry["longest_gap_s"]
    return tuple(samples), count, gap_s
