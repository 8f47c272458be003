"""The source ``scan_mcp``: each tool of an MCP server as a capability with the arguments that the server describes."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import Capability, CapabilitySource, DangerLevel
from agentmon.domain.errors import RunnerError
from agentmon.domain.ids import CapabilityId, new_id
from agentmon.runners.capability_scanners.help_text import capability_key
from agentmon.runners.host.family import send_to_same
from agentmon.runners.host.process_table import read_processes
from agentmon.runners.mcp_servers.connection import connect
from agentmon.runners.mcp_servers.schemas import simple_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

    from mcp_types import Tool

    from agentmon.domain.ids import AgentId

_log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 30.0
"""Until the tools are known; a server that a package manager fetches first takes that long."""
_END_EVERY_S: Final = 0.2
_END_TRIES: Final = 50
_MARKER: Final = "AGENTMON_MCP_SCAN_ID"
_MOST_TOOLS: Final = 500
_MOST_PAGES: Final = 50
_DESCRIPTION_MAX_CHARACTERS: Final = 400
_SAID_MAX_BYTES: Final = 4096
_LISTS: Final = "array"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTools:
    """What an MCP server offers."""

    capabilities: tuple[Capability, ...]
    danger_reasons: Mapping[str, tuple[str, ...]]
    """By the key of the capability."""
    problems: tuple[str, ...]
    """One sentence for each tool that cannot be used."""


async def scan_tools(
    server: Sequence[str],
    *,
    agent_id: AgentId,
    environ: Mapping[str, str],
    working_dir: str | None = None,
    timeout_s: float = _TIMEOUT_S,
) -> ServerTools:
    """Start an MCP server, ask for its tools and end it.

    Args:
        server: The command that starts it.
        agent_id: Whose capabilities they become.
        environ: The environment that the server gets.
        working_dir: Where it starts.
        timeout_s: How long all of it may take.

    Raises:
        RunnerError: The server does not start or does not answer in time; the hint is what it said last.
    """
    mark = new_id()
    marked = {**environ, _MARKER: mark}
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        asking = asyncio.create_task(_ask(server, environ=marked, errors=errors, working_dir=working_dir))
        try:
            await asyncio.wait([asking], timeout=timeout_s)
            is_late = not asking.done()
        finally:
            await asyncio.shield(_end(asking, f"{_MARKER}={mark}".encode()))
        if is_late:
            raise RunnerError(
                f"the MCP server {server[0]} did not list its tools within {timeout_s:g} s", hint=_said_last(errors)
            )
        try:
            tools = asking.result()
        except RunnerError as error:
            raise RunnerError(str(error), hint=error.hint or _said_last(errors)) from error
    return await asyncio.to_thread(_capabilities, tools, agent_id)


async def _ask(
    server: Sequence[str], *, environ: Mapping[str, str], errors: TextIO, working_dir: str | None
) -> Sequence[Tool]:
    tools: list[Tool] = []
    async with connect(server, environ=environ, errors=errors, working_dir=working_dir) as client:
        cursor = None
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None or len(tools) >= _MOST_TOOLS:
                break
    return tools[:_MOST_TOOLS]


async def _end(asking: asyncio.Task[Sequence[Tool]], marker: bytes) -> None:
    """End what asks, and all that the server left; the library ends its group alone, and waits for its pipes."""
    asking.cancel()
    for _ in range(_END_TRIES):
        await asyncio.to_thread(_kill_marked, marker)
        if (await asyncio.wait([asking], timeout=_END_EVERY_S))[0]:
            break
    else:
        _log.warning("the client of an MCP server does not end; it is left to itself")
    await asyncio.to_thread(_kill_marked, marker)
    if asking.done() and not asking.cancelled():
        # One that was late is not asked for it.
        asking.exception()


def _kill_marked(marker: bytes) -> None:
    for process in read_processes(marker):
        if process.has_marker:
            send_to_same(process, signal.SIGKILL)


def _said_last(errors: TextIO) -> str:
    end = os.fstat(errors.fileno()).st_size
    said = os.pread(errors.fileno(), _SAID_MAX_BYTES, max(0, end - _SAID_MAX_BYTES))
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return f"it said: {lines[-1].strip()}" if lines else ""


def _capabilities(tools: Sequence[Tool], agent_id: AgentId) -> ServerTools:
    found: dict[str, Capability] = {}
    reasons: dict[str, tuple[str, ...]] = {}
    problems: list[str] = []
    for tool in tools:
        problem = _problem_of(tool)
        if problem is None and (key := capability_key((tool.name,))) not in found:
            level, reason = _danger(tool)
            reasons[key] = (reason,)
            found[key] = _capability(tool, key, agent_id, level)
        else:
            problems.append(f"the tool {tool.name} is left out: {problem or 'another one has nearly the same name'}")
    return ServerTools(capabilities=tuple(found.values()), danger_reasons=reasons, problems=tuple(problems))


def _capability(tool: Tool, key: str, agent_id: AgentId, level: DangerLevel) -> Capability:
    schema = simple_schema(tool.input_schema)
    described = schema["properties"]
    properties: Mapping[str, object] = described if isinstance(described, dict) else {}
    title = tool.title or (tool.annotations.title if tool.annotations is not None else None)
    return Capability(
        id=CapabilityId(new_id()),
        agent_id=agent_id,
        key=key,
        label=title or tool.name,
        description=" ".join((tool.description or "").split())[:_DESCRIPTION_MAX_CHARACTERS],
        source=CapabilitySource.SCAN_MCP,
        command_tokens=(tool.name, *(_token(name, described) for name, described in properties.items())),
        args_schema=schema,
        danger_level=level,
        requires_approval=level >= DangerLevel.DANGEROUS,
    )


def _token(name: str, described: object) -> str:
    kinds = described.get("type") if isinstance(described, dict) else None
    is_list = kinds == _LISTS or (isinstance(kinds, list) and _LISTS in kinds)
    return f"{{{{{name}= args.{name}}}}}" if is_list else f"{name}={{{{args.{name}}}}}"


def _problem_of(tool: Tool) -> str | None:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - 60 to 120 ms
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415

    if not tool.name or tool.name.startswith("-") or not tool.name.isprintable():
        return "its name cannot be typed"
    try:
        Draft202012Validator.check_schema(tool.input_schema)
    except SchemaError:
        return "its arguments are not described by a valid JSON Schema"
    properties = tool.input_schema.get("properties", {})
    unusable = [name for name in properties if not name or any(sign in name for sign in "{}= \t\n")]
    return f"its argument {unusable[0]!r} cannot be named" if unusable else None


def _danger(tool: Tool) -> tuple[DangerLevel, str]:
    """Return what the server says of a tool; one that says nothing may change things."""
    notes = tool.annotations
    if notes is not None and notes.read_only_hint:
        return DangerLevel.SAFE, "the server says that it only reads"
    if notes is not None and notes.destructive_hint:
        return DangerLevel.DANGEROUS, "the server says that it may destroy something"
    return DangerLevel.CAUTION, "the server does not say that it only reads"
