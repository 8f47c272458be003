"""``agentmon task after`` and ``task graph``: what waits for what."""

from collections.abc import Sequence
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.columns import terminal_width
from agentmon.cli.context import (
    JsonOption,
    NumberArgument,
    WorkspaceOption,
    numbered_task,
    task_number,
    with_workspace,
)
from agentmon.cli.graph_lines import graph_lines, state_words
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document
from agentmon.domain.errors import UsageError
from agentmon.domain.ids import TaskId
from agentmon.domain.live_state import LiveState
from agentmon.domain.plain_text import plain_line
from agentmon.domain.task_graph import TaskGraph
from agentmon.domain.tasks import Task, Workspace

_MOST_OPEN = 1000


def after(
    number: NumberArgument,
    others: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OTHER]", help="The tasks that are to be done first.", show_default=False),
    ] = None,
    folder: WorkspaceOption = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="OTHER", help="No longer wait for this task; repeatable.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Let a task wait for others, or show what it waits for and what waits for it.

    Examples:
      agentmon task after 12
      agentmon task after 12 9 10
      agentmon task after 12 --remove 9
    """
    added, removed = ([task_number(text) for text in numbers or ()] for numbers in (others, remove))
    if set(added) & set(removed):
        raise UsageError("the same task is to be added and removed", hint="name it once")

    async def work(services: Services, workspace: Workspace) -> tuple[Task, TaskGraph]:
        task = await numbered_task(services, workspace, number)
        if added or removed:
            await services.tasks.change_dependencies(task.id, added=added, removed=removed, actor=services.actor)
        if removed:
            await services.queue.deliver()
        graph = await services.tasks.graph(task.id)
        return graph.tasks[task.id], graph

    task, found = with_workspace(folder, work)
    waits_for = [found.tasks[one] for one in found.needs.get(task.id, ())]
    needed_by = [found.tasks[one] for one in found.needed_by.get(task.id, ())]
    if as_json:
        say_document(
            {"number": task.number, "waits_for": json_form(waits_for), "needed_by": json_form(needed_by)},
        )
        return
    say(_task_line(task))
    _say_tasks("waits for:", waits_for)
    _say_tasks("needed by:", needed_by)
    if not (waits_for or needed_by):
        say("  waits for nothing, and nothing waits for it")


def graph(number: NumberArgument, folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show as a tree what a task waits for, and what waits for it, at any distance.

    Examples:
      agentmon task graph 12
      agentmon task graph 12 --json
    """

    async def work(services: Services, workspace: Workspace) -> tuple[TaskId, TaskGraph, dict[TaskId, LiveState]]:
        task = await numbered_task(services, workspace, number)
        listings = await services.executions.list(workspace, limit=_MOST_OPEN)
        executions = [listing.execution for listing in listings if listing.execution.status.is_open]
        live = {execution.task_id: execution.live_state for execution in executions}
        return task.id, await services.tasks.graph(task.id), live

    task_id, found, live = with_workspace(folder, work)
    if as_json:
        say_document(_graph_form(found, task_id, live))
    else:
        say("\n".join(graph_lines(found, task_id, live, terminal_width())))


def _graph_form(found: TaskGraph, task_id: TaskId, live: dict[TaskId, LiveState]) -> dict[str, object]:
    by_number = sorted(found.tasks.values(), key=lambda task: task.number)
    return {
        "number": found.tasks[task_id].number,
        "nodes": [
            {
                "id": task.id,
                "number": task.number,
                "title": task.title,
                "status": json_form(task.status),
                "state": json_form(live.get(task.id)),
            }
            for task in by_number
        ],
        "edges": [
            {"number": task.number, "waits_for": found.tasks[other].number}
            for task in by_number
            for other in found.needs.get(task.id, ())
        ],
    }


def _say_tasks(heading: str, tasks: Sequence[Task]) -> None:
    if tasks:
        say("\n".join([f"  {heading}", *(f"    {_task_line(task)}" for task in tasks)]))


def _task_line(task: Task) -> str:
    return f"#{task.number} {state_words(task, None)}  {plain_line(task.title, max_characters=200)}"
