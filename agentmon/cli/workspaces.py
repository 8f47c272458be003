"""``agentmon workspaces``: the project folders with a board, and what goes on in each."""

from agentmon.bootstrap import Services
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.domain.plain_text import plain_line
from agentmon.domain.workspace_counts import WorkspaceCounts

_HEADINGS = ("WORKSPACE", "RUNNING", "QUEUED", "NEEDS YOU", "OPEN", "PATH")


def workspaces(as_json: JsonOption = False) -> None:
    """List the workspaces with what runs, waits for you and is to be done in each.

    `W` on the board chooses between them; `agentmon board --all` shows all cards together.

    Examples:
      agentmon workspaces
      agentmon workspaces --json
    """

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
            plain_line(one.workspace.root_path),
        )
        for one in counts
    ]
    say("\n".join(table(_HEADINGS, rows, terminal_width())))
