from __future__ import annotations

import pytest

from agentmon.domain.summaries import Activity
from agentmon.widgets.activity_words import activity_line


@pytest.mark.parametrize(
    ("activity", "line"),
    [
        (Activity(), ""),
        (Activity(session_count=1), "1 session"),
        (
            Activity(
                session_count=12,
                operation_count=1340,
                successful_operations=98,
                failed_operations=2,
                blocked_operations=2,
            ),
            "12 sessions · 1,340 tool calls · 98 % ok · 2 blocked",
        ),
        (Activity(operation_count=1, failed_operations=1), "1 tool call · 0 % ok"),
    ],
)
def test_the_line_says_what_there_is_and_no_more(activity: Activity, line: str) -> None:
    assert activity_line(activity) == line
