"""``agentmon agents``: the programs that can be given work, shown, parked ones released, and their limits."""

from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.agent_capabilities import group as capability_group
from agentmon.cli.agent_editing import (
    SlugArgument,
    add,
    disable,
    duplicate,
    edit,
    enable,
    remove,
    restore,
    try_out,
)
from agentmon.cli.agent_files import export, import_, trust, untrust
from agentmon.cli.agent_learn import learn
from agentmon.cli.agent_scan import scan
from agentmon.cli.agent_text import agent_lines, file_lines, table_of
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import JsonOption, WorkspaceOption, with_services, workspace_here
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.registration import register, register_default
from agentmon.domain.agent_files import AgentFileState
from agentmon.domain.agent_health import AgentHealth
from agentmon.domain.agents import Agent
from agentmon.domain.errors import UsageError
from agentmon.domain.tasks import Workspace

group = typer.Typer(rich_markup_mode=None)

AllOption = Annotated[bool, typer.Option("--all", help="Also those that are switched off.")]
RemovedOption = Annotated[bool, typer.Option("--removed", help="Those that were removed instead.")]


def agents(
    context: typer.Context, folder: WorkspaceOption = None, is_all: AllOption = False, as_json: JsonOption = False
) -> None:
    """List agents and other programs, and what they may do.

    Examples:
      agentmon agents
      agentmon agents show claude
      agentmon agents add shellcheck
      agentmon agents edit claude --model opus
    """
    if context.invoked_subcommand is None:
        list_agents(folder=folder, is_all=is_all, as_json=as_json)


def list_agents(
    folder: WorkspaceOption = None,
    is_all: AllOption = False,
    is_removed: RemovedOption = False,
    as_json: JsonOption = False,
) -> None:
    """List the programs with their limits, and which of them are parked.

    Examples:
      agentmon agents list --all
      agentmon agents list --removed
    """

    async def read(services: Services) -> tuple[tuple[Agent, ...], AgentFileState | None]:
        workspace = await workspace_here(services, folder)
        workspace_id = None if workspace is None else workspace.id
        if is_removed:
            everything = await services.agents.list(active_only=False)
            return tuple(agent for agent in everything if agent.removed_at is not None), None
        chosen = services.agents.registered if is_all else services.agents.list
        state = None if workspace is None else await services.agent_files.state(workspace)
        return await chosen(workspace_id=workspace_id), state

    found, state = with_services(read)
    if as_json:
        say_document(json_form(found))
        return
    if is_removed and not found:
        tell("no agent was removed")
        return
    say("\n".join(table_of(found, terminal_width())))
    if state is not None and (state.asks or state.problem):
        tell(f"note: {file_lines(state)[0]}; agentmon agents trust shows it")


def show(slug: SlugArgument, folder: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show one program: how it fares, its fields, and what it can be asked to do. None is started for it.

    Examples:
      agentmon agents show claude
      agentmon agents show git --json
    """

    async def read(services: Services) -> tuple[Agent, AgentHealth, Workspace | None]:
        agent = await services.agents.by_slug(slug, removed_too=True)
        health = await services.discovery.health([agent])
        return agent, health[agent.id], await workspace_here(services, folder)

    agent, health, workspace = with_services(read)
    document = json_form(agent)
    if as_json and isinstance(document, dict):
        say_document({**document, "health": json_form(health)})
    else:
        say("\n".join(agent_lines(agent, health, workspace, terminal_width())))


def release(slug: SlugArgument, as_json: JsonOption = False) -> None:
    """Let a parked program start again at once, with its failures forgotten.

    Examples:
      agentmon agents release make
    """

    async def work(services: Services) -> Agent:
        released = await services.agents.release(slug, actor=services.actor)
        await services.queue.deliver()
        return released

    agent = with_services(work)
    if as_json:
        say_document(json_form(agent))
    else:
        say(f"{agent.slug} starts again")


def limit(
    slug: SlugArgument,
    max_concurrent: Annotated[
        int, typer.Argument(metavar="N", min=0, help="Most runs at one time; 0 means no limit of its own.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Set how many runs of a program there may be at one time.

    Examples:
      agentmon agents limit make 2
    """

    async def work(services: Services) -> Agent:
        limited = await services.agents.limit(slug, max_concurrent, actor=services.actor)
        await services.queue.deliver()
        return limited

    agent = with_services(work)
    if as_json:
        say_document(json_form(agent))
    else:
        say(f"{agent.slug}: " + (f"{agent.max_concurrent} at one time" if agent.max_concurrent else "no limit"))


def tools(
    slug: SlugArgument,
    allow: Annotated[
        list[str] | None, typer.Option("--allow", metavar="TOOL", help="It may use this tool without asking.")
    ] = None,
    deny: Annotated[
        list[str] | None, typer.Option("--deny", metavar="TOOL", help="It does not have this tool.")
    ] = None,
    reset: Annotated[
        list[str] | None, typer.Option("--reset", metavar="TOOL", help="As the agent itself has it.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show or set which of its own tools an AI agent may use, from its next start on.

    Examples:
      agentmon agents tools claude
      agentmon agents tools claude --deny WebFetch --allow 'Bash(git log:*)'
      agentmon agents tools claude --reset WebFetch
    """
    choices: dict[str, bool | None] = dict.fromkeys(allow or (), True)
    choices |= dict.fromkeys(deny or (), False) | dict.fromkeys(reset or (), None)
    if len(choices) < len([*(allow or ()), *(deny or ()), *(reset or ())]):
        raise UsageError("a tool is named twice", hint="--allow, --deny and --reset each take other tools")

    async def change(services: Services) -> Agent:
        if choices:
            return await services.agents.set_tools(slug, choices, actor=services.actor)
        return await services.agents.by_slug(slug)

    agent = with_services(change)
    if as_json:
        say_document(json_form(agent))
    elif agent.tools:
        rows = [(name, "allowed" if is_enabled else "taken away") for name, is_enabled in sorted(agent.tools.items())]
        say("\n".join(table(("TOOL", "STATE"), rows, terminal_width())))
    else:
        say(f"{agent.slug} has its tools as they are; --allow and --deny change them")


register_default(group, agents)
register(group, "list", list_agents)
register(group, "show", show)
register(group, "add", add)
register(group, "edit", edit)
register(group, "enable", enable)
register(group, "disable", disable)
register(group, "duplicate", duplicate)
register(group, "remove", remove)
register(group, "restore", restore)
register(group, "test", try_out)
group.add_typer(capability_group, name="capability")
register(group, "export", export)
register(group, "import", import_)
register(group, "trust", trust)
register(group, "untrust", untrust)
register(group, "scan", scan)
register(group, "learn", learn)
register(group, "release", release)
register(group, "limit", limit)
register(group, "tools", tools)
