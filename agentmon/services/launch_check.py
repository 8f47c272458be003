"""What is checked before an execution is queued, so that a start that cannot work is refused with the reason."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.domain.agents import InteractionMode
from agentmon.domain.errors import AgentNotInstalledError, UsageError
from agentmon.runners.adapters.template import check_arguments, render_command, render_tokens
from agentmon.runners.environment import select_environment
from agentmon.runners.tmux import find_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.agents import Agent, Capability
    from agentmon.domain.tasks import InputContext, Task


def launch_environment(agent: Agent, context: InputContext, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that the program of a task gets from this one.

    The folder of a program that is named by its whole path stands at the end of the PATH.

    Raises:
        UsageError: A variable that is to be passed is not set here, or a name is not one.
    """
    chosen = select_environment(
        environ, allowlist=agent.env_allowlist, passed=context.env_passed, overrides=context.env_overrides
    )
    folder = str(Path(agent.binary_path).parent)
    search_path = chosen.get("PATH", "")
    if Path(agent.binary_path).is_absolute() and folder not in search_path.split(os.pathsep):
        # What came with a version of node is started by that node, which stands beside it.
        chosen["PATH"] = os.pathsep.join(part for part in (search_path, folder) if part)
    return chosen


def require_launchable(
    task: Task,
    agent: Agent,
    capability: Capability,
    args: Mapping[str, object],
    *,
    environment: Mapping[str, str],
    working_dir: Path,
) -> Mapping[str, object]:
    """Return the arguments with their defaults when the program can be started this way.

    Raises:
        ArgumentsError: The arguments do not fit the capability.
        UsageError: The working folder is not there.
        AgentNotInstalledError: The program is not there or cannot be executed.
        TmuxUnavailableError: tmux is missing or too old.
    """
    args = check_arguments(capability.args_schema, args)
    program = agent.binary_path
    if capability.interaction_mode is InteractionMode.TEMPLATE:
        program = render_command(
            capability,
            binary=agent.binary_path,
            base_args=agent.base_args,
            task_title=task.title,
            args=args,
            prompt_additions=task.input_context.prompt_additions,
        )[0]
    elif not program:
        # It has none of its own, so that its first word names it.
        words = render_tokens(capability, task_title=task.title, args=args, prompt_additions="")
        if not words:
            raise UsageError(f"{agent.slug} names no program to start", hint="give it a command")
        program = words[0]
    if not working_dir.is_dir():
        raise UsageError(
            f"the working folder {working_dir} of #{task.number} is not there",
            hint="make it, choose another one for the task, or say where it was moved to: "
            f"`agentmon workspaces move {shlex.quote(str(working_dir))} NEW`",
        )
    _require_program(agent, program, environment, working_dir)
    find_version(environment)
    return args


def _require_program(agent: Agent, program: str, environment: Mapping[str, str], working_dir: Path) -> None:
    is_its = program == agent.binary_path
    elsewhere = f"`agentmon agents edit {agent.slug} --program PATH` says where it is" if is_its else ""
    if os.sep in program:
        path = Path(program) if Path(program).is_absolute() else working_dir / program
        if not path.exists():
            hint = elsewhere or "check the path of the command"
            raise AgentNotInstalledError(f"there is no program {path}", hint=hint)
        if path.is_dir():
            hint = elsewhere or "check the path of the command"
            raise AgentNotInstalledError(f"{path} is a folder, not a program", hint=hint)
        if not os.access(path, os.X_OK):
            raise AgentNotInstalledError(
                f"{path} cannot be executed", hint=f"`chmod +x {path}` makes a script a program"
            )
        return
    if shutil.which(program, path=environment.get("PATH", os.defpath)) is None:
        where = f" ({agent.homepage})" if is_its and agent.homepage else ""
        raise AgentNotInstalledError(
            f"the program {program} is not on the PATH",
            hint=f"install it{where}, or {elsewhere or 'give its whole path'}",
        )
