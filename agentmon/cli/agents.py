"""``agentmon agents``: the programs that can be given work."""

from typing import Annotated

import typer

from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document
from agentmon.domain.plain_text import plain_line


def list_agents(
    is_all: Annotated[bool, typer.Option("--all", help="Also those that are switched off.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the programs that can be given work.

    Examples:
      agentmon agents
      agentmon agents --json
    """
    agents = with_services(lambda services: services.agents.list(active_only=not is_all))
    if as_json:
        say_document(json_form(agents))
        return
    rows = [
        (
            agent.slug,
            plain_line(agent.name, max_characters=30),
            agent.tool_type.value,
            ", ".join(capability.key for capability in agent.capabilities if capability.is_enabled),
        )
        for agent in agents
    ]
    say("\n".join(table(("SLUG", "NAME", "TYPE", "CAPABILITIES"), rows, terminal_width())))
