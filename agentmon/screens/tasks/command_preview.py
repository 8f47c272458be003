"""The exact command line of a task or of one of its executions, for people to read."""

from __future__ import annotations

import asyncio
import json
import shlex
from typing import TYPE_CHECKING

from agentmon.domain.errors import AgentmonError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agentmon.domain.agents import Agent, Capability
    from agentmon.domain.tasks import Task


async def find_recorded_command(spec_path: Path) -> str | None:
    """Return the command line that an execution was started with, or None when that was not recorded yet."""
    return await asyncio.to_thread(_read_spec, spec_path)


def planned_command(task: Task, agent: Agent, capability: Capability, args: Mapping[str, object]) -> str:
    """Return the command line that the next run of the task starts, or why there is none."""
    from agentmon.runners.adapters.prompt import mode_of, start_command  # noqa: PLC0415 - after the first frame
    from agentmon.runners.adapters.template import check_arguments  # noqa: PLC0415 - as above

    try:
        argv = start_command(
            agent,
            capability,
            mode_of(agent, capability),
            task_title=task.title,
            args=check_arguments(capability.args_schema, args),
            prompt_additions=task.input_context.prompt_additions,
        )
    except AgentmonError as error:
        return f"cannot run: {error}"
    return shlex.join(argv)


def _read_spec(spec_path: Path) -> str | None:
    try:
        argv = json.loads(spec_path.read_bytes()).get("argv")
    except (OSError, ValueError, AttributeError):
        return None
    return shlex.join(str(word) for word in argv) if isinstance(argv, list) else None
