"""Whether a failed run failed because its vendor refused to serve it: told by the end of its output."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from agentmon.domain.agents import ToolType
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.runners.refusals import find_refusal
from agentmon.schedule import local_zone_name

if TYPE_CHECKING:
    from agentmon.domain.executions import ClaimedExecution, ExecutionEnding
    from agentmon.runners.execution_folder import ExecutionFolder

_TAIL_BYTES: Final = 16 * 1024


def with_refusal(ending: ExecutionEnding, claimed: ClaimedExecution, folder: ExecutionFolder) -> ExecutionEnding:
    """Return the ending with what the vendor said, when it ended by itself and its last output says so.

    Raises:
        OSError: The log is there and cannot be read.
    """
    if ending.status is not ExecutionStatus.FAILED or ending.reason is not EndReason.EXITED:
        return ending
    refusal = find_refusal(
        _tail(folder),
        program=_program(claimed),
        is_agent=claimed.agent.tool_type is ToolType.AI_AGENT,
        exit_code=ending.exit_code,
        now=ending.ended_at,
        zone=ZoneInfo(local_zone_name()),
        may_wrap_agent=not claimed.agent.binary_path,
    )
    return ending if refusal is None else replace(ending, refusal=refusal)


def _program(claimed: ClaimedExecution) -> str:
    argv = claimed.execution.args.get("argv")
    if not claimed.agent.binary_path and isinstance(argv, list) and argv:
        return PurePath(str(argv[0])).name
    return PurePath(claimed.agent.binary_path).name


def _tail(folder: ExecutionFolder) -> bytes:
    try:
        with folder.output_log.open("rb") as log:
            size = log.seek(0, 2)
            log.seek(max(0, size - _TAIL_BYTES))
            return log.read(_TAIL_BYTES)
    except FileNotFoundError:
        return b""
