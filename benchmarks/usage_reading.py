"""How fast transcripts of Claude Code are read, beside parsing each of their lines and doing nothing with it."""

from __future__ import annotations

import json
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.usage.sources import find_sources
from agentmon.usage.unread import read_unread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TRANSCRIPT_BYTES = 150_000_000
CAPTURED = Path("tests/usage/samples/captured/claude/projects")
TOOL_OUTPUT_BYTES = (200, 1_000, 4_000, 16_000)
"""What tools give back: a short command, a search, a file that is read, a long one; as often as each other."""
CALLS_PER_TURN = 8
ROUNDS = 5
GOAL_MB_PER_S = 400


def measure() -> list[tuple[str, str, str]]:
    """Return the row of what was measured, and the goal."""
    with tempfile.TemporaryDirectory(prefix="amu-") as home:
        path = Path(home) / ".claude" / "projects" / "-project" / "long.jsonl"
        path.parent.mkdir(parents=True)
        count = _write_transcript(path)
        size_mb = path.stat().st_size / 1_000_000
        read_s = min(_seconds(lambda: _read(home)) for _ in range(ROUNDS))
        parse_s = min(_seconds(lambda: _parse(path)) for _ in range(ROUNDS))
    return [
        (
            f"Claude Code: {size_mb:.0f} MB of transcript, {count:,} lines, read into billed answers",
            f"{size_mb / read_s:.0f} MB/s, {parse_s / read_s:.1f} × as fast as `json.loads` of each line",
            f"≥ {GOAL_MB_PER_S} MB/s",
        )
    ]


def _seconds(work: Callable[[], None]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _read(home: str) -> None:
    for source in find_sources({"HOME": home}):
        for _ in read_unread(source, None):
            pass


def _parse(path: Path) -> None:
    with path.open("rb") as opened:
        for line in opened:
            json.loads(line)


def _write_transcript(path: Path) -> int:
    """Write turns of a conversation with the real program's own records, filled up again; return how many lines."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnop", k=chance.randint(2, 9))) for _ in range(4_000)]
    prose = " ".join(chance.choices([*words, *['"quoted"', "\n"] * 400], k=20_000))
    count = size_bytes = 0
    with path.open("wb") as written:
        for line in _lines_again_and_again(chance, prose):
            written.write(line)
            count += 1
            size_bytes += len(line)
            if size_bytes >= TRANSCRIPT_BYTES:
                return count
    return count


def _lines_again_and_again(chance: random.Random, prose: str) -> Iterator[bytes]:
    recorded = [line for path in sorted(CAPTURED.rglob("*.jsonl")) for line in path.read_bytes().splitlines()]
    call = next(line for line in recorded if b'"type":"tool_use"' in line)
    given = next(line for line in recorded if b'"type":"tool_result"' in line)
    beside = [line for line in recorded[:20] if b'"assistant"' not in line]
    message_id = json.loads(call)["message"]["id"].encode()
    number = 0
    while True:
        for line in beside:
            yield line + b"\n"
        for _ in range(CALLS_PER_TURN):
            number += 1
            for line, part in ((call, {"type": "text"}), (call, None), (given, None)):
                record = json.loads(line.replace(message_id, b"msg_%024d" % number))
                if part is not None:
                    record["message"]["content"] = [part]
                _fill(record, chance, prose)
                yield json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def _fill(record: dict[str, object], chance: random.Random, prose: str) -> None:
    """Give what was cut from a recording its length again: words of the model, and twice what a tool gave back."""
    message = record.get("message")
    parts = message.get("content") if isinstance(message, dict) else None
    for part in parts if isinstance(parts, list) else []:
        if part.get("type") == "text":
            part["text"] = _some(prose, chance, chance.randint(100, 1_500))
        elif part.get("type") == "tool_use":
            part["input"] = {"command": _some(prose, chance, chance.randint(30, 1_500))}
        elif part.get("type") == "tool_result":
            part["content"] = _some(prose, chance, chance.choice(TOOL_OUTPUT_BYTES))
            record["toolUseResult"] = {"stdout": part["content"], "stderr": "", "interrupted": False}


def _some(prose: str, chance: random.Random, length: int) -> str:
    begin = chance.randrange(len(prose) - length)
    return prose[begin : begin + length]


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
