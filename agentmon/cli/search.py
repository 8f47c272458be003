"""``agentmon search``: words found in tasks, conversations, tool calls, changed files, logs and documents."""

from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.context import JsonOption, WorkspaceOption, current_folder, with_workspace
from agentmon.cli.folders import existing_folder
from agentmon.cli.search_text import LARGEST_LIMIT, LIMIT, Asked, print_found
from agentmon.domain.errors import StoreError
from agentmon.domain.tasks import Workspace


def search(
    words: Annotated[list[str], typer.Argument(metavar="TEXT", help="The words; how they are read stands above.")],
    folder: WorkspaceOption = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--in", metavar="KIND", help="tasks, sessions, messages, operations, changes, logs or documents."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=LARGEST_LIMIT, help="Most hits of each kind.")
    ] = LIMIT,
    is_everywhere: Annotated[bool, typer.Option("--all", help="Of every workspace.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Search tasks, conversations, tool calls, files and logs.

    Documents too; the newest hits come first. All words have to occur; the last one may be cut off. "two words" is a
    phrase, -word excludes one, in:logs names a kind, #auth is a label and #12 a task. Each hit comes with the command
    that shows it. The exit code is 1 when nothing is found.

    Examples:
      agentmon search discount rounding
      agentmon search --in logs "connection refused"
      agentmon search --all --json '"exit code" -test in:operations'
    """
    start = current_folder() if folder is None else existing_folder(folder)
    asked = Asked(
        text=" ".join(words),
        kinds=tuple(name.strip().lower() for part in kinds or () for name in part.split(",")),
        limit=limit,
        is_everywhere=is_everywhere,
        folder=start,
        as_json=as_json,
    )
    code = print_found(asked)
    if code is None:

        async def look(_services: Services, workspace: Workspace) -> str:
            """Make or upgrade the database, and say which workspace it is."""
            return workspace.id

        workspace_id = with_workspace(str(start), look)
        code = print_found(asked, workspace_id=None if is_everywhere else workspace_id)
    if code is None:
        raise StoreError("the database was replaced meanwhile", hint="Try again.")
    raise typer.Exit(code)
