"""``agentmon stop``: runs ended, and queued ones taken out of the queue."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli import exit_codes
from agentmon.cli.context import JsonOption, KeyOption, WorkspaceOption, numbered_task, with_workspace
from agentmon.cli.numbered_work import (
    NumbersArgument,
    TaskExecution,
    executions_form,
    for_each_number,
    require_one_for_key,
)
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.run_waiting import WaitOption, all_finished
from agentmon.cli.task_text import state_text
from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import UsageError
from agentmon.domain.executions import ExecutionListing
from agentmon.domain.idempotency import idempotency_key
from agentmon.domain.tasks import Workspace

_MOST_AT_ONCE = 1000


def stop(
    numbers: NumbersArgument = None,
    folder: WorkspaceOption = None,
    is_kill: Annotated[bool, typer.Option("--kill", help="End every process at once, without asking.")] = False,
    is_all: Annotated[bool, typer.Option("--all", help="All that waits or runs in the workspace.")] = False,
    is_sure: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before --all.")] = False,
    is_waiting: WaitOption = False,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop runs, and take queued tasks out of the queue.

    The program is asked to end, and ended by force after the grace time; --kill does that at once.

    Examples:
      agentmon stop 12
      agentmon stop 12 13 --kill --wait
      agentmon stop --all --yes
    """
    if bool(numbers) == is_all:
        raise UsageError(
            "--all and numbers exclude each other" if is_all else "which task?",
            hint="agentmon stop NUMBER, or agentmon stop --all; `agentmon executions` shows what runs",
        )
    is_one = numbers is not None and len(numbers) == 1
    require_one_for_key(key, is_one=is_one)
    asked = with_workspace(folder, _open_numbers) if is_all else numbers or []
    if is_all and asked and not is_sure:
        _ask(len(asked))

    outcomes, failed = with_workspace(
        folder,
        lambda services, workspace: _stop_each(
            services, workspace, asked, is_kill=is_kill, is_waiting=is_waiting, key=key
        ),
    )
    if as_json:
        say_document(executions_form(outcomes, is_one=is_one))
    else:
        for outcome in outcomes:
            say(f"{outcome.task.number} {state_text(outcome.execution, SystemClock().now())}")
        if is_all:
            tell(f"{len(outcomes)} stopped" if outcomes or failed else "nothing waits or runs")
    if failed:
        raise typer.Exit(exit_codes.FAILED)


async def _stop_each(
    services: Services,
    workspace: Workspace,
    numbers: Sequence[str],
    *,
    is_kill: bool,
    is_waiting: bool,
    key: str | None,
) -> tuple[list[TaskExecution], int]:
    async def end(number: str) -> TaskExecution:
        task = await numbered_task(services, workspace, number)
        execution = await services.queue.stop(
            task.id,
            actor=services.actor,
            kill=is_kill,
            key=idempotency_key(key, "stop", {"task_id": task.id, "kill": is_kill}),
        )
        return TaskExecution(task=task, execution=execution)

    stopped, failed = await for_each_number(numbers, end)
    if is_waiting:
        stopped = await all_finished(services, stopped)
    return stopped, failed


async def _open_numbers(services: Services, workspace: Workspace) -> list[str]:
    listings: tuple[ExecutionListing, ...] = await services.executions.list(workspace, limit=_MOST_AT_ONCE)
    return [str(listing.task_number) for listing in listings if listing.execution.status.is_open]


def _ask(count: int) -> None:
    if not sys.stdin.isatty():
        raise UsageError(f"this would stop {count} of them, and there is no terminal to ask on", hint="add --yes")
    if not typer.confirm(f"Stop {count} that wait or run?", err=True):
        raise typer.Exit(exit_codes.FAILED)
