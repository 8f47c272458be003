from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agentmon.domain.board import Card
from agentmon.domain.ids import TaskId
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import TaskStatus
from agentmon.widgets.card_text import card_lines

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CARD = Card(
    task_id=TaskId("t"),
    number=5,
    title="Round half a cent up",
    status=TaskStatus.IN_PROGRESS,
    priority=2,
    agent_slug="demo-agent",
    state=LiveState.NEEDS_YOU,
    started_at=NOW - timedelta(seconds=62),
)


def state_line(width: int) -> str:
    return "".join(part.text for part in card_lines(CARD, width=width, now=NOW)[1]).rstrip()


def test_a_time_that_has_no_room_is_left_out_whole() -> None:
    assert state_line(28) == "demo-agent ◆ needs you 1m02s"
    assert state_line(27) == "demo-agent ◆ needs you"
