from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agentmon.domain.board import Card
from agentmon.domain.ids import TaskId
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import TaskStatus
from agentmon.widgets.card_text import card_lines
from agentmon.widgets.cells import cells

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


def test_a_card_shows_when_it_is_due_and_its_labels_within_four_lines() -> None:
    now = datetime(2026, 11, 25, 11, tzinfo=UTC)
    marked = CARD._replace(due_at=now + timedelta(days=2), labels=("auth", "login"), started_at=now)

    wide, narrow, late = (
        [
            [(part.text.rstrip(), part.style) for part in line if part.text.strip()]
            for line in card_lines(card, width=width, now=moment)
        ]
        for card, width, moment in (
            (marked, 70, now),
            (marked, 20, now),
            (marked, 20, now + timedelta(days=4)),
        )
    )

    assert wide[1][-2:] == [("  due fri", "muted"), ("  #auth #login", "muted")]
    assert narrow[2] == [("due fri", "muted"), (" · #auth #lo…", "muted")]
    assert late[2][0] == ("overdue Nov 27", "warning")
    assert len(narrow) == 4
    assert {sum(cells(part.text) for part in line) for line in card_lines(marked, width=20, now=now)} == {20}


def test_a_closed_card_is_not_due_any_more() -> None:
    closed = CARD._replace(due_at=NOW, status=TaskStatus.DONE, state=LiveState.DONE)

    assert "due" not in "".join(part.text for line in card_lines(closed, width=60, now=NOW) for part in line)


def test_a_card_names_its_alternatives_until_one_is_taken_and_then_that_one() -> None:
    offered = CARD._replace(
        state=LiveState.DONE,
        status=TaskStatus.REVIEW,
        alternatives={6: TaskStatus.REVIEW, 7: TaskStatus.BLOCKED},
        changed_files=1,
        lines_added=2,
    )
    left = offered._replace(alternatives={6: TaskStatus.DONE, 7: TaskStatus.BLOCKED})
    closed = offered._replace(status=TaskStatus.DONE)

    texts = [
        ["".join(part.text for part in line).rstrip() for line in card_lines(card, width=60, now=NOW)]
        for card in (offered, left, closed)
    ]

    assert texts[0][1].endswith("or #6, #7  +2 −0 · 1 file")
    narrow = ["".join(part.text for part in line) for line in card_lines(offered, width=24, now=NOW)]
    assert any("or #6, #7" in line for line in narrow)
    assert texts[1][-1] == "#6 was taken instead"
    assert left.taken_number == 6
    assert all("#6" not in line for line in texts[2])
    assert left._replace(archived_at=NOW).taken_number is None, "it is off the board"
    assert {
        sum(cells(part.text) for part in line)
        for card in (offered, left)
        for width in (8, 20, 24)
        for line in card_lines(card, width=width, now=NOW)
    } == {8, 20, 24}
