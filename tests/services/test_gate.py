"""What an agent may ask for: the table says it of each method, and the services refuse the rest."""

from __future__ import annotations

import asyncio
import inspect
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.conversation import AskKind
from agentmon.domain.errors import ConflictError
from agentmon.domain.events import UNSEEN_ACTOR, Actor, ActorType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import InputContext, TaskDraft, draft_of
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo_agent import make_demo_agent
from agentmon.services.gate import RIGHTS, Who, rights_of
from tests.live_home import add_command, run_to_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Task, Workspace
    from tests.live_home import LiveHome


def _methods(services: Services) -> Iterator[tuple[str, object]]:
    """Yield all public methods of the services, by the class that defines each."""
    for field in fields(services):
        for one in type(getattr(services, field.name)).__mro__:
            if one.__module__.startswith("agentmon.services."):
                for name, method in vars(one).items():
                    if inspect.isfunction(method) and not name.startswith("_"):
                        yield f"{one.__name__}.{name}", method


def agent_of(execution: Execution) -> Actor:
    return Actor(type=ActorType.AGENT, id=execution.id)


async def test_the_table_has_each_method_once_and_nothing_else(services: Services) -> None:
    named = [name for right in RIGHTS for name in right.methods.split()]

    assert sorted(named) == sorted({name for name, _ in _methods(services)})


async def test_what_somebody_may_not_ask_for_is_told_who_asks(services: Services) -> None:
    guarded = {name for right in RIGHTS if right.who is not Who.EVERYONE for name in right.methods.split()}
    owned = {name for right in RIGHTS if right.who in {Who.OWNER, Who.MAKER} for name in right.methods.split()}
    for name, method in _methods(services):
        if name in guarded:
            assert inspect.iscoroutinefunction(method), name
            parameters = list(inspect.signature(method).parameters)
            assert "actor" in parameters, name
            assert parameters[1] == "task_id" or name not in owned, name


@pytest.mark.parametrize("may_decide", [False, True])
async def test_an_agent_is_refused_by_each_method_that_is_not_for_it(
    services: Services, workspace: Workspace, may_decide: bool
) -> None:
    await services.settings.set("approvals.agents_may_decide", str(may_decide), actor=USER_ACTOR)
    task = await add_command(services, workspace, "true")
    own = await services.queue.run(task.id, actor=USER_ACTOR)
    await services.queue.wait(own.id)
    foreign = await add_command(services, workspace, "true", title="foreign")
    open_to = {Who.EVERYONE, Who.DECIDER} if may_decide else {Who.EVERYONE}
    agents = [agent_of(own), Actor(type=ActorType.AGENT, id="unknown"), Actor(type=ActorType.AGENT), UNSEEN_ACTOR]
    before = _all_rows(services)
    refused = 0
    for field in fields(services):
        service = getattr(services, field.name)
        for name, right in rights_of(type(service)).items():
            if right.who not in open_to:
                for agent in agents:
                    for said in ((foreign.id,), ()):
                        with pytest.raises(ConflictError, match="an agent may not"):
                            await getattr(service, name)(*said, actor=agent, task_id=foreign.id)
                    refused += 1

    assert refused >= 4 * 50
    assert _all_rows(services) == before


_OF_PERSONS = (
    *("settings", "approval_rules", "approvals", "budgets", "agents", "agent_capabilities", "execution_commands"),
    *("tasks", "task_dependencies", "workspaces", "review_comments", "looked_at"),
)


def _all_rows(services: Services) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(services.paths.database_path)) as connection:
        return {one: connection.execute(f"SELECT * FROM {one}").fetchall() for one in _OF_PERSONS}


async def test_an_agent_changes_its_own_card_and_those_that_were_made_from_it(
    services: Services, workspace: Workspace
) -> None:
    own = await add_command(services, workspace, "true", title="own")
    agent = agent_of(await run_to_end(services, own))
    made = await _made(services, workspace, agent, "made")
    deeper = await _made(services, workspace, agent_of(await run_to_end(services, made)), "deeper")
    foreign = await add_command(services, workspace, "true", title="foreign")
    below_foreign = await _made(services, workspace, agent_of(await run_to_end(services, foreign)), "below")

    for task in (own, made, deeper):
        present = await services.tasks.get(task.id)
        changed = replace(draft_of(present), description="more")
        await services.tasks.edit(task.id, changed, expected_version=present.version, actor=agent)
    for task in (made, deeper):
        await services.tasks.delete(task.id, actor=agent)
        await services.tasks.restore(task.id, actor=agent)
    for task in (foreign, below_foreign):
        with pytest.raises(ConflictError, match="a card that is not its own"):
            await services.tasks.move(task.id, TaskStatus.BLOCKED, actor=agent)
    for task in (own, foreign, below_foreign):
        with pytest.raises(ConflictError, match="delete a card"):
            await services.tasks.delete(task.id, actor=agent)


async def _made(services: Services, workspace: Workspace, agent: Actor, title: str) -> Task:
    slug = await services.agents.by_slug("command")
    draft = TaskDraft(title=title, assignee_agent_id=slug.id, input_context=InputContext(args={"argv": ["true"]}))
    return await services.tasks.add(workspace, draft, actor=agent)


async def test_a_card_that_is_not_its_own_waits_for_a_person_when_an_agent_starts_it(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    own = await add_command(services, workspace, "true", title="own")
    agent = agent_of(await run_to_end(services, own))
    made = await _made(services, workspace, agent, "made")
    foreign = await add_command(services, workspace, "touch", str(live_home.folder / "done"), title="foreign")

    of_made = await services.queue.run(made.id, actor=agent)
    of_foreign = await services.queue.run(foreign.id, actor=agent)

    assert (await services.queue.wait(of_made.id)).status is ExecutionStatus.SUCCEEDED
    assert of_foreign.is_held
    (asked,) = await services.approvals.inbox(workspace.id)
    assert (asked.approval.ask_kind, asked.approval.execution_id) == (AskKind.START, of_foreign.id)
    assert not (live_home.folder / "done").exists()
    await services.approvals.allow(asked.approval.id, actor=USER_ACTOR, seen_digest=asked.approval.input_digest)
    assert (await services.queue.wait(of_foreign.id)).status is ExecutionStatus.SUCCEEDED
    assert (live_home.folder / "done").exists()


@pytest.mark.parametrize("mode", ["acceptEdits", "manual"])
async def test_a_permission_mode_that_an_agent_chose_waits_for_a_person(
    services: Services, workspace: Workspace, mode: str
) -> None:
    own = await add_command(services, workspace, "true", title="own")
    agent = agent_of(await run_to_end(services, own))
    coder = await services.agents.add(make_demo_agent(pace_s=0))

    def draft(**args: object) -> TaskDraft:
        return TaskDraft(title="made", assignee_agent_id=coder.id, input_context=InputContext(args=args))

    said_at_start = await services.tasks.add(workspace, draft(), actor=agent)
    said_on_card = await services.tasks.add(workspace, draft(permission_mode=mode), actor=agent)
    typed = await services.tasks.add(workspace, draft(permission_mode=mode), actor=USER_ACTOR)

    is_held = [
        (await services.queue.run(said_at_start.id, permission_mode=mode, actor=agent)).is_held,
        (await services.queue.run(said_on_card.id, actor=agent)).is_held,
        (await services.queue.run(typed.id, actor=USER_ACTOR)).is_held,
    ]

    assert is_held == [mode != "manual", mode != "manual", False]


async def test_who_chose_a_permission_mode_is_not_asked_about_it(services: Services, workspace: Workspace) -> None:
    own = await add_command(services, workspace, "true", title="own")
    agent = agent_of(await run_to_end(services, own))
    coder = await services.agents.add(make_demo_agent(pace_s=0))
    draft = TaskDraft(title="made", assignee_agent_id=coder.id)
    one, two, three = [await services.tasks.add(workspace, draft, actor=agent) for _ in range(3)]

    chosen = await services.queue.run(one.id, permission_mode="acceptEdits", actor=USER_ACTOR)
    typed = await services.queue.run(two.id, args={"permission_mode": "acceptEdits"}, actor=USER_ACTOR)
    by_agent = await services.queue.run(three.id, permission_mode="acceptEdits", actor=agent)

    assert (chosen.is_held, typed.is_held, by_agent.is_held) == (False, False, True)


async def test_no_agent_starts_sooner_what_a_person_started_later(services: Services, workspace: Workspace) -> None:
    agent = agent_of(await run_to_end(services, await add_command(services, workspace, "true")))
    foreign = await add_command(services, workspace, "true", title="foreign")
    later = datetime.now(UTC) + timedelta(days=1)
    waiting = await services.queue.run(foreign.id, not_before=later, actor=USER_ACTOR)

    with pytest.raises(ConflictError, match="may not start it sooner"):
        await services.queue.run(foreign.id, actor=agent)

    assert (await services.executions.get(waiting.id)).not_before == waiting.not_before is not None
    assert (await services.queue.run(foreign.id, actor=USER_ACTOR)).id == waiting.id


async def test_what_an_agent_hands_over_is_judged_and_never_goes_to_the_card_of_another(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    agent = agent_of(await run_to_end(services, await add_command(services, workspace, "true")))
    made = await _made(services, workspace, agent, "made")
    foreign = await add_command(services, workspace, "sh", "-c", 'echo "$EDITOR" > shown', title="foreign")
    environ = {**os.environ, "EDITOR": "rm -rf src"}

    of_made = await services.queue.run(made.id, environ=environ, actor=agent)
    of_foreign = await services.queue.run(foreign.id, environ={**os.environ, "EDITOR": "evil"}, actor=agent)

    assert (of_made.is_held, of_foreign.is_held) == (True, True)
    asked = {one.approval.execution_id: one.approval for one in await services.approvals.inbox(workspace.id)}
    approval = asked[of_foreign.id]
    await services.approvals.allow(approval.id, actor=USER_ACTOR, seen_digest=approval.input_digest)
    assert (await services.queue.wait(of_foreign.id)).status is ExecutionStatus.SUCCEEDED
    assert (live_home.project / "shown").read_text() != "evil\n"


@pytest.mark.proof
@pytest.mark.parametrize(
    "words",
    [
        ("prices", "set", "a-model", "--input", "1"),
        ("prices", "update"),
        ("statusline", "--install"),
        ("costs", "reprice"),
        ("worker", "--stop"),
        ("pause",),
        ("settings", "worker.max_running", "100"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
async def test_a_command_in_a_run_is_refused_what_is_a_persons(
    services: Services, workspace: Workspace, live_home: LiveHome, words: tuple[str, ...]
) -> None:
    own = await run_to_end(services, await add_command(services, workspace, "true"))
    environ = {**os.environ, "AGENTMON_EXECUTION_ID": own.id, "AGENTMON_PRICES_URL": "http://127.0.0.1:1/"}
    environ |= {"HOME": str(live_home.folder), "AGENTMON_HOME": str(live_home.folder / "home")}

    called = await _call(words, environ, live_home.project)

    assert called.returncode == 1, called.stdout
    assert "an agent may not" in called.stderr


async def _call(words: tuple[str, ...], environ: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-P", "-m", "agentmon", *words],
        env=environ,
        cwd=folder,
        text=True,
        capture_output=True,
        check=False,
    )
