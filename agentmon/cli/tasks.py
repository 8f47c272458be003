"""``agentmon task …``: cards made, looked at, changed, moved, deleted and brought back."""

import os
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import (
    JsonOption,
    NumberArgument,
    WorkspaceOption,
    numbered_task,
    task_number,
    with_workspace,
)
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.registration import register
from agentmon.cli.task_options import (
    AfterOption,
    AgentOption,
    ArgumentsOption,
    CapabilityOption,
    CommandOption,
    DescriptionOption,
    EnvironmentOption,
    FolderOption,
    PriorityOption,
    RetriesOption,
    TaskOptions,
    drafted,
    warn_of_secrets,
)
from agentmon.cli.task_text import event_line, task_lines
from agentmon.domain.agents import Agent
from agentmon.domain.errors import UsageError
from agentmon.domain.events import TaskEvent
from agentmon.domain.executions import Execution
from agentmon.domain.plain_text import plain_line
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import Task, TaskDraft, Workspace
from agentmon.services.actors import USER_ACTOR

group = typer.Typer(
    help="Make, show, change, move, delete and restore tasks.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


def add(
    title: Annotated[str, typer.Argument(metavar="TITLE", help="One line; after -- it may begin with a dash.")],
    *,
    folder: WorkspaceOption = None,
    description: DescriptionOption = None,
    agent: AgentOption = None,
    capability: CapabilityOption = None,
    arg: ArgumentsOption = None,
    command: CommandOption = None,
    priority: PriorityOption = None,
    working_dir: FolderOption = None,
    env: EnvironmentOption = None,
    max_retries: RetriesOption = None,
    after: AfterOption = None,
    is_run: Annotated[bool, typer.Option("--run", help="Run it at once.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Add a task to the top of Todo.

    Examples:
      agentmon task add "Run the tests" --command "make test" --run
      agentmon task add "Build it" -c "sh -c 'make && make install'" --priority 2
      agentmon task add "Deploy" --agent make --with build --arg targets=deploy --after 12
      agentmon task add --env API_KEY -- "-v is ignored by the linter"
    """
    options = TaskOptions(
        title=title,
        description=description,
        agent_slug=agent,
        capability_key=capability,
        arguments=arg or (),
        command=command,
        priority=priority,
        folder=working_dir,
        environment=env or (),
        max_retries=max_retries,
    )

    async def work(services: Services, workspace: Workspace) -> tuple[Task, Execution | None]:
        numbers = [task_number(number) for number in after or ()]
        draft = await drafted(services, options, TaskDraft(title=title))
        warn_of_secrets(options)
        if is_run and draft.assignee_agent_id is None:
            raise UsageError("a task without a program cannot run", hint="add --command or --agent")
        task = await services.tasks.add(workspace, draft, actor=USER_ACTOR, after=numbers)
        if not is_run:
            return task, None
        try:
            execution = await services.queue.run(task.id, actor=USER_ACTOR, environ=os.environ)
        except BaseException:
            tell(f"note: #{task.number} was added, but does not run")
            raise
        return await services.tasks.get(task.id), execution

    task, execution = with_workspace(folder, work)
    if as_json:
        say_document(json_form(task))
    else:
        say(f"#{task.number} {plain_line(task.title, max_characters=200)}")
        if execution is not None:
            tell(f"queued; agentmon log {task.number} -f shows its output")


def list_tasks(
    folder: WorkspaceOption = None,
    status: Annotated[
        list[TaskStatus] | None, typer.Option("--status", "-s", help="Only tasks of this column; repeatable.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the tasks of a workspace, column by column.

    Examples:
      agentmon task list
      agentmon task list --status todo --status blocked
    """

    async def work(services: Services, workspace: Workspace) -> tuple[tuple[Task, ...], tuple[Agent, ...]]:
        tasks = await services.tasks.list(workspace, statuses=status or ())
        return tasks, await services.agents.list(active_only=False)

    tasks, agents = with_workspace(folder, work)
    if as_json:
        say_document(json_form(tasks))
        return
    if not tasks:
        tell('no tasks; agentmon task add "TITLE" makes one')
        return
    slugs = {agent.id: agent.slug for agent in agents}
    rows = [
        (
            f"#{task.number}",
            f"P{int(task.priority)}",
            task.status.label,
            slugs.get(task.assignee_agent_id, "") if task.assignee_agent_id is not None else "",
            plain_line(task.title, max_characters=300),
        )
        for task in tasks
    ]
    say("\n".join(table(("TASK", "PRIO", "STATUS", "PROGRAM", "TITLE"), rows, terminal_width())))


def show(number: NumberArgument, folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show a task, what it waits for and its runs.

    Examples:
      agentmon task show 12
    """

    async def work(
        services: Services, workspace: Workspace
    ) -> tuple[Task, tuple[Task, ...], tuple[Execution, ...], Agent | None]:
        task = await numbered_task(services, workspace, number)
        agent = await services.agents.get(task.assignee_agent_id) if task.assignee_agent_id is not None else None
        return task, await services.tasks.dependencies(task.id), await services.executions.of_task(task.id), agent

    task, dependencies, executions, agent = with_workspace(folder, work)
    if as_json:
        form = json_form(task)
        beside = {"dependencies": json_form(dependencies), "executions": json_form(executions)}
        say_document({**form, **beside} if isinstance(form, dict) else form)
    else:
        say("\n".join(task_lines(task, agent, dependencies, executions)))


def edit(
    number: NumberArgument,
    *,
    folder: WorkspaceOption = None,
    title: Annotated[str | None, typer.Option("--title", "-t", metavar="TITLE", help="The new title.")] = None,
    description: DescriptionOption = None,
    agent: AgentOption = None,
    capability: CapabilityOption = None,
    arg: ArgumentsOption = None,
    command: CommandOption = None,
    priority: PriorityOption = None,
    working_dir: FolderOption = None,
    env: EnvironmentOption = None,
    no_env: Annotated[
        list[str] | None, typer.Option("--no-env", metavar="NAME", help="Forget this variable; repeatable.")
    ] = None,
    max_retries: RetriesOption = None,
    after: AfterOption = None,
    not_after: Annotated[
        list[str] | None, typer.Option("--not-after", metavar="NUMBER", help="No longer wait for this task.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Change what is named and keep the rest; an empty --agent or --dir takes it away.

    Examples:
      agentmon task edit 12 --title "Fix the login" --priority 1
      agentmon task edit 12 --command "pytest -k login" --after 9
    """
    options = TaskOptions(
        title=title,
        description=description,
        agent_slug=agent,
        capability_key=capability,
        arguments=arg or (),
        command=command,
        priority=priority,
        folder=working_dir,
        environment=env or (),
        removed_environment=no_env or (),
        max_retries=max_retries,
    )
    has_options = options != TaskOptions(arguments=(), environment=(), removed_environment=())

    async def work(services: Services, workspace: Workspace) -> Task:
        if not (has_options or after or not_after):
            raise UsageError("nothing to change", hint="agentmon task edit --help lists what can be")
        added, removed = ([task_number(text) for text in numbers or ()] for numbers in (after, not_after))
        task = await numbered_task(services, workspace, number)
        if has_options:
            draft = await drafted(services, options, _draft_of(task))
            warn_of_secrets(options)
            await services.tasks.edit(task.id, draft, expected_version=task.version, actor=USER_ACTOR)
        for other in added:
            await services.tasks.add_dependency(task.id, other, actor=USER_ACTOR)
        for other in removed:
            await services.tasks.remove_dependency(task.id, other, actor=USER_ACTOR)
        return await services.tasks.get(task.id)

    _print_task(with_workspace(folder, work), as_json=as_json)


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

    async def work(services: Services, workspace: Workspace) -> Task:
        task = await numbered_task(services, workspace, number)
        return await services.tasks.move(task.id, status, actor=USER_ACTOR)

    _print_task(with_workspace(folder, work), as_json=as_json)


def delete(number: NumberArgument, folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Delete a task; ``agentmon task restore`` brings it back.

    Examples:
      agentmon task delete 12
    """

    async def work(services: Services, workspace: Workspace) -> Task:
        task = await numbered_task(services, workspace, number)
        return await services.tasks.delete(task.id, actor=USER_ACTOR)

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
        return await services.tasks.restore(task.id, actor=USER_ACTOR)

    _print_task(with_workspace(folder, work), as_json=as_json)


def history(
    number: NumberArgument,
    folder: WorkspaceOption = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="Most events shown; the newest stay.")] = 100_000,
    as_json: JsonOption = False,
) -> None:
    """Show the history of a task: who changed what and when.

    The newest event comes last.

    Examples:
      agentmon audit 12
      agentmon task history 12 --json
    """

    async def work(services: Services, workspace: Workspace) -> tuple[TaskEvent, ...]:
        task = await numbered_task(services, workspace, number)
        return await services.audit.of_task(task.id, limit=limit)

    events = with_workspace(folder, work)
    if as_json:
        say_document(json_form(events))
    else:
        say("\n".join(event_line(event) for event in events))


def _draft_of(task: Task) -> TaskDraft:
    return TaskDraft(
        title=task.title,
        description=task.description,
        priority=task.priority,
        assignee_agent_id=task.assignee_agent_id,
        input_context=task.input_context,
        due_at=task.due_at,
    )


def _print_task(task: Task, *, as_json: bool) -> None:
    if as_json:
        say_document(json_form(task))
    else:
        say(f"#{task.number} {task.status.label}: {plain_line(task.title, max_characters=200)}")


register(group, "add", add)
register(group, "list", list_tasks)
register(group, "show", show)
register(group, "edit", edit)
register(group, "move", move)
register(group, "delete", delete)
register(group, "restore", restore)
register(group, "history", history)
