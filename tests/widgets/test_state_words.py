from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.board import Card
from agentmon.domain.ids import TaskId
from agentmon.domain.live_state import LiveState, state_label
from agentmon.domain.task_status import TaskStatus
from agentmon.widgets.card_text import card_lines
from agentmon.widgets.state_words import styled_state

if TYPE_CHECKING:
    from collections.abc import Mapping

NOW = datetime(2026, 3, 4, 14, 2, tzinfo=UTC)
SOON = NOW + timedelta(hours=1, minutes=2)


def clock(moment: datetime) -> str:
    return f"{moment.astimezone():%H:%M}"


@pytest.mark.parametrize(
    ("state", "facts", "text"),
    [
        (LiveState.QUEUED, {}, "◌ queued"),
        (LiveState.QUEUED, {"waits_for": "#38, #39"}, "◌ queued · after #38, #39"),
        (LiveState.QUEUED, {"waits_until": SOON}, f"◌ queued · at {clock(SOON)}"),
        (LiveState.QUEUED, {"waits_until": SOON, "is_retry": True}, f"◌ queued · retry at {clock(SOON)}"),
        (LiveState.QUEUED, {"waits_until": NOW}, "◌ queued"),
        (LiveState.PARKED, {"waits_until": SOON}, f"⏸ parked until {clock(SOON)}"),
        (LiveState.PARKED, {"waits_until": NOW}, "◌ queued"),
        (LiveState.PAUSED, {}, "‖ paused"),
        (LiveState.LOST, {}, "✗ lost"),
        (LiveState.FAILED, {"exit_code": 1}, "✗ failed (exit 1)"),
        (LiveState.FAILED, {"exit_code": 0}, "✗ failed"),
        (LiveState.STUCK, {}, "◍ could not stop"),
        (LiveState.STUCK, {"error": "could not stop pid 12 (a (b)), 34 (c)"}, "◍ could not stop pid 12, 34"),
    ],
)
def test_a_state_is_told_with_what_it_waits_for(state: LiveState, facts: Mapping[str, object], text: str) -> None:
    label = state_label(state, now=NOW, **facts)  # type: ignore[arg-type] # named above

    assert styled_state(label).text == text


@pytest.mark.parametrize("width", [21, 40, 70])
def test_no_card_has_more_than_three_lines_and_none_loses_its_schedule_or_progress(width: int) -> None:
    card = Card(
        task_id=TaskId("task"),
        number=1,
        title="a title",
        status=TaskStatus.TODO,
        priority=3,
        agent_slug="make",
        subtask_count=5,
        subtasks_closed=3,
        next_run_at=NOW + timedelta(days=1),
    )

    lines = ["".join(part.text for part in line) for line in card_lines(card, width=width, now=NOW)]

    assert len(lines) <= 3
    assert "↻ tomorrow" in "\n".join(lines)
    assert "3/5 subtasks" in "\n".join(lines) or width < 40


def test_the_reason_of_a_parked_run_stands_on_a_line_of_its_own() -> None:
    card = Card(
        task_id=TaskId("task"),
        number=1,
        title="a title",
        status=TaskStatus.TODO,
        priority=3,
        agent_slug="claude",
        state=LiveState.PARKED,
        waits_until=SOON,
        error="usage limit reached",
    )

    lines = ["".join(part.text for part in line).rstrip() for line in card_lines(card, width=40, now=NOW)]

    assert lines[1:] == [f"claude ⏸ parked until {clock(SOON)}", "usage limit reached"]
