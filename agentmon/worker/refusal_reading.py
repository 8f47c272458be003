"""Whether a failed run failed because its vendor refused to serve it: told by the end of its output.

An agent that is spoken to in its protocol says by itself why its turn failed, and that alone counts: its output shows
what a model or a tool said as well. Of one that ended without a word on its turn, its error output counts too.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from agentmon.domain.agents import ToolType
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import redact
from agentmon.domain.refusals import RefusalKind
from agentmon.runners.environment import select_environment
from agentmon.runners.execution_folder import open_at_once
from agentmon.runners.refusals import find_refusal
from agentmon.schedule import local_zone_name
from agentmon.worker.journal_reading import LAST_LINE_MAX_CHARACTERS

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.domain.executions import ClaimedExecution, ExecutionEnding
    from agentmon.domain.refusals import Refusal
    from agentmon.runners.execution_folder import ExecutionFolder

_VARIABLE: Final = re.compile(
    r"\benvironment variable(?:: [`'\"]?| [`'\"])([A-Za-z_]\w*)"
    r"|\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)[`'\"]? environment variable\b"
    r"|\b([A-Z][A-Z0-9]*_(?:[A-Z0-9]+_)*(?:KEY|TOKEN))\b"
)
"""A variable that an error says is missing: one that is called so, or whose name is that of a key."""
_TAIL_BYTES: Final = 16 * 1024
_BY_ITSELF: Final = frozenset({EndReason.EXITED, EndReason.FINISHED})


def with_refusal(ending: ExecutionEnding, claimed: ClaimedExecution, folder: ExecutionFolder) -> ExecutionEnding:
    """Return the ending with what the vendor said, when it ended by itself and its last output says so.

    Raises:
        OSError: The log is there and cannot be read.
    """
    if ending.status is not ExecutionStatus.FAILED or ending.reason not in _BY_ITSELF:
        return ending
    if claimed.execution.mode.is_protocol:
        has_spoken = ending.output_data.get("agent_outcome") is not None
        text = (b"" if has_spoken else _tail(folder.errors_log) + b"\n") + _record_of(ending.error or "")
    else:
        text = _tail(folder.output_log)
    refusal = find_refusal(
        text,
        program=_program(claimed),
        is_agent=claimed.agent.tool_type is ToolType.AI_AGENT,
        exit_code=ending.exit_code,
        now=ending.ended_at,
        zone=ZoneInfo(local_zone_name()),
        may_wrap_agent=not claimed.agent.binary_path,
    )
    if refusal is None:
        return ending
    name = _missing_variable(refusal, folder)
    if name:
        is_let_through = name in select_environment({name: ""}, allowlist=claimed.agent.env_allowlist)
        edit = f"set {name} and let it through: `agentmon agents edit {claimed.agent.slug} --env {name}`"
        refusal = replace(refusal, advice=f"set {name}, or {refusal.advice}" if is_let_through else edit)
    return replace(ending, refusal=refusal)


def last_line_of(folder: ExecutionFolder) -> str:
    """Return the last line with a text that a program wrote; empty when there is none.

    Raises:
        OSError: The log is there and cannot be read.
    """
    lines = re.split(r"[\r\n]+", _tail(folder.output_log).decode("utf-8", "replace"))
    plain = (plain_line(redact(line), max_characters=LAST_LINE_MAX_CHARACTERS).strip() for line in reversed(lines))
    return next((line for line in plain if line), "")


def _missing_variable(refusal: Refusal, folder: ExecutionFolder) -> str:
    """Return the variable with a key that the program misses and that did not reach it; empty when none is named."""
    if refusal.kind is not RefusalKind.BAD_LOGIN:
        return ""
    reached = folder.read_environment() or {}
    named = ["".join(filter(None, found.groups())) for found in _VARIABLE.finditer(refusal.text)]
    return next((name for name in named if name not in reached), "")


def _record_of(error: str) -> bytes:
    """Return what an agent said of its failure as the record of an error, which is what it is."""
    return json.dumps({"type": "error", "message": error}).encode()


def _program(claimed: ClaimedExecution) -> str:
    argv = claimed.execution.args.get("argv")
    if not claimed.agent.binary_path and isinstance(argv, list) and argv:
        return PurePath(str(argv[0])).name
    return PurePath(claimed.agent.binary_path).name


def _tail(path: Path) -> bytes:
    try:
        with open_at_once(path) as log:
            size = log.seek(0, 2)
            log.seek(max(0, size - _TAIL_BYTES))
            return log.read(_TAIL_BYTES)
    except FileNotFoundError:
        return b""
