"""``agentmon agents``: the programs that can be given work, parked ones released, and their limits."""

from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.agent_learn import learn
from agentmon.cli.agent_scan import scan
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document
from agentmon.cli.registration import register, register_default
from agentmon.cli.wait_text import parked_text
from agentmon.domain.agents import Agent
from agentmon.domain.errors import UsageError
from agentmon.domain.plain_text import plain_line
from agentmon.services.actors import USER_ACTOR

group = typer.Typer(rich_markup_mode=None)

AllOption = Annotated[bool, typer.Option("--all", help="Also those that are switched off.")]
SlugArgument = Annotated[str, typer.Argument(metavar="SLUG", help="The program, as `agentmon agents` names it.")]


def agents(context: typer.Context, is_all: AllOption = False, as_json: JsonOption = False) -> None:
    """List the programs that can be given work; release one that is parked, or set its limit.

    Examples:
      agentmon agents
      agentmon agents --json
      agentmon agents limit make 2
    """
    if context.invoked_subcommand is None:
        list_agents(is_all=is_all, as_json=as_json)


def list_agents(is_all: AllOption = False, as_json: JsonOption = False) -> None:
    """List the programs with their limits, and which of them are parked.

    Examples:
      agentmon agents list --all
    """
    found = with_services(lambda services: services.agents.list(active_only=not is_all))
    if as_json:
        say_document(json_form(found))
        return
    rows = [
        (
            agent.slug,
            plain_line(agent.name, max_characters=30),
            agent.tool_type.value,
            str(agent.max_concurrent or "none"),
            _remarks(agent),
        )
        for agent in found
    ]
    say("\n".join(table(("SLUG", "NAME", "TYPE", "LIMIT", "CAPABILITIES"), rows, terminal_width())))


def release(slug: SlugArgument, as_json: JsonOption = False) -> None:
    """Let a parked program start again at once, with its failures forgotten.

    Examples:
      agentmon agents release make
    """
    agent = with_services(lambda services: services.agents.release(slug, actor=USER_ACTOR))
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
    agent = with_services(lambda services: services.agents.limit(slug, max_concurrent, actor=USER_ACTOR))
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
            return await services.agents.set_tools(slug, choices, actor=USER_ACTOR)
        return await services.agents.by_slug(slug)

    agent = with_services(change)
    if as_json:
        say_document(json_form(agent))
    elif agent.tools:
        rows = [(name, "allowed" if is_enabled else "taken away") for name, is_enabled in sorted(agent.tools.items())]
        say("\n".join(table(("TOOL", "STATE"), rows, terminal_width())))
    else:
        say(f"{agent.slug} has its tools as they are; --allow and --deny change them")


def _remarks(agent: Agent) -> str:
    """Return the capabilities, behind why nothing starts now."""
    capabilities = ", ".join(capability.key for capability in agent.capabilities if capability.is_enabled)
    return "; ".join(part for part in (parked_text(agent), capabilities) if part)


register_default(group, agents)
register(group, "list", list_agents)
register(group, "scan", scan)
register(group, "learn", learn)
register(group, "release", release)
register(group, "limit", limit)
register(group, "tools", tools)
