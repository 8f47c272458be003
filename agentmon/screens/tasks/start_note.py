"""What is told of a start while it is filled in: what harm it does, and whether it waits for a leave."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

from agentmon.domain.agents import DangerLevel, InteractionMode
from agentmon.domain.danger import DangerFinding
from agentmon.domain.errors import AgentmonError
from agentmon.domain.start_danger import danger_text, start_danger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from agentmon.bootstrap import Services
    from agentmon.domain.agents import Agent, Capability

    Judge: TypeAlias = Callable[[Sequence[str]], DangerFinding]
    """Returns how dangerous the words of a command line are, and why."""
    JudgeFinder: TypeAlias = Callable[[], Awaitable[Judge]]

_TITLE = "title"


def judge_finder(services: Services) -> JudgeFinder:
    """Return what reads the rules in force, in a thread, and returns what judges by them."""

    async def find() -> Judge:
        from agentmon.runners.danger import danger_rules_in_force  # noqa: PLC0415 - after the first frame

        return (await asyncio.to_thread(danger_rules_in_force, services.paths.danger_rules_file)).judge

    return find


def start_note(judge: Judge, agent: Agent, capability: Capability, args: Mapping[str, object] | None) -> str:
    """Return what a person who starts this is told; empty when there is nothing to say.

    Args:
        judge: Judges the filled command line.
        agent: Who works.
        capability: What it is asked to do.
        args: What is filled in; None while it cannot be used.
    """
    finding = DangerFinding() if args is None else _finding(judge, agent, capability, args)
    danger = start_danger(agent, capability, finding, is_typed=True)
    if danger.level < DangerLevel.DANGEROUS and not danger.waits:
        return ""
    waits = "; it waits for your leave before it starts" if danger.waits else ""
    return f"▲ {danger_text(danger.level, danger.reason)}{waits}"


def _finding(judge: Judge, agent: Agent, capability: Capability, args: Mapping[str, object]) -> DangerFinding:
    from agentmon.runners.adapters.template import check_arguments, render_command  # noqa: PLC0415 - as above

    if capability.interaction_mode is InteractionMode.PROMPT:
        return DangerFinding()
    try:
        words = render_command(
            capability,
            binary=agent.binary_path,
            base_args=agent.base_args,
            task_title=_TITLE,
            args=check_arguments(capability.args_schema, args),
            prompt_additions="",
        )
    except AgentmonError:
        return DangerFinding()
    return judge(words)
