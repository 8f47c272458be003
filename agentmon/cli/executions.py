"""``agentmon run``, ``stop`` and ``executions``."""

import asyncio
import os
import sys
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli import exit_codes
from agentmon.cli.columns import fit, table, terminal_width
from agentmon.cli.context import (
    JsonOption,
    NumberArgument,
    WorkspaceOption,
    numbered_task,
    with_workspace,
)
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell, tell_in_place
from agentmon.cli.task_options import (
    AgentOption,
    ArgumentsOption,
    CapabilityOption,
    CommandOption,
    parsed_arguments,
    valid_text,
)
from agentmon.cli.task_text import elapsed_text, state_text
from agentmon.domain.any_command import ANY_COMMAND_KEY, ANY_COMMAND_SLUG
from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import UsageError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import Execution, ExecutionListing
from agentmon.domain.ids import ExecutionId
from agentmon.domain.plain_text import plain_line
from agentmon.domain.tasks import Task, Workspace
from agentmon.runners.adapters.template import parse_command
from agentmon.services.actors import USER_ACTOR

_LARGEST_EXIT_CODE = 255
_PROGRESS_INTERVAL_S = 0.5

WaitOption = Annotated[bool, typer.Option("--wait", help="Return when the run is over.")]


def run(
    number: NumberArgument,
    folder: WorkspaceOption = None,
    is_waiting: WaitOption = False,
    agent: AgentOption = None,
    capability: CapabilityOption = None,
    arg: ArgumentsOption = None,
    command: CommandOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a task; with --wait the exit code tells how it ended.

    0 succeeded, the program's own code when it failed, 124 timed out, 130 cancelled.

    Examples:
      agentmon run 12
      agentmon run 12 --wait && echo fine
      agentmon run 12 --agent pytest --with test --arg paths=tests
    """

    async def work(services: Services, workspace: Workspace) -> Execution:
        task = await numbered_task(services, workspace, number)
        execution = await _start(services, task, agent, capability, arg or [], command)
        if not is_waiting:
            return execution
        tell(f"#{task.number} {state_text(execution)}")
        try:
            return await _finished(services, task, execution)
        except asyncio.CancelledError:
            tell(f"#{task.number} goes on without being waited for; agentmon stop {task.number} ends it")
            raise

    execution = with_workspace(folder, work)
    if as_json:
        say_document(json_form(execution))
    elif not is_waiting:
        say(f"{number.lstrip('#')} {state_text(execution)}")
        tell(f"agentmon log {number.lstrip('#')} -f shows its output")
    if is_waiting:
        raise typer.Exit(exit_code_of(execution))


def stop(
    number: NumberArgument,
    folder: WorkspaceOption = None,
    is_kill: Annotated[bool, typer.Option("--kill", help="End every process at once, without asking.")] = False,
    is_waiting: WaitOption = False,
    as_json: JsonOption = False,
) -> None:
    """Stop the run of a task.

    The program is asked to end, and ended by force after the grace time; --kill does that at once.

    Examples:
      agentmon stop 12
      agentmon stop 12 --kill --wait
    """

    async def work(services: Services, workspace: Workspace) -> Execution:
        task = await numbered_task(services, workspace, number)
        execution = await services.queue.stop(task.id, actor=USER_ACTOR, kill=is_kill)
        if is_waiting and execution.status.is_open:
            return await _finished(services, task, execution)
        return execution

    execution = with_workspace(folder, work)
    if as_json:
        say_document(json_form(execution))
    else:
        say(f"{number.lstrip('#')} {state_text(execution)}")


def list_executions(
    folder: WorkspaceOption = None,
    number: Annotated[
        str | None, typer.Option("--task", "-t", metavar="NUMBER", help="Only the runs of this task.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="Most runs shown.")] = 100,
    is_all: Annotated[bool, typer.Option("--all", help="Of every workspace.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the runs: open ones first, then the newest.

    Examples:
      agentmon executions
      agentmon executions --task 12 --json
    """

    async def work(services: Services, workspace: Workspace) -> tuple[ExecutionListing, ...]:
        if number is None:
            return await services.executions.list(None if is_all else workspace, limit=limit)
        task = await numbered_task(services, workspace, number)
        return await _listings_of(services, task, limit)

    listings = with_workspace(folder, work)
    if as_json:
        say_document(json_form(listings))
        return
    if not listings:
        tell("nothing has run yet; agentmon run NUMBER starts a task")
        return
    now = SystemClock().now()
    rows = [
        (
            state_text(listing.execution),
            f"#{listing.task_number}",
            listing.agent_slug,
            elapsed_text(listing.execution, now),
            plain_line(listing.task_title, max_characters=40),
            plain_line(listing.execution.error or listing.execution.last_line or "", max_characters=200),
        )
        for listing in listings
    ]
    say("\n".join(table(("STATE", "TASK", "PROGRAM", "TIME", "TITLE", "LAST LINE"), rows, terminal_width())))


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


async def _start(
    services: Services,
    task: Task,
    agent_slug: str | None,
    capability_key: str | None,
    pairs: list[str],
    command: str | None,
) -> Execution:
    if command is not None:
        if agent_slug not in {None, ANY_COMMAND_SLUG} or capability_key is not None or pairs:
            raise UsageError("--command excludes --agent, --with and --arg")
        return await services.queue.run(
            task.id,
            actor=USER_ACTOR,
            agent_slug=ANY_COMMAND_SLUG,
            capability_key=ANY_COMMAND_KEY,
            args={"argv": list(parse_command(valid_text(command)))},
            environ=os.environ,
        )
    arguments = None
    if pairs:
        arguments = await _arguments(services, task, agent_slug, capability_key, pairs)
    return await services.queue.run(
        task.id,
        actor=USER_ACTOR,
        agent_slug=agent_slug,
        capability_key=capability_key,
        args=arguments,
        environ=os.environ,
    )


async def _arguments(
    services: Services, task: Task, agent_slug: str | None, capability_key: str | None, pairs: list[str]
) -> dict[str, object]:
    """Return the arguments of this run: the task's own for the same program and capability, then the typed ones."""
    context = task.input_context
    if agent_slug is not None:
        agent = await services.agents.by_slug(agent_slug)
    elif task.assignee_agent_id is not None:
        agent = await services.agents.get(task.assignee_agent_id)
    else:
        raise UsageError("--arg needs a program", hint="name it with --agent; `agentmon agents` lists them")
    is_same_agent = agent.id == task.assignee_agent_id
    key = capability_key if capability_key is not None or not is_same_agent else context.capability_key
    kept = context.args if is_same_agent and key == context.capability_key else {}
    return {**kept, **parsed_arguments(pairs, agent.choose_capability(key))}


async def _finished(services: Services, task: Task, execution: Execution) -> Execution:
    """Return the execution when it is over; tells each change of its state meanwhile."""
    try:
        async with asyncio.TaskGroup() as group:
            progress = group.create_task(_tell_progress(services, task, execution.id), name="progress")
            ended = await services.queue.wait(execution.id)
            progress.cancel()
    finally:
        if sys.stderr.isatty():
            tell_in_place("")
    summary = f"#{task.number} {state_text(ended)} {elapsed_text(ended, SystemClock().now())}"
    tell(f"{summary.rstrip()}{': ' + ended.error if ended.error else ''}")
    return ended


async def _tell_progress(services: Services, task: Task, execution_id: ExecutionId) -> None:
    is_terminal = sys.stderr.isatty()
    told = ""
    while True:
        execution = await services.executions.get(execution_id)
        state = f"#{task.number} {state_text(execution)}"
        if is_terminal:
            elapsed = elapsed_text(execution, SystemClock().now())
            last_line = plain_line(execution.last_line or "")
            tell_in_place(fit(f"{state} {elapsed}  {last_line}", terminal_width() - 1))
        elif state != told and execution.status.is_open:
            if told:
                tell(state)
            told = state
        await asyncio.sleep(_PROGRESS_INTERVAL_S)


async def _listings_of(services: Services, task: Task, limit: int) -> tuple[ExecutionListing, ...]:
    agents = {agent.id: agent for agent in await services.agents.list(active_only=False)}
    listings = []
    for execution in (await services.executions.of_task(task.id))[:limit]:
        agent = agents.get(execution.agent_id)
        capabilities = agent.capabilities if agent is not None else ()
        listings.append(
            ExecutionListing(
                execution=execution,
                task_number=task.number,
                task_title=task.title,
                agent_slug=agent.slug if agent is not None else "",
                capability_key=next((one.key for one in capabilities if one.id == execution.capability_id), ""),
            )
        )
    return tuple(listings)
