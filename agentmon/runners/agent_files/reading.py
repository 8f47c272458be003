"""A text of agents read: each table with a check on each value, as for presets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import Agent, AgentKind, Capability, CapabilitySource, DiscoveryMethod
from agentmon.domain.argument_order import with_order
from agentmon.domain.errors import UsageError
from agentmon.domain.sandboxes import read_sandbox
from agentmon.domain.verifications import read_command, read_optional_command
from agentmon.domain.worktrees import Isolation
from agentmon.domain.written_text import toml_of_text
from agentmon.runners.presets import agents_of
from agentmon.runners.presets.entries import Entry
from agentmon.runners.presets.reading import read_agent

if TYPE_CHECKING:
    from collections.abc import Mapping

OF_PERSON: Final = frozenset(
    {
        *(
            "working_dir",
            "isolation",
            "sandbox",
            "verify",
            "model",
            "model_tier",
            "temperature",
            "instructions",
            "tools",
            "mcp_enabled",
            "enabled",
        ),
    }
)
"""Keys of an agent beside those of a preset."""
_OF_CAPABILITY: Final = frozenset({"enabled", "source"})
_OF_PROJECT: Final = frozenset({"worktree", "verification"})
"""Tables about the project itself."""
_MOST_AGENTS: Final = 200


def read_agents_text(text: str, *, place: str) -> tuple[Agent, ...]:
    """Return the agents of a text in TOML, with new ids.

    Programs may be paths, which stay as they are written; presets know names only.

    Args:
        text: Tables ``[[agent]]``.
        place: What errors call it, such as the name of the file.

    Raises:
        UsageError: It is no TOML, or an entry is missing, unknown or of the wrong kind; the message names its place.
    """
    document = _document(text, place)
    # A file may say what belongs to the project, and nothing else.
    is_of_project = not _OF_PROJECT.isdisjoint(document)
    tables = _entry(document, place).tables("agent") if "agent" in document or not is_of_project else []
    if len(tables) > _MOST_AGENTS:
        raise UsageError(f"{place} has more than {_MOST_AGENTS} agents")
    agents = tuple(_agent(table, place) for table in tables)
    slugs = [agent.slug for agent in agents]
    repeated = sorted({slug for slug in slugs if slugs.count(slug) > 1})
    if repeated:
        raise UsageError(f"{place}: two agents are called {repeated[0]}")
    return agents


def read_setup(text: str, *, place: str) -> str:
    """Return the command that sets up a new worktree: ``setup`` of the table ``[worktree]``; empty without one.

    Raises:
        UsageError: As for ``read_agents_text``.
    """
    return _of_project(text, "worktree", "setup", place)


def read_verification(text: str, *, place: str) -> str:
    """Return what the work of AI agents is verified with: ``command`` of the table ``[verification]``; empty without.

    Raises:
        UsageError: As for ``read_agents_text``.
    """
    return read_command(_of_project(text, "verification", "command", place))


def _of_project(text: str, name: str, key: str, place: str) -> str:
    table = _document(text, place).get(name, {})
    if not isinstance(table, dict):
        raise UsageError(f"{place}: {name} must be a table, written [{name}]")
    return Entry(table, place=f"{place}, {name}", known=frozenset({key})).text(key, default="")


def _document(text: str, place: str) -> Mapping[str, object]:
    try:
        document = toml_of_text(text)
    except ValueError as error:
        raise UsageError(f"{place} is not TOML: {error}", hint="`agentmon agents export` shows the form") from error
    _entry(document, place)
    return document


def _entry(document: Mapping[str, object], place: str) -> Entry:
    return Entry(document, place=place, known=frozenset({"agent"}) | _OF_PROJECT)


def _agent(table: Mapping[str, object], place: str) -> Agent:
    own = {key: value for key, value in table.items() if key in OF_PERSON}
    described = {key: value for key, value in table.items() if key not in OF_PERSON}
    binary = described.get("binary")
    if isinstance(binary, str) and "/" in binary:
        described["binary"] = Path(binary).name
    parts = described.get("capability")
    capabilities = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    if capabilities:
        described["capability"] = [
            {key: value for key, value in part.items() if key not in _OF_CAPABILITY} for part in capabilities
        ]
    (agent,) = agents_of([read_agent(described, place=place)])
    where = f"{place}, agent {agent.slug}"
    entry = Entry(own, place=where, known=OF_PERSON)
    return replace(
        agent,
        kind=AgentKind.CUSTOM,
        discovery_method=DiscoveryMethod.MANUAL,
        binary_path=binary if isinstance(binary, str) else agent.binary_path,
        working_dir=entry.text("working_dir", default="") or None,
        isolation=_isolation(entry.text("isolation", default=""), where),
        sandbox=read_sandbox(entry.text("sandbox", default=""), name=f"{where}: sandbox"),
        verify=read_optional_command(entry.text("verify", default="")),
        model=entry.text("model", default="") or None,
        model_tier=entry.count("model_tier", default=0) or None,
        temperature=_temperature(own.get("temperature"), where),
        instructions=entry.text("instructions", default="") or None,
        tools=_tools(own.get("tools", {}), where),
        mcp_enabled=entry.value("mcp_enabled", bool, default=False),
        is_active=entry.value("enabled", bool, default=True),
        capabilities=tuple(
            _with_own(capability, part, where)
            for capability, part in zip(agent.capabilities, capabilities, strict=True)
        ),
    )


def _with_own(capability: Capability, part: Mapping[str, object], where: str) -> Capability:
    own = {key: value for key, value in part.items() if key in _OF_CAPABILITY}
    entry = Entry(own, place=f"{where}, capability {capability.key}", known=_OF_CAPABILITY)
    source = entry.text("source", default=CapabilitySource.MANUAL.value)
    known = {one.value: one for one in CapabilitySource}
    if source not in known:
        raise UsageError(f"{entry.place}: source {source} is none of {', '.join(known)}")
    return replace(
        capability,
        is_enabled=entry.value("enabled", bool, default=True),
        source=known[source],
        args_schema=with_order(capability.args_schema),
    )


def _isolation(text: str, where: str) -> Isolation | None:
    if text and text not in set(Isolation):
        raise UsageError(f"{where}: isolation {text} is none of {', '.join(Isolation)}")
    return Isolation(text) if text else None


def _temperature(value: object, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{where}: temperature must be a number")
    return float(value)


def _tools(value: object, where: str) -> dict[str, bool]:
    if not isinstance(value, dict) or not all(isinstance(is_allowed, bool) for is_allowed in value.values()):
        raise UsageError(f"{where}: tools must be a table such as {{ Bash = true, WebFetch = false }}")
    return {str(name): bool(is_allowed) for name, is_allowed in value.items()}
