"""``agentmon task …``: cards made, looked at, changed, moved, deleted and brought back."""

import os
from dataclasses import replace
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.alternatives import left_open, tell_left_open
from agentmon.cli.archive import archive, unarchive
from agentmon.cli.audit import history
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import (
    JsonOption,
    NumberArgument,
    WorkspaceOption,
    numbered_task,
    task_number,
    with_workspace,
)
from agentmon.cli.dependencies import after, graph
from agentmon.cli.description import described
from agentmon.cli.json_form import json_form
from agentmon.cli.local_time import zone_words
from agentmon.cli.option_groups import spreading
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.pausing import silence_note
from agentmon.cli.registration import register
from agentmon.cli.run import StartOptions
from agentmon.cli.task_options import TaskOptions, drafted, valid_text, warn_of_secrets
from agentmon.cli.task_show import show
from agentmon.cli.wait_text import obstacles_of, waiting_text
from agentmon.domain.agents import Agent
from agentmon.domain.amounts import MoneyFormat
from agentmon.domain.errors import UsageError
from agentmon.domain.plain_text import plain_line
from agentmon.domain.spending import Spent
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import Task, TaskDraft, Workspace, draft_of
from agentmon.domain.templates import TITLE_PLACEHOLDER, with_title

group = typer.Typer(
    help="Add, show, change, move, archive and restore tasks.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


@spreading(TaskOptions, StartOptions)
def add(
    title: Annotated[
        str | None,
        typer.Argument(metavar="TITLE", help="One line; after -- it may begin with a dash. A template may have it."),
    ] = None,
    *,
    folder: WorkspaceOption = None,
    options: TaskOptions,
    is_run: Annotated[bool, typer.Option("--run", help="Run it at once, or as the next two options say.")] = False,
    start: StartOptions,
    template: Annotated[
        str | None, typer.Option("--template", metavar="NAME", help="Fill it with this template; options win.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Add a task to the top of Todo.

    Examples:
      agentmon task add "Run the tests" --command "make test" --run
      agentmon task add "Build it" -c "sh -c 'make && make install'" --priority 2
      agentmon task add "Deploy" --agent make --with build --arg targets=deploy --after 12 --run --when-ready
      agentmon task add "Back up" -c "make backup" --schedule "0 7 * * 1-5" --zone Europe/Berlin
      agentmon task add --template bug "The login fails"
      agentmon task add "Write the manual" --parent 12 --label docs
      agentmon task add --env API_KEY -- "-v is ignored by the linter"
    """
    if start != StartOptions() and not is_run:
        raise UsageError("--at and --when-ready need --run", hint="they say when the run starts")
    not_before = start.not_before()

    async def work(services: Services, workspace: Workspace) -> tuple[Task, str]:
        numbers = [task_number(number) for number in options.after or ()]
        draft = await _new_draft(services, workspace, options, title=title, template=template)
        warn_of_secrets(options, draft.title)
        if is_run and draft.assignee_agent_id is None:
            raise UsageError("a task without a program cannot run", hint="add --command or --agent")
        task = await services.tasks.add(workspace, draft, actor=services.actor, after=numbers)
        if task.schedule is not None:
            await services.queue.look_after()
        if not is_run:
            return task, ""
        try:
            execution = await services.queue.run(
                task.id,
                actor=services.actor,
                environ=os.environ,
                not_before=not_before,
                when_ready=start.is_when_ready,
            )
        except BaseException:
            tell(f"note: #{task.number} was added, but does not run")
            raise
        state = waiting_text(execution, await obstacles_of(services, execution))
        return await services.tasks.get(task.id), state

    task, state = with_workspace(folder, work, registers=True)
    if as_json:
        say_document(json_form(task))
    else:
        say(f"#{task.number} {plain_line(task.title, max_characters=200)}")
        if state:
            tell(f"{state}; agentmon log {task.number} -f shows its output")
    _tell_schedule(task, options)


def list_tasks(
    folder: WorkspaceOption = None,
    status: Annotated[
        list[TaskStatus] | None, typer.Option("--status", "-s", help="Only tasks of this column; repeatable.")
    ] = None,
    archived: Annotated[bool, typer.Option("--archived", help="The archived tasks instead.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the tasks of a workspace, column by column.

    Examples:
      agentmon task list
      agentmon task list --archived
      agentmon task list --status todo --status blocked
    """

    async def work(
        services: Services, workspace: Workspace
    ) -> tuple[tuple[Task, ...], tuple[Agent, ...], dict[str, Spent], MoneyFormat]:
        if not as_json and (note := await silence_note(services)):
            tell(note)
        tasks = await services.tasks.list(workspace, statuses=status or (), is_archived=archived)
        spent = await services.board.spent([task.id for task in tasks])
        return tasks, await services.agents.list(active_only=False), spent, await services.settings.money()

    tasks, agents, spent, money = with_workspace(folder, work)
    if as_json:
        forms = (json_form(task) for task in tasks)
        named = (spent.get(task.id, Spent()).named for task in tasks)
        say_document([{**form, **more} for form, more in zip(forms, named, strict=True) if isinstance(form, dict)])
        return
    if not tasks:
        makes_one = 'no tasks; agentmon task add "TITLE" makes one'
        tell("no archived tasks; agentmon task archive NUMBER archives one" if archived else makes_one)
        return
    slugs = {agent.id: agent.slug for agent in agents}
    rows = [
        (
            f"#{task.number}",
            f"P{int(task.priority)}",
            task.status.label,
            slugs.get(task.assignee_agent_id, "") if task.assignee_agent_id is not None else "",
            spent.get(task.id, Spent()).short_text(money),
            plain_line(task.title, max_characters=300),
        )
        for task in tasks
    ]
    say("\n".join(table(("TASK", "PRIO", "STATUS", "PROGRAM", "COST", "TITLE"), rows, terminal_width())))


@spreading(TaskOptions)
def edit(
    number: NumberArgument,
    *,
    folder: WorkspaceOption = None,
    title: Annotated[str | None, typer.Option("--title", "-t", metavar="TITLE", help="The new title.")] = None,
    options: TaskOptions,
    no_env: Annotated[
        list[str] | None, typer.Option("--no-env", metavar="NAME", help="Forget this variable; repeatable.")
    ] = None,
    no_label: Annotated[
        list[str] | None, typer.Option("--no-label", metavar="LABEL", help="Take this label away; repeatable.")
    ] = None,
    not_after: Annotated[
        list[str] | None, typer.Option("--not-after", metavar="NUMBER", help="No longer wait for this task.")
    ] = None,
    is_in_editor: Annotated[
        bool, typer.Option("--editor", "-e", help="Write the description in $VISUAL or $EDITOR.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Change what is named and keep the rest.

    An empty --agent, --dir, --due, --parent or --schedule takes it away.

    Examples:
      agentmon task edit 12 --title "Fix the login" --priority 1
      agentmon task edit 12 --command "pytest -k login" --after 9
      agentmon task edit 12 --schedule "30 7 * * 1-5"
      agentmon task edit 12 --editor
      agentmon task edit 12 --parent ""
      agentmon task edit 12 --label auth --no-label later
    """
    if is_in_editor and options.description is not None:
        raise UsageError("--editor and --description exclude each other", hint="give one of them")
    changes_fields = (
        title is not None or is_in_editor or bool(no_env or no_label) or replace(options, after=None) != TaskOptions()
    )

    async def work(services: Services, workspace: Workspace) -> Task:
        if not (changes_fields or options.after or not_after):
            raise UsageError("nothing to change", hint="agentmon task edit --help lists what can be")
        added, removed = ([task_number(text) for text in numbers or ()] for numbers in (options.after, not_after))
        task = await numbered_task(services, workspace, number)
        if changes_fields:
            draft = await drafted(
                services,
                workspace,
                options,
                draft_of(task),
                title=title,
                removed_environment=no_env or (),
                removed_labels=no_label or (),
            )
            warn_of_secrets(options, title)
            lent = None
            if is_in_editor:
                draft, lent = described(services.paths.drafts_dir, draft)
            edited = await services.tasks.edit(
                task.id,
                draft,
                expected_version=task.version,
                added=added,
                removed=removed,
                actor=services.actor,
            )
            if lent is not None:
                lent.remove()
        else:
            await services.tasks.change_dependencies(task.id, added=added, removed=removed, actor=services.actor)
            edited = await services.tasks.get(task.id)
        if removed or edited.schedule is not None:
            await services.queue.deliver()
        return edited

    task = with_workspace(folder, work)
    _print_task(task, as_json=as_json)
    _tell_schedule(task, options)


def move(
    number: NumberArgument,
    status: Annotated[TaskStatus, typer.Argument(help="The column.")],
    folder: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move a task to the top of another column.

    Examples:
      agentmon task move 12 done
    """

    async def work(services: Services, workspace: Workspace) -> tuple[Task, tuple[int, ...]]:
        task = await numbered_task(services, workspace, number)
        moved = await services.tasks.move(task.id, status, actor=services.actor)
        # What was queued after it may start now, and what runs may have to end.
        await services.queue.deliver()
        return moved, await left_open(services, moved)

    moved, left = with_workspace(folder, work)
    _print_task(moved, as_json=as_json)
    tell_left_open(left, moved.number)


def let_go(number: NumberArgument, folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Cancel the alternatives that are left once one was taken: those of a task, and the task itself.

    What runs of them is stopped. Their worktrees stay; agentmon worktrees removes them.

    Examples:
      agentmon task let-go 12
    """

    async def work(services: Services, workspace: Workspace) -> tuple[Task, ...]:
        task = await numbered_task(services, workspace, number)
        return await services.queue.let_go(task.id, actor=services.actor)

    left = with_workspace(folder, work)
    if as_json:
        say_document(json_form(left))
        return
    for task in left:
        state = "is being stopped" if task.status.is_open else task.status.label
        say(f"#{task.number} {state}: {plain_line(task.title, max_characters=200)}")
    tell("their worktrees stay; agentmon worktrees prune removes those with which nothing is lost")


def delete(number: NumberArgument, folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Delete a task; ``agentmon task restore`` brings it back.

    Examples:
      agentmon task delete 12
    """

    async def work(services: Services, workspace: Workspace) -> Task:
        task = await numbered_task(services, workspace, number)
        return await services.tasks.delete(task.id, actor=services.actor)

    task = with_workspace(folder, work)
    if as_json:
        say_document(json_form(task))
    else:
        say(f"deleted #{task.number} {plain_line(task.title, max_characters=200)}")
    tell(f"agentmon task restore {task.number} brings it back")


def restore(number: NumberArgument, folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Bring a deleted task back to its column.

    Examples:
      agentmon task restore 12
    """

    async def work(services: Services, workspace: Workspace) -> Task:
        task = await numbered_task(services, workspace, number, deleted_too=True)
        return await services.tasks.restore(task.id, actor=services.actor)

    _print_task(with_workspace(folder, work), as_json=as_json)


async def _new_draft(
    services: Services, workspace: Workspace, options: TaskOptions, *, title: str | None, template: str | None
) -> TaskDraft:
    """Return the draft of a new task, over that of the template where one is named."""
    if template is None:
        if title is None:
            raise UsageError("a task needs a title", hint='agentmon task add "TITLE"')
        return await drafted(services, workspace, options, TaskDraft(title=title), title=title)
    base, notes = await services.templates.draft(workspace, await services.templates.get(workspace, template))
    for note in notes:
        tell(f"warning: {note}")
    if title is None and (not base.title.strip() or TITLE_PLACEHOLDER in base.title):
        raise UsageError(f"the template {template} leaves the title open", hint="name it: agentmon task add … TITLE")
    named = base.title if title is None else valid_text(title)
    return with_title(await drafted(services, workspace, options, base), named)


def _tell_schedule(task: Task, options: TaskOptions) -> None:
    """Say in which zone the times are and when the next one is, after a schedule was set."""
    if task.schedule is not None and (options.cron is not None or options.zone is not None):
        zone = plain_line(task.schedule.zone)
        next_time = "" if task.next_run_at is None else f", next {zone_words(task.next_run_at, task.schedule.zone)}"
        tell(f"runs by itself at {plain_line(task.schedule.cron)} in {zone}{next_time}")


def _print_task(task: Task, *, as_json: bool) -> None:
    if as_json:
        say_document(json_form(task))
    else:
        say(f"#{task.number} {task.status.label}: {plain_line(task.title, max_characters=200)}")
        if task.archived_at is not None:
            tell(f"it is archived; agentmon task unarchive {task.number} brings it back to the board")


register(group, "add", add)
register(group, "list", list_tasks)
register(group, "show", show)
register(group, "edit", edit)
register(group, "after", after)
register(group, "graph", graph)
register(group, "move", move)
register(group, "let-go", let_go)
register(group, "delete", delete)
register(group, "restore", restore)
register(group, "archive", archive)
register(group, "unarchive", unarchive)
register(group, "history", history)
