"""The promises of ARCHITECTURE.md, "What must hold", each a function from the evidence to what breaks it."""

from __future__ import annotations

import os
import stat
import traceback
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from benchmarks.chaos.commands import command_faults, half_done_faults, worker_faults
from benchmarks.chaos.conversations import approval_faults, comment_faults, replay_faults, row_faults, standing_faults
from benchmarks.chaos.endings import ending_faults, verification_faults
from benchmarks.chaos.merging import merge_faults, trunk_faults
from benchmarks.chaos.outputs import output_faults
from benchmarks.chaos.repository import repository_faults, undo_faults, worktree_faults
from benchmarks.chaos.stop_times import late_stops

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchmarks.chaos.evidence import Evidence


_HASTENED = "execution_hastened"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A promise that was broken."""

    promise: str
    what: str


def check(evidence: Evidence) -> tuple[Violation, ...]:
    """Return every violation, promise by promise; a promise that cannot be checked counts as broken."""
    violations = []
    for promise, find in CHECKS.items():
        try:
            violations += [Violation(promise=promise, what=what) for what in find(evidence)]
        except Exception:  # noqa: BLE001 - what agents wrote must not keep the other promises from being checked
            violations.append(Violation(promise=promise, what=f"it cannot be checked: {traceback.format_exc()}"))
    return tuple(violations)


def _event_faults(evidence: Evidence) -> Iterator[str]:
    for row in evidence.rows:
        for attempt in evidence.tries[row.id]:
            numbers = [entry.get("n") for entry in attempt.entries]
            if numbers != list(range(1, len(numbers) + 1)):
                yield f"{row.id} try {attempt.number}: its journal is numbered {numbers}"
        journaled = tuple(
            (_name_of(entry), entry.get("at_ms", 0))
            for attempt in evidence.tries[row.id]
            for entry in attempt.entries
            if entry.get("type") != "output"
        )
        recorded = evidence.events.get(row.id, ())
        if journaled != recorded:
            yield (
                f"{row.id} ({row.status}): its journals say {[name for name, _ in journaled]}, "
                f"the table events {[name for name, _ in recorded]}"
            )


def _name_of(entry: Mapping[str, object]) -> str:
    event = entry.get("event")
    return f"agent_event {event.get('kind')}" if isinstance(event, dict) else str(entry["type"])


def _double_run_faults(evidence: Evidence) -> Iterator[str]:
    for execution_id, ledgers in evidence.ledgers.items():
        mains = [ledger for ledger in ledgers if ledger.is_main]
        for earlier, later in pairwise(mains):
            if earlier.last_at >= later.started_at:
                yield (
                    f"{execution_id}: pid {earlier.pid} lived until {earlier.last_at:.3f}, "
                    f"pid {later.pid} started at {later.started_at:.3f}"
                )
        newer = {(main.pid, main.born) for main in mains[1:]}
        reported: set[int] = set()
        for sample in evidence.samples:
            alive = sample.marked.get(execution_id, frozenset())
            newest = max((int(born) for pid, born in alive & newer), default=0)
            # Whatever a try starts is younger than its program.
            stale = {pid for pid, born in alive if int(born) < newest}
            if not reported.issuperset(stale):
                reported |= stale
                yield f"{execution_id}: pids {sorted(stale)} of an earlier try lived at {sample.at:.3f}"


def _limit_faults(evidence: Evidence) -> Iterator[str]:
    slugs = {row.id: row.agent_slug for row in evidence.rows}
    started_at: dict[tuple[str, int], float] = {}
    for execution_id, ledgers in evidence.ledgers.items():
        for ledger in ledgers:
            if ledger.is_main:
                started_at[execution_id, ledger.parent_pid] = ledger.started_at
    worst: dict[str, tuple[int, str]] = {}
    for sample in evidence.samples:
        # A host counts from its start on when it starts a program later, and no longer than that program lives.
        starting = {
            execution_id
            for execution_id, hosts in sample.hosts.items()
            if any(started_at.get((execution_id, pid), 0.0) > sample.at for pid, _ in hosts)
        }
        live = sample.marked.keys() | starting
        counts = {"all agents": (len(live), evidence.running_limit)}
        for slug, limit in evidence.agent_limits.items():
            counts[slug] = (sum(slugs.get(execution_id) == slug for execution_id in live), limit)
        for whose, (count, limit) in counts.items():
            if count > limit and count > worst.get(whose, (0, ""))[0]:
                worst[whose] = (count, f"{count} live of {whose} at {sample.at:.3f}, limit {limit}: {sorted(live)}")
    yield from (what for _, what in worst.values())


def _survivor_faults(evidence: Evidence) -> Iterator[str]:
    over: dict[str, tuple[str, float]] = {}
    reported: set[str] = set()
    for sample in evidence.samples:
        if sample.over is not None:
            execution_id, status = sample.over
            over[execution_id] = (status, sample.at)
        for execution_id in (sample.marked.keys() & over.keys()) - reported:
            status, at = over[execution_id]
            # Behind an end that is being settled there may be a verification or a next try: younger processes.
            before = at * os.sysconf("SC_CLK_TCK") if status == "finalizing" else float("inf")
            pids = sorted(pid for pid, born in sample.marked[execution_id] if int(born) < before)
            if pids:
                reported.add(execution_id)
                yield f"{execution_id} was {status} soon after {at:.3f}, and at {sample.at:.3f} pids {pids} of it lived"
    for execution_id, remaining in evidence.remaining.items():
        yield f"{execution_id}: pids {sorted(remaining)} live at the end of all"


def _dependency_faults(evidence: Evidence) -> Iterator[str]:
    rows_of: dict[str, list[str]] = {}
    for row in evidence.rows:
        rows_of.setdefault(row.task_id, []).append(row.id)
    numbers = {row.task_id: row.task_number for row in evidence.rows}
    for task_id, prerequisites in evidence.depends_on.items():
        starts = [
            ledger.started_at
            for execution_id in rows_of.get(task_id, ())
            for ledger in evidence.ledgers.get(execution_id, ())
            if ledger.is_main
        ]
        for prerequisite in prerequisites:
            ends = [
                ledger.last_at
                for execution_id in rows_of.get(prerequisite, ())
                for ledger in evidence.ledgers.get(execution_id, ())
                if ledger.is_main and ledger.exit_code == 0
            ]
            for start in starts:
                if not any(end <= start for end in ends):
                    yield (
                        f"#{numbers[task_id]} started at {start:.3f} before "
                        f"#{numbers.get(prerequisite, prerequisite)} was done"
                    )


def _audit_faults(evidence: Evidence) -> Iterator[str]:
    for row in evidence.rows:
        entries = evidence.audit.get(row.id, ())
        counts = {
            name: sum(entry.event_type == f"execution_{name}" for entry in entries)
            for name in ("queued", "started", "ended", "requeued")
        }
        started = [entry.retry_count for entry in entries if entry.event_type == "execution_started"]
        put_back = sum(entry.is_put_back for entry in entries)
        tries = row.retry_count + 1 + put_back
        is_over = row.status in {"succeeded", "failed", "cancelled", "timed_out"}
        fits = (
            counts["queued"] == 1
            and counts["requeued"] == row.retry_count
            and counts["ended"] == row.retry_count + put_back + is_over
            # One that is cancelled in the queue ends a try that was never started.
            and counts["started"] in ({tries, tries - 1} if row.status in {"cancelled", "queued"} else {tries})
            and [count for count, _ in groupby(started)] == list(range(len(set(started))))
            and len(started) - len(set(started)) <= put_back
        )
        if not fits:
            told = f"{counts}, starts {started}, put back {put_back} times"
            yield f"{row.id} ({row.status}, retry {row.retry_count}): its audit trail has {told}"


def _accepted_faults(evidence: Evidence) -> Iterator[str]:
    for number, accepted in evidence.actions.accepted_runs.items():
        own = [row.id for row in evidence.rows if row.task_number == number]
        # A run that waits for its next try is not queued a second time: it need not wait any longer.
        hastened = [entry for name in own for entry in evidence.audit.get(name, ()) if entry.event_type == _HASTENED]
        found = len(own) + len(hastened)
        if found < accepted:
            yield f"#{number}: clients said {accepted} times that a run was queued, there are {found}"
    yield from evidence.actions.client_words


def _late_faults(evidence: Evidence) -> Iterator[str]:
    yield from late_stops(evidence.stop_times, evidence.actions)


def _integrity_faults(evidence: Evidence) -> Iterator[str]:
    if evidence.integrity != "ok":
        yield f"PRAGMA integrity_check: {evidence.integrity[:500]}"


def _secret_faults(evidence: Evidence) -> Iterator[str]:
    for sample in evidence.samples:
        if sample.secret:
            yield f"a command line at {sample.at:.3f}: {sample.secret}"
    secret = evidence.secret.encode()
    database = evidence.place.database
    paths = [database, *database.parent.glob(f"{database.name}-*"), evidence.place.worker_log]
    for name in ("journal.jsonl", "spec.json", "control.jsonl"):
        paths += evidence.place.executions_dir.rglob(name)
    for path in paths:
        if path.exists() and secret in path.read_bytes():
            yield f"it stands in {path}"
    for path in sorted(evidence.place.home.rglob("*")):
        if "worktrees" in path.relative_to(evidence.place.home).parts[:-1]:
            # These are the person's files, in a folder that nobody else may open.
            continue
        mode = path.lstat().st_mode
        if (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and mode & 0o077:
            yield f"others may use {path}: {stat.filemode(mode)}"


CHECKS: dict[str, Callable[[Evidence], Iterator[str]]] = {
    "no output byte lost": output_faults,
    "no event twice, none lost": _event_faults,
    "no two live processes of one row": _double_run_faults,
    "never more live than the limit": _limit_faults,
    "nothing lives of what is over": _survivor_faults,
    "each row's end is what its program did": ending_faults,
    "a protocol replays to its journal": replay_faults,
    "each conversation has the rows of its journal": row_faults,
    "nothing is left open of what is over": standing_faults,
    "nothing is allowed that nobody allowed": approval_faults,
    "nothing starts before what it waits for": _dependency_faults,
    "the audit trail has each step once": _audit_faults,
    "what a client was told is true": _accepted_faults,
    "each command has a cause and an end": command_faults,
    "no end stays half done": half_done_faults,
    "no stop takes longer than a second": _late_faults,
    "no worker meets an error of its own": worker_faults,
    "no run counts without its pass": verification_faults,
    "a comment is sent once it says so": comment_faults,
    "the repository is as its person left it": repository_faults,
    "a merge leaves local changes alone": trunk_faults,
    "each merge is done or not, as the trail has it": merge_faults,
    "no undo stays half done": undo_faults,
    "a worktree is there whole or is gone": worktree_faults,
    "the database is whole": _integrity_faults,
    "no secret, no open file": _secret_faults,
}
"""By the promise: what finds the violations of it."""
