"""How fast each adapter takes what its agent writes, beside parsing the same lines and doing nothing with them.

And what a long message costs until it is on the screen, while it is written.
"""

from __future__ import annotations

import importlib.util
import json
import tempfile
import time
from pathlib import Path

from agentmon.domain.ids import ExecutionId
from agentmon.runners.drafts import DraftReader
from agentmon.runners.host.draft_log import INTERVAL_S, DraftLog
from agentmon.runners.protocols.registry import ADAPTERS, make_adapter
from agentmon.widgets.text_rows import GrowingRows
from benchmarks.protocol_fuzz import recordings

STREAM_BYTES = 30_000_000
CHUNK_BYTES = 65_536
ROUNDS = 3
GOAL_MB_PER_S = 50
MESSAGE_BYTES = 1_000_000
BATCH_BYTES = 5_000
GOAL_GROWTH = 5
"""How many times as long four times the message takes; 4 is linear."""


def measure() -> list[tuple[str, str, str]]:
    """Return rows of name, what was measured, and the goal; an adapter that is not there has none."""
    return [*(_row(protocol) for protocol, (module, _) in ADAPTERS.items() if _is_there(module)), _draft_row()]


def _is_there(module: str) -> bool:
    return importlib.util.find_spec(f"agentmon.runners.protocols.{module}") is not None


def _row(protocol: str) -> tuple[str, str, str]:
    stream = _long_stream(protocol)
    lines = stream.splitlines()
    parse_s = min(_parse(lines) for _ in range(ROUNDS))
    receive_s = min(_receive(protocol, stream) for _ in range(ROUNDS))
    size_mb = len(stream) / 1_000_000
    return (
        f"{protocol}: {size_mb:.0f} MB of recordings, {len(lines):,} lines",
        f"{size_mb / receive_s:.0f} MB/s, {receive_s / parse_s:.1f} × the time of `json.loads` alone",
        f"≥ {GOAL_MB_PER_S} MB/s",
    )


def _long_stream(protocol: str) -> bytes:
    """Return the recordings again and again, each time with other ids."""
    lines = [line for recorded in recordings(protocol) for line in recorded]
    once = b"\n".join(lines) + b"\n"
    rounds: list[bytes] = []
    size_bytes = 0
    while size_bytes < STREAM_BYTES:
        mark = f"{len(rounds):06d}".encode()
        rounds.append(once.replace(b"msg_mock_", b"msg_" + mark).replace(b"toolu_mock_", b"toolu_" + mark))
        size_bytes += len(rounds[-1])
    return b"".join(rounds)


def _parse(lines: list[bytes]) -> float:
    started = time.perf_counter()
    for line in lines:
        try:
            json.loads(line)
        except ValueError:
            continue
    return time.perf_counter() - started


def _receive(protocol: str, stream: bytes) -> float:
    adapter = make_adapter({"protocol": protocol, "prompt": "go", "working_dir": "/project", "start": "fresh"})
    adapter.start(0)
    started = time.perf_counter()
    for place in range(0, len(stream), CHUNK_BYTES):
        adapter.receive(stream[place : place + CHUNK_BYTES], place)
    return time.perf_counter() - started


def _draft_row() -> tuple[str, str, str]:
    quarter_s = min(_show_draft(MESSAGE_BYTES // 4) for _ in range(ROUNDS))
    whole_s = min(_show_draft(MESSAGE_BYTES) for _ in range(ROUNDS))
    return (
        f"a message of {MESSAGE_BYTES / 1_000_000:.0f} MB in single bytes, written, read and wrapped as it comes",
        f"{whole_s * 1000:.0f} ms, {whole_s / quarter_s:.1f} × a quarter of it",
        f"≤ {GOAL_GROWTH} ×",
    )


def _show_draft(size_bytes: int) -> float:
    """Return the time of a message, with a look at it after each batch."""
    text = "a line of eleven words as an agent might write it here\n" * (size_bytes // 55)
    rows = GrowingRows()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drafts.jsonl"
        log, reader = DraftLog(str(path)), DraftReader(path, execution_id=ExecutionId("run"), attempt=0)
        started = time.perf_counter()
        for batch in range(0, len(text), BATCH_BYTES):
            for letter in text[batch : batch + BATCH_BYTES]:
                log.add({"kind": "delta", "message_ref": "m", "text": letter})
            log.write(batch * INTERVAL_S)
            reader.poll()
            for draft in reader.drafts(0):
                rows.rows(draft.text.rstrip(), 78)
        return time.perf_counter() - started
