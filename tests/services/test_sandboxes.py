"""Runs in a sandbox: what they see of agentmon, what they call of it, and which sandbox each has."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.agent_changes import AgentChanges
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.sandboxes import Sandbox
from agentmon.domain.tasks import draft_of
from agentmon.domain.worktrees import Isolation
from agentmon.runners.sandbox.trial import find_sandbox_problem
from agentmon.services.actors import USER_ACTOR
from tests.live_home import add_command, run_to_end

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Workspace

pytestmark = pytest.mark.skipif(bool(find_sandbox_problem()), reason="this machine gives an ordinary user no sandbox")

_AGENTMON = shlex.join([sys.executable, "-P", "-m", "agentmon"])
_WALLS = [Sandbox.AGENTMON, Sandbox.PROJECT]


async def run_script(services: Services, workspace: Workspace, script: str, sandbox: Sandbox | None) -> Execution:
    """Run lines of shell in the project, with ``$AGENTMON`` as the command."""
    file = Path(workspace.root_path) / "script.sh"
    file.write_text(f'agentmon() {{ {_AGENTMON} "$@"; }}\n{script}')
    return await run_to_end(services, await add_command(services, workspace, "sh", str(file)), sandbox=sandbox)


def said(workspace: Workspace, name: str) -> str:
    return (Path(workspace.root_path) / name).read_text()


@pytest.mark.parametrize("sandbox", _WALLS)
async def test_a_run_sees_nothing_of_agentmon_but_its_command_line(
    services: Services, workspace: Workspace, sandbox: Sandbox
) -> None:
    paths = services.paths
    script = f"""
    find {paths.data_dir} {paths.config_dir} {paths.run_dir} -type f ! -name calls.sock > files
    tmux -S {paths.tmux_socket} list-sessions > sessions 2> refused
    touch {paths.config_dir}/danger.toml {paths.run_dir}/mine 2>> refused
    agentmon task list --json > tasks
    echo '{{}}' | agentmon statusline --then 'echo mine' > line
    agentmon settings worker.max_running 7 2>> refused; echo $? > code
    echo from within | agentmon task add --batch - >> refused 2>&1
    agentmon doctor < /dev/null > doctor
    env -u AGENTMON_CALLS {_AGENTMON} task list > past 2>> refused; echo $? > past-code
    """

    ended = await run_script(services, workspace, script, sandbox)

    assert ended.status is ExecutionStatus.SUCCEEDED, said(workspace, "refused")
    assert ended.sandbox is sandbox
    assert (said(workspace, "files"), said(workspace, "sessions"), said(workspace, "past")) == ("", "", "")
    assert not paths.danger_rules_file.exists()
    assert [task["number"] for task in json.loads(said(workspace, "tasks"))] == [1]
    assert said(workspace, "line").startswith("mine\n")
    assert (said(workspace, "code"), said(workspace, "past-code")) == ("1\n", "1\n")
    assert (await services.settings.worker()).max_running != 7
    assert "sandbox" in said(workspace, "doctor")
    assert "fail" not in said(workspace, "doctor")


async def test_what_is_called_does_no_more_than_the_run_could(services: Services, workspace: Workspace) -> None:
    folder = services.paths.data_dir.parent
    script = f"""
    agentmon log 1 --save {folder}/saved 2> refused; echo $? > codes
    EDITOR="sh -c 'touch {folder}/edited'" agentmon task edit 1 --editor 2>> refused; echo $? >> codes
    agentmon attach 1 2>> refused; echo $? >> codes
    agentmon agents export command -o {folder}/exported 2>> refused; echo $? >> codes
    agentmon demo --json < /dev/null >> refused 2>&1; echo $? >> codes
    LD_PRELOAD={folder}/none.so PYTHONSTARTUP={folder}/none agentmon task list > listed; echo $? >> codes
    """

    ended = await run_script(services, workspace, script, Sandbox.AGENTMON)

    assert ended.status is ExecutionStatus.SUCCEEDED
    codes = said(workspace, "codes").split()
    assert "0" not in codes[:-1], said(workspace, "refused")
    assert codes[-1] == "0"
    assert not [name for name in ("saved", "edited", "exported") if (folder / name).exists()]


async def test_what_a_run_in_a_sandbox_starts_is_in_it_too(services: Services, workspace: Workspace) -> None:
    script = """
    agentmon task add child --command 'sh -c "touch child-ran"' --json > child
    agentmon run 2 --wait > run 2>&1; echo $? > code
    agentmon run 2 --sandbox off > loosened 2>&1
    agentmon task add elsewhere --command true --dir / > else 2>&1
    agentmon run 3 >> else 2>&1
    """

    await run_script(services, workspace, script, Sandbox.PROJECT)

    assert said(workspace, "code") == "0\n", said(workspace, "run")
    (child,) = [one for one in await services.tasks.list(workspace) if one.number == 2]
    (elsewhere,) = [one for one in await services.tasks.list(workspace) if one.number == 3]
    assert [one.is_held for one in await services.executions.of_task(elsewhere.id)] == [True]
    newest, first = await services.executions.of_task(child.id)
    assert (first.sandbox, first.status) == (Sandbox.PROJECT, ExecutionStatus.SUCCEEDED)
    assert newest.sandbox is Sandbox.PROJECT


async def test_what_an_agent_wrote_runs_in_its_sandbox_also_when_a_schedule_starts_it(
    services: Services, workspace: Workspace
) -> None:
    own = await run_to_end(services, await add_command(services, workspace, "true"), sandbox=Sandbox.PROJECT)
    agent = Actor(type=ActorType.AGENT, id=own.id)
    draft = replace(draft_of(await add_command(services, workspace, "true")), title="of an agent")
    made = await services.tasks.add(workspace, draft, actor=agent)

    assert (await run_to_end(services, made)).sandbox is Sandbox.PROJECT
    assert (await run_to_end(services, made, sandbox=Sandbox.OFF)).sandbox is Sandbox.OFF


async def test_nobody_has_to_choose_for_what_an_agent_has_put_on_the_board(
    services: Services, workspace: Workspace
) -> None:
    own = await run_to_end(services, await add_command(services, workspace, "true"))
    assert own.sandbox is Sandbox.OFF
    agent = Actor(type=ActorType.AGENT, id=own.id)
    task = await add_command(services, workspace, "true", title="of an agent")
    made = await services.tasks.add(workspace, draft_of(task), actor=agent)

    assert (await run_to_end(services, made)).sandbox is Sandbox.AGENTMON


async def test_a_workspace_and_an_agent_say_which_sandbox_their_runs_have(
    services: Services, workspace: Workspace
) -> None:
    task = await add_command(services, workspace, "true")

    await services.settings.set("workspace.sandbox", "agentmon", actor=USER_ACTOR, workspace=workspace)
    assert (await run_to_end(services, task)).sandbox is Sandbox.AGENTMON

    await services.agents.edit("command", AgentChanges(sandbox=Sandbox.PROJECT), actor=USER_ACTOR)
    assert (await run_to_end(services, task)).sandbox is Sandbox.PROJECT
    assert (await run_to_end(services, task, sandbox=Sandbox.OFF)).sandbox is Sandbox.OFF


async def test_what_a_run_is_verified_with_is_in_its_sandbox(services: Services, workspace: Workspace) -> None:
    looks = f'sh -c "find {services.paths.data_dir} -name agentmon.db > found; touch verified"'
    await services.settings.set("workspace.verify", looks, actor=USER_ACTOR, workspace=workspace)
    task = await add_command(services, workspace, "true", verify=looks)

    ended = await run_to_end(services, task, sandbox=Sandbox.AGENTMON)

    assert ended.status is ExecutionStatus.SUCCEEDED
    command = await services.verifications.command(task, ended)
    (Path(workspace.root_path) / "verified").unlink(missing_ok=True)
    await services.verifications.verify(task, ended, command, actor=USER_ACTOR)
    assert (Path(workspace.root_path) / "verified").exists()
    assert said(workspace, "found") == ""


async def test_work_in_a_worktree_can_be_committed_from_within_the_strictest_sandbox(
    services: Services, workspace: Workspace
) -> None:
    root = Path(workspace.root_path)
    make = "git init -q . && git add -A && git -c user.name=A -c user.email=a@example.org commit -q -m first"
    (root / "file").touch()
    await asyncio.to_thread(subprocess.run, ["sh", "-c", make], cwd=root, check=True)
    commit = (
        "echo more > file; git -c user.name=A -c user.email=a@example.org commit -qam second"
        f" && pwd && ! touch {services.paths.data_dir.parent.parent.parent}/outside"
    )
    task = await add_command(services, workspace, "sh", "-c", commit, isolation=Isolation.WORKTREE)

    ended = await run_to_end(services, task, sandbox=Sandbox.PROJECT)

    assert ended.status is ExecutionStatus.SUCCEEDED, ended.error
    assert ended.worktree_id is not None
    assert ended.changed_files == 1
