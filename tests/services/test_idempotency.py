"""Requests that are sent again under the key of the first one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.errors import ConflictError, UsageError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import CommandType
from agentmon.domain.idempotency import idempotency_key
from agentmon.domain.ids import new_id
from agentmon.services.actors import USER_ACTOR
from tests.conversing import a_wish, conversing
from tests.stored_runs import stored

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.domain.idempotency import IdempotencyKey


def named(action: str, key: str = "k", **asked: object) -> IdempotencyKey:
    made = idempotency_key(key, action, asked)
    assert made is not None
    return made


async def test_a_run_that_is_asked_for_twice_under_one_key_is_queued_once(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        queue = place.services.queue
        task = await place.add_task()
        first = await queue.run(task.id, actor=USER_ACTOR, key=named("run", task=1))
        again = await queue.run(task.id, actor=USER_ACTOR, key=named("run", task=1))
        place.set_status(first.id, ExecutionStatus.FAILED)
        later = await queue.run(task.id, actor=USER_ACTOR, key=named("run", task=1))
        with pytest.raises(ConflictError, match="another request"):
            await queue.run(task.id, actor=USER_ACTOR, key=named("run", task=1, when_ready=True))
        with pytest.raises(ConflictError, match="another request"):
            await queue.stop(task.id, actor=USER_ACTOR, key=named("stop", task=1))
        fresh = await queue.run(task.id, actor=USER_ACTOR, key=named("run", "other", task=1))
        folders = sorted(path.name for path in place.services.paths.executions_dir.iterdir())

    assert again == first
    assert (later.id, later.status) == (first.id, ExecutionStatus.FAILED)
    assert folders == sorted([first.id, fresh.id])


async def test_a_key_of_one_actor_is_unknown_to_another(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        queue = place.services.queue
        task, other = await place.add_task(), await place.add_task()
        agent = Actor(type=ActorType.AGENT, id=new_id())
        of_person = await queue.run(task.id, actor=USER_ACTOR, key=named("run", task=1))
        of_agent = await queue.run(other.id, actor=agent, key=named("run", task=2))

    assert of_person.task_id == task.id
    assert of_agent.task_id == other.id


async def test_two_processes_at_the_same_moment_make_one_run(tmp_path: Path) -> None:
    async with stored(tmp_path) as place, open_services(place.services.paths) as other:
        task = await place.add_task()
        begun = await asyncio.gather(
            *(
                services.queue.run(task.id, actor=USER_ACTOR, key=named("run", task=1))
                for services in (place.services, other) * 3
            )
        )
        executions = await place.services.executions.list(place.workspace, limit=10)
        folders = [path.name for path in place.services.paths.executions_dir.iterdir()]

    assert {execution.id for execution in begun} == {listing.execution.id for listing in executions}
    assert folders == [begun[0].id]


async def test_a_refused_request_leaves_its_key_free(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        queue = place.services.queue
        task = await place.add_task()
        with pytest.raises(ConflictError, match="queued or running"):
            await queue.stop(task.id, actor=USER_ACTOR, key=named("stop", task=1))
        execution = await place.add_run(task.id, ExecutionStatus.QUEUED)
        stopped = await queue.stop(task.id, actor=USER_ACTOR, key=named("stop", task=1))
        newer = await place.add_run(task.id, ExecutionStatus.QUEUED)
        again = await queue.stop(task.id, actor=USER_ACTOR, key=named("stop", task=1))
        waiting = await place.services.executions.get(newer.id)

    assert (stopped.id, stopped.status) == (execution.id, ExecutionStatus.CANCELLED)
    assert again == stopped
    assert waiting.status is ExecutionStatus.QUEUED


async def test_a_decision_that_is_sent_again_is_the_first_one(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        approvals = place.services.approvals
        execution = await place.begin((await place.add_task()).id)
        asked = (await place.ask(execution.id, a_wish())).approval
        key = named("approve", request=asked.id)
        found_before = await approvals.find_decided(key, actor=USER_ACTOR)
        allowed = await approvals.allow(asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest, key=key)
        again = await approvals.allow(asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest, key=key)
        found = await approvals.find_decided(key, actor=USER_ACTOR)
        with pytest.raises(ConflictError, match="another request"):
            await approvals.deny(
                asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest, key=named("deny", request=asked.id)
            )
        commands = await place.commands(execution.id)

    assert found_before is None
    assert again == allowed
    assert allowed.status is ApprovalStatus.ALLOWED
    assert found is not None
    assert found.approval == allowed
    assert [command.type for command in commands] == [CommandType.ANSWER]


async def test_a_message_that_is_sent_again_is_said_once_also_when_its_run_is_over(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        conversations = place.services.conversations
        task = await place.add_task()
        execution = await place.begin(task.id)
        key = named("message", text="more")
        first = await conversations.send(task.id, "more", actor=USER_ACTOR, key=key)
        again = await conversations.send(task.id, "more", actor=USER_ACTOR, key=key)
        await place.end(execution.id)
        later = await conversations.send(task.id, "more", actor=USER_ACTOR, key=key)
        resuming = named("message", "other", text="more")
        resumed = await conversations.send(task.id, "more", actor=USER_ACTOR, key=resuming)
        resumed_again = await conversations.send(task.id, "more", actor=USER_ACTOR, key=resuming)
        commands = await place.commands(execution.id)

    assert again == first
    assert (later.execution.id, later.is_new_execution) == (execution.id, False)
    assert resumed.is_new_execution
    assert resumed_again == resumed
    assert [command.type for command in commands] == [CommandType.MESSAGE]


@pytest.mark.parametrize("key", ["", "a\nb", "x" * 201])
def test_what_cannot_be_a_key_is_refused(key: str) -> None:
    with pytest.raises(UsageError):
        idempotency_key(key, "run", {})


def test_the_order_of_what_is_asked_does_not_matter_and_its_kind_does() -> None:
    assert named("run", a=1, b=[None, "é"]) == named("run", b=[None, "é"], a=1)
    assert named("run", a=1) != named("run", a="1")
