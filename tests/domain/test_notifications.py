from __future__ import annotations

from datetime import UTC, datetime, time
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import UsageError
from agentmon.domain.events import Actor, ActorType, TaskEvent, TaskEventType
from agentmon.domain.ids import TaskId
from agentmon.domain.notifications import (
    Channel,
    NotificationKind,
    QuietHours,
    gathered,
    notification_of,
    notifications_in,
    parse_channels,
    parse_quiet_hours,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _event(event_type: TaskEventType, payload: Mapping[str, object], number: int = 1) -> TaskEvent:
    return TaskEvent(
        id=number,
        task_id=TaskId("t"),
        actor=Actor(type=ActorType.SYSTEM),
        event_type=event_type,
        payload=payload,
        created_at=NOON,
    )


def _ended(status: str, number: int = 1, **payload: object) -> TaskEvent:
    return _event(
        TaskEventType.EXECUTION_ENDED, {"status": status, "execution_id": f"e{number}", **payload}, number=number
    )


@pytest.mark.parametrize(
    ("event", "kind", "title", "text"),
    [
        (_ended("succeeded", exit_code=0), NotificationKind.DONE, "#4 Mend: done", ""),
        (
            _ended("failed", exit_code=2, error="no such file"),
            NotificationKind.FAILED,
            "#4 Mend: failed (exit 2)",
            "no such file",
        ),
        (_ended("timed_out"), NotificationKind.FAILED, "#4 Mend: timed out", ""),
        (
            _event(TaskEventType.APPROVAL_ASKED, {"title": "Run rm -r build", "approval_id": "a"}),
            NotificationKind.NEEDS_YOU,
            "#4 Mend: needs you",
            "Run rm -r build",
        ),
    ],
)
def test_a_line_of_the_trail_is_told_with_its_task(
    event: TaskEvent, kind: NotificationKind, title: str, text: str
) -> None:
    told = notification_of(event, task_number=4, task_title="Mend", workspace="shop")

    assert told is not None
    assert (told.kind, told.title, told.text) == (kind, title, text)
    assert told.as_document()["workspace"] == "shop"


def test_what_parks_and_what_budgets_reach_is_told_in_the_words_of_the_trail() -> None:
    parked = notification_of(
        _event(TaskEventType.EXECUTION_PARKED, {"text": "usage limit"}), task_number=4, task_title="Mend"
    )
    budget = notification_of(
        _event(TaskEventType.BUDGET_REACHED, {"percent": 80, "text": "$20 a day", "used": "$16"}), task_number=None
    )

    assert parked is not None
    assert parked.kind is NotificationKind.PARKED
    assert "usage limit" in parked.text
    assert budget is not None
    assert (budget.title, budget.text) == ("budget", "80 % of $20 a day, is used: $16")


@pytest.mark.parametrize(
    "event",
    [_ended("cancelled"), _event(TaskEventType.TASK_MOVED, {}), _event(TaskEventType.EXECUTION_STARTED, {})],
)
def test_what_a_person_did_or_sees_coming_is_not_told(event: TaskEvent) -> None:
    assert notification_of(event, task_number=4) is None


def test_a_request_that_was_settled_and_a_failure_that_is_tried_again_are_left_out() -> None:
    lines = [
        (_event(TaskEventType.APPROVAL_ASKED, {"approval_id": "a", "title": "x"}, 1), 1, "One", "w"),
        (_event(TaskEventType.APPROVAL_DECIDED, {"approval_id": "a"}, 2), 1, "One", "w"),
        (_ended("failed", 3), 2, "Two", "w"),
        (_event(TaskEventType.EXECUTION_REQUEUED, {"execution_id": "e3"}, 4), 2, "Two", "w"),
        (_event(TaskEventType.APPROVAL_ASKED, {"approval_id": "b", "title": "y"}, 5), 1, "One", "w"),
        (_ended("failed", 6), 3, "Three", "w"),
        (_event(TaskEventType.APPROVAL_DECIDED, {"approval_id": "c"}, 7), 4, "Four", "w"),
        (_event(TaskEventType.APPROVAL_ASKED, {"approval_id": "c", "title": "put back"}, 8), 4, "Four", "w"),
    ]

    titles = [one.title for one in notifications_in(lines)]
    assert titles == ["#1 One: needs you", "#3 Three: failed", "#4 Four: needs you"]


def test_many_of_one_kind_are_told_in_one_sentence() -> None:
    lines = [(_ended("succeeded", number), number, "T", "w") for number in range(1, 6)]
    lines += [(_ended("failed", 9), 9, "T", "w")]

    told = gathered(notifications_in(lines))

    assert [(one.title, one.text) for one in told] == [
        ("5 runs are done", "#1, #2, #3, #4, #5"),
        ("#9 T: failed", ""),
    ]
    assert [one.event_id for one in told] == [5, 9]


def test_secrets_and_control_codes_do_not_leave_the_machine() -> None:
    key = "sk-ant-api03-" + "a1B2" * 12

    told = notification_of(_ended("failed", error=f"bad\x1b[2J\n{key}"), task_number=1, task_title=f"use {key}")

    assert told is not None
    assert key not in str(told.as_document())
    assert "\x1b" not in told.text
    assert "\n" not in told.text


def test_channels_are_named_in_any_order_and_none_is_one_too() -> None:
    assert parse_channels("Bell, toast") == {Channel.BELL, Channel.TOAST}
    assert parse_channels("") == parse_channels("none") == frozenset()
    with pytest.raises(UsageError, match="'pigeon' is no channel"):
        parse_channels("toast pigeon")


@pytest.mark.parametrize(
    ("text", "quiet", "loud"),
    [
        ("22:00-07:00", (time(22), time(23, 59), time(0), time(6, 59)), (time(7), time(21, 59))),
        ("9:30 – 10:00", (time(9, 30), time(9, 59)), (time(9, 29), time(10))),
        ("18:00-24:00", (time(18), time(23, 59)), (time(0), time(17, 59))),
    ],
)
def test_quiet_hours_may_go_over_midnight(text: str, quiet: tuple[time, ...], loud: tuple[time, ...]) -> None:
    hours = parse_quiet_hours(text)

    assert isinstance(hours, QuietHours)
    assert all(hours.hold(datetime.combine(NOON, one)) for one in quiet)
    assert not any(hours.hold(datetime.combine(NOON, one)) for one in loud)


@pytest.mark.parametrize("text", ["22", "25:00-07:00", "22:00-07:60", "ten to six", "22:00-"])
def test_hours_that_do_not_exist_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_quiet_hours(text)

    assert "22:00-07:00" in caught.value.hint
