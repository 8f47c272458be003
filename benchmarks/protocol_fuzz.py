"""Feeds broken conversations to one adapter: ``python -m benchmarks.protocol_fuzz --adapter acp --inputs 100000``.

Prints the seed of the first that breaks the contract, and ends with 1; ``--seed N --inputs 1`` does it again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from agentmon.runners.protocols.registry import ADAPTERS, make_adapter
from tests.runners.protocols.fuzzing import check_conversation, interleaved, mutated, recorded_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

CAPTURES = Path(__file__).resolve().parent.parent / "tests" / "runners" / "protocols" / "captures"
FOLDERS = {"stream-json": ("claude",), "app-server": ("codex",), "acp": ("acp", "gemini", "opencode")}
MAX_LINE_BYTES = 20_000
"""Longer recorded lines are lists of commands and models: they slow the run down and reach nothing new."""


def recordings(protocol: str) -> list[list[bytes]]:
    """Return the lines of every recording of the protocol, without the very long ones."""
    paths = [path for folder in FOLDERS[protocol] for path in sorted((CAPTURES / folder).glob("*.jsonl"))]
    read = ([line for line in recorded_lines(path) if len(line) <= MAX_LINE_BYTES] for path in paths)
    return [lines for lines in read if lines]


def reply(message: Mapping[str, Any], random: Random) -> bytes:
    """Answer a request of the adapter's as an agent might, or not at all."""
    if random.random() < 0.2:
        return b""
    if message.get("type") == "control_request":
        answer = {"subtype": random.choice(("success", "error")), "request_id": message["request_id"], "response": {}}
        return json.dumps({"type": "control_response", "response": answer}).encode() + b"\n"
    if message.get("type") == "user" and "uuid" in message:
        told = {"type": "command_lifecycle", "command_uuid": message["uuid"]}
        states = random.choice((("queued", "started"), ("started", "completed"), ("refused",), ("queued",)))
        return b"".join(json.dumps({**told, "state": state}).encode() + b"\n" for state in states)
    if "method" in message and "id" in message:
        result: dict[str, Any] = random.choice(
            (
                {"result": {}},
                {"result": None},
                {"error": {"code": -1, "message": "no"}},
                {"result": {"thread": {"id": "t1"}, "turn": {"id": "u1"}, "sessionId": "s1", "protocolVersion": 1}},
            )
        )
        return json.dumps({"jsonrpc": "2.0", "id": message["id"], **result}).encode() + b"\n"
    return b""


def check_one(protocol: str, recorded: list[list[bytes]], seed: int) -> None:
    """Check one broken conversation.

    Raises:
        Exception: Whatever the adapter raised, or the assertion that failed.
    """
    random = Random(seed)
    launch = {
        "protocol": protocol,
        "prompt": "go",
        "working_dir": "/project",
        "session_id": "00000000-0000-4000-8000-000000000000",
        "start": "fresh",
    }
    if random.random() < 0.3:
        launch |= {"start": random.choice(("resume", "fork")), "session_ref": "s1"}
    lines = random.choice(recorded)
    if random.random() < 0.2:
        lines = interleaved(random.sample(recorded, 2), random)
    stream = mutated(lines, random)
    check_conversation(lambda: make_adapter(launch), stream, random, reply if random.random() < 0.5 else None)


def main() -> None:
    """Run as many as are asked for, each from a seed of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adapter", choices=sorted(ADAPTERS), required=True)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    recorded = recordings(chosen.adapter)
    started = time.perf_counter()
    for seed in range(chosen.seed, chosen.seed + chosen.inputs):
        try:
            check_one(chosen.adapter, recorded, seed)
        except Exception:
            print(f"seed {seed} breaks the contract", file=sys.stderr)
            raise
    took_s = time.perf_counter() - started
    print(f"{chosen.adapter}: {chosen.inputs:,} broken conversations in {took_s:.0f} s, all within the contract")


if __name__ == "__main__":
    main()
