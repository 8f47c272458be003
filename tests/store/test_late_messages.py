"""Messages that come when their agent has ended: none is lost without a word."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.conversation import CommandNews
from agentmon.domain.errors import ConflictError
from agentmon.domain.events import Actor, ActorType, TaskEventType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import (
    CommandType,
    ConversationRequest,
    ConversationStart,
    ExecutionEnding,
    ExecutionRequest,
    FollowUp,
)
from agentmon.domain.ids import ExecutionId, new_id
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.unheard import UNHEARD
from agentmon.services.actors import USER_ACTOR
from agentmon.store.execution_commands import CommandRepository
from agentmon.store.settling import SettlementRepository, SpokenToError
from tests.conversing import conversing
from tests.store.queue_place import read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import CommandId
    from agentmon.domain.tasks import Task
    from tests.conversing import Conversing

_NOW = datetime.now(UTC)


def _ending(status: ExecutionStatus = ExecutionStatus.SUCCEEDED) -> ExecutionEnding:
    return ExecutionEnding(status=status, ended_at=_NOW, reason=EndReason.EXITED, exit_code=0)


async def _begun(place: Conversing, mode: ExecutionMode = ExecutionMode.STREAM_JSON) -> tuple[Task, Execution]:
    task = await place.add_task()
    return task, await place.begin(task.id, mode=mode)


async def _say(place: Conversing, run: Execution, text: str) -> CommandId:
    commands = CommandRepository(place.services.database)
    return await commands.add(run.id, (CommandType.MESSAGE, {"text": text}), actor=USER_ACTOR, at=_NOW)


def _follow_up(run: Execution, *message_ids: CommandId) -> FollowUp:
    request = ExecutionRequest(
        task_id=run.task_id,
        agent_id=run.agent_id,
        capability_id=run.capability_id,
        mode=run.mode,
        conversation=ConversationRequest(
            prompt="said late",
            working_dir="/",
            start=ConversationStart.RESUME,
            parent_execution_id=run.id,
        ),
    )
    return FollowUp(
        id=ExecutionId(new_id()),
        request=request,
        log_file_path="/nowhere",
        verify_retry=0,
        verify_retries=0,
        message_ids=frozenset(message_ids),
    )


async def _settle(
    place: Conversing, run: Execution, follow_ups: Mapping[ExecutionId, FollowUp | None]
) -> Exception | None:
    settlement = SettlementRepository(place.services.database)
    _, problems = await settlement.settle([run.id], park_after=0, follow_ups=follow_ups, at=_NOW)
    return problems.get(run.id)


def _commands(place: Conversing) -> list[tuple[object, ...]]:
    query = (
        "SELECT json_extract(payload, '$.text'), execution_id, attempt, delivered_at IS NOT NULL,"
        " obeyed_at IS NOT NULL, error FROM execution_commands ORDER BY id"
    )
    return [tuple(row) for row in read_rows(place.services.paths.database_path, query)]


@pytest.mark.parametrize("refusal", [None, *sorted(UNHEARD)])
async def test_the_next_run_begins_with_what_came_too_late(tmp_path: Path, refusal: str | None) -> None:
    async with conversing(tmp_path) as place:
        task, run = await _begun(place)
        said = await _say(place, run, "one more thing")
        if refusal is not None:
            await place.tell(run.id, CommandNews(command_id=said, was_obeyed=False, error=refusal))
        settlement = SettlementRepository(place.services.database)
        await settlement.begin(run.id, _ending(), at=_NOW)
        late = await settlement.late_messages([run.id])
        unready = await _settle(place, run, {})
        waiting = await place.services.executions.get(run.id)
        meanwhile = await _say(place, run, "and this")
        follow_up = _follow_up(run, said)
        problem = await _settle(place, run, {run.id: follow_up})
        ended = await place.services.executions.get(run.id)
        begun = await place.services.executions.get(follow_up.id)
        column = (await place.services.tasks.get(task.id)).status

    assert [command.id for command in late[run.id]] == [said]
    assert isinstance(unready, SpokenToError)
    assert waiting.status is ExecutionStatus.FINALIZING, "its end does not count before somebody hears it"
    assert (problem, ended.status) == (None, ExecutionStatus.SUCCEEDED)
    assert (begun.status, begun.parent_execution_id) == (ExecutionStatus.QUEUED, run.id)
    assert begun.session_id == run.session_id
    assert column is TaskStatus.IN_PROGRESS
    assert meanwhile != said
    assert _commands(place) == [
        ("one more thing", follow_up.id, 0, 1, 1, None),
        ("and this", follow_up.id, 0, 0, 0, None),
    ]


async def test_where_nothing_goes_on_the_trail_says_that_nobody_heard_it(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        lost = []
        for status, mode in (
            (ExecutionStatus.SUCCEEDED, ExecutionMode.STREAM_JSON),
            (ExecutionStatus.FAILED, ExecutionMode.STREAM_JSON),
            (ExecutionStatus.SUCCEEDED, ExecutionMode.TMUX),
        ):
            task, run = await _begun(place, mode)
            said = await _say(place, run, "hello?")
            await SettlementRepository(place.services.database).begin(run.id, _ending(status), at=_NOW)
            assert await _settle(place, run, {run.id: None}) is None
            trail = await place.services.audit.of_task(task.id)
            lost += [
                event.payload["command_id"] == said
                for event in trail
                if event.event_type is TaskEventType.MESSAGE_UNHEARD
            ]

    assert lost == [True, True, True]


@pytest.mark.parametrize("why", ["an agent said it", "a stop was asked for"])
async def test_what_nobody_wants_to_follow_starts_no_run(tmp_path: Path, why: str) -> None:
    async with conversing(tmp_path) as place:
        task, run = await _begun(place)
        commands = CommandRepository(place.services.database)
        actor = Actor(type=ActorType.AGENT, id="other") if why == "an agent said it" else USER_ACTOR
        await commands.add(run.id, (CommandType.MESSAGE, {"text": "go on"}), actor=actor, at=_NOW)
        if why == "a stop was asked for":
            await commands.add(run.id, (CommandType.STOP, {}), actor=USER_ACTOR, at=_NOW)
        await SettlementRepository(place.services.database).begin(run.id, _ending(), at=_NOW)
        assert await _settle(place, run, {}) is None
        runs = await place.services.executions.of_task(task.id)
        trail = await place.services.audit.of_task(task.id)

    assert [one.id for one in runs] == [run.id]
    assert TaskEventType.MESSAGE_UNHEARD in {event.event_type for event in trail}


async def test_a_run_that_is_cancelled_in_the_queue_leaves_no_message_waiting_and_the_trail_says_so(
    tmp_path: Path,
) -> None:
    async with conversing(tmp_path) as place:
        task, run = await _begun(place)
        said = await _say(place, run, "and this")
        await SettlementRepository(place.services.database).begin(run.id, _ending(), at=_NOW)
        follow_up = _follow_up(run)
        assert await _settle(place, run, {run.id: follow_up}) is None
        queued = await place.services.executions.get(follow_up.id)
        await place.services.queue.stop(task.id, actor=USER_ACTOR)
        trail = await place.services.audit.of_task(task.id)

    assert queued.status is ExecutionStatus.QUEUED
    ((_, execution_id, _, is_delivered, is_obeyed, error),) = _commands(place)
    assert (execution_id, is_delivered, is_obeyed) == (follow_up.id, 1, 0)
    assert error in UNHEARD
    unheard = [event for event in trail if event.event_type is TaskEventType.MESSAGE_UNHEARD]
    assert [event.payload["command_id"] for event in unheard] == [said]


async def test_what_a_try_did_not_hear_the_next_one_hears(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        _, run = await _begun(place)
        said = await _say(place, run, "heard")
        await place.tell(run.id, CommandNews(command_id=said, was_obeyed=True))
        await _say(place, run, "not heard")
        with closing(sqlite3.connect(place.services.paths.database_path)) as connection, connection:
            connection.execute("UPDATE executions SET max_retries = 1")
        ending = ExecutionEnding(
            status=ExecutionStatus.FAILED, ended_at=_NOW, reason=EndReason.EXITED, exit_code=1, may_retry=True
        )
        await SettlementRepository(place.services.database).begin(run.id, ending, at=_NOW)
        await _settle(place, run, {})
        again = await place.services.executions.get(run.id)

    assert (again.status, again.attempt) == (ExecutionStatus.QUEUED, 1)
    assert [(row[0], row[2], row[3], row[5]) for row in _commands(place)] == [
        ("heard", 0, 1, None),
        ("not heard", 1, 0, None),
    ]


@pytest.mark.parametrize(
    ("status", "mode", "is_heard"),
    [
        (ExecutionStatus.SUCCEEDED, ExecutionMode.STREAM_JSON, True),
        (ExecutionStatus.FAILED, ExecutionMode.STREAM_JSON, False),
        (ExecutionStatus.SUCCEEDED, ExecutionMode.TMUX, False),
    ],
)
async def test_a_run_that_comes_to_its_end_takes_a_message_when_another_can_begin_with_it(
    tmp_path: Path, status: ExecutionStatus, mode: ExecutionMode, *, is_heard: bool
) -> None:
    async with conversing(tmp_path) as place:
        _, run = await _begun(place, mode)
        await SettlementRepository(place.services.database).begin(run.id, _ending(status), at=_NOW)
        if not is_heard:
            with pytest.raises(ConflictError):
                await _say(place, run, "one more thing")
        else:
            await _say(place, run, "one more thing")

    assert len(_commands(place)) == is_heard
