"""How fast each adapter takes what its agent writes, beside parsing the same lines and doing nothing with them."""

from __future__ import annotations

import importlib.util
import json
import time

from agentmon.runners.protocols.registry import ADAPTERS, make_adapter
from benchmarks.protocol_fuzz import recordings

STREAM_BYTES = 30_000_000
CHUNK_BYTES = 65_536
ROUNDS = 3
GOAL_MB_PER_S = 50


def measure() -> list[tuple[str, str, str]]:
    """Return rows of name, what was measured, and the goal; an adapter that is not there has none."""
    return [_row(protocol) for protocol, (module, _) in ADAPTERS.items() if _is_there(module)]


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
