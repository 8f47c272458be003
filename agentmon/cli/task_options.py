"""What a person typed about a task, checked and turned into a draft."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Self

import typer

from agentmon.bootstrap import Services
from agentmon.cli.context import numbered_task
from agentmon.cli.folders import existing_folder
from agentmon.cli.output import tell
from agentmon.domain.agents import Agent, Capability
from agentmon.domain.any_command import ANY_COMMAND_KEY, ANY_COMMAND_SLUG
from agentmon.domain.clock import SystemClock
from agentmon.domain.due_dates import parse_due
from agentmon.domain.errors import UsageError
from agentmon.domain.ids import TaskId
from agentmon.domain.labels import labels_text, parse_labels
from agentmon.domain.redaction import has_secret
from agentmon.domain.task_status import Priority
from agentmon.domain.tasks import InputContext, Schedule, TaskDraft, Workspace
from agentmon.domain.verifications import read_command
from agentmon.domain.worktrees import Isolation, is_readable_base
from agentmon.runners.adapters.template import coerce_arguments, parse_command
from agentmon.runners.task_environment import with_variable
from agentmon.schedule import local_zone_name

_INHERIT = "inherit"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOptions:
    """What is to run, as it was typed; None means that the option was not given."""

    agent_slug: Annotated[
        str | None, typer.Option("--agent", "-a", metavar="SLUG", help="The program, as `agentmon agents` names it.")
    ] = None
    """An empty one takes the assignee away."""
    capability_key: Annotated[
        str | None,
        typer.Option("--with", "-w", metavar="CAPABILITY", help="What the program is to do: log, or git.log with it."),
    ] = None
    arguments: Annotated[
        list[str] | None, typer.Option("--arg", metavar="KEY=VALUE", help="An argument of the capability; repeatable.")
    ] = None
    command: Annotated[
        str | None,
        typer.Option("--command", "-c", metavar="COMMAND", help="Any command, in shell quotes, run without a shell."),
    ] = None

    def apart(self) -> Self:
        """Return the options with a program that is named in ``--with git.log`` as the program.

        Raises:
            UsageError: ``--agent`` names another one.
        """
        slug, dot, key = (self.capability_key or "").partition(".")
        if not dot:
            return self
        if self.agent_slug not in {None, slug}:
            raise UsageError(f"--agent {self.agent_slug} and --with {self.capability_key} name two programs")
        return replace(self, agent_slug=slug, capability_key=key)


IsolationOption = Annotated[
    Isolation | None,
    typer.Option(
        "--isolation",
        help="Work in the folder, or in a git worktree of its own; auto makes one while another AI agent is there.",
    ),
]
BaseOption = Annotated[
    str | None,
    typer.Option(
        "--base",
        metavar="COMMIT",
        help="What a worktree is made from: a branch, tag or commit; the present one if empty.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions(ProgramOptions):
    """The options that make and change a task, as they were typed; None means that the option was not given."""

    description: Annotated[str | None, typer.Option("--description", "-d", metavar="TEXT", help="What to do.")] = None
    priority: Annotated[
        int | None,
        typer.Option("--priority", "-p", metavar="1-5", min=1, max=5, help="1 is the most urgent, 3 is normal."),
    ] = None
    working_dir: Annotated[
        str | None, typer.Option("--dir", metavar="PATH", help="Where to run; the root of the workspace by default.")
    ] = None
    """An empty one means the root of the workspace again."""
    isolation: IsolationOption = None
    base: BaseOption = None
    """An empty one means the present commit again."""
    verify: Annotated[
        str | None,
        typer.Option(
            "--verify",
            metavar="COMMAND",
            help="The command that has to pass before its work counts as done; none if empty, `inherit` leaves it to "
            "the program and the workspace.",
        ),
    ] = None
    verify_retries: Annotated[
        int | None,
        typer.Option(
            "--verify-retries", metavar="N", min=0, max=20, help="How often its agent is sent back when that fails."
        ),
    ] = None
    environment: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="NAME[=VALUE]",
            help="A variable for the program; without a value it is taken from your environment at each run, "
            "and never stored. Repeatable.",
        ),
    ] = None
    prompt_additions: Annotated[
        str | None,
        typer.Option("--prompt", metavar="TEXT", help="What an AI agent is told behind title and description."),
    ] = None
    max_retries: Annotated[
        int | None,
        typer.Option("--max-retries", metavar="N", min=0, max=1000, help="How often a failed run is tried again."),
    ] = None
    after: Annotated[
        list[str] | None, typer.Option("--after", metavar="NUMBER", help="Wait until this task is done; repeatable.")
    ] = None
    labels: Annotated[
        list[str] | None, typer.Option("--label", "-l", metavar="LABEL", help="A label such as auth; repeatable.")
    ] = None
    due: Annotated[
        str | None, typer.Option("--due", metavar="WHEN", help="When it has to be done: fri, 'dec 1', 'in 2 days'.")
    ] = None
    """An empty one takes the due date away."""
    parent: Annotated[
        str | None, typer.Option("--parent", metavar="NUMBER", help="The task that this one is a part of.")
    ] = None
    """An empty one takes the parent away."""
    cron: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            metavar="CRON",
            help="Run by itself at these times: minute hour day month weekday, such as '0 7 * * 1-5', or @daily.",
        ),
    ] = None
    """An empty one takes the schedule away."""
    zone: Annotated[
        str | None,
        typer.Option("--zone", metavar="ZONE", help="The time zone of --schedule; that of this machine by default."),
    ] = None


async def drafted(
    services: Services,
    workspace: Workspace,
    options: TaskOptions,
    base: TaskDraft,
    *,
    title: str | None = None,
    removed_environment: Sequence[str] = (),
    removed_labels: Sequence[str] = (),
) -> TaskDraft:
    """Return the base with every given option in its place.

    Raises:
        UsageError: An option makes no sense; the message names it.
        NotFoundError: There is no such program, capability or parent.
    """
    options = options.apart()
    context = base.input_context
    agent_id = base.assignee_agent_id
    if _names_program(options):
        agent = await _chosen_agent(services, options, base)
        context = _with_program(context, options, agent, is_same_agent=agent is not None and agent.id == agent_id)
        agent_id = agent.id if agent is not None else None
    if options.working_dir is not None:
        working_dir = str(existing_folder(options.working_dir)) if options.working_dir else None
        context = replace(context, working_dir=working_dir)
    if options.isolation is not None:
        context = replace(context, isolation=options.isolation)
    if options.base is not None:
        context = replace(context, base=valid_base(options.base))
    if options.verify is not None:
        is_inherited = options.verify.strip() == _INHERIT
        context = replace(context, verify=None if is_inherited else read_command(valid_text(options.verify)))
    if options.verify_retries is not None:
        context = replace(context, verify_retries=options.verify_retries)
    if options.environment or removed_environment:
        context = _with_environment(context, options.environment or (), removed_environment)
    if options.prompt_additions is not None:
        context = replace(context, prompt_additions=valid_text(options.prompt_additions))
    if options.max_retries is not None:
        context = replace(context, max_retries=options.max_retries)
    return replace(
        base,
        title=valid_text(title) if title is not None else base.title,
        description=valid_text(options.description) if options.description is not None else base.description,
        priority=Priority(options.priority) if options.priority is not None else base.priority,
        assignee_agent_id=agent_id,
        input_context=context,
        parent_task_id=await _parent_id(services, workspace, options.parent, base),
        schedule=_schedule(options, base),
        due_at=_due_at(options, base),
        labels=_labels(options, base, removed_labels),
    )


def valid_text(text: str) -> str:
    """Return the text with every byte that was no UTF-8 on the command line replaced by ``�``."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def valid_base(base: str) -> str | None:
    """Return what names a commit; None for an empty text.

    Raises:
        UsageError: Nothing that is called so can be a commit.
    """
    written = valid_text(base).strip()
    if written and not is_readable_base(written):
        raise UsageError(f"--base {written!r} cannot name a commit", hint="a branch, a tag or a commit, such as main")
    return written or None


def parsed_arguments(pairs: Sequence[str], capability: Capability) -> dict[str, object]:
    """Return the ``KEY=VALUE`` pairs as arguments, each as the type that the capability's schema wants.

    Raises:
        UsageError: A pair has no ``=``.
        ArgumentsError: The capability has no such argument, or the text cannot be read as what it wants.
    """
    words: dict[str, list[str]] = {}
    for pair in pairs:
        key, separator, text = valid_text(pair).partition("=")
        if not separator or not key:
            raise UsageError(f"--arg {pair!r} is not KEY=VALUE", hint="--arg path=src --arg verbose=true")
        words.setdefault(key, []).append(text)
    given = {key: texts[0] if len(texts) == 1 else texts for key, texts in words.items()}
    return coerce_arguments(capability.args_schema, given)


def warn_of_secrets(options: TaskOptions, title: str | None) -> None:
    """Tell the person when something that would be stored looks like a secret."""
    for name, text in (
        ("--command", options.command),
        ("--description", options.description),
        ("--prompt", options.prompt_additions),
        ("the title", title),
        ("--arg", "\n".join(options.arguments or ())),
    ):
        if text and has_secret(text):
            tell(f"warning: {name} holds what looks like a secret and is stored; --env NAME passes one unstored")


def _names_program(options: ProgramOptions) -> bool:
    return bool(
        options.agent_slug is not None
        or options.capability_key is not None
        or options.command is not None
        or options.arguments
    )


async def _chosen_agent(services: Services, options: TaskOptions, base: TaskDraft) -> Agent | None:
    if options.command is not None:
        clashing = [
            name
            for name, is_given in (
                ("--agent", options.agent_slug not in {None, ANY_COMMAND_SLUG}),
                ("--with", options.capability_key not in {None, ANY_COMMAND_KEY}),
                ("--arg", bool(options.arguments)),
            )
            if is_given
        ]
        if clashing:
            raise UsageError(f"--command and {clashing[0]} exclude each other", hint="give one of them")
        return await services.agents.by_slug(ANY_COMMAND_SLUG)
    if options.agent_slug == "":
        return None
    if options.agent_slug is not None:
        return await services.agents.by_slug(options.agent_slug)
    if base.assignee_agent_id is None:
        raise UsageError("--with and --arg need a program", hint="name it with --agent; `agentmon agents` lists them")
    return await services.agents.get(base.assignee_agent_id)


def _with_program(
    context: InputContext, options: TaskOptions, agent: Agent | None, *, is_same_agent: bool
) -> InputContext:
    if agent is None:
        return replace(context, capability_key=None, args={})
    if options.command is not None:
        return replace(
            context, capability_key=ANY_COMMAND_KEY, args={"argv": list(parse_command(valid_text(options.command)))}
        )
    key = options.capability_key if options.capability_key is not None or not is_same_agent else context.capability_key
    is_same_capability = is_same_agent and key == context.capability_key
    kept: Mapping[str, object] = context.args if is_same_capability else {}
    arguments = parsed_arguments(options.arguments or (), agent.choose_capability(key))
    return replace(context, capability_key=key, args={**kept, **arguments})


async def _parent_id(services: Services, workspace: Workspace, parent: str | None, base: TaskDraft) -> TaskId | None:
    if parent is None:
        return base.parent_task_id
    return (await numbered_task(services, workspace, parent)).id if parent.strip() else None


def _due_at(options: TaskOptions, base: TaskDraft) -> datetime | None:
    if options.due is None:
        return base.due_at
    now = SystemClock().now()
    zone = now.astimezone().tzinfo
    return parse_due(valid_text(options.due), now=now, zone=zone) if options.due.strip() and zone is not None else None


def _labels(options: TaskOptions, base: TaskDraft, removed: Sequence[str]) -> tuple[str, ...]:
    gone = parse_labels(valid_text(label) for label in removed)
    added = parse_labels(valid_text(label) for label in options.labels or ())
    missing = [label for label in gone if label not in base.labels]
    if missing:
        raise UsageError(f"--no-label: the task has no label {missing[0]}", hint=_labels_hint(base.labels))
    return parse_labels({*base.labels, *added} - set(gone))


def _labels_hint(labels: Sequence[str]) -> str:
    return f"it has {labels_text(labels)}" if labels else "it has none"


def _schedule(options: TaskOptions, base: TaskDraft) -> Schedule | None:
    if options.cron is None and options.zone is None:
        return base.schedule
    cron = options.cron if options.cron is not None or base.schedule is None else base.schedule.cron
    if cron is None:
        raise UsageError("--zone needs a schedule", hint="--schedule '0 7 * * 1-5' names the times")
    if not cron.strip():
        if options.zone:
            raise UsageError("--zone needs a schedule, and --schedule '' takes it away", hint="leave out one of them")
        return None
    kept_zone = base.schedule.zone if base.schedule is not None else None
    return Schedule(cron=valid_text(cron), zone=valid_text(options.zone or kept_zone or local_zone_name()))


def _with_environment(context: InputContext, entries: Sequence[str], removed_names: Sequence[str]) -> InputContext:
    context = replace(
        context,
        env_overrides={name: value for name, value in context.env_overrides.items() if name not in removed_names},
        env_passed=tuple(name for name in context.env_passed if name not in removed_names),
    )
    for entry in entries:
        try:
            context, note = with_variable(context, valid_text(entry), os.environ)
        except UsageError as error:
            raise UsageError(f"--env: {error}", hint=error.hint) from error
        if note:
            tell(f"warning: {note}")
    return context
