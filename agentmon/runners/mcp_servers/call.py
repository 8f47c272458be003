"""Calls one tool of an MCP server and prints what it gives back: ``python -m … COUNT SERVER… TOOL name=value…``.

Exit codes: 0 done, 1 the tool or the server failed, 2 the words cannot be used.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import AgentmonError, RunnerError, UsageError
from agentmon.runners.adapters.arguments import coerce_arguments
from agentmon.runners.mcp_servers.connection import connect
from agentmon.runners.mcp_servers.schemas import simple_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp import Client
    from mcp_types import Tool

_MOST_PAGES: Final = 50
_FAILED: Final = 1
_USAGE: Final = 2


def main(words: Sequence[str]) -> int:
    """Return the exit code of a call."""
    try:
        count = int(words[0])
        server, tool, given = words[1 : count + 1], words[count + 1], words[count + 2 :]
    except (IndexError, ValueError):
        print("usage: COUNT SERVER… TOOL [name=value]…", file=sys.stderr)  # noqa: T201 - a program of its own
        return _USAGE
    try:
        return asyncio.run(_call(server, tool, given))
    except AgentmonError as error:
        print(f"{error}" + (f"; {error.hint}" if error.hint else ""), file=sys.stderr)  # noqa: T201
        return _USAGE if isinstance(error, UsageError) else _FAILED


async def _call(server: Sequence[str], name: str, given: Sequence[str]) -> int:
    # Its own errors go where ours go, and its end is found by the marker in the environment, whatever happens here.
    async with connect(server, environ=dict(os.environ), errors=sys.stderr) as client:
        tool = await _find_tool(client, name)
        answer = await client.call_tool(name, coerce_arguments(simple_schema(tool.input_schema), _grouped(given)))
    for part in answer.content:
        text = getattr(part, "text", None)
        resource = getattr(part, "resource", None)
        shown = text if text is not None else getattr(resource, "text", None)
        told = shown if shown is not None else f"[{part.type}: {getattr(part, 'mime_type', None) or 'no text'}]"
        print(told, file=sys.stderr if answer.is_error else sys.stdout)
    return _FAILED if answer.is_error else 0


async def _find_tool(client: Client, name: str) -> Tool:
    cursor = None
    known: list[str] = []
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found = next((tool for tool in page.tools if tool.name == name), None)
        if found is not None:
            return found
        known += [tool.name for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            break
    raise RunnerError(f"the MCP server has no tool {name}", hint=f"it has: {', '.join(known) or 'none'}")


def _grouped(given: Sequence[str]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for word in given:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"{word!r} is no argument of a tool", hint="arguments are written name=value")
        grouped.setdefault(name, []).append(value)
    return grouped


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
