"""Whether each log has what its program wrote: by the digests in the ledgers, process by process."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from benchmarks.chaos.conversations import TALKING_AGENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.chaos.evidence import Evidence, Row, Try
    from benchmarks.chaos.ledger import ProcessLedger


_FIRST_PROCESS = 1
_MAKING = ("[agentmon]", "setup", "/bin/sh:")
"""Before each line that tells how the worktree of a run was made, and of its set-up."""


def output_faults(evidence: Evidence) -> Iterator[str]:
    """Yield what is lost, doubled or changed in any log, and every program that no try accounts for."""
    for execution_id in evidence.ledgers.keys() - {row.id for row in evidence.rows}:
        yield f"{execution_id}: a program ran, and there is no row"
    for row in evidence.rows:
        ledgers = evidence.ledgers.get(row.id, ())
        accounted: set[int] = set()
        for attempt in evidence.tries[row.id]:
            is_lost = attempt.host_pid in evidence.actions.killed_hosts(row.id)
            # A program that looks who started it after that was killed finds the first process.
            parents = {attempt.host_pid, _FIRST_PROCESS} if is_lost else {attempt.host_pid}
            mains = [ledger for ledger in ledgers if ledger.is_main and ledger.parent_pid in parents]
            if len(mains) > 1:
                yield f"{row.id} try {attempt.number}: its host started {[main.pid for main in mains]}"
            accounted.update(main.pid for main in mains)
            own = [ledger for ledger in ledgers if mains and ledger.main_pid == mains[0].pid]
            for fault in _log_faults(row, attempt, own, is_lost=is_lost):
                yield f"{row.id} try {attempt.number} ({own[0].kind if own else 'no ledger'}, {row.status}): {fault}"
        for ledger in ledgers:
            if ledger.is_main and ledger.pid not in accounted:
                yield f"{row.id}: pid {ledger.pid} ran under host {ledger.parent_pid}, and no journal tells of it"


def _log_faults(row: Row, attempt: Try, ledgers: list[ProcessLedger], *, is_lost: bool) -> Iterator[str]:
    output = attempt.output or b""
    streams = {} if row.agent_slug in TALKING_AGENTS else _streams(output)
    for writer in _MAKING:
        streams.pop(writer, None)
    if any(writer not in {ledger.writer for ledger in ledgers} for writer in streams if writer):
        yield f"the log has lines of {sorted(streams)}, ledgers are of {[ledger.writer for ledger in ledgers]}"
    ended = attempt.find("ended")
    # What the full disk did not take is given up only after a wait, and then said.
    is_given_up = ended is not None and bool(ended.get("left_out_bytes")) and "disk was full" in str(ended.get("error"))
    may_be_torn = len(ledgers) > 1 and any(ledger.exit_code is None for ledger in ledgers)
    for ledger in ledgers:
        stream = streams.get(ledger.writer, b"")
        if not is_lost and not is_given_up:
            yield from _missing(stream, ledger, may_be_torn=may_be_torn)
        yield from _too_much(stream, ledger, may_be_torn=may_be_torn)
    if ended is None:
        return
    left_out = int(str(ended.get("left_out_bytes")))
    # The line in the place of what the cap took is no output.
    marker = f"\n[agentmon: {left_out:,} bytes left out here]\n".encode()
    kept = len(output) - len(marker) * (marker in output)
    if attempt.is_last and row.log_byte_size != kept:
        yield f"the row counts {row.log_byte_size} bytes, the log has {kept}"
    if ended.get("output_bytes") != kept + left_out:
        yield f"the journal counts {ended.get('output_bytes')} bytes, the log has {kept}"


def _missing(stream: bytes, ledger: ProcessLedger, *, may_be_torn: bool) -> Iterator[str]:
    sure = ledger.written
    if may_be_torn and ledger.exit_code is None:
        if stream.count(b"\n") < sure.lines:
            yield f"{ledger.writer} wrote {sure.lines} lines, the log has {stream.count(bytes([10]))}"
    elif len(stream) < sure.bytes:
        yield f"{ledger.writer} wrote {sure.bytes} bytes, the log has {len(stream)}"
    elif sure.bytes and hashlib.sha256(stream[: sure.bytes]).hexdigest() != sure.sha256:
        yield f"the first {sure.bytes} bytes of {ledger.writer} are not those that it wrote"


def _too_much(stream: bytes, ledger: ProcessLedger, *, may_be_torn: bool) -> Iterator[str]:
    most = ledger.announced
    if may_be_torn:
        return
    if len(stream) > most.bytes:
        yield f"{ledger.writer} wrote at most {most.bytes} bytes, the log has {len(stream)}"
    elif most.bytes and len(stream) == most.bytes and hashlib.sha256(stream).hexdigest() != most.sha256:
        yield f"the {most.bytes} bytes of {ledger.writer} are not those that it wrote"


def _streams(output: bytes) -> dict[str, bytes]:
    """Return the log taken apart by the first word of each line."""
    streams: dict[str, list[bytes]] = {}
    for line in output.splitlines(keepends=True):
        writer = line.split(b" ", 1)[0].decode("utf-8", "replace")
        streams.setdefault(writer if line.endswith(b"\n") or b" " in line else "m", []).append(line)
    return {writer: b"".join(lines) for writer, lines in streams.items()}
