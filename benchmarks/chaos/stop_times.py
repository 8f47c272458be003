"""A process beside all others that sees when a stop was asked, and when the host could read it.

It looks every 10 ms at the rows of commands and at the files of the hosts, and writes one JSON object a line for each
command. What the worker lost meanwhile by waiting for a core is told by the kernel, thread by thread.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sqlite3
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.chaos.actions import Actions

PROMPT_S: Final = 1.0
"""No stop may take longer than that from its row on."""
RECORDED_S: Final = 5.0
"""No client may wait longer than that for its row, which includes its own wait for a core."""
_LOOK_EVERY_S: Final = 0.01
_FRESH: Final = (
    "SELECT rowid, id, execution_id, type, cause, "
    # Workers may have another clock, clients have the true one.
    "iif(cause = 'person', max(0.0, 86400 * (julianday('now') - julianday(created_at))), 0.0) "
    "FROM execution_commands WHERE rowid > ? ORDER BY rowid"
)
_GONE: Final = "SELECT id FROM executions WHERE status NOT IN ('queued', 'running', 'cancelling')"
_STOPS: Final = ("stop", "kill")


@dataclass(frozen=True, slots=True, kw_only=True)
class StopTime:
    """How long one command took; times are those of the monotonic clock, in seconds."""

    execution_id: str
    type: str
    cause: str
    asked_at: float
    """Its row was seen."""
    done_at: float
    """Its line was seen in the host's file, or its run had no process any more."""
    is_written: bool
    """Whether its line was seen."""
    worker_pid: int | None
    """Whose worker it was, when the same one lived from the one moment to the other."""
    waited_s: float
    """What the worker lost by waiting for a core."""
    recorded_s: float
    """From the client's call until its row was seen."""

    @property
    def seconds(self) -> float:
        """How long it took, from the client's call on."""
        return self.recorded_s + self.done_at - self.asked_at

    @property
    def is_stop(self) -> bool:
        """Whether it asks for the end."""
        return self.type in _STOPS

    def is_undisturbed(self, actions: Actions) -> bool:
        """Return whether one worker lived all that time, and nobody had taken it the disk or tmux."""
        windows = (*actions.full_disk, *actions.without_tmux)
        return self.worker_pid is not None and not any(
            window.begin <= self.done_at and self.asked_at - self.recorded_s <= window.end for window in windows
        )


def read_stop_times(path: Path) -> tuple[StopTime, ...]:
    """Return what was seen, in the order in which it came to its end."""
    if not path.exists():
        return ()
    return tuple(StopTime(**json.loads(line)) for line in path.read_text("utf-8").splitlines())


def late_stops(times: Sequence[StopTime], actions: Actions) -> Iterator[str]:
    """Yield each stop that took too long, for no other reason than the worker's own."""
    for one in times:
        if not one.is_stop or not one.is_undisturbed(actions):
            continue
        if one.recorded_s > RECORDED_S:
            yield f"{one.execution_id}: a client waited {one.recorded_s:.2f} s for the row of its {one.type}"
        delivered_s = one.seconds - one.recorded_s
        if delivered_s - one.waited_s > PROMPT_S:
            yield (
                f"{one.execution_id}: a {one.type} of {one.asked_at:.3f} took {delivered_s:.2f} s, of which worker "
                f"{one.worker_pid} waited {one.waited_s:.2f} s for a core"
            )


def percentiles_text(times: Sequence[StopTime]) -> str:
    """Return how long they took, from the middle to the longest."""
    if not times:
        return "none"
    took = sorted(one.seconds for one in times)
    shown = [f"p{percent} {took[len(took) * percent // 100]:.2f} s" for percent in (50, 95, 99)]
    return f"{len(took)}: {', '.join(shown)}, longest {took[-1]:.2f} s"


@dataclass(slots=True, kw_only=True)
class _Asked:
    command_id: str
    execution_id: str
    type: str
    cause: str
    at: float
    recorded_s: float
    worker: tuple[int, str] | None
    """Pid and start time of the worker that lived then."""
    waits: dict[str, int]


class Watcher:
    """Looks from outside at the commands of one home; the lock is that of its worker."""

    def __init__(self, database: Path, executions_dir: Path, lock: Path) -> None:
        self._connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, isolation_level=None, timeout=0)
        self._executions_dir = executions_dir
        self._lock = lock
        self._version: int | None = None
        self._last_row = 0
        self._asked: dict[str, _Asked] = {}

    def look(self) -> Iterator[StopTime]:
        """Yield what has come to its end since the last look."""
        gone = self._read()
        now = time.monotonic()
        for asked in list(self._asked.values()):
            is_written = self._is_written(asked)
            if is_written or asked.execution_id in gone:
                del self._asked[asked.command_id]
                yield self._done(asked, now, is_written=is_written)

    def close(self) -> None:
        """Close its connection."""
        self._connection.close()

    def rest(self) -> Iterator[StopTime]:
        """Yield what never came to its end."""
        yield from (self._done(asked, time.monotonic(), is_written=False) for asked in self._asked.values())

    def _read(self) -> set[str]:
        """Take up new commands, and return the executions that have no process any more."""
        try:
            version = self._connection.execute("PRAGMA data_version").fetchone()[0]
            if version == self._version:
                return set()
            fresh = self._connection.execute(_FRESH, (self._last_row,)).fetchall()
            gone = {name for (name,) in self._connection.execute(_GONE)} if self._asked or fresh else set()
        except sqlite3.OperationalError:
            return set()
        self._version = version
        worker = self._worker() if fresh else None
        waits = _waits(worker)
        for row_number, command_id, execution_id, command_type, cause, recorded_s in fresh:
            self._last_row = row_number
            self._asked[command_id] = _Asked(
                command_id=command_id,
                execution_id=execution_id,
                type=command_type,
                cause=cause,
                at=time.monotonic(),
                recorded_s=recorded_s,
                worker=worker,
                waits=waits,
            )
        return gone

    def _is_written(self, asked: _Asked) -> bool:
        path = self._executions_dir / asked.execution_id / "control.jsonl"
        try:
            return asked.command_id.encode() in path.read_bytes()
        except OSError:
            return False

    def _done(self, asked: _Asked, now: float, *, is_written: bool) -> StopTime:
        is_same = asked.worker is not None and asked.worker == self._worker()
        later = _waits(asked.worker) if is_same else {}
        # One thread at a time has the command in hand: the loop's own, and another that it waits for.
        lost = sorted((later[name] - asked.waits.get(name, 0) for name in later), reverse=True)
        return StopTime(
            execution_id=asked.execution_id,
            type=asked.type,
            cause=asked.cause,
            asked_at=asked.at,
            done_at=now,
            is_written=is_written,
            worker_pid=asked.worker[0] if is_same and asked.worker is not None else None,
            waited_s=min(sum(lost[:2]) / 1e9, now - asked.at),
            recorded_s=asked.recorded_s,
        )

    def _worker(self) -> tuple[int, str] | None:
        """Return the worker that has announced itself and lives."""
        try:
            pid = int(json.loads(self._lock.read_bytes().rstrip(b"\0 \n"))["pid"])
            after_name = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return None if after_name[0] in {b"Z", b"X"} else (pid, after_name[19].decode())


def _waits(worker: tuple[int, str] | None) -> dict[str, int]:
    """Return by thread of a worker how many nanoseconds it has waited for a core."""
    found: dict[str, int] = {}
    if worker is not None:
        folder = Path(f"/proc/{worker[0]}/task")
        with contextlib.suppress(OSError):
            for thread in folder.iterdir():
                with contextlib.suppress(OSError, IndexError, ValueError):
                    found[thread.name] = int((thread / "schedstat").read_bytes().split()[1])
    return found


def watch(watcher: Watcher, out: TextIO) -> None:
    """Write what is seen until the process is asked to end by TERM."""
    is_ending = False

    def end(*_: object) -> None:
        nonlocal is_ending
        is_ending = True

    signal.signal(signal.SIGTERM, end)
    while not is_ending:
        at = time.monotonic()
        _put(out, watcher.look())
        time.sleep(max(0.0, at + _LOOK_EVERY_S - time.monotonic()))
    _put(out, watcher.look())
    _put(out, watcher.rest())


def _put(out: TextIO, times: Iterator[StopTime]) -> None:
    for one in times:
        out.write(json.dumps(asdict(one)) + "\n")
        out.flush()


def main() -> None:
    """Watch the home that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("database", "executions_dir", "lock", "out"):
        parser.add_argument(name, type=Path)
    arguments = parser.parse_args()
    with arguments.out.open("w", encoding="utf-8") as out:
        watch(Watcher(arguments.database, arguments.executions_dir, arguments.lock), out)


if __name__ == "__main__":
    main()
