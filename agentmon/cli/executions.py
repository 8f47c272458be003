"""``agentmon executions``: what runs, waits and ran."""

from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import JsonOption, WorkspaceOption, numbered_task, with_workspace
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.pausing import pause_note, silence_note
from agentmon.cli.task_text import state_text
from agentmon.domain.amounts import MoneyFormat
from agentmon.domain.clock import SystemClock
from agentmon.domain.executions import ExecutionListing
from agentmon.domain.overlaps import overlap_line
from agentmon.domain.plain_text import plain_line
from agentmon.domain.spending import spent_by
from agentmon.domain.tasks import Workspace


def list_executions(
    folder: WorkspaceOption = None,
    number: Annotated[
        str | None, typer.Option("--task", "-t", metavar="NUMBER", help="Only the runs of this task.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="Most runs shown.")] = 100,
    is_all: Annotated[bool, typer.Option("--all", help="Of every workspace.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List runs: open ones first, then the newest.

    Examples:
      agentmon executions
      agentmon executions --task 12 --json
    """

    async def work(services: Services, workspace: Workspace) -> tuple[tuple[ExecutionListing, ...], str, MoneyFormat]:
        money = await services.settings.money()
        note = "\n".join(filter(None, [await pause_note(services), await silence_note(services)]))
        if number is None:
            return await services.executions.list(None if is_all else workspace, limit=limit), note, money
        task = await numbered_task(services, workspace, number)
        return await services.executions.list(None, task_id=task.id, limit=limit), note, money

    listings, note, money = with_workspace(folder, work)
    if as_json:
        say_document(json_form(listings))
        return
    if note:
        tell(note)
    if not listings:
        tell("nothing has run yet; agentmon run NUMBER starts a task")
        return
    now = SystemClock().now()
    rows = [
        (
            state_text(listing.execution, now),
            f"#{listing.task_number}",
            listing.agent_slug,
            listing.execution.elapsed_text(now),
            spent_by(listing.execution).text(money),
            plain_line(listing.task_title, max_characters=40),
            plain_line(_said(listing), max_characters=200),
        )
        for listing in listings
    ]
    headings = ("STATE", "TASK", "PROGRAM", "TIME", "COST", "TITLE", "LAST LINE")
    say("\n".join(table(headings, rows, terminal_width())))


def _said(listing: ExecutionListing) -> str:
    execution = listing.execution
    verdict = "" if execution.verification is None else execution.verification.text
    overlap = overlap_line(execution.overlaps)
    return "  ".join(text for text in (verdict, overlap, execution.error or execution.last_line or "") if text)
