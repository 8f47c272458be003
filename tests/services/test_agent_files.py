"""Agents as files: a workspace's own is used only as it was trusted, exports have no secrets, imports are whole."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from agentmon.domain.agent_changes import AgentChanges, CapabilityChanges
from agentmon.domain.agent_files import FileTrust, ImportVerdict
from agentmon.domain.agents import DangerLevel
from agentmon.domain.errors import ConflictError, NotFoundError, UsageError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.services.actors import USER_ACTOR
from tests.live_home import add_command

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Workspace

_FILE: Final = """
[[agent]]
slug = "greet"
name = "Greeter"
binary = "./say hello"
working_dir = "sub"

[[agent.capability]]
key = "hello"
label = "Say hello"
command_tokens = ["{{args.whom}}"]
required = ["whom"]

[agent.capability.args.whom]
type = "string"
"""


def write_file(workspace: Workspace, text: str = _FILE) -> Path:
    root = Path(workspace.root_path)
    (root / ".agentmon").mkdir(exist_ok=True)
    (root / "sub").mkdir(exist_ok=True)
    program = root / "say hello"
    program.write_text('#!/bin/sh\necho "hello $1" > said\n')
    program.chmod(0o755)
    path = root / ".agentmon" / "agents.toml"
    path.write_text(text)
    return path


async def test_a_file_is_used_as_it_was_trusted_and_every_change_asks_again(
    services: Services, workspace: Workspace
) -> None:
    path = write_file(workspace)
    files, task = services.agent_files, await add_command(services, workspace, "true")
    seen = await files.state(workspace)
    other = await services.workspaces.open(Path(workspace.root_path).parent)

    with pytest.raises(NotFoundError):
        await services.agents.by_slug("greet")
    trusted = await files.trust(workspace, seen.digest, actor=USER_ACTOR)
    run = await services.queue.run(task.id, agent_slug="greet", args={"whom": "you"}, actor=USER_ACTOR)
    ended = await services.queue.wait(run.id)
    offered = [
        "greet" in {agent.slug for agent in await services.agents.list(workspace_id=one)}
        for one in (workspace.id, other.id, None)
    ]
    path.write_text(_FILE.replace("hello", "howdy"))
    changed = await files.state(workspace)
    with pytest.raises(UsageError, match="has changed since you trusted it"):
        await services.queue.run(task.id, agent_slug="greet", args={"whom": "you"}, actor=USER_ACTOR)
    with pytest.raises(ConflictError, match="not what was shown"):
        await files.trust(workspace, seen.digest, actor=USER_ACTOR)

    assert (seen.trust, trusted.trust, changed.trust) == (
        FileTrust.UNTRUSTED,
        FileTrust.TRUSTED,
        FileTrust.CHANGED,
    )
    assert [one.command_line for one in seen.commands] == [f"'{workspace.root_path}/say hello' '{{{{args.whom}}}}'"]
    assert ended.status is ExecutionStatus.SUCCEEDED
    assert (Path(workspace.root_path) / "sub" / "said").read_text() == "hello you\n"
    assert offered == [True, False, False]


async def test_an_agent_trusts_nothing_and_what_is_not_trusted_any_more_keeps_its_past(
    services: Services, workspace: Workspace
) -> None:
    modes = '\n[agent.session_config]\nbidirectional_protocol = "acp"\npermission_modes = ["ask", "plan"]\n'
    path = write_file(workspace, _FILE + modes)
    files = services.agent_files
    seen = await files.state(workspace)

    with pytest.raises(ConflictError, match="an agent may not"):
        await files.trust(workspace, seen.digest, actor=Actor(type=ActorType.AGENT, id="x"))
    await files.trust(workspace, seen.digest, actor=USER_ACTOR)
    mine = AgentChanges(name="Mine", permission_modes=("plan", "ask"))
    greet = await services.agents.edit("greet", mine, actor=USER_ACTOR)
    await files.untrust(workspace, actor=USER_ACTOR)

    with pytest.raises(NotFoundError, match="was removed"):
        await services.agents.by_slug("greet")
    assert (await services.agents.get(greet.id)).slug == "greet"
    path.write_text(_FILE.replace('"Say hello"', '"Say it"') + modes.replace("plan", 'plan", "all'))
    await files.trust(workspace, (await files.state(workspace)).digest, actor=USER_ACTOR)
    back = await services.agents.by_slug("greet")
    assert back.session_config is not None
    assert back.session_config.permission_modes == ("plan", "ask", "all")
    assert (back.id, back.name, back.get_capability("hello").label) == (greet.id, "Mine", "Say it")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[agent", "is not TOML"),
        (_FILE.replace("greet", "git", 1), "git is an agent of all workspaces already"),
        (_FILE.replace("greet", "command", 1), "command is an agent of all workspaces already"),
        (_FILE.replace('"sub"', '"nowhere"'), "is not there"),
        (_FILE.replace("{{args.whom}}", "{{args.who}}"), "is unknown"),
        (_FILE.replace("label", "shell = true\nlabel"), "unknown entry shell"),
    ],
)
async def test_a_file_that_cannot_be_used_says_why(
    services: Services, workspace: Workspace, text: str, problem: str
) -> None:
    write_file(workspace, text)

    state = await services.agent_files.state(workspace)

    assert (state.trust, state.agents) == (FileTrust.BROKEN, ())
    with pytest.raises(UsageError, match=problem):
        await services.agent_files.trust(workspace, state.digest, actor=USER_ACTOR)


async def test_the_same_file_in_another_folder_gets_other_names_and_keeps_them(
    services: Services, workspace: Workspace, tmp_path: Path
) -> None:
    clone = tmp_path / "Second Clone"
    clone.mkdir()
    other = await services.workspaces.open(clone)
    for place in (workspace, other):
        write_file(place)
        state = await services.agent_files.state(place)
        await services.agent_files.trust(place, state.digest, actor=USER_ACTOR)

    again = await services.agent_files.trust(other, state.digest, actor=USER_ACTOR)

    assert [agent.slug for agent in again.agents] == ["greet-second-clone"]
    assert again.notes == ("greet is called greet-second-clone here, since another workspace has a greet",)
    assert [
        {agent.slug for agent in await services.agents.list(workspace_id=place.id) if agent.workspace_id}
        for place in (workspace, other)
    ] == [{"greet"}, {"greet-second-clone"}]


@pytest.mark.parametrize("is_folder", [True, False])
async def test_no_link_leads_out_of_the_workspace(
    services: Services, workspace: Workspace, tmp_path: Path, is_folder: bool
) -> None:
    path = write_file(workspace)
    (tmp_path / "agents.toml").write_text(_FILE)
    path.unlink()
    if is_folder:
        path.parent.rmdir()
        path.parent.symlink_to(tmp_path)
    else:
        path.symlink_to(tmp_path / "agents.toml")

    assert "is a link" in (await services.agent_files.state(workspace)).problem


async def test_what_is_exported_comes_back_the_same_and_has_no_secret(services: Services) -> None:
    agents, files = services.agents, services.agent_files
    key = "sk-ant-api03-" + "a1B2c3D4" * 8
    await agents.duplicate("git", "git-two", actor=USER_ACTOR)
    await agents.edit("git-two", AgentChanges(base_args=("-c", f"k={key}"), role="a\u2019b"), actor=USER_ACTOR)
    await agents.edit_capability(
        "git", "log", CapabilityChanges(danger_level=DangerLevel.DANGEROUS, is_enabled=False), actor=USER_ACTOR
    )

    exported = await files.export()
    again = await files.import_text(exported.text.replace("git-two", "git-three"), actor=USER_ACTOR)
    kept = await files.import_text(exported.text.replace("danger_level = 2", "danger_level = 3"), actor=USER_ACTOR)
    dry = await files.import_text(exported.text, replaces=True, is_dry=True, actor=USER_ACTOR)
    changed = exported.text.replace("danger_level = 2", "danger_level = 3")
    await files.import_text(changed, replaces=True, actor=USER_ACTOR)

    assert key not in exported.text
    assert exported.left_out == ("git-two, base_args: what looks like a secret is masked",)
    assert {one["slug"] for one in tomllib.loads(exported.text)["agent"]} == {"git", "git-two"}
    assert [one.verdict for one in again] == [ImportVerdict.SAME, ImportVerdict.ADDED]
    assert kept[0].verdict is ImportVerdict.KEPT
    assert [one.verdict for one in dry] == [ImportVerdict.SAME, ImportVerdict.CHANGED]
    log = (await agents.by_slug("git")).get_capability("log")
    assert (log.danger_level, log.is_enabled, log.edited_fields) == (3, False, ("danger_level", "is_enabled"))
    two, three = (await agents.by_slug("git-two")), (await agents.by_slug("git-three"))
    assert [one.command_tokens for one in two.capabilities] == [one.command_tokens for one in three.capabilities]
    described = [[one.args_schema["properties"] for one in agent.capabilities] for agent in (two, three)]
    assert described[0] == described[1]


async def test_a_file_with_one_bad_agent_changes_nothing(services: Services) -> None:
    good = _FILE.replace("./say hello", "true").replace('working_dir = "sub"\n', "")
    bad = good.replace("greet", "other").replace("{{args.whom}}", "{{args.who}}")

    with pytest.raises(UsageError, match=r"agent other: .*unknown"):
        await services.agent_files.import_text(good + bad, actor=USER_ACTOR)

    assert "greet" not in {agent.slug for agent in await services.agents.list(active_only=False)}


async def test_a_level_that_a_person_lowered_is_not_said_of_another_command(
    services: Services, workspace: Workspace
) -> None:
    path = write_file(workspace)
    files = services.agent_files

    async def trusted_as(text: str) -> tuple[DangerLevel, tuple[str, ...]]:
        path.write_text(text)
        await files.trust(workspace, (await files.state(workspace)).digest, actor=USER_ACTOR)
        (hello,) = (await services.agents.by_slug("greet")).capabilities
        return hello.danger_level, hello.edited_fields

    of_file = _FILE.replace('label = "Say', 'danger_level = 2\nlabel = "Say')
    await trusted_as(of_file)
    lowered = CapabilityChanges(danger_level=DangerLevel.SAFE)
    await services.agents.edit_capability("greet", "hello", lowered, actor=USER_ACTOR)

    assert await trusted_as(of_file.replace("Say hello", "Greet")) == (DangerLevel.SAFE, ("danger_level",))
    assert await trusted_as(of_file.replace('["{{', '["--all", "{{')) == (DangerLevel.DANGEROUS, ())
    raised = CapabilityChanges(danger_level=DangerLevel.DESTRUCTIVE)
    await services.agents.edit_capability("greet", "hello", raised, actor=USER_ACTOR)
    assert await trusted_as(of_file.replace("./say hello", "./say")) == (DangerLevel.DESTRUCTIVE, ())


async def test_an_import_whose_last_agent_cannot_take_its_tools_changes_nothing(services: Services) -> None:
    await services.agents.duplicate("git", "git-two", actor=USER_ACTOR)
    exported = (await services.agent_files.export(["git-two"])).text
    before = await services.agents.list(active_only=False)
    third = exported.replace('"git-two"', '"git-three"')
    with_tools = exported + "\n[agent.tools]\nBash = false\n"

    with pytest.raises(UsageError, match="which of its tools"):
        await services.agent_files.import_text(third + with_tools, replaces=True, actor=USER_ACTOR)

    assert await services.agents.list(active_only=False) == before
