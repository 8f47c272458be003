"""What a person changes of agents: it stays theirs, it is in the audit trail, and nothing of the past is lost."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.agent_changes import AgentChanges, CapabilityChanges
from agentmon.domain.agents import AgentKind, Capability, CapabilitySource, DangerLevel
from agentmon.domain.audit import event_sentence
from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import AgentNotInstalledError, ConflictError, FieldError, NotFoundError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import AgentId, CapabilityId
from agentmon.services.actors import USER_ACTOR
from agentmon.store.agents import AgentRepository
from tests.live_home import add_command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.bootstrap import Services
    from agentmon.domain.agents import Agent
    from agentmon.domain.tasks import Workspace
    from tests.live_home import LiveHome

_AN_AGENT = Actor(type=ActorType.AGENT, id="019c")


def capability(key: str, *tokens: str, schema: Mapping[str, object] | None = None) -> Capability:
    return Capability(
        id=CapabilityId("any"),
        agent_id=AgentId("any"),
        key=key,
        label=key,
        source=CapabilitySource.MANUAL,
        command_tokens=tokens,
        args_schema=schema or {},
    )


async def refresh(services: Services, told: Agent) -> tuple[str, ...]:
    return await AgentRepository(services.database).refresh([told], at=SystemClock().now())


async def test_what_a_person_changed_outlives_a_new_preset_and_the_rest_follows_it(services: Services) -> None:
    await services.agents.edit("git", AgentChanges(name="My git", role="history"), actor=USER_ACTOR)
    await services.agents.edit_capability("git", "log", CapabilityChanges(timeout_s=7), actor=USER_ACTOR)
    git = await services.agents.by_slug("git")
    log = replace(git.get_capability("log"), label="Newer label", timeout_s=99)
    told = replace(git, name="Git", description="Newer words", capabilities=(log, capability("fresh", "fresh")))

    changed = await refresh(services, replace(told, kind=AgentKind.BUILTIN))
    again = await refresh(services, told)

    after = await services.agents.by_slug("git")
    assert (changed, again) == (("git",), ())
    assert (after.name, after.role, after.description) == ("My git", "history", "Newer words")
    assert after.edited_fields == ("name", "role")
    assert (after.get_capability("log").label, after.get_capability("log").timeout_s) == ("Newer label", 7)
    assert [one.key for one in after.capabilities] == [*(one.key for one in git.capabilities), "fresh"]


async def test_a_change_is_written_once_with_what_it_was_and_by_whom(services: Services) -> None:
    await services.agents.edit("sh", AgentChanges(max_concurrent=3), actor=USER_ACTOR)
    await services.agents.edit("sh", AgentChanges(max_concurrent=3), actor=USER_ACTOR)
    await services.agents.disable("sh", actor=USER_ACTOR)

    entries = await services.audit.all(None, after_id=0, limit=100)
    told = [entry.event.payload for entry in entries if entry.event.payload.get("agent") == "sh"]
    assert [one.get("max_concurrent") for one in told] == [{"from": 0, "to": 3}, None]
    assert told[1]["is_active"] == {"from": True, "to": False}


async def test_what_a_person_wants_as_it_is_becomes_theirs_too(services: Services) -> None:
    git = await services.agents.by_slug("git")
    level = git.get_capability("log").danger_level
    for _ in range(2):
        await services.agents.limit("git", git.max_concurrent, actor=USER_ACTOR)
        await services.agents.enable("git", actor=USER_ACTOR)
        await services.agents.edit_capability("git", "log", CapabilityChanges(danger_level=level), actor=USER_ACTOR)

    log = replace(git.get_capability("log"), danger_level=DangerLevel.DESTRUCTIVE)
    await refresh(services, replace(git, max_concurrent=9, capabilities=(log,)))

    after = await services.agents.by_slug("git")
    assert (after.max_concurrent, after.edited_fields) == (git.max_concurrent, ("max_concurrent",))
    assert after.get_capability("log").danger_level is level
    assert after.get_capability("log").edited_fields == ("danger_level",)
    entries = await services.audit.all(None)
    assert [event_sentence(entry.event) for entry in entries if entry.event.actor.type is ActorType.USER] == [
        "changed of git: the limit stays no limit",
        "changed of the capability log of git: danger level stays 0",
    ]


async def test_an_agent_changes_nothing_of_the_registry(services: Services) -> None:
    agents = services.agents
    attempts = [
        agents.edit("git", AgentChanges(name="Mine"), actor=_AN_AGENT),
        agents.duplicate("git", "git-two", actor=_AN_AGENT),
        agents.remove("git", actor=_AN_AGENT),
        agents.restore("git", actor=_AN_AGENT),
        agents.add_program("true", actor=_AN_AGENT),
        agents.edit_capability("git", "log", CapabilityChanges(danger_level=DangerLevel.SAFE), actor=_AN_AGENT),
        agents.add_capability("git", capability("x", "x"), actor=_AN_AGENT),
        agents.remove_capability("git", "log", actor=_AN_AGENT),
        agents.set_tools("git", {"Bash": True}, actor=_AN_AGENT),
    ]

    for attempt in attempts:
        with pytest.raises(ConflictError, match="an agent may not"):
            await attempt


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        (AgentChanges(name=" "), "name"),
        (AgentChanges(binary_path="bin/git"), "binary_path"),
        (AgentChanges(binary_path="/nowhere/git"), "binary_path"),
        (AgentChanges(working_dir="/nowhere/at/all"), "working_dir"),
        (AgentChanges(env_allowlist=("A*B",)), "env_allowlist"),
        (AgentChanges(max_concurrent=-1), "max_concurrent"),
        (AgentChanges(model="opus"), "model"),
        (AgentChanges(temperature=0.5), "temperature"),
        (AgentChanges(instructions="be brief"), "instructions"),
        (AgentChanges(color="#12"), "color"),
        (AgentChanges(homepage="javascript:1"), "homepage"),
    ],
)
async def test_a_value_that_cannot_be_is_refused_at_its_field(
    services: Services, changes: AgentChanges, field: str
) -> None:
    before = await services.agents.by_slug("git")

    with pytest.raises(FieldError) as refused:
        await services.agents.edit("git", changes, actor=USER_ACTOR)

    assert refused.value.field == field
    assert await services.agents.by_slug("git") == before


async def test_a_capability_is_added_changed_taken_away_and_brought_back(services: Services) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    agents = services.agents
    await agents.add_capability("git", capability("tag", "tag", "{{args.name}}", schema=schema), actor=USER_ACTOR)

    with pytest.raises(FieldError) as wrong:
        await agents.edit_capability("git", "tag", CapabilityChanges(command_tokens=("{{args.no}}",)), actor=USER_ACTOR)
    with pytest.raises(ConflictError, match="has a capability tag already"):
        await agents.add_capability("git", capability("tag", "tag"), actor=USER_ACTOR)
    gone = await agents.remove_capability("git", "tag", actor=USER_ACTOR)
    back = await agents.restore_capability("git", "tag", actor=USER_ACTOR)

    assert wrong.value.field == "command_tokens"
    assert "tag" not in [one.key for one in gone.capabilities]
    assert back.get_capability("tag").command_tokens == ("tag", "{{args.name}}")


async def test_a_removed_agent_keeps_what_it_did_and_comes_back_as_it_was(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    agents = services.agents
    before = await agents.add_program("touch", actor=USER_ACTOR)
    task = await add_command(services, workspace, "true")
    done = await services.queue.run(
        task.id, actor=USER_ACTOR, agent_slug="touch", args={"words": [str(live_home.folder / "made")]}
    )
    assert (await services.queue.wait(done.id)).status is ExecutionStatus.SUCCEEDED

    await agents.remove("touch", actor=USER_ACTOR)

    with pytest.raises(NotFoundError, match="was removed"):
        await services.queue.run(task.id, actor=USER_ACTOR, agent_slug="touch")
    assert "touch" not in [agent.slug for agent in await agents.registered()]
    assert (await services.executions.get(done.id)).agent_id == before.id
    assert (live_home.folder / "made").exists()
    assert await agents.restore("touch", actor=USER_ACTOR) == before


async def test_a_program_becomes_an_agent_by_its_preset_or_with_free_words(services: Services, tmp_path: Path) -> None:
    program = tmp_path / "7 up"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    agents = services.agents

    free = await agents.add_program(str(program), actor=USER_ACTOR)
    twin = await agents.add_program("git", slug="git-two", actor=USER_ACTOR)
    copy = await agents.duplicate("git", "git-three", actor=USER_ACTOR)

    assert (free.slug, free.binary_path, [one.key for one in free.capabilities]) == ("run-7-up", str(program), ["run"])
    assert (twin.kind, twin.binary_path, twin.get_capability("log").command_tokens[0]) == (
        AgentKind.CUSTOM,
        "git",
        "log",
    )
    assert [one.key for one in copy.capabilities] == [one.key for one in twin.capabilities]
    with pytest.raises(ConflictError, match="git is an agent already"):
        await agents.add_program("git", actor=USER_ACTOR)
    with pytest.raises(ConflictError, match="there is an agent git-two already"):
        await agents.duplicate("git", "git-two", actor=USER_ACTOR)
    with pytest.raises(AgentNotInstalledError, match="no-such-program"):
        await agents.add_program("no-such-program", actor=USER_ACTOR)

    elsewhere = Path(os.environ["HOME"], ".nvm/versions/node/v18.0.0/bin/far-tool")
    elsewhere.parent.mkdir(parents=True)
    elsewhere.symlink_to(program)
    assert (await agents.add_program("far-tool", actor=USER_ACTOR)).binary_path == str(elsewhere)


async def test_a_new_release_reaches_the_registry_at_its_first_look_and_writes_nothing_when_all_is_said(
    services: Services, live_home: LiveHome
) -> None:
    await services.agents.edit("git", AgentChanges(name="My git"), actor=USER_ACTOR)
    await services.agents.remove_capability("git", "blame", actor=USER_ACTOR)
    connection = sqlite3.connect(services.paths.database_path)
    with connection:
        connection.execute("UPDATE agents SET name = 'Old', base_args = '[\"--old\"]' WHERE slug IN ('git', 'sh')")
        connection.execute("DELETE FROM agent_capabilities WHERE key = 'diff'")
    connection.close()

    async with open_services(live_home.paths) as next_release:
        agents = {agent.slug: agent for agent in await next_release.agents.list()}
    at_rest = services.data_version()
    async with open_services(live_home.paths) as once_more:
        await once_more.agents.list()

    assert (agents["git"].name, agents["git"].base_args, agents["sh"].name) == ("Old", ("--no-pager",), "Shell")
    assert {"diff", "blame"} & {one.key for one in agents["git"].capabilities} == {"diff"}
    assert services.data_version() == at_rest
