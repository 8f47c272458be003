"""Which sandbox a run starts in, on machines that have one and on those that have none."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.agents import ToolType
from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import RunnerError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.sandboxes import Sandbox
from agentmon.worker.repositories import Repositories
from agentmon.worker.sandbox_choosing import SandboxChooser
from tests.stored_runs import stored
from tests.worker.test_watching import claim_next

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agentmon.domain.executions import ClaimedExecution
    from tests.stored_runs import Stored

_CHOICES = [
    # What the run, its agent and its workspace say, whether it is an AI agent: the sandbox where one can be had.
    (None, None, None, False, Sandbox.OFF),
    (None, None, None, True, Sandbox.AGENTMON),
    (None, None, Sandbox.PROJECT, False, Sandbox.PROJECT),
    (None, Sandbox.OFF, Sandbox.PROJECT, True, Sandbox.OFF),
    (Sandbox.PROJECT, Sandbox.OFF, Sandbox.AGENTMON, True, Sandbox.PROJECT),
    (Sandbox.OFF, Sandbox.PROJECT, None, True, Sandbox.OFF),
]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Stored]:
    async with stored(tmp_path) as place:
        yield place


async def claimed(
    place: Stored,
    of_run: Sandbox | None = None,
    of_agent: Sandbox | None = None,
    of_workspace: Sandbox | None = None,
    *,
    is_agent: bool = False,
) -> ClaimedExecution:
    task = await place.add_task("a task", "true")
    await place.add_run(task.id, ExecutionStatus.QUEUED)
    found, _ = await claim_next(place)
    kind = ToolType.AI_AGENT if is_agent else ToolType.CLI_TOOL
    return replace(
        found,
        execution=replace(found.execution, sandbox=of_run),
        agent=replace(found.agent, sandbox=of_agent, tool_type=kind),
        workspace_sandbox=of_workspace,
    )


def chooser(place: Stored, problem: str = "") -> SandboxChooser:
    repositories = Repositories.over(place.services.database)
    return SandboxChooser(
        live=repositories.live, authors=repositories.task_authors, clock=SystemClock(), find_problem=lambda: problem
    )


@pytest.mark.parametrize(("of_run", "of_agent", "of_workspace", "is_agent", "expected"), _CHOICES)
async def test_the_nearest_choice_counts_and_is_noted(
    place: Stored,
    of_run: Sandbox | None,
    of_agent: Sandbox | None,
    of_workspace: Sandbox | None,
    is_agent: bool,
    expected: Sandbox,
) -> None:
    found = await claimed(place, of_run, of_agent, of_workspace, is_agent=is_agent)

    chosen = await chooser(place).choose(found)

    assert chosen.execution.sandbox is expected
    if of_run is None:
        assert (await place.services.executions.get(found.execution.id)).sandbox is expected


async def test_where_none_can_be_had_nobody_is_kept_from_work_who_did_not_ask_for_it(place: Stored) -> None:
    found = await claimed(place, is_agent=True)

    assert (await chooser(place, "no namespaces").choose(found)).execution.sandbox is Sandbox.OFF


@pytest.mark.parametrize("level", range(3))
async def test_a_sandbox_that_was_asked_for_and_cannot_be_had_keeps_the_run_from_starting(
    place: Stored, level: int
) -> None:
    asked = [Sandbox.AGENTMON if at == level else None for at in range(3)]
    found = await claimed(place, *asked)

    with pytest.raises(RunnerError, match="no namespaces"):
        await chooser(place, "no namespaces").choose(found)
