"""Whether a worker is at work, for those who only read and ask often: the standard library alone, and little of it."""

import fcntl
import os
import time

from agentmon.runners.host.process_table import is_halted

_RECENT_S = 7.0
"""A worker beats every five seconds; one that is replaced or looked at by a debugger is away for a moment."""
_SILENT_AFTER_S = 30.0
"""A worker that lives is given six beats: on a busy machine a beat comes late."""
_LOCK_BYTES = 512
_REPORT_BYTES = 64
_PID = b'"pid": '


def find_last_beat(lock_path: str, report_path: str, database_path: str) -> float | None:
    """Return when a worker was last at work, in seconds since the epoch; None while one is, or was a moment ago.

    At work is one that lives, is not halted, and says how its loops fare. Where nothing of a worker is left, the last
    change of the database stands for its last beat.

    Args:
        lock_path: What the worker holds locked.
        report_path: What it writes with every beat; see ``loop_report``.
        database_path: The database.
    """
    beat_at = _changed_at(report_path) or _changed_at(lock_path) or _changed_at(database_path)
    now = time.time()
    # A beat of a time to come was written before the clock was set back, and is as old as nobody knows.
    silence_s, beat_at = abs(now - beat_at), min(now, beat_at)
    if silence_s <= _RECENT_S:
        return None
    try:
        descriptor = os.open(lock_path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return beat_at
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        pid = _pid_in(os.pread(descriptor, _LOCK_BYTES, 0))
    else:
        return beat_at
    finally:
        os.close(descriptor)
    is_hanging = silence_s > _SILENT_AFTER_S and _reporter(report_path) == pid
    return beat_at if pid and (is_hanging or is_halted(pid)) else None


def _changed_at(path: str) -> float:
    try:
        return os.stat(path).st_mtime  # noqa: PTH116 - pathlib costs more than the rest
    except OSError:
        return 0.0


def _reporter(path: str) -> int:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            return _pid_in(file.read(_REPORT_BYTES))
    except OSError:
        return 0


def _pid_in(written: bytes) -> int:
    """Return the process number in the beginning of a JSON object of agentmon's own; 0 where there is none."""
    number = written.partition(_PID)[2].partition(b",")[0]
    return int(number) if number.isdigit() else 0
