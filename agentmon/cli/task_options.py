"""What a person typed about a task, checked and turned into a draft."""

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.folders import existing_folder
from agentmon.cli.output import tell
from agentmon.domain.agents import ANY_COMMAND_KEY, ANY_COMMAND_SLUG, Agent, Capability
from agentmon.domain.errors import NotFoundError, UsageError
from agentmon.domain.redaction import has_secret
from agentmon.domain.tasks import InputContext, Priority, TaskDraft

_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SECRET_NAME = re.compile(r"(?i)KEY|TOKEN|SECRET|PASSW")

DescriptionOption = Annotated[str | None, typer.Option("--description", "-d", metavar="TEXT", help="What to do.")]
AgentOption = Annotated[
    str | None, typer.Option("--agent", "-a", metavar="SLUG", help="The program, as `agentmon agents` names it.")
]
CapabilityOption = Annotated[
    str | None, typer.Option("--with", "-w", metavar="CAPABILITY", help="What the program is to do.")
]
ArgumentsOption = Annotated[
    list[str] | None, typer.Option("--arg", metavar="KEY=VALUE", help="An argument of the capability; repeatable.")
]
CommandOption = Annotated[
    str | None,
    typer.Option("--command", "-c", metavar="COMMAND", help="Any command, in shell quotes, run without a shell."),
]
PriorityOption = Annotated[
    int | None, typer.Option("--priority", "-p", metavar="1-5", min=1, max=5, help="1 is the most urgent, 3 is normal.")
]
FolderOption = Annotated[
    str | None, typer.Option("--dir", metavar="PATH", help="Where to run; the root of the workspace by default.")
]
EnvironmentOption = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME[=VALUE]",
        help="A variable for the program; without a value it is taken from your environment at each run, "
        "and never stored. Repeatable.",
    ),
]
RetriesOption = Annotated[
    int | None,
    typer.Option("--max-retries", metavar="N", min=0, max=1000, help="How often a failed run is tried again."),
]
AfterOption = Annotated[
    list[str] | None, typer.Option("--after", metavar="NUMBER", help="Wait until this task is done; repeatable.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """The options of a command as they were typed; None means that the option was not given."""

    title: str | None = None
    description: str | None = None
    agent_slug: str | None = None
    """An empty one takes the assignee away."""
    capability_key: str | None = None
    arguments: Sequence[str] = ()
    command: str | None = None
    priority: int | None = None
    folder: str | None = None
    """An empty one means the root of the workspace again."""
    environment: Sequence[str] = ()
    removed_environment: Sequence[str] = ()
    max_retries: int | None = None


async def drafted(services: Services, options: TaskOptions, base: TaskDraft) -> TaskDraft:
    """Return the base with every given option in its place.

    Raises:
        UsageError: An option makes no sense; the message names it.
        NotFoundError: There is no such program or capability.
    """
    context = base.input_context
    agent_id = base.assignee_agent_id
    if _names_program(options):
        agent = await _chosen_agent(services, options, base)
        context = _with_program(context, options, agent, is_same_agent=agent is not None and agent.id == agent_id)
        agent_id = agent.id if agent is not None else None
    if options.folder is not None:
        context = replace(context, working_dir=str(existing_folder(options.folder)) if options.folder else None)
    if options.environment or options.removed_environment:
        context = _with_environment(context, options)
    if options.max_retries is not None:
        context = replace(context, max_retries=options.max_retries)
    return replace(
        base,
        title=valid_text(options.title) if options.title is not None else base.title,
        description=valid_text(options.description) if options.description is not None else base.description,
        priority=Priority(options.priority) if options.priority is not None else base.priority,
        assignee_agent_id=agent_id,
        input_context=context,
    )


def valid_text(text: str) -> str:
    """Return the text with every byte that was no UTF-8 on the command line replaced by ``�``."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def command_words(command: str) -> list[str]:
    """Return the words of a command written with shell quotes; nothing in it is expanded.

    Raises:
        UsageError: A quote is not closed, or there is no word.
    """
    try:
        words = shlex.split(valid_text(command))
    except ValueError as error:
        raise UsageError(f"--command {command!r}: {str(error).lower()}", hint="close the quote") from error
    if not words or not words[0]:
        raise UsageError("--command names no program", hint="--command \"sh -c 'make && make test'\"")
    return words


def parsed_arguments(pairs: Sequence[str], capability: Capability | None) -> dict[str, object]:
    """Return the ``KEY=VALUE`` pairs as arguments, each as the type that the capability's schema wants.

    A list takes its elements from repeated pairs or from one JSON array.

    Raises:
        UsageError: A pair has no ``=``, or a key that is no list comes twice.
    """
    types = _argument_types(capability)
    arguments: dict[str, object] = {}
    for pair in pairs:
        key, separator, text = valid_text(pair).partition("=")
        if not separator or not key:
            raise UsageError(f"--arg {pair!r} is not KEY=VALUE", hint="--arg path=src --arg verbose=true")
        wanted = types.get(key, "string")
        value = _typed(text, wanted)
        if wanted == "array":
            elements = arguments.setdefault(key, [])
            if isinstance(elements, list):
                elements += value if isinstance(value, list) else [value]
        elif key in arguments:
            raise UsageError(f"--arg {key} is given twice")
        else:
            arguments[key] = value
    return arguments


def find_capability(agent: Agent, key: str | None) -> Capability | None:
    """Return the named capability, the default one without a name; None when the agent has none at all.

    Raises:
        NotFoundError: The agent has no such capability.
    """
    if key is None:
        return next((capability for capability in agent.capabilities if capability.is_enabled), None)
    for capability in agent.capabilities:
        if capability.key == key:
            return capability
    known = ", ".join(capability.key for capability in agent.capabilities) or "none"
    raise NotFoundError(f"{agent.slug} has no capability {key!r}", hint=f"it has: {known}")


def warn_of_secrets(options: TaskOptions) -> None:
    """Tell the person when something that would be stored looks like a secret."""
    for name, text in (
        ("--command", options.command),
        ("--description", options.description),
        ("the title", options.title),
        ("--arg", "\n".join(options.arguments)),
    ):
        if text and has_secret(text):
            tell(f"warning: {name} holds what looks like a secret and is stored; --env NAME passes one unstored")


def _names_program(options: TaskOptions) -> bool:
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
        return replace(context, capability_key=ANY_COMMAND_KEY, args={"argv": command_words(options.command)})
    key = options.capability_key if options.capability_key is not None or not is_same_agent else context.capability_key
    is_same_capability = is_same_agent and key == context.capability_key
    kept: Mapping[str, object] = context.args if is_same_capability else {}
    arguments = parsed_arguments(options.arguments, find_capability(agent, key))
    return replace(context, capability_key=key, args={**kept, **arguments})


def _with_environment(context: InputContext, options: TaskOptions) -> InputContext:
    overrides = dict(context.env_overrides)
    passed = list(context.env_passed)
    for name in options.removed_environment:
        overrides.pop(name, None)
        passed = [other for other in passed if other != name]
    for entry in options.environment:
        name, separator, value = valid_text(entry).partition("=")
        if not _VARIABLE_NAME.fullmatch(name):
            raise UsageError(f"--env: {name!r} is not the name of a variable", hint="--env NAME=VALUE or --env NAME")
        if not separator:
            overrides.pop(name, None)
            if name not in passed:
                passed.append(name)
            if name not in os.environ:
                tell(f"warning: {name} is not set here; it is looked up when the task is run")
            continue
        if has_secret(value):
            raise UsageError(
                f"the value of {name} has the shape of a secret and would be stored",
                hint=f"`--env {name}` takes it from your environment at each run and stores nothing",
            )
        if value and _SECRET_NAME.search(name):
            tell(f"warning: {name} looks like a secret and its value is stored; `--env {name}` stores nothing")
        passed = [other for other in passed if other != name]
        overrides[name] = value
    return replace(context, env_overrides=overrides, env_passed=tuple(passed))


def _argument_types(capability: Capability | None) -> dict[str, str]:
    properties = capability.args_schema.get("properties") if capability is not None else None
    if not isinstance(properties, Mapping):
        return {}
    return {
        str(key): str(rule["type"])
        for key, rule in properties.items()
        if isinstance(rule, Mapping) and isinstance(rule.get("type"), str)
    }


def _typed(text: str, wanted: str) -> object:
    """Return the text as the wanted JSON type, or as it is when it is none: the schema then says what is wrong."""
    if wanted == "string" or (wanted == "array" and not text.startswith("[")):
        return text
    if wanted == "boolean":
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(text.lower(), text)
    try:
        return json.loads(text)
    except ValueError:
        return text
