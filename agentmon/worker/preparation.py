"""Preparing one execution: the command, the environment and the limits, written for the host to read."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import ToolType
from agentmon.domain.errors import RunnerError
from agentmon.runners import host
from agentmon.runners.adapters.template import check_arguments, render_command
from agentmon.runners.environment import select_environment
from agentmon.runners.execution_folder import ExecutionFolder

if TYPE_CHECKING:
    from agentmon.domain.executions import ClaimedExecution, Execution
    from agentmon.paths import Paths
    from agentmon.settings import WorkerSettings

COLUMNS: Final = 200
ROWS: Final = 50
"""Size of a session that nobody looks at: wide enough that tables are not broken."""
_INTERRUPTS: Final = {ToolType.AI_AGENT: ("INT", "TERM")}
"""The signals that ask a program to end, gentlest first; an agent takes the first as a person's ctrl+c."""
_HOST_MAIN: Final = Path(host.__file__).with_name("__main__.py")


def session_name(execution: Execution) -> str:
    """Return the name of the tmux session of a try, so that what is left of an earlier one cannot be in its way."""
    return f"am-{execution.id}" + (f"-{execution.attempt}" if execution.attempt else "")


def folder_of(execution: Execution, paths: Paths) -> ExecutionFolder:
    """Return the folder of an execution, also of one that was queued or begun from another data folder."""
    if execution.log_file_path is None:
        return ExecutionFolder(paths.execution_dir(execution.id))
    return ExecutionFolder(Path(execution.log_file_path).parent)


def host_command(folder: ExecutionFolder) -> tuple[str, ...]:
    """Return the command that the session runs: the host, with as little of Python as it needs."""
    return (sys.executable, "-I", "-S", str(_HOST_MAIN), str(folder.path))


def prepare(claimed: ClaimedExecution, *, paths: Paths, settings: WorkerSettings) -> ExecutionFolder:
    """Fill the folder of an execution with what its host needs; doing it again is harmless until the host has begun.

    Earlier tries have to be set aside before.

    Raises:
        AgentmonError: It cannot be started this way; the message says why.
        OSError: The folder cannot be written.
    """
    execution, task, capability = claimed.execution, claimed.task, claimed.capability
    folder = folder_of(execution, paths)
    folder.make()
    if capability.interaction_mode.value != "template":
        raise RunnerError(f"{claimed.agent.slug} cannot be run in the mode {capability.interaction_mode.value}")
    argv = render_command(
        capability,
        binary=claimed.agent.binary_path,
        base_args=claimed.agent.base_args,
        task_title=task.title,
        args=check_arguments(capability.args_schema, execution.args),
        prompt_additions=task.input_context.prompt_additions,
    )
    environment = folder.read_environment()
    if environment is None:
        environment = select_environment(
            os.environ,
            allowlist=claimed.agent.env_allowlist,
            passed=task.input_context.env_passed,
            overrides=task.input_context.env_overrides,
        )
    folder.write_launch_environment(
        {"TERM": "xterm-256color"} | dict(environment) | {"AGENTMON_EXECUTION_ID": execution.id}
    )
    folder.write_spec(
        {
            "execution_id": execution.id,
            "argv": list(argv),
            "working_dir": task.input_context.working_dir or claimed.workspace_root,
            "timeout_s": capability.timeout_s,
            "max_output_bytes": capability.max_output_bytes,
            "grace_s": settings.grace_s,
            "interrupt": list(_INTERRUPTS.get(claimed.agent.tool_type, ("TERM",))),
            "notify_socket": str(paths.worker_socket),
            "columns": COLUMNS,
            "rows": ROWS,
        }
    )
    return folder
