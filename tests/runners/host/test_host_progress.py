from __future__ import annotations

import pytest

from agentmon.runners.host.progress import Progress


@pytest.mark.parametrize("code", [b"\r", b"\x1b[2K\r", b"\x1b[2K\x1b[1G", b"\x1b[G\x1b[K"])
def test_the_newest_line_of_a_megabyte_of_progress_is_its_last_state(code: bytes) -> None:
    progress = Progress()
    states = b"before\n" + b"".join(code + b"\x1b[32m%d of 60000\x1b[0m" % count for count in range(1, 60_001))
    for start in range(0, len(states), 65_537):
        progress.add(states[start : start + 65_537])

    assert progress.last_line() == "60000 of 60000"
    assert (progress.line_count, progress.byte_count) == (2, len(states))
