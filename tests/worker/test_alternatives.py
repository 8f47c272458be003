"""One thing done by several agents, each on a card and in a worktree of its own, with a real worker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.agent_changes import AgentChanges
from agentmon.domain.agents import ToolType
from agentmon.domain.budgets import BudgetAction, TaskBudget
from agentmon.domain.errors import ConflictError, UsageError, WaitsForTasksError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import ConversationStart
from agentmon.domain.idempotency import idempotency_key
from agentmon.domain.task_status import AwaitedState, TaskStatus
from agentmon.domain.tasks import InputContext, Schedule, TaskDraft
from agentmon.domain.verifications import VerificationStatus
from agentmon.domain.worktrees import Isolation
from agentmon.services.actors import USER_ACTOR
from tests.live_home import add_command
from tests.waiting import DEADLINE_S
from tests.workspaces.worktree_place import a_repository, git

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agentmon.bootstrap import Services
    from agentmon.domain.board import Card
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Task, Workspace
    from tests.live_home import LiveHome

_WRITES = ("sh", "-c", 'echo "$AGENTMON_TASK" > made')
"""Another file by each card."""


@pytest.fixture
async def services(live_home: LiveHome) -> AsyncIterator[Services]:
    """Services in which any command counts as an AI agent, and ``copier`` is another one, over a repository."""
    robot = live_home.folder / "robot"
    robot.write_text("#!/bin/sh\necho robot > made\necho more > more\n")
    robot.chmod(0o755)
    a_repository(live_home.project)
    for key, text in (("user.name", "Ann"), ("user.email", "ann@example.org")):
        git(live_home.project, "config", key, text)
    async with open_services(live_home.paths) as services:
        await services.agents.add_program(str(robot), actor=USER_ACTOR)
        for slug in ("command", "robot"):
            changes = AgentChanges(tool_type=ToolType.AI_AGENT, max_concurrent=0)
            await services.agents.edit(slug, changes, actor=USER_ACTOR)
        yield services


async def _run(services: Services, task: Task, *also: str, is_over: bool = True, **options: object) -> list[Execution]:
    first = await services.queue.run(task.id, actor=USER_ACTOR, also=also, **options)  # type: ignore[arg-type]  # named by tests
    runs = await services.queue.queued_with(first)
    if not is_over:
        return list(runs)
    async with asyncio.timeout(DEADLINE_S):
        return [await services.queue.wait(run.id) for run in runs]


async def _cards(services: Services, task: Task) -> dict[int, Card]:
    return {card.number: card for card in await services.board.alternatives(task.id)}


async def _status(services: Services, workspace: Workspace, number: int) -> TaskStatus:
    return (await services.tasks.by_number(workspace, number)).status


@pytest.mark.proof
async def test_each_agent_works_on_a_card_and_in_a_worktree_of_its_own_and_one_is_taken(
    services: Services, live_home: LiveHome
) -> None:
    workspace = await services.workspaces.open(live_home.project)
    task = await add_command(services, workspace, *_WRITES, title="mend it", verify="test -e more", verify_retries=0)
    waiting = await add_command(services, workspace, "true", title="later")
    await services.tasks.add_dependency(waiting.id, task.number, actor=USER_ACTOR)

    runs = await _run(services, task, "robot", "command")
    cards = await _cards(services, task)
    own, robots, copy = [await services.tasks.get(run.task_id) for run in runs]
    trees = [Path(run.working_dir or "") for run in runs]
    found = [await services.changes.of_run(run) for run in runs]
    between = await services.changes.between(found[0], found[1])
    patch = await services.changes.patch_of_run(between)
    held = await services.tasks.dependencies(waiting.id)
    with pytest.raises(ConflictError):
        await services.queue.let_go(task.id, actor=USER_ACTOR)
    merged = await services.merges.merge(robots, actor=USER_ACTOR)
    freed = await services.tasks.dependencies(waiting.id)
    told = await _cards(services, task)
    left = await services.queue.let_go(task.id, actor=USER_ACTOR)
    settled = await _cards(services, task)
    with pytest.raises(ConflictError):
        await services.queue.let_go(task.id, actor=USER_ACTOR)

    verdicts = [VerificationStatus.FAILED, VerificationStatus.PASSED, VerificationStatus.FAILED]
    assert [one.title for one in (own, robots, copy)] == ["mend it"] * 3
    assert [run.status for run in runs] == [ExecutionStatus.FAILED, ExecutionStatus.SUCCEEDED, ExecutionStatus.FAILED]
    assert len({*trees, live_home.project}) == 4
    assert not (live_home.project / "more").exists() or merged.commit, "only the merge brings it"
    assert [(tree / "made").read_text() for tree in (trees[0], trees[2])] == [f"{own.number}\n", f"{copy.number}\n"]
    assert [card.status for card in cards.values()] == [TaskStatus.BLOCKED, TaskStatus.REVIEW, TaskStatus.BLOCKED]
    assert [card.agent_slug for card in cards.values()] == ["command", "robot", "command"]
    assert [card.changed_files for card in cards.values()] == [1, 2, 1]
    assert [one.verification and one.verification.status for one in cards.values()] == verdicts
    assert cards[own.number].alternatives.keys() == {robots.number, copy.number}
    assert {(one.path, one.change_type.value) for one in between.files} == {("made", "modify"), ("more", "create")}
    assert f"-{own.number}\n+robot\n".encode() in patch
    assert [one.awaited_state for one in held] == [AwaitedState.OPEN], "none was taken yet"
    assert all(one.releases for one in freed), "what was to be done is done"
    assert await _status(services, workspace, waiting.number) is TaskStatus.TODO
    assert [card.taken_number for card in told.values()] == [robots.number, None, robots.number]
    assert [one.number for one in left] == [own.number, copy.number]
    assert [card.status for card in settled.values()] == [TaskStatus.CANCELLED, TaskStatus.DONE, TaskStatus.CANCELLED]
    assert settled[robots.number].alternatives == {}
    assert all((tree / "made").exists() for tree in (trees[0], trees[2])), "nothing is deleted unasked"
    assert (live_home.project / "more").read_text() == "more\n"


@pytest.mark.proof
async def test_an_alternative_waits_for_a_person_whatever_it_changed_and_also_without_the_column(
    services: Services, live_home: LiveHome
) -> None:
    workspace = await services.workspaces.open(live_home.project)
    await services.settings.set("board.review", "false", actor=USER_ACTOR)
    task = await add_command(services, workspace, "true")
    runs = await _run(services, task, "command")
    first, second = [await services.tasks.get(run.task_id) for run in runs]
    await services.tasks.move(first.id, TaskStatus.DONE, actor=USER_ACTOR)
    await services.tasks.move(second.id, TaskStatus.CANCELLED, actor=USER_ACTOR)
    (again,) = await _run(services, first)
    decided = await services.tasks.get(first.id)

    assert (first.status, second.status) == (TaskStatus.REVIEW, TaskStatus.REVIEW)
    assert again.status is ExecutionStatus.SUCCEEDED
    assert decided.status is TaskStatus.DONE, "there is nothing left to choose"


async def test_the_new_cards_have_what_the_task_has_but_for_its_schedule(
    services: Services, live_home: LiveHome
) -> None:
    workspace = await services.workspaces.open(live_home.project)
    awaited = await add_command(services, workspace, "true", title="before")
    parent = await add_command(services, workspace, "true", title="above")
    command = await services.agents.by_slug("command")
    draft = TaskDraft(
        title="mend it",
        description="the door",
        labels=("auth",),
        assignee_agent_id=command.id,
        parent_task_id=parent.id,
        schedule=Schedule(cron="0 7 * * *", zone="UTC"),
        input_context=InputContext(args={"argv": ["true"]}, prompt_additions="well", verify="true"),
    )
    budget = TaskBudget(limit=5_000_000_000, action=BudgetAction.BLOCK)
    task = await services.tasks.add(workspace, draft, actor=USER_ACTOR, after=[awaited.number], budget=budget)
    with pytest.raises(WaitsForTasksError):
        await _run(services, task, "robot")
    untouched = await services.tasks.list(workspace, statuses=())

    runs = await _run(services, task, "command", "robot", is_over=False, when_ready=True)
    own, copy, robots = [await services.tasks.get(run.task_id) for run in runs]
    limits = {one.budget.scope_id: one.budget.limit for one in await services.budgets.states()}

    assert len(untouched) == 3, "none was made for a run that was refused"
    assert own.id == task.id
    assert own.schedule == draft.schedule
    assert copy.schedule is None
    for one in (copy, robots):
        assert (one.description, one.labels, one.parent_task_id) == ("the door", ("auth",), parent.id)
        assert one.status is TaskStatus.BLOCKED
        assert [other.number for other in await services.tasks.dependencies(one.id)] == [awaited.number]
        assert limits[one.id] == 5_000_000_000
        assert (one.input_context.isolation, one.input_context.verify) == (Isolation.WORKTREE, "true")
        assert one.input_context.prompt_additions == "well"
    assert own.input_context.isolation is Isolation.WORKTREE
    assert copy.input_context.args == {"argv": ["true"]}
    assert robots.input_context.args == {}, "those of another program"
    (made,) = (one for one in await services.audit.of_task(copy.id) if one.event_type.value == "task_created")
    assert made.payload["alternative_to"] == task.number


async def test_what_cannot_be_done_by_several_is_refused_before_anything_is_made(
    services: Services, live_home: LiveHome
) -> None:
    workspace = await services.workspaces.open(live_home.project)
    task = await add_command(services, workspace, "sleep", "60")
    outside = await add_command(services, workspace, "true", working_dir=str(live_home.folder))
    await services.agents.add_program("touch", actor=USER_ACTOR)
    await services.agents.duplicate("robot", "gone", actor=USER_ACTOR)
    await services.agents.disable("gone", actor=USER_ACTOR)

    for refused in (
        _run(services, task, "touch"),
        _run(services, task, "gone"),
        _run(services, outside, "robot"),
        _run(services, task, "robot", isolation=Isolation.FOLDER),
        _run(services, task, "robot", start=ConversationStart.RESUME, message="go on"),
    ):
        with pytest.raises(UsageError):
            await refused
    (running,) = await _run(services, task, is_over=False)
    with pytest.raises(ConflictError):
        await _run(services, task, "robot")
    await services.queue.stop(task.id, actor=USER_ACTOR, kill=True)
    await services.queue.wait(running.id)

    tasks = await services.tasks.list(workspace, statuses=())
    assert len(tasks) == 2
    assert all(one.alternatives_id is None for one in tasks)


@pytest.mark.proof
async def test_the_same_request_makes_no_further_cards(services: Services, live_home: LiveHome) -> None:
    workspace = await services.workspaces.open(live_home.project)
    task = await add_command(services, workspace, "true")
    key = idempotency_key("a key", "run", {"task": task.id})

    first = await _run(services, task, "robot", key=key)
    again = await _run(services, task, "robot", key=key)

    assert [run.id for run in again] == [run.id for run in first]
    assert len(await services.tasks.list(workspace, statuses=())) == 2


async def test_nothing_is_let_go_for_a_task_without_alternatives(services: Services, live_home: LiveHome) -> None:
    workspace = await services.workspaces.open(live_home.project)
    tasks = [await add_command(services, workspace, "true") for _ in range(3)]
    await services.tasks.move(tasks[0].id, TaskStatus.DONE, actor=USER_ACTOR)

    for task in tasks:
        with pytest.raises(ConflictError):
            await services.queue.let_go(task.id, actor=USER_ACTOR)

    found = [(await services.tasks.get(task.id)).status for task in tasks]
    assert found == [TaskStatus.DONE, TaskStatus.TODO, TaskStatus.TODO]
