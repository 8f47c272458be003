"""A worker whose clock is ahead or behind, and steps while it works: by the seconds that a file tells.

All else is the worker as it is. Its hosts and everybody else have the true time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

OFFSETS_S: Final = (0.0, 0.0, -5.0, 2.0, -3_600.0, 3_600.0, -2 * 86_400.0, 3 * 86_400.0, -40 * 86_400.0)
_LOOK_EVERY_S: Final = 0.1


def start_shifted_worker(offset_file: Path) -> None:
    """Start one in the background, unless another worker has the lock by then."""
    subprocess.run(
        [sys.executable, "-P", "-m", "benchmarks.chaos.shifted_worker", str(offset_file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
        check=False,
    )


def step_clock(offset_file: Path, chance: Random) -> float:
    """Let the clock of such a worker jump; return by how many seconds it is ahead from now on."""
    offset_s = chance.choice(OFFSETS_S)
    set_clock(offset_file, offset_s)
    return offset_s


def set_clock(offset_file: Path, offset_s: float) -> None:
    """Let the clock of such a worker be so far ahead."""
    beside = offset_file.with_suffix(".new")
    beside.write_text(str(offset_s), "ascii")
    beside.replace(offset_file)


class Shift:
    """How far ahead the clock is, as the file tells."""

    def __init__(self, offset_file: Path) -> None:
        self._file = offset_file
        self._offset_s = 0.0
        self._looked_at = float("-inf")

    @property
    def seconds(self) -> float:
        """Seconds that are added to the true time."""
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_EVERY_S:
            self._looked_at = now
            self._offset_s = float(self._file.read_text("ascii"))
        return self._offset_s


def main() -> int:
    """Run a worker until it is told to stop, with the clock that the file of the first argument tells."""
    shift = Shift(Path(sys.argv[1]))
    if os.fork():
        os._exit(0)
    os.setsid()
    true_time, true_time_ns = time.time, time.time_ns
    time.time = lambda: true_time() + shift.seconds
    time.time_ns = lambda: true_time_ns() + round(1e9 * shift.seconds)

    # Whoever reads the time by name gets the one that is shifted, so these come later.
    from agentmon.domain.clock import SystemClock  # noqa: PLC0415
    from agentmon.worker.main import run_foreground  # noqa: PLC0415

    def now(self: SystemClock) -> datetime:
        del self
        present = datetime.now(UTC) + timedelta(seconds=shift.seconds)
        return present.replace(microsecond=present.microsecond // 1000 * 1000)

    SystemClock.now = now  # type: ignore[method-assign] # this process alone
    return run_foreground(makes_home=False)


if __name__ == "__main__":
    sys.exit(main())
