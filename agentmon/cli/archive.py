"""``agentmon task archive`` and ``unarchive``: cards that leave the board with everything kept."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli import exit_codes
from agentmon.cli.context import JsonOption, WorkspaceOption, numbered_task, with_workspace
from agentmon.cli.json_form import json_form
from agentmon.cli.local_time import moment_gone
from agentmon.cli.numbered_work import NumbersArgument, for_each_number
from agentmon.cli.output import say, say_document, tell
from agentmon.domain.errors import UsageError
from agentmon.domain.plain_text import plain_line
from agentmon.domain.tasks import Task, Workspace

_LONGEST_TITLE = 200


def archive(
    numbers: NumbersArgument = None,
    closed_before: Annotated[
        str | None,
        typer.Option(
            "--closed-before",
            metavar="TIME",
            help="All done and cancelled tasks that nothing has changed since: 30d, 2026-11-30.",
        ),
    ] = None,
    all_workspaces: Annotated[bool, typer.Option("--all", help="With --closed-before: of all workspaces.")] = False,
    folder: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take tasks off the board; number, runs, logs and history stay.

    An archived task waits for ``agentmon task unarchive``, does not run, and shows up in ``agentmon task list
    --archived`` and in searches. What is queued or running is not archived.

    Examples:
      agentmon task archive 12 14
      agentmon task archive --closed-before 30d
      agentmon settings board.archive_after_days 30
    """
    if bool(numbers) == (closed_before is not None):
        raise UsageError("which tasks?", hint="name their numbers, or --closed-before 30d")
    if all_workspaces and closed_before is None:
        raise UsageError("--all needs --closed-before", hint="agentmon task archive --all --closed-before 30d")

    if closed_before is not None:
        moment, words = moment_gone(closed_before), plain_line(closed_before)

        async def archive_closed(services: Services, workspace: Workspace) -> tuple[Task, ...]:
            return await services.archive.archive_closed_before(
                moment,
                None if all_workspaces else workspace,
                cause=f"closed before {words}",
                actor=services.actor,
            )

        _tell(with_workspace(folder, archive_closed), "archived", as_json=as_json, is_one=False)
        return

    async def archive_one(services: Services, task: Task) -> Task:
        return await services.archive.archive(task.id, actor=services.actor)

    _do_each(numbers or (), folder, archive_one, "archived", as_json=as_json)


def unarchive(numbers: NumbersArgument = None, folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Bring archived tasks back to their columns.

    Examples:
      agentmon task unarchive 12
    """
    if not numbers:
        raise UsageError("which tasks?", hint="agentmon task list --archived shows the archived ones")

    async def bring_back(services: Services, task: Task) -> Task:
        return await services.archive.unarchive(task.id, actor=services.actor)

    _do_each(numbers, folder, bring_back, "brought back", as_json=as_json)


def _do_each(
    numbers: Sequence[str],
    folder: str | None,
    change: Callable[[Services, Task], Awaitable[Task]],
    verb: str,
    *,
    as_json: bool,
) -> None:
    async def work(services: Services, workspace: Workspace) -> tuple[list[Task], int]:
        async def one(number: str) -> Task:
            return await change(services, await numbered_task(services, workspace, number))

        return await for_each_number(numbers, one)

    tasks, failed = with_workspace(folder, work)
    _tell(tasks, verb, as_json=as_json, is_one=len(numbers) == 1)
    if failed:
        raise typer.Exit(exit_codes.FAILED)


def _tell(tasks: Sequence[Task], verb: str, *, as_json: bool, is_one: bool) -> None:
    if as_json:
        say_document(json_form(tasks[0] if is_one else tasks))
        return
    for task in tasks:
        say(f"{verb} #{task.number} {plain_line(task.title, max_characters=_LONGEST_TITLE)}")
    if not tasks:
        tell("nothing to archive")
    elif verb == "archived":
        tell("agentmon task unarchive NUMBER brings one back")
