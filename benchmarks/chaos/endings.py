"""Whether the end that the database tells of each row is what its ledger shows and what was done to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from benchmarks.chaos.conversations import TALKING_AGENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.chaos.actions import Window
    from benchmarks.chaos.evidence import Evidence, Row, Try
    from benchmarks.chaos.ledger import ProcessLedger

_BY_SIGNAL = frozenset({129, 137, 143})
"""Exit codes of a program that was hung up on, killed or asked to end."""
_OF_FULL_DISK = (
    "cannot be written",
    "cannot be created",
    "cannot be read",
    "cannot be opened",
    "space",
    "disk",
    "I/O error",
)
_OF_MISSING_TMUX = ("tmux", "host did not start")
_OF_KILLED_GIT = ("git ",)


def ending_faults(evidence: Evidence) -> Iterator[str]:
    """Yield each row that is not over, and each whose end nothing explains."""
    for row in evidence.rows:
        last = evidence.tries[row.id][-1]
        mains = [ledger for ledger in evidence.ledgers.get(row.id, ()) if ledger.is_main]
        own = [main for main in mains if main.parent_pid == last.host_pid]
        is_talking = row.agent_slug in TALKING_AGENTS
        fault = (
            _conversation_fault(evidence, row, last)
            if is_talking
            else _fault(evidence, row, last, own[-1] if own else None)
        )
        if fault:
            yield f"{row.id} (#{row.task_number}): {fault}"
        if len(mains) > row.retry_count + 1:
            yield f"{row.id} (#{row.task_number}): {len(mains)} programs for {row.retry_count + 1} tries"
        yield from (
            f"{row.id} (#{row.task_number}): pid {main.pid} did not get the secret that was passed"
            for main in mains
            if evidence.secret and main.secret_sha256 != _digest(evidence.secret)
        )


def _conversation_fault(evidence: Evidence, row: Row, last: Try) -> str | None:
    """An agent that is spoken to keeps no ledger: its journal is what there is to compare with."""
    ended = last.find("ended")
    outcome = None if ended is None else ended.get("agent_outcome")
    match row.status:
        case "succeeded":
            return None if outcome == "completed" else f"it succeeded, and its last turn was {outcome}"
        case "cancelled":
            return None if _is_cancel_explained(evidence, row) else "nobody asked to cancel it"
        case "failed":
            is_explained = outcome is not None or bool(evidence.actions.killed_hosts(row.id))
            is_explained |= bool(evidence.actions.full_disk) and any(words in row.error for words in _OF_FULL_DISK)
            is_explained |= bool(evidence.actions.without_tmux) and any(
                words in row.error for words in _OF_MISSING_TMUX
            )
            is_explained |= evidence.actions.has_killed_git and any(words in row.error for words in _OF_KILLED_GIT)
            return None if is_explained else f"it failed, and nothing explains it: {row.error!r}"
        case _:
            return f"it is still {row.status}"


def _is_cancel_explained(evidence: Evidence, row: Row) -> bool:
    if row.error.startswith("stopped:"):
        return row.task_number in evidence.actions.budgeted_tasks
    # Whoever denies the request of a budget stops the run.
    return row.task_number in evidence.actions.stopped_tasks | evidence.actions.budgeted_tasks


def _digest(secret: str) -> str:
    import hashlib  # noqa: PLC0415 - only here

    return hashlib.sha256(secret.encode()).hexdigest()


def _fault(evidence: Evidence, row: Row, last: Try, ledger: ProcessLedger | None) -> str | None:
    was_stopped = row.task_number in evidence.actions.stopped_tasks
    match row.status:
        case "succeeded":
            if ledger is None or ledger.exit_code != 0 or row.exit_code != 0:
                return f"it succeeded with {row.exit_code}; its program ended with {_code(ledger)}"
        case "failed":
            return _failure_fault(evidence, row, last, ledger)
        case "cancelled":
            if not was_stopped:
                return "it was cancelled, and nobody asked for that"
            return _forced_fault(row, ledger)
        case "timed_out":
            if ledger is None or not ledger.kind.startswith("overtime"):
                return f"it timed out, and its program is {ledger.kind if ledger else 'unknown'}"
            return _forced_fault(row, ledger)
        case _:
            return f"it is still {row.status}"
    return None


def _failure_fault(evidence: Evidence, row: Row, last: Try, ledger: ProcessLedger | None) -> str | None:
    actions = evidence.actions
    if row.exit_code is not None:
        if ledger is None or ledger.exit_code != row.exit_code:
            return f"it failed with {row.exit_code} ({row.error}); its program ended with {_code(ledger)}"
        if row.retry_count < row.max_retries:
            return f"it failed with {row.exit_code} at try {row.retry_count + 1} of {row.max_retries + 1}"
        return None
    if row.error.startswith("lost:"):
        killed = actions.killed_hosts(row.id)
        if not killed or (last.host_pid is not None and last.host_pid not in killed):
            return f"it was lost ({row.error}), and nobody killed its host {last.host_pid}"
        return None if row.retry_count == row.max_retries else "it was lost and not tried again"
    if ledger is not None:
        return f"it failed without an exit code ({row.error}); its program ended with {_code(ledger)}"
    if actions.full_disk and any(words in row.error for words in _OF_FULL_DISK):
        return None
    if actions.without_tmux and any(words in row.error for words in _OF_MISSING_TMUX):
        return None
    if actions.has_killed_git and any(words in row.error for words in _OF_KILLED_GIT):
        return None
    return f"it failed, and nothing explains it: {row.error!r}"


def _forced_fault(row: Row, ledger: ProcessLedger | None) -> str | None:
    """A program that was ended from outside ends by a signal, unless it came first."""
    if row.exit_code is None or row.exit_code in _BY_SIGNAL:
        return None
    if ledger is None or ledger.exit_code != row.exit_code:
        return f"it is {row.status} with {row.exit_code}; its program ended with {_code(ledger)}"
    return None


def _code(ledger: ProcessLedger | None) -> str:
    if ledger is None:
        return "nothing: it has no ledger"
    return "no end" if ledger.exit_code is None else str(ledger.exit_code)


def verification_faults(evidence: Evidence) -> Iterator[str]:
    """Yield each run that succeeded without the pass that it needs, and each verification without an end."""
    needed = (
        "SELECT e.id, t.number FROM executions e JOIN tasks t ON t.id = e.task_id WHERE e.status = 'succeeded' "
        "AND coalesce(json_extract(t.input_context, '$.verify'), '') <> '' "
        "AND NOT EXISTS (SELECT 1 FROM verifications v WHERE v.execution_id = e.id AND v.status = 'passed')"
    )
    with closing(sqlite3.connect(evidence.place.database, timeout=10)) as connection:
        for execution_id, number in connection.execute(needed):
            yield f"{execution_id} (#{number}) succeeded, and no verification of it has passed"
        for (execution_id,) in connection.execute("SELECT execution_id FROM verifications WHERE status = 'running'"):
            yield f"{execution_id}: its verification has no end"


def windows_text(windows: list[Window]) -> str:
    """Return how long they lasted in all."""
    return f"{sum(window.seconds for window in windows):.1f} s in {len(windows)} windows"
