"""What the commands share: common options, opening the services, numbers of tasks, and the way errors end a command."""

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from agentmon.bootstrap import Services, open_services
from agentmon.cli.folders import existing_folder
from agentmon.cli.output import tell
from agentmon.domain.errors import NotFoundError, UsageError
from agentmon.domain.executions import MOST_RUNS, Execution, run_to_review
from agentmon.domain.ids import ExecutionId
from agentmon.domain.tasks import Task, Workspace
from agentmon.services import gate

Outcome = TypeVar("Outcome")

_MOST_DIGITS = 18

WorkspaceOption = Annotated[
    str | None,
    typer.Option("--workspace", "-C", metavar="PATH", help="A folder of the workspace; the current one by default."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
RunOption = Annotated[
    str | None,
    typer.Option(
        "--run", "--execution", metavar="N|ID", help="The N-th run of the task, or the one of this id, not its newest."
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key", metavar="KEY", help="An idempotency key: the same request under the same key is done only once."
    ),
]
NumberArgument = Annotated[str, typer.Argument(metavar="NUMBER", help="The task, such as 12 or '#12'.")]


def with_services(work: Callable[[Services], Awaitable[Outcome]]) -> Outcome:
    """Run the work over open services and return what it returns.

    Raises:
        AgentmonError: The services could not be opened, or the work failed.
    """

    async def opened() -> Outcome:
        async with open_services() as services:
            for notice in services.notices:
                tell(f"note: {notice}")
            return await work(services)

    return asyncio.run(opened())


def require_person(deed: str) -> None:
    """Refuse an agent that asks for what no service does; the deed completes *an agent may not*.

    Raises:
        ConflictError: An agent asks.
    """

    async def check(services: Services) -> None:
        gate.require_person(services.actor, deed)

    with_services(check)


def with_workspace(
    folder: str | None, work: Callable[[Services, Workspace], Awaitable[Outcome]], *, registers: bool = False
) -> Outcome:
    """Run the work over open services and the workspace of the folder, like ``with_services``.

    Args:
        folder: A folder of the workspace; the current one for None.
        work: What is done.
        registers: Whether a folder that is no workspace yet becomes one, since the work makes something of it.
    """

    async def located(services: Services) -> Outcome:
        start = existing_folder(folder) if folder is not None else current_folder()
        find = services.workspaces.find_for if registers else services.workspaces.look_at
        workspace = await find(start)
        for moved in await services.workspaces.find_moved(workspace):
            command = shlex.join(("agentmon", "workspaces", "move", moved.root_path, workspace.root_path))
            tell(f"note: {workspace.name} looks like the moved {moved.root_path}; `{command}` brings its board here")
        return await work(services, workspace)

    return with_services(located)


async def workspace_here(services: Services, folder: str | None) -> Workspace | None:
    """Return the workspace of the folder, the current one by default; None when it is none, and none is made of it.

    Raises:
        UsageError: There is no such folder.
    """
    return await services.workspaces.find_known(existing_folder(folder) if folder is not None else current_folder())


def current_folder() -> Path:
    """Return the current folder.

    Raises:
        UsageError: It was removed.
    """
    try:
        return existing_folder(str(Path.cwd()))
    except FileNotFoundError as error:
        raise UsageError("the current folder is gone", hint="change to one that exists, or name one with -C") from error


def task_number(text: str) -> int:
    """Return the number that ``12`` or ``#12`` means.

    Raises:
        UsageError: The text is no such number.
    """
    match = re.fullmatch(r"#?([0-9]+)", text.strip(), re.ASCII)
    if match is None or not 0 < int(match[1][: _MOST_DIGITS + 1]) < 10**_MOST_DIGITS:
        raise UsageError(f"{text!r} is not the number of a task", hint="`agentmon task list` shows the numbers")
    return int(match[1])


async def numbered_task(services: Services, workspace: Workspace, text: str, *, deleted_too: bool = False) -> Task:
    """Return the task that a person named by its number.

    Raises:
        UsageError: The text is no number.
        NotFoundError: The workspace has no such task.
    """
    number = task_number(text)
    try:
        return await services.tasks.by_number(workspace, number, deleted_too=deleted_too)
    except NotFoundError as error:
        raise NotFoundError(
            f"there is no task #{number} in {workspace.name} ({workspace.root_path})",
            hint=f"agentmon task list -C {workspace.root_path} shows them"
            if workspace.root_path != str(Path.cwd())
            else "agentmon task list shows them",
        ) from error


async def chosen_execution(services: Services, task: Task, run: str | None) -> Execution:
    """Return the newest run of the task, or the one that is named by its place among all of them or by its id.

    Raises:
        NotFoundError: It never ran, or has no such run.
    """
    hint = f"agentmon executions --task {task.number} lists its runs"
    if run is None:
        newest = await services.executions.newest(task.id)
        if newest is None:
            raise NotFoundError(f"#{task.number} has not run yet", hint=f"agentmon run {task.number} starts it")
        return newest
    if not run.isdecimal():
        execution = await services.executions.get(ExecutionId(run))
        if execution.task_id != task.id:
            raise NotFoundError(f"the run {run} is not one of #{task.number}", hint=hint)
        return execution
    runs = await services.executions.of_task(task.id, limit=MOST_RUNS)
    if not 1 <= int(run) <= len(runs):
        raise NotFoundError(f"#{task.number} has {len(runs)} runs, and no run {run}", hint=hint)
    return runs[-int(run)]


async def execution_to_review(services: Services, task: Task, run: str | None) -> Execution:
    """Return the run that is named, or else the newest of the task that works or changed something.

    Raises:
        NotFoundError: It never ran, or has no such run.
    """
    runs = await services.executions.of_task(task.id, limit=MOST_RUNS) if run is None else ()
    found = run_to_review(runs)
    if found is None:
        return await chosen_execution(services, task, run)
    if found is not runs[0]:
        tell(f"run {len(runs) - runs.index(found)} of {len(runs)}: later ones are not known to have changed files")
    return found
