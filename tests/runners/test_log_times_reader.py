from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agentmon.runners.log_times import LogTimesReader

if TYPE_CHECKING:
    from pathlib import Path


def _report(at_ms: int, size: int) -> str:
    counts = {"bytes": size, "lines": 1, "left_out_bytes": 0, "last_line": ""}
    return json.dumps({"n": 1, "at_ms": at_ms, "type": "output", **counts}) + "\n"


def test_the_times_of_the_next_try_take_the_place_of_those_before(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    reader = LogTimesReader(journal)
    assert reader.read().first is None
    journal.write_text(_report(1_000, 10) + _report(2_000, 20))
    first = reader.read()
    assert reader.read() is first

    journal.rename(tmp_path / "set aside")
    journal.write_text(_report(9_000, 5))
    second = reader.read()

    assert first.first is not None
    assert second.first is not None
    assert (first.first.timestamp(), second.first.timestamp()) == (1, 9)
