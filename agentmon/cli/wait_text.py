"""What a queued run waits for, in words."""

from dataclasses import dataclass
from datetime import datetime

from agentmon.bootstrap import Services
from agentmon.cli.local_time import local_words
from agentmon.cli.task_text import state_text
from agentmon.domain.agents import Agent
from agentmon.domain.clock import SystemClock
from agentmon.domain.execution_status import ExecutionStatus, WaitReason
from agentmon.domain.executions import Execution
from agentmon.domain.live_state import LiveState
from agentmon.domain.plain_text import plain_line
from agentmon.domain.tasks import awaited_text
from agentmon.services.explaining import folder_words

PAUSED_WORDS = "queue is paused"
_REASON_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacles:
    """All that can keep a queued run from starting."""

    agent: Agent | None
    waits_for: str = ""
    """Names of the tasks that have to be done first: ``#38, #39 (not queued)``."""
    is_paused: bool = False
    folder_holder: int | None = None
    """The task whose run works in the folder that it would work in."""


async def obstacles_of(services: Services, execution: Execution) -> Obstacles:
    """Return what can keep the run from starting; one that is not queued meets nothing."""
    if execution.status is not ExecutionStatus.QUEUED:
        return Obstacles(agent=None)
    prerequisites = await services.tasks.dependencies(execution.task_id)
    return Obstacles(
        agent=await services.agents.get(execution.agent_id),
        waits_for=awaited_text(prerequisites),
        is_paused=await services.queue.find_pause() is not None,
        folder_holder=await services.queue.find_folder_holder(execution.task_id),
    )


def waiting_text(execution: Execution, obstacles: Obstacles) -> str:
    """Return glyph and word of the run's state, and behind them what a queued one waits for.

    Such as ``◌ queued, starts at 15:04``, ``◌ queued, starts after #38; queue is paused`` or
    ``⏸ parked until 15:04: usage limit reached``.
    """
    if execution.status is not ExecutionStatus.QUEUED:
        return state_text(execution, SystemClock().now())
    parking = _parking(execution, obstacles.agent)
    reasons = []
    if obstacles.waits_for:
        reasons.append(f"starts after {obstacles.waits_for}")
    if obstacles.folder_holder is not None:
        reasons.append(folder_words(obstacles.folder_holder))
    if parking is None and execution.not_before is not None and execution.not_before > SystemClock().now():
        verb = "is tried again" if execution.wait_reason is WaitReason.RETRY else "starts"
        reasons.append(f"{verb} at {local_words(execution.not_before)}")
    if obstacles.agent is not None and obstacles.agent.off_words:
        reasons.append(obstacles.agent.off_words)
    if obstacles.is_paused:
        reasons.append(PAUSED_WORDS)
    if parking is not None:
        return f"{LiveState.PARKED.glyph} {'; '.join([parking, *reasons])}"
    head = f"{execution.live_state.glyph} {execution.live_state.value}"
    if execution.is_held:
        reasons.insert(0, "it starts when you allow it: agentmon inbox")
    elif execution.live_state is LiveState.NEEDS_YOU:
        reasons.append("agentmon inbox shows the ways out")
    return f"{head}, {'; '.join(reasons)}" if reasons else head


def parked_text(agent: Agent) -> str:
    """Return until when nothing of an agent starts, and why; empty when it is not parked."""
    if agent.parked_until is None or agent.parked_until <= SystemClock().now():
        return ""
    return _parked(agent.parked_until, agent.park_note)


def _parking(execution: Execution, agent: Agent | None) -> str | None:
    if execution.live_state is LiveState.PARKED:
        return _parked(execution.not_before, execution.error)
    return (parked_text(agent) or None) if agent is not None else None


def _parked(until: datetime | None, reason: str | None) -> str:
    shown = plain_line(reason or "", max_characters=_REASON_CHARACTERS)
    words = "parked" if until is None else f"parked until {local_words(until)}"
    return f"{words}: {shown}" if shown else words
