"""A start that can do harm waits for a person's leave, and runs or not as that person says."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.agents import DangerLevel
from agentmon.domain.approvals import ApprovalScope
from agentmon.domain.conversation import AskKind
from agentmon.domain.errors import ConflictError, UsageError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.tasks import InputContext, TaskDraft, draft_of
from agentmon.services.actors import USER_ACTOR
from agentmon.services.settings import AGENTS_MAY_DECIDE_KEY
from tests.live_home import add_command

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.bootstrap import Services
    from agentmon.domain.approvals import ApprovalListing
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Workspace
    from tests.live_home import LiveHome

AN_AGENT = Actor(type=ActorType.AGENT, id="019bf3a2-0000-7000-8000-000000000000")


def set_capability(services: Services, column: str) -> None:
    with closing(sqlite3.connect(services.paths.database_path)) as connection, connection:
        connection.execute(f"UPDATE agent_capabilities SET {column} WHERE key = 'run'")


async def held_run(services: Services, workspace: Workspace, folder: Path) -> tuple[Execution, ApprovalListing]:
    task = await add_command(services, workspace, "touch", str(folder / "done"))
    execution = await services.queue.run(task.id, actor=USER_ACTOR)
    (asked,) = await services.approvals.inbox(workspace.id)
    return execution, asked


@pytest.mark.parametrize("column", ["danger_level = 2", "requires_approval = 1"])
async def test_it_waits_in_the_inbox_with_its_whole_command_and_runs_when_allowed(
    services: Services, workspace: Workspace, live_home: LiveHome, column: str
) -> None:
    await services.agents.list()
    set_capability(services, column)

    execution, asked = await held_run(services, workspace, live_home.folder)

    assert (execution.status, execution.live_state.value) == (ExecutionStatus.QUEUED, "needs you")
    assert asked.approval.ask_kind is AskKind.START
    assert asked.approval.detail == f"touch {live_home.folder / 'done'}"
    assert asked.approval.danger_reason.startswith("command.run ")
    with pytest.raises(ConflictError, match="waits for your leave"):
        await services.queue.run(execution.task_id, actor=USER_ACTOR)

    await services.approvals.allow(asked.approval.id, actor=USER_ACTOR, seen_digest=asked.approval.input_digest)

    assert (await services.queue.wait(execution.id)).status is ExecutionStatus.SUCCEEDED
    assert (live_home.folder / "done").exists()


async def test_it_never_runs_when_it_is_denied(services: Services, workspace: Workspace, live_home: LiveHome) -> None:
    await services.agents.list()
    set_capability(services, "danger_level = 3")
    execution, asked = await held_run(services, workspace, live_home.folder)

    await services.approvals.deny(
        asked.approval.id, actor=USER_ACTOR, seen_digest=asked.approval.input_digest, reason="not today"
    )

    assert (await services.executions.get(execution.id)).status is ExecutionStatus.CANCELLED
    assert not (live_home.folder / "done").exists()
    assert await services.approvals.inbox(workspace.id) == ()


async def test_a_command_waits_when_an_agent_starts_or_wrote_it_and_not_when_a_person_typed_it(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    folder = live_home.project / "src"
    folder.mkdir()
    task = await add_command(services, workspace, "rm", "-r", "src")

    started_by_agent = await services.queue.run(task.id, actor=AN_AGENT)
    (asked,) = await services.approvals.inbox(workspace.id)

    assert started_by_agent.is_held
    assert started_by_agent.activity_note == asked.approval.danger_reason
    assert (asked.approval.danger_level, asked.approval.danger_reason) == (
        DangerLevel.DANGEROUS,
        "rm: deletes folders with all that is in them; an agent wants to start a card that is not its own",
    )
    await services.approvals.deny(asked.approval.id, actor=USER_ACTOR, seen_digest=asked.approval.input_digest)
    started_by_person = await services.queue.run(task.id, actor=USER_ACTOR)
    assert (await services.queue.wait(started_by_person.id)).status is ExecutionStatus.SUCCEEDED
    assert not folder.exists()

    draft = replace(draft_of(task), input_context=InputContext(args={"argv": ["rm", "-rf", "src"]}))
    task = await services.tasks.get(task.id)
    own_agent = Actor(type=ActorType.AGENT, id=started_by_person.id)
    await services.tasks.edit(task.id, draft, expected_version=task.version, actor=own_agent)
    written_by_agent = await services.queue.run(task.id, actor=USER_ACTOR)
    assert written_by_agent.is_held
    await services.queue.stop(task.id, actor=USER_ACTOR)
    typed_now = await services.queue.run(task.id, actor=USER_ACTOR, args={"argv": ["rm", "-rf", "src"]})
    assert not typed_now.is_held


async def test_the_environment_of_a_card_is_judged_shown_and_kept(services: Services, workspace: Workspace) -> None:
    own = await services.queue.run((await add_command(services, workspace, "true")).id, actor=USER_ACTOR)
    await services.queue.wait(own.id)
    agent = Actor(type=ActorType.AGENT, id=own.id)
    command = await services.agents.by_slug("command")

    async def made(**variables: str) -> Execution:
        context = InputContext(args={"argv": ["true"]}, env_overrides=variables)
        draft = TaskDraft(title="it", assignee_agent_id=command.id, input_context=context)
        task = await services.tasks.add(workspace, draft, actor=agent)
        return await services.queue.run(task.id, actor=agent)

    plain = await made(MODE="fast", PAGER="cat")
    hidden = await made(MODE="fast", GIT_SSH_COMMAND="sh -c 'rm -rf src'")
    (asked,) = await services.approvals.inbox(workspace.id)

    assert (plain.is_held, hidden.is_held) == (False, True)
    assert asked.approval.detail == "env 'GIT_SSH_COMMAND=sh -c '\"'\"'rm -rf src'\"'\"'' true"
    task = await services.tasks.get(hidden.task_id)
    context = replace(task.input_context, env_overrides={"GIT_SSH_COMMAND": "sh -c 'rm -rf ~'"})
    await services.queue.pause(actor=USER_ACTOR)
    await services.approvals.allow(asked.approval.id, actor=USER_ACTOR, seen_digest=asked.approval.input_digest)
    changed = replace(draft_of(task), input_context=context)
    task = await services.tasks.get(task.id)
    await services.tasks.edit(task.id, changed, expected_version=task.version, actor=agent)
    await services.queue.resume(actor=USER_ACTOR)
    assert "is not what was allowed any more" in str((await services.queue.wait(hidden.id)).error)


async def test_what_destroys_things_is_allowed_by_a_person_who_types_its_name_once(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    # A name that no file has: the shell that would make something of it is not there.
    task = await add_command(services, workspace, "rm", "-rf", "*")
    execution = await services.queue.run(task.id, actor=AN_AGENT)
    (asked,) = await services.approvals.inbox(workspace.id)
    approval = asked.approval
    digest = approval.input_digest
    assert approval.name_to_type == "rm"
    await services.settings.set(AGENTS_MAY_DECIDE_KEY, "true", actor=USER_ACTOR)

    for wrong in (None, "", "rm -rf"):
        with pytest.raises(UsageError, match="its name has to be typed: rm"):
            await services.approvals.allow(approval.id, actor=USER_ACTOR, typed_name=wrong, seen_digest=digest)
    for scope in (ApprovalScope.SESSION, ApprovalScope.ALWAYS):
        with pytest.raises(UsageError, match="once at a time"):
            await services.approvals.allow(
                approval.id, actor=USER_ACTOR, typed_name="rm", scope=scope, seen_digest=digest
            )
    with pytest.raises(ConflictError, match="by a person only"):
        await services.approvals.allow(approval.id, actor=AN_AGENT, typed_name="rm", seen_digest=digest)

    await services.approvals.allow(approval.id, actor=USER_ACTOR, typed_name=" rm ", seen_digest=digest)

    assert (await services.queue.wait(execution.id)).status is ExecutionStatus.SUCCEEDED
    assert live_home.project.exists()


async def test_what_became_another_command_or_works_elsewhere_after_it_was_allowed_does_not_start(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    await services.queue.pause(actor=USER_ACTOR)
    elsewhere = live_home.folder / "elsewhere"
    for folder in (live_home.project, elsewhere):
        (folder / "src").mkdir(parents=True)
    task = await add_command(services, workspace, "rm", "-r", "src")
    execution = await services.queue.run(task.id, actor=AN_AGENT)
    (asked,) = await services.approvals.inbox(workspace.id)
    await services.approvals.allow(asked.approval.id, actor=USER_ACTOR, seen_digest=asked.approval.input_digest)

    task = await services.tasks.get(task.id)
    moved = replace(task.input_context, working_dir=str(elsewhere))
    draft = replace(draft_of(task), input_context=moved)
    own_agent = Actor(type=ActorType.AGENT, id=execution.id)
    await services.tasks.edit(task.id, draft, expected_version=task.version, actor=own_agent)
    await services.queue.resume(actor=USER_ACTOR)
    ended = await services.queue.wait(execution.id)

    assert ended.status is ExecutionStatus.FAILED
    assert "is not what was allowed any more" in str(ended.error)
    assert (elsewhere / "src").is_dir()
    assert (live_home.project / "src").is_dir()


async def test_a_script_that_changed_after_it_was_allowed_does_not_start(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    script = live_home.project / "clean.sh"
    script.write_text("touch as-allowed")
    await services.queue.pause(actor=USER_ACTOR)
    executions = []
    for command in (["rm", "-rf", "build", "./clean.sh"], ["rm", "-rf", "build", "--from=clean.sh"]):
        task = await add_command(services, workspace, *command)
        executions.append(await services.queue.run(task.id, actor=AN_AGENT))
    for asked in await services.approvals.inbox(workspace.id):
        await services.approvals.allow(asked.approval.id, actor=USER_ACTOR, seen_digest=asked.approval.input_digest)

    script.write_text("touch something-else")
    await services.queue.resume(actor=USER_ACTOR)
    ended = [await services.queue.wait(execution.id) for execution in executions]

    assert [one.status for one in ended] == [ExecutionStatus.FAILED] * 2
    assert all("is not what was allowed any more" in str(one.error) for one in ended)
    assert script.exists()


@pytest.mark.parametrize("is_changed", [False, True])
async def test_a_program_that_changed_after_it_was_allowed_does_not_start(
    services: Services, workspace: Workspace, live_home: LiveHome, is_changed: bool
) -> None:
    place = live_home.folder / "programs"
    place.mkdir()
    program = place / "rm"
    program.write_text("#!/bin/sh\necho as allowed\n")
    program.chmod(0o700)
    await services.queue.pause(actor=USER_ACTOR)
    task = await add_command(services, workspace, "rm", "-r", "src")
    environ = {"PATH": f"{place}:{os.environ['PATH']}", "HOME": os.environ["HOME"]}
    own = Actor(type=ActorType.AGENT, id=(await services.queue.run(task.id, actor=USER_ACTOR)).id)
    await services.queue.stop(task.id, actor=USER_ACTOR)
    execution = await services.queue.run(task.id, actor=own, environ=environ)
    (asked,) = await services.approvals.inbox(workspace.id)
    await services.approvals.allow(asked.approval.id, actor=USER_ACTOR, seen_digest=asked.approval.input_digest)

    if is_changed:
        program.write_text("#!/bin/sh\necho something else\n")
    await services.queue.resume(actor=USER_ACTOR)
    ended = await services.queue.wait(execution.id)

    assert ended.status is (ExecutionStatus.FAILED if is_changed else ExecutionStatus.SUCCEEDED), ended.error
    assert ("is not what was allowed any more" in str(ended.error)) is is_changed


async def test_what_became_dangerous_while_it_waited_does_not_start_by_itself(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    await services.queue.pause(actor=USER_ACTOR)
    await services.agents.list()
    task = await add_command(services, workspace, "touch", str(live_home.folder / "done"))
    execution = await services.queue.run(task.id, actor=USER_ACTOR)
    set_capability(services, "danger_level = 2")

    await services.queue.resume(actor=USER_ACTOR)
    ended = await services.queue.wait(execution.id)

    assert ended.status is ExecutionStatus.FAILED
    assert "it needs leave now" in str(ended.error)
    assert not (live_home.folder / "done").exists()
