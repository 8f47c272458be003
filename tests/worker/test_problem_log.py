"""What cannot be read is told in the log once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from agentmon.worker.import_progress import FileProblem
from agentmon.worker.problem_log import ProblemLog

if TYPE_CHECKING:
    import pytest


def test_the_same_problem_is_told_once_while_it_is_among_the_last_thousand(caplog: pytest.LogCaptureFixture) -> None:
    problems = ProblemLog(logging.getLogger("problems"))
    first, *others = [FileProblem(path="/a", offset=offset, reason="a damaged line") for offset in range(1_001)]

    problems.tell([first, first])
    problems.tell([first])
    assert [record.getMessage() for record in caplog.records] == ["/a, at byte 0: a damaged line was passed over"]

    problems.tell(others)
    problems.tell([first])
    assert len(caplog.records) == 1_002
