"""``agentmon audit`` and ``task history``: who changed what and when."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.columns import fill
from agentmon.cli.context import JsonOption, NumberArgument, WorkspaceOption, numbered_task, with_workspace
from agentmon.cli.json_form import json_form
from agentmon.cli.local_time import local_zone, moment_gone
from agentmon.cli.output import flush, say, say_document, say_document_line, tell
from agentmon.cli.task_text import event_line
from agentmon.domain.errors import UsageError
from agentmon.domain.events import TaskEvent
from agentmon.domain.plain_text import plain_line
from agentmon.domain.tasks import Workspace
from agentmon.services.audit import AuditLine

_LOOK_INTERVAL_S = 0.2
_WORKSPACE_COLUMNS = 16
_MOST_AT_ONCE = 10_000
_DEFAULT_LIMIT = 1000

LimitOption = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=1_000_000, help="Most events shown; the newest stay.")
]
"""How a look at the trail goes on: the lines after the one with this id, oldest first."""
_Read = Callable[[int, int], Awaitable[Sequence[AuditLine]]]


def audit(
    number: Annotated[
        str | None, typer.Argument(metavar="[NUMBER]", help="Only this task, such as 12 or '#12'.")
    ] = None,
    folder: WorkspaceOption = None,
    is_all: Annotated[bool, typer.Option("--all", help="Of every workspace.")] = False,
    limit: LimitOption = _DEFAULT_LIMIT,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only later events: 2h, 07:30, 2026-11-30.")
    ] = None,
    is_following: Annotated[bool, typer.Option("--follow", "-f", help="Print new events until ctrl+c.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show who changed what, and when.

    Of tasks, runs, the queue, programs and settings. The newest event comes last. With --follow, --json prints one
    object a line.

    Examples:
      agentmon audit
      agentmon audit 12
      agentmon audit --all --since 2h
      agentmon audit -f
    """
    if number is not None and is_all:
        raise UsageError("--all and a task exclude each other", hint="a number belongs to one workspace")
    earliest = None if since is None else moment_gone(since)

    async def work(services: Services, workspace: Workspace) -> None:
        read = await _reader(services, workspace, number, is_all=is_all)
        lines = [line for line in await read(0, limit) if _is_after(line, earliest)]
        if not is_following:
            _print(lines, as_json=as_json, has_subject=number is None, is_all=is_all)
            return
        if not as_json:
            tell(_zone_note())
        await _follow(services, read, lines, as_json=as_json, has_subject=number is None, is_all=is_all)

    with_workspace(folder, work)


def history(
    number: NumberArgument,
    folder: WorkspaceOption = None,
    limit: LimitOption = 100_000,
    as_json: JsonOption = False,
) -> None:
    """Show the history of a task: who changed what and when.

    The newest event comes last.

    Examples:
      agentmon task history 12
      agentmon task history 12 --json
    """

    async def work(services: Services, workspace: Workspace) -> Sequence[TaskEvent]:
        task = await numbered_task(services, workspace, number)
        return await services.audit.of_task(task.id, limit=limit)

    events = with_workspace(folder, work)
    if as_json:
        say_document(json_form(list(events)))
    else:
        tell(_zone_note())
        say("\n".join(event_line(event) for event in events))


async def _reader(services: Services, workspace: Workspace, number: str | None, *, is_all: bool) -> _Read:
    if number is None:

        async def of_all(after_id: int, limit: int) -> Sequence[AuditLine]:
            return await services.audit.all(None if is_all else workspace, after_id=after_id, limit=limit)

        return of_all
    task = await numbered_task(services, workspace, number)

    async def of_task(after_id: int, limit: int) -> Sequence[AuditLine]:
        events = await services.audit.of_task(task.id, limit=limit)
        return [AuditLine(event=event, task_number=task.number) for event in events if event.id > after_id]

    return of_task


async def _follow(
    services: Services, read: _Read, lines: Sequence[AuditLine], *, as_json: bool, has_subject: bool, is_all: bool
) -> None:
    last_id = 0
    version = None
    while True:
        for line in lines:
            last_id = line.event.id
            if as_json:
                say_document_line(_form(line, has_subject=has_subject))
            else:
                say(_text(line, has_subject=has_subject, is_all=is_all))
        flush()
        present_version = services.data_version()
        if version == present_version:
            await asyncio.sleep(_LOOK_INTERVAL_S)
        lines = () if version == present_version else await read(last_id, _MOST_AT_ONCE)
        version = present_version


def _print(lines: Sequence[AuditLine], *, as_json: bool, has_subject: bool, is_all: bool) -> None:
    if as_json:
        say_document([_form(line, has_subject=has_subject) for line in lines])
    elif not lines:
        tell("nothing is recorded of that")
    else:
        tell(_zone_note())
        say("\n".join(_text(line, has_subject=has_subject, is_all=is_all) for line in lines))


def _form(line: AuditLine, *, has_subject: bool) -> object:
    form = json_form(line.event)
    subject = {"workspace": line.workspace_name, "task_number": line.task_number}
    return form | subject if has_subject and isinstance(form, dict) else form


def _text(line: AuditLine, *, has_subject: bool, is_all: bool) -> str:
    subject = f"{'' if line.task_number is None else f'#{line.task_number}':<6} "
    if is_all:
        subject = f"{fill(plain_line(line.workspace_name or ''), _WORKSPACE_COLUMNS)} {subject}"
    return event_line(line.event, subject if has_subject else "")


def _is_after(line: AuditLine, earliest: datetime | None) -> bool:
    return earliest is None or line.event.created_at >= earliest


def _zone_note() -> str:
    return f"times are in {local_zone()}"
