"""What processes cost: processor time since they began, and the memory they hold now. Linux only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def processor_s(pid: int, *, with_children: bool = False) -> float:
    """Return the seconds of one core that the process has used, with those of its ended children when asked."""
    # The name may hold blanks and brackets: the last bracket ends it (source: proc_pid_stat(5)).
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11 : 15 if with_children else 13]) / _TICKS_PER_S


def memory_mb(pids: Iterable[int]) -> tuple[float, float]:
    """Return the memory of the processes in MB: with each shared page counted once, and counted in each of them."""
    proportional_kb = resident_kb = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, kilobytes, _ = line.split()
            proportional_kb += int(kilobytes) if name == "Pss:" else 0
            resident_kb += int(kilobytes) if name == "Rss:" else 0
    return proportional_kb / 1024, resident_kb / 1024
