"""``agentmon add``: tasks from single lines."""

import os
import sys
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.context import JsonOption, WorkspaceOption, with_workspace
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.piped_text import piped_text
from agentmon.cli.task_options import valid_text
from agentmon.domain.errors import AgentmonError, UsageError
from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import has_secret
from agentmon.domain.tasks import Task, Workspace

_STDIN = "-"
_MOST_BYTES = 4_000_000


def add(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[LINE]", help="The task on one line; without it, or as -, a task for each line read."),
    ] = None,
    folder: WorkspaceOption = None,
    is_run: Annotated[
        bool, typer.Option("--run", help="Run them at once; one that waits for others starts later.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Add a task from one line, or several from standard input.

    Words are the title; !1 to !5 is the priority, @agent the program, #label a label, and there are after:38,39,
    due:fri, parent:12, in:FOLDER, retry:2 and verify:'make test'. Quotes around a word, or a backslash before it, make
    it text; #12 is text anyway. Of several lines all are added, or none when one of them is wrong. Put it into single
    quotes: a shell reads # and ! itself.

    Examples:
      agentmon add 'fix login !1 @claude #auth after:38'
      agentmon add "call the customer due:'dec 1 18:00'"
      agentmon add --json < tasks.txt
    """
    texts = _lines(words or [])

    async def work(services: Services, workspace: Workspace) -> tuple[tuple[Task, ...], list[str]]:
        tasks = await services.quick_add.add(workspace, texts, actor=services.actor, needs_program=is_run)
        notes = [] if not is_run else await _run(services, tasks)
        return tuple([await services.tasks.get(task.id) for task in tasks]), notes

    tasks, notes = with_workspace(folder, work, registers=True)
    if any(has_secret(text) for text in texts):
        tell("warning: a line holds what looks like a secret, and is stored")
    if as_json:
        say_document([json_form(task) for task in tasks] if len(texts) > 1 else json_form(tasks[0]))
    else:
        for task in tasks:
            say(f"#{task.number} {plain_line(task.title, max_characters=200)}")
    for note in notes:
        tell(note)
    if any(note.startswith("warning") for note in notes):
        raise typer.Exit(1)


def _lines(words: list[str]) -> list[str]:
    """Return the lines that were given, or read.

    Raises:
        UsageError: None was given and nothing can be read, or far too much is.
    """
    if words and words != [_STDIN]:
        return [valid_text(" ".join(words))]
    if not words and sys.stdin.isatty():
        raise UsageError("there is no line to add", hint="agentmon add 'fix login !1 #auth', or pipe lines into it")
    return piped_text(max_bytes=_MOST_BYTES).rstrip("\n").split("\n")


async def _run(services: Services, tasks: tuple[Task, ...]) -> list[str]:
    """Queue them; return what to tell of each, since those that are added stay whatever becomes of the others."""
    notes = []
    for task in tasks:
        try:
            await services.queue.run(task.id, actor=services.actor, environ=os.environ, when_ready=True)
        except AgentmonError as error:
            hint = f"; {error.hint}" if error.hint else ""
            notes.append(f"warning: #{task.number} was added, but does not run: {error}{hint}")
        else:
            notes.append(f"queued; agentmon log {task.number} -f shows its output")
    return notes
