"""Preparing one execution: the command, the environment and the limits, written for the host to read."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from agentmon import __version__
from agentmon.domain.agents import ToolType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.executions import ConversationStart
from agentmon.domain.sandboxes import Sandbox
from agentmon.runners import host
from agentmon.runners.adapters.prompt import model_of, own_environment, permission_mode_of, start_command
from agentmon.runners.adapters.template import check_arguments
from agentmon.runners.environment import select_environment
from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.runners.sandbox.plan import CALLS_VARIABLE, calls_environment, calls_socket, plan_sandbox
from agentmon.runners.telemetry_launch import TelemetryLaunch, telemetry_launch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.executions import ClaimedExecution, Execution
    from agentmon.paths import Paths
    from agentmon.runners.telemetry_launch import TelemetryTarget
    from agentmon.settings import SandboxSettings, WorkerSettings

_INTERRUPTS: Final = {ToolType.AI_AGENT: ("INT", "TERM")}
"""The signals that ask a program to end, gentlest first; an agent takes the first as a person's ctrl+c."""
NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})
_SESSION_NAME: Final = re.compile(r"am-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:-\d+)?")
_HOST_MAIN: Final = Path(host.__file__).with_name("__main__.py")


def session_name(execution: Execution) -> str:
    """Return the name of the tmux session of a try, so that what is left of an earlier one cannot be in its way."""
    return f"am-{execution.id}" + (f"-{execution.attempt}" if execution.attempt else "")


def execution_of_session(name: str) -> str:
    """Return the id of the execution that a session was started for; empty when it is none of agentmon's names."""
    found = _SESSION_NAME.fullmatch(name)
    return found[1] if found else ""


def folder_of(execution: Execution, paths: Paths) -> ExecutionFolder:
    """Return the folder of an execution, also of one that was queued or begun from another data folder."""
    return ExecutionFolder(paths.output_of(execution.id, execution.log_file_path).parent)


def host_command(folder: ExecutionFolder) -> tuple[str, ...]:
    """Return the command that the session runs: the host, with as little of Python as it needs."""
    return (sys.executable, "-I", "-S", str(_HOST_MAIN), str(folder.path))


def environment_of(claimed: ClaimedExecution, folder: ExecutionFolder) -> Mapping[str, str]:
    """Return the chosen environment of an execution: as it was queued, else what the worker's own allows."""
    environment = folder.read_environment()
    if environment is not None:
        return environment
    context = claimed.task.input_context
    return select_environment(
        os.environ,
        allowlist=claimed.agent.env_allowlist,
        passed=context.env_passed,
        overrides=context.env_overrides,
    )


def prepare(
    claimed: ClaimedExecution,
    *,
    paths: Paths,
    settings: WorkerSettings,
    sandbox_settings: SandboxSettings,
    telemetry: TelemetryTarget | None = None,
    variables: Mapping[str, str] = NO_VARIABLES,
    continues_log: bool = False,
) -> ExecutionFolder:
    """Fill the folder of an execution with what its host needs; doing it again is harmless until the host has begun.

    What earlier tries left in it is set aside first: a host would take what it finds for its own.

    Args:
        claimed: What is to run.
        paths: Where its folder is.
        settings: How long it gets to end.
        sandbox_settings: What the strictest sandbox lets it do.
        telemetry: Where an agent in its own screen is to send its telemetry; one that is spoken to in a protocol tells
            its answers there.
        variables: What the program is told beside its environment.
        continues_log: Whether its log has begun already.

    Raises:
        AgentmonError: It cannot be started this way; the message says why.
        OSError: The folder cannot be written.
    """
    execution, capability = claimed.execution, claimed.capability
    folder = folder_of(execution, paths)
    folder.make()
    folder.set_tries_aside(execution.attempt)
    environment = environment_of(claimed, folder)
    config = claimed.agent.session_config
    launch = TelemetryLaunch()
    if telemetry is not None and execution.mode is ExecutionMode.TMUX:
        launch = telemetry_launch(claimed.agent.slug, telemetry, environment)
    own = {}
    if config is not None and execution.mode.is_conversation:
        own = own_environment(claimed.agent, execution.args)
    told = {"TERM": "xterm-256color"} | own | dict(launch.environment) | dict(environment) | dict(variables)
    layout = plan_sandbox(
        execution.sandbox or Sandbox.OFF,
        paths=paths,
        environ=os.environ,
        working_dir=working_dir_of(claimed),
        program=claimed.agent.binary_path,
        settings=sandbox_settings,
        folder=folder.path,
    )
    told.pop(CALLS_VARIABLE, None)
    if layout is not None:
        told[CALLS_VARIABLE] = calls_socket(paths)
    folder.write_launch_environment(told | {"AGENTMON_EXECUTION_ID": execution.id})
    folder.write_spec(
        {
            "execution_id": execution.id,
            "attempt": execution.attempt,
            "argv": list(_with_further(command_of(claimed), claimed, launch.args)),
            "working_dir": working_dir_of(claimed),
            "mode": execution.mode.value,
            "timeout_s": capability.timeout_s,
            "max_output_bytes": capability.max_output_bytes,
            "grace_s": settings.grace_s,
            "interrupt": list(_INTERRUPTS.get(claimed.agent.tool_type, ("TERM",))),
            "keeps_typed_text": settings.record_typed_text,
            "notify_socket": str(paths.worker_socket),
            "columns": settings.terminal_columns,
            "rows": settings.terminal_rows,
            "continues_log": continues_log,
            "sandbox": layout,
            "calls_environment": {} if layout is None else calls_environment(paths, os.environ),
        }
        | ({"conversation": _conversation(claimed)} if execution.mode.is_protocol else {})
    )
    return folder


def working_dir_of(claimed: ClaimedExecution) -> str:
    """Return the absolute path of the folder it works in: that of its claim, or what a claim would choose."""
    return claimed.execution.working_dir or asked_folder_of(claimed)


def asked_folder_of(claimed: ClaimedExecution) -> str:
    """Return the absolute path of the folder that it is about, also when it works in a worktree of its own."""
    if claimed.execution.worktree_id is None and claimed.execution.working_dir is not None:
        return claimed.execution.working_dir
    return claimed.agent.work_folder(claimed.task.input_context.working_dir, claimed.workspace_root)


def command_of(claimed: ClaimedExecution) -> tuple[str, ...]:
    """Return the words of its command, the program first, without what agentmon adds for itself.

    Raises:
        AgentmonError: They cannot be put together.
    """
    execution, task, capability = claimed.execution, claimed.task, claimed.capability
    args = check_arguments(capability.args_schema, execution.args)
    return start_command(
        claimed.agent,
        capability,
        execution.mode,
        task_title=task.title,
        args=args,
        prompt_additions=task.input_context.prompt_additions,
        session_id=given_conversation(claimed),
        start=claimed.start,
        resumed_ref=claimed.resumed_ref,
    )


def given_conversation(claimed: ClaimedExecution) -> str | None:
    """Return the id that the agent is told to give its conversation; None where it chooses one itself."""
    execution, config = claimed.execution, claimed.agent.session_config
    takes_id = config is not None and "session_id" in config.flags
    # An id can be given to one conversation only, and the first try may have begun it.
    if not takes_id or execution.attempt or claimed.start is ConversationStart.RESUME:
        return None
    return execution.session_id


def _with_further(argv: tuple[str, ...], claimed: ClaimedExecution, args: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command with arguments of the agent itself, which come before any command of it."""
    own = 1 + len(claimed.agent.base_args)
    return (*argv[:own], *args, *argv[own:])


def _conversation(claimed: ClaimedExecution) -> dict[str, object]:
    """Return what the adapter has to know; its form is described in ``runners.protocols``."""
    execution = claimed.execution
    return {
        "protocol": execution.mode.value,
        "prompt": execution.prompt or "",
        "working_dir": working_dir_of(claimed),
        "session_id": execution.session_id,
        "session_ref": claimed.resumed_ref,
        "start": claimed.start.value,
        "model": model_of(claimed.agent, execution.args),
        "permission_mode": permission_mode_of(claimed.agent, execution.args),
        "client_version": __version__,
    }
