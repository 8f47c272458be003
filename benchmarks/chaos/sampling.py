"""A process beside all others that looks every 50 ms at what lives and at what the database says is over.

It writes one JSON object a line. The rows are read before ``/proc``, so that a process that is found afterwards for a
row that was over has outlived it. Each process of a sample is looked at twice: those that it names lived together.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sqlite3
import time
from pathlib import Path
from typing import TextIO

from benchmarks.chaos.reviewing import BY_HAND

_EVERY_S = 0.05
_YOUNG_FOR_S = 1.0
"""How long a process is looked at anew: between its fork and its exec it looks like its parent."""
_GONE = ("succeeded", "failed", "cancelled", "timed_out", "finalizing")
"""Statuses in which nothing of a try lives any more."""
_HOST = b"runners/host/__main__.py"
_PROC = Path("/proc")
_BY_HAND = f"{BY_HAND}=1".encode()
"""In the environment of what a person verifies by hand: that is no part of a run."""

Identity = tuple[int, str]
"""Pid and start time."""


class ProcessScan:
    """Finds the processes of one home: what carries a marker, and the hosts."""

    def __init__(self, executions_dir: Path, secret: str) -> None:
        self._executions_dir = os.fsencode(executions_dir) + b"/"
        self._secret = secret.encode()
        self._seen_at: dict[int, float] = {}
        self._marked: dict[int, str] = {}
        self._hosts: dict[int, str] = {}
        self.tellers: list[tuple[int, str]] = []
        """Command lines that hold the secret, with their pids; the caller takes them out."""

    def look(self) -> tuple[dict[str, list[Identity]], dict[str, list[Identity]]]:
        """Return by execution what carries its marker, and its hosts."""
        now = time.monotonic()
        present = {int(name) for name in os.listdir(_PROC) if name.isdigit()}  # noqa: PTH208 - every 50 ms
        for pid in self._seen_at.keys() - present:
            del self._seen_at[pid]
            self._marked.pop(pid, None)
            self._hosts.pop(pid, None)
        for pid in present:
            seen_at = self._seen_at.setdefault(pid, now)
            if now - seen_at <= _YOUNG_FOR_S:
                self._look_at(pid)
        first = {pid: start_time for pid in (*self._marked, *self._hosts) if (start_time := _start_time(pid))}
        # Alive now as well as at the look before: so all of them lived at the moment between.
        alive = {pid: start for pid, start in first.items() if _start_time(pid) == start}
        return _by_execution(self._marked, alive), _by_execution(self._hosts, alive)

    def _look_at(self, pid: int) -> None:
        with contextlib.suppress(OSError):
            command = (_PROC / str(pid) / "cmdline").read_bytes()
            if self._secret and self._secret in command:
                self.tellers.append((pid, command.replace(b"\0", b" ").decode("utf-8", "replace")))
            folder = command.rstrip(b"\0").rpartition(b"\0")[2]
            if _HOST in command and folder.startswith(self._executions_dir):
                self._hosts[pid] = folder.rpartition(b"/")[2].decode()
            variables = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
            if _BY_HAND in variables:
                return
            for variable in variables:
                name, _, execution_id = variable.partition(b"=")
                if name == b"AGENTMON_EXECUTION_ID" and self._is_ours(execution_id):
                    self._marked[pid] = execution_id.decode()

    def _is_ours(self, execution_id: bytes) -> bool:
        return os.path.isdir(self._executions_dir + execution_id)  # noqa: PTH112 - bytes


def _by_execution(found: dict[int, str], alive: dict[int, str]) -> dict[str, list[Identity]]:
    grouped: dict[str, list[Identity]] = {}
    for pid, execution_id in sorted(found.items()):
        if pid in alive:
            grouped.setdefault(execution_id, []).append((pid, alive[pid]))
    return grouped


def _start_time(pid: int) -> str | None:
    """Return when the process started, in ticks since the machine's start; None for a dead or ended one."""
    try:
        after_name = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if after_name[0] in {b"Z", b"X"} else after_name[19].decode()


class Rows:
    """What the database says is over, or has no process any more; read without agentmon's own code."""

    def __init__(self, database: Path) -> None:
        self._connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, isolation_level=None, timeout=0)
        self._version: int | None = None
        self._gone: set[tuple[str, str, int]] = set()
        self.looked_at = time.monotonic()
        """When the last look that succeeded began: what is found gone later was not gone before."""

    def newly_gone(self) -> list[tuple[str, str]]:
        """Return the tries that are gone since the last look, with their statuses; none when nobody can look."""
        began_at = time.monotonic()
        try:
            version = self._connection.execute("PRAGMA data_version").fetchone()[0]
            if version == self._version:
                self.looked_at = began_at
                return []
            marks = ", ".join(f"'{status}'" for status in _GONE)
            statement = f"SELECT id, status, retry_count FROM executions WHERE status IN ({marks})"
            rows = self._connection.execute(statement).fetchall()
        except sqlite3.OperationalError:
            return []
        self._version, self.looked_at = version, began_at
        fresh = [row for row in rows if row not in self._gone]
        self._gone.update(fresh)
        return [(execution_id, status) for execution_id, status, _ in fresh]


def sample(database: Path, executions_dir: Path, secret: str, out: TextIO) -> None:
    """Write samples until the process is asked to end by TERM; a last line counts them."""
    is_ending = False

    def end(*_: object) -> None:
        nonlocal is_ending
        is_ending = True

    signal.signal(signal.SIGTERM, end)
    rows, scan = Rows(database), ProcessScan(executions_dir, secret)
    before: object = None
    count, longest_gap_s, last_at = 0, 0.0, time.monotonic()
    while not is_ending:
        not_over_at = rows.looked_at
        fresh = rows.newly_gone()
        at = time.monotonic()
        marked, hosts = scan.look()
        longest_gap_s, last_at, count = max(longest_gap_s, at - last_at), at, count + 1
        for execution_id, status in fresh:
            _put(out, {"type": "over", "at": not_over_at, "execution": execution_id, "status": status})
        for pid, command in scan.tellers:
            _put(out, {"type": "secret", "at": at, "pid": pid, "command": command})
        scan.tellers.clear()
        if fresh or (marked, hosts) != before:
            _put(out, {"type": "live", "at": at, "marked": marked, "hosts": hosts})
            before = (marked, hosts)
        time.sleep(max(0.0, at + _EVERY_S - time.monotonic()))
    _put(out, {"type": "count", "samples": count, "longest_gap_s": longest_gap_s})


def _put(out: TextIO, entry: dict[str, object]) -> None:
    out.write(json.dumps(entry) + "\n")
    out.flush()


def main() -> None:
    """Sample the home that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", type=Path)
    parser.add_argument("executions_dir", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    # Never in the command line of this process: it would be found there.
    secret = os.environ.get("API_KEY", "")
    with arguments.out.open("w", encoding="utf-8") as out:
        sample(arguments.database, arguments.executions_dir, secret, out)


if __name__ == "__main__":
    main()
