"""``agentmon workspaces``: the project folders with a board, what goes on in each, and where one was moved to."""

from dataclasses import asdict
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.folders import existing_folder
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.registration import register, register_default
from agentmon.domain.plain_text import plain_line
from agentmon.domain.tasks import Workspace
from agentmon.domain.workspace_counts import WorkspaceCounts

group = typer.Typer(rich_markup_mode=None)
_HEADINGS = ("WORKSPACE", "RUNNING", "QUEUED", "NEEDS YOU", "OPEN", "PATH")


def workspaces(context: typer.Context, as_json: JsonOption = False) -> None:
    """List workspaces, with what runs and needs you in each.

    `W` on the board chooses between them; `agentmon board --all` shows all cards together.

    Examples:
      agentmon workspaces
      agentmon workspaces --json
      agentmon workspaces move ~/src/api ~/work/api
    """
    if context.invoked_subcommand is not None:
        return

    async def work(services: Services) -> tuple[WorkspaceCounts, ...]:
        return await services.workspaces.counts()

    counts = with_services(work)
    if as_json:
        say_document(json_form(counts))
        return
    if not counts:
        tell("no workspaces yet; agentmon in a project folder opens its board")
        return
    rows = [
        (
            plain_line(one.short_name),
            str(one.running),
            str(one.queued),
            str(one.needs_you),
            f"{one.open_tasks:,}",
            plain_line(one.workspace.root_path) + (" (moved or missing)" if one.is_gone else ""),
        )
        for one in counts
    ]
    say("\n".join(table(_HEADINGS, rows, terminal_width())))
    if any(one.is_gone for one in counts):
        tell("`agentmon workspaces move OLD NEW` brings the board of a moved folder along")


def move(
    old: Annotated[str, typer.Argument(metavar="OLD", help="Where the folder was, or the name of its workspace.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Where it is now.")],
    as_json: JsonOption = False,
) -> None:
    """Move the workspaces at or below a folder to where that folder is now; no file is moved.

    Tasks, conversations, rules and worktrees come along. Costs stay with the folder in which they arose.

    Examples:
      agentmon workspaces move ~/src/api ~/work/api
      agentmon workspaces move ~/src ~/work
    """
    place = existing_folder(new)

    async def work(services: Services) -> tuple[Workspace, ...]:
        return await services.workspaces.move(old, place, actor=services.actor)

    moved = with_services(work)
    if as_json:
        say_document([asdict(one) for one in moved])
    else:
        say("\n".join(f"{one.name} is at {one.root_path}" for one in moved))


register_default(group, workspaces)
register(group, "move", move)
