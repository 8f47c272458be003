"""Waiting for the end of runs: each change of a state is told meanwhile, and the end becomes an exit code."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli import exit_codes
from agentmon.cli.columns import fit, terminal_width
from agentmon.cli.numbered_work import TaskExecution
from agentmon.cli.output import tell, tell_in_place
from agentmon.cli.task_text import state_text
from agentmon.cli.troubles import keep_telling_troubles
from agentmon.cli.wait_text import Obstacles, obstacles_of, waiting_text
from agentmon.domain.clock import SystemClock
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import Execution
from agentmon.domain.plain_text import plain_line
from agentmon.domain.tasks import Task

_LARGEST_EXIT_CODE = 255
_PROGRESS_INTERVAL_S = 0.5

WaitOption = Annotated[bool, typer.Option("--wait", help="Return when the run is over.")]


async def all_finished(services: Services, outcomes: Sequence[TaskExecution]) -> list[TaskExecution]:
    """Return the executions when all are over, in the same order; tells each change of a state meanwhile."""

    async def end(outcome: TaskExecution) -> TaskExecution:
        if not outcome.execution.status.is_open:
            return outcome
        ended = await _finished(services, outcome.task, outcome.execution, is_alone=len(outcomes) == 1)
        return TaskExecution(task=outcome.task, execution=ended)

    try:
        async with asyncio.TaskGroup() as group:
            looking = group.create_task(keep_telling_troubles(services), name="look at the worker")
            waiting = [group.create_task(end(one), name=f"wait for #{one.task.number}") for one in outcomes]
            await asyncio.gather(*waiting)
            looking.cancel()
    except asyncio.CancelledError:
        numbers = [str(outcome.task.number) for outcome in outcomes]
        told = f"#{numbers[0]} goes" if len(numbers) == 1 else f"{len(numbers)} runs go"
        tell(f"{told} on without being waited for; agentmon stop {' '.join(numbers)} ends that")
        raise
    return [task.result() for task in waiting]


def exit_code_of(execution: Execution) -> int:
    """Return the exit code that tells how an execution ended."""
    match execution.status:
        case ExecutionStatus.SUCCEEDED:
            return 0
        case ExecutionStatus.TIMED_OUT:
            return exit_codes.TIMED_OUT
        case ExecutionStatus.CANCELLED:
            return exit_codes.INTERRUPTED
        case _:
            code = execution.exit_code
            return code if code is not None and 0 < code <= _LARGEST_EXIT_CODE else exit_codes.FAILED


async def _finished(services: Services, task: Task, execution: Execution, *, is_alone: bool) -> Execution:
    # Only a run that is waited for alone can have the last line of the terminal for its progress.
    is_in_place = is_alone and sys.stderr.isatty()
    try:
        async with asyncio.TaskGroup() as group:
            progress = group.create_task(
                _tell_progress(services, task, execution, is_in_place=is_in_place), name=f"progress of #{task.number}"
            )
            ended = await services.queue.wait(execution.id)
            progress.cancel()
    finally:
        if is_in_place:
            tell_in_place("")
    now = SystemClock().now()
    summary = f"#{task.number} {state_text(ended, now)} {ended.elapsed_text(now)}"
    tell(f"{summary.rstrip()}{': ' + ended.error if ended.error else ''}")
    return ended


async def _tell_progress(services: Services, task: Task, execution: Execution, *, is_in_place: bool) -> None:
    told, present, obstacles, version = "", execution, Obstacles(agent=None), None
    while True:
        if version != (newest_version := services.data_version()):
            version, present = newest_version, await services.executions.get(execution.id)
            obstacles = await obstacles_of(services, present)
        state = f"#{task.number} {waiting_text(present, obstacles)}"
        if is_in_place:
            elapsed = present.elapsed_text(SystemClock().now())
            tell_in_place(fit(f"{state} {elapsed}  {plain_line(present.last_line or '')}", terminal_width() - 1))
        elif state != told and present.status.is_open:
            if told:
                tell(state)
            told = state
        await asyncio.sleep(_PROGRESS_INTERVAL_S)
