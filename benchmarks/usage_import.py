"""What it takes to import long histories of agents, beside ccusage on the same files; Linux only.

ccusage is the one that ``CCUSAGE`` or ``--ccusage`` names, or that is on PATH.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.clock import SystemClock
from agentmon.paths import find_paths
from agentmon.usage.sources import CLAUDE, CODEX, GEMINI, find_sources
from agentmon.usage.unread import read_unread
from agentmon.worker.launch import ensure_worker
from agentmon.worker.presence import read_presence
from agentmon.worker.usage_importing import UsageImporter
from benchmarks.process_costs import memory_mb, processor_s
from benchmarks.scratch_home import kill_worker
from benchmarks.usage_tree import make_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.usage.sources import SourceFile
    from benchmarks.usage_tree import UsageTree

ROUNDS: Final = 3
APPENDED: Final = 15
BURST_AGENTS: Final = 100
BURST_TURNS: Final = 80
BURST_TURNS_PER_S: Final = 10
GOAL_MB_PER_S: Final = 400
GOAL_MEMORY_MB: Final = 250
GOAL_SECOND_LOOK: Final = 50
_CCUSAGE: Final = "CCUSAGE"
_NAMES: Final = {CLAUDE: "Claude Code", CODEX: "Codex", GEMINI: "Gemini CLI"}
_READY_WITHIN_S: Final = 60.0
_OTHER_HOMES: Final = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")


def measure(*, scale: float = 1.0) -> list[tuple[str, str, str]]:
    """Return rows of name, what was measured, and the goal; takes some minutes and a gigabyte of disk."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="amu-", dir="/tmp")))
        environ = {name: value for name, value in os.environ.items() if name not in _OTHER_HOMES}
        environ |= {"HOME": str(home), "TZ": "UTC", "AGENTMON_HOME": str(home / "agentmon")}
        tree = make_tree(home, scale=scale)
        return [
            *_import_rows(tree, environ),
            *_parsing_rows(environ),
            _second_look_row(environ),
            *_live_rows(home, environ),
        ]


def _import_rows(tree: UsageTree, environ: dict[str, str]) -> list[tuple[str, str, str]]:
    ccusage = os.environ.get(_CCUSAGE) or shutil.which("ccusage")
    _run_ccusage(ccusage, environ)
    own, other, memory = [], [], 0.0
    for _ in range(ROUNDS):
        # In turn, since other work on the machine slows both down.
        seconds, round_memory = _import(tree, environ)
        own.append(seconds)
        memory = max(memory, round_memory)
        other.append(_run_ccusage(ccusage, environ))
    import_s = statistics.median(own)
    what = f"{tree.size_bytes / 1e6:.0f} MB, {tree.files} files, {tree.answers:,} answers"
    rows = [
        (f"costs import into a new database, priced: {what}", f"{import_s:.2f} s", ""),
        ("the same: memory of all its processes, shared pages once", f"{memory:.0f} MB", f"≤ {GOAL_MEMORY_MB} MB"),
    ]
    if ccusage is None:
        return [
            *rows,
            ("ccusage daily --offline --json on the same files", f"skipped: no {_CCUSAGE}, none on PATH", ""),
        ]
    ccusage_s = statistics.median(other)
    return [
        *rows,
        ("ccusage daily --offline --json on the same files", f"{ccusage_s:.2f} s", ""),
        ("import / ccusage", f"{import_s / ccusage_s:.2f}", "≤ 1"),
    ]


def _import(tree: UsageTree, environ: dict[str, str]) -> tuple[float, float]:
    """Import into a new database; return how long it took, in seconds, and the most memory it held, in MB."""
    shutil.rmtree(environ["AGENTMON_HOME"], ignore_errors=True)
    command = [sys.executable, "-P", "-m", "agentmon", "costs", "import", "--json"]
    begun, memory = time.perf_counter(), 0.0
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            memory = max(memory, _memory_of_all(process.pid))
            time.sleep(0.05)
        seconds = time.perf_counter() - begun
        told = process.stdout.read() if process.stdout is not None else ""
    answers = json.loads(told)["answers"]
    if answers != tree.answers:
        message = f"{answers} answers were read, and {tree.answers} were written"
        raise RuntimeError(message)
    return seconds, memory


def _memory_of_all(pid: int) -> float:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        threads = Path(f"/proc/{pid}/task").iterdir()
        children += [child for thread in threads for child in (thread / "children").read_text().split()]
        return memory_mb({pid, *map(int, children)})[0]
    except (OSError, ValueError):
        return 0.0


def _run_ccusage(program: str | None, environ: dict[str, str]) -> float:
    if program is None:
        return 0.0
    begun = time.perf_counter()
    command = [program, "daily", "--offline", "--json"]
    subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begun


def _parsing_rows(environ: dict[str, str]) -> list[tuple[str, str, str]]:
    rows = []
    for slug, name in _NAMES.items():
        sources = [source for source in find_sources(environ) if source.agent_slug == slug]
        size_bytes = sum(source.size for source in sources)

        seconds = statistics.median(_processor_s(sources) for _ in range(ROUNDS))
        speed = f"{size_bytes / 1e6 / seconds:.0f} MB/s a core"
        rows.append((f"{name}: {size_bytes / 1e6:.0f} MB read into billed answers", speed, f"≥ {GOAL_MB_PER_S} MB/s"))
    return rows


def _processor_s(sources: Sequence[SourceFile]) -> float:
    begun = time.process_time()
    for source in sources:
        for _ in read_unread(source, None):
            pass
    return time.process_time() - begun


def _second_look_row(environ: dict[str, str]) -> tuple[str, str, str]:
    """Look as the worker does, at a database that has everything."""
    importer = UsageImporter(paths=find_paths(environ), environ=environ, zone_name="UTC", clock=SystemClock())
    with closing(importer):
        seconds = []
        for _ in range(ROUNDS + 1):
            begun = time.perf_counter()
            sources, all_files = importer.find_changed()
            importer.read(sources, all_files=all_files)
            seconds.append(time.perf_counter() - begun)
    # The first one opens the database.
    look_s = statistics.median(seconds[1:])
    return ("a look at all files with nothing new", f"{look_s * 1_000:.0f} ms", f"≤ 1/{GOAL_SECOND_LOOK} of the import")


def _live_rows(home: Path, environ: dict[str, str]) -> list[tuple[str, str, str]]:
    """Let answers be written while the worker runs, and wait for their rows."""
    before = dict(os.environ)
    os.environ.update(environ)
    paths = find_paths()
    transcripts = sorted((home / ".claude" / "projects").rglob("*.jsonl"))
    try:
        ensure_worker(paths)
        with closing(sqlite3.connect(paths.database_path)) as connection:
            _append(transcripts[0], "warm", connection)
            return [
                _delay_row(transcripts[0], connection),
                _burst_row(transcripts, connection, read_presence(paths.worker_lock).pid or 0),
            ]
    finally:
        kill_worker(paths)
        os.environ.clear()
        os.environ.update(before)


def _delay_row(transcript: Path, connection: sqlite3.Connection) -> tuple[str, str, str]:
    delays = []
    for number in range(APPENDED):
        # At any moment between two looks of the worker.
        time.sleep(1.0 + number / 20)
        delays.append(_append(transcript, f"late_{number}", connection))
    median_ms, longest_ms = statistics.median(delays) * 1_000, max(delays) * 1_000
    return (
        "an answer written by an agent, until it is a row of the running worker",
        f"median {median_ms:.0f} ms, longest {longest_ms:.0f} ms of {APPENDED}",
        "about 500 ms",
    )


def _burst_row(transcripts: list[Path], connection: sqlite3.Connection, worker: int) -> tuple[str, str, str]:
    """Write to many transcripts again and again."""
    used_s, begun = processor_s(worker, with_children=True), time.perf_counter()
    for turn in range(BURST_TURNS):
        for number in range(BURST_AGENTS):
            transcript = transcripts[number % len(transcripts)]
            with transcript.open("a") as opened:
                opened.write(_answer(transcript, f"burst_{turn}_{number}"))
        time.sleep(max(0.0, begun + (turn + 1) / BURST_TURNS_PER_S - time.perf_counter()))
    ended = time.perf_counter()
    _wait_for_rows(connection, "key LIKE 'burst%'", BURST_TURNS * BURST_AGENTS)
    behind_s = time.perf_counter() - ended
    share = (processor_s(worker, with_children=True) - used_s) / (ended - begun)
    return (
        f"{BURST_AGENTS} agents that each write {BURST_TURNS_PER_S} answers a second: the worker",
        f"{100 * share:.0f} % of a core, the last row after {behind_s * 1_000:.0f} ms",
        "",
    )


def _append(transcript: Path, key: str, connection: sqlite3.Connection) -> float:
    """Return how long it takes until an answer that is written is a row."""
    begun = time.perf_counter()
    with transcript.open("a") as opened:
        opened.write(_answer(transcript, key))
    _wait_for_rows(connection, f"key = '{key}'", 1)
    return time.perf_counter() - begun


def _wait_for_rows(connection: sqlite3.Connection, condition: str, count: int) -> None:
    deadline = time.perf_counter() + _READY_WITHIN_S
    query = f"SELECT count(*) FROM llm_interactions WHERE {condition}"
    while connection.execute(query).fetchone()[0] < count:
        if time.perf_counter() > deadline:
            message = f"not within {_READY_WITHIN_S:g} s: {count} rows where {condition}"
            raise TimeoutError(message)
        time.sleep(0.002)


def _answer(transcript: Path, key: str) -> str:
    record = {
        "type": "assistant",
        "sessionId": transcript.stem,
        "timestamp": "2026-11-20T10:00:00.000Z",
        "message": {
            "id": key,
            "model": "claude-opus-4-8",
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 5, "output_tokens": 50},
        },
    }
    return json.dumps(record) + "\n"


def main() -> None:
    """Measure, and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ccusage", help="its program")
    parser.add_argument("--scale", type=float, default=1.0, help="how large the tree is, 1 for some 540 MB")
    chosen = parser.parse_args()
    if chosen.ccusage:
        os.environ[_CCUSAGE] = chosen.ccusage
    for row in measure(scale=chosen.scale):
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
