from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from agentmon.domain.audit import actor_name, event_sentence
from agentmon.domain.events import Actor, ActorType, TaskEvent, TaskEventType
from agentmon.domain.ids import LOCAL_USER_ID, TaskId


def event(event_type: TaskEventType, **payload: object) -> TaskEvent:
    return TaskEvent(
        id=1,
        task_id=TaskId("task"),
        actor=Actor(type=ActorType.USER),
        event_type=event_type,
        payload=payload,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (event(TaskEventType.TASK_CREATED, number=1, title="x"), "made the task"),
        (
            event(TaskEventType.TASK_MOVED, **{"from": "todo", "to": "in_progress", "cause": "its run started"}),
            "moved it from Todo to In progress (its run started)",
        ),
        (
            event(
                TaskEventType.TASK_EDITED,
                changed=["due_at", "priority", "title"],
                title={"from": "a", "to": "b"},
                priority={"from": 3, "to": 1},
            ),
            "renamed it from “a” to “b”; changed the priority from P3 to P1; changed the due date",
        ),
        (event(TaskEventType.DEPENDENCY_ADDED, on=7), "made it wait for #7"),
        (event(TaskEventType.EXECUTION_STARTED, retry_count=0), "started a run"),
        (event(TaskEventType.EXECUTION_STARTED, retry_count=2), "started a run, retry 2"),
        (event(TaskEventType.EXECUTION_STOP_REQUESTED, type="stop"), "asked the run to stop"),
        (event(TaskEventType.EXECUTION_STOP_REQUESTED, type="kill"), "asked to kill the run"),
        (
            event(TaskEventType.EXECUTION_ENDED, status="failed", exit_code=3, error="exit 3: no"),
            "recorded the end of the run: failed (exit 3), exit 3: no",
        ),
        (
            event(TaskEventType.EXECUTION_REQUEUED, retry_count=1, max_retries=2),
            "queued the run again, retry 1 of 2",
        ),
    ],
)
def test_an_event_is_told_as_a_sentence(told: TaskEvent, sentence: str) -> None:
    assert event_sentence(told) == sentence


@pytest.mark.parametrize("event_type", list(TaskEventType))
def test_every_event_has_a_sentence_of_its_own_also_when_its_particulars_are_missing(event_type: TaskEventType) -> None:
    sentence = event_sentence(event(event_type))

    assert re.fullmatch(r"[a-z].+", sentence)


def test_what_a_terminal_would_obey_is_not_part_of_a_sentence() -> None:
    sentence = event_sentence(event(TaskEventType.EXECUTION_ENDED, status="failed", error="\x1b[2J\ngone\x07"))

    assert sentence == "recorded the end of the run: failed,  gone␇"


def test_the_person_at_this_machine_is_you() -> None:
    names = [
        actor_name(Actor(type=ActorType.USER, id=LOCAL_USER_ID)),
        actor_name(Actor(type=ActorType.USER, id="somebody else")),
        actor_name(Actor(type=ActorType.AGENT)),
        actor_name(Actor(type=ActorType.SYSTEM)),
    ]

    assert names == ["You", "A user", "An agent", "agentmon"]
