"""Agents: programs that can be given work, and what each can be asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

from agentmon.domain.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agentmon.domain.ids import AgentId, CapabilityId


class AgentKind(StrEnum):
    """Who added the agent."""

    BUILTIN = "builtin"
    CUSTOM = "custom"


class ToolType(StrEnum):
    """What sort of program an agent is."""

    CLI_TOOL = "cli-tool"
    AI_AGENT = "ai-agent"
    DAEMON = "daemon"
    SHELL_UTIL = "shell-util"


class DiscoveryMethod(StrEnum):
    """How the agent came into the registry."""

    PRESET = "preset"
    PATH_SCAN = "path_scan"
    MANUAL = "manual"


class CapabilitySource(StrEnum):
    """Where the description of a capability came from."""

    MANUAL = "manual"
    BUILTIN = "builtin"
    PRESET = "preset"
    SCAN_HELP = "scan_help"
    SCAN_COMPLETION = "scan_completion"
    SCAN_FIG = "scan_fig"
    SCAN_MCP = "scan_mcp"
    SCAN_MAN = "scan_man"
    LLM_GENERATED = "llm_generated"


class InteractionMode(StrEnum):
    """How a capability turns a task into an input of the program."""

    TEMPLATE = "template"
    PROMPT = "prompt"


class ParkReason(StrEnum):
    """Why nothing of an agent starts for a while."""

    FAILURES = "failures"
    """Its executions failed one after the other."""
    USAGE_LIMIT = "usage_limit"
    """The vendor's quota is used up."""


class DangerLevel(IntEnum):
    """How much harm a capability can do."""

    SAFE = 0
    CAUTION = 1
    DANGEROUS = 2
    DESTRUCTIVE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One thing an agent can be asked to do."""

    id: CapabilityId
    agent_id: AgentId
    key: str
    label: str
    description: str = ""
    source: CapabilitySource = CapabilitySource.PRESET
    interaction_mode: InteractionMode = InteractionMode.TEMPLATE
    command_tokens: tuple[str, ...] = ()
    """Words of the argument list with placeholders such as ``{{args.path}}``; the binary is not among them."""
    prompt_template: str = ""
    args_schema: Mapping[str, object] = field(default_factory=dict)
    """A JSON Schema whose type is ``object``."""
    requires_approval: bool = False
    is_enabled: bool = True
    danger_level: DangerLevel = DangerLevel.SAFE
    timeout_s: int = 300
    """Seconds from the program's start until it is stopped; 0 means no limit."""
    max_output_bytes: int = 10 * 1024 * 1024
    """Size of the kept output log; what is over it is cut from the middle. 0 means no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A program of this machine that a task can be assigned to."""

    id: AgentId
    slug: str
    """Unique, typed by people, lower-case."""
    name: str
    kind: AgentKind = AgentKind.BUILTIN
    tool_type: ToolType = ToolType.CLI_TOOL
    binary_path: str = ""
    """Absolute path, or a name that is looked up on the PATH of each run; empty for the agent that runs any command."""
    base_args: tuple[str, ...] = ()
    env_allowlist: tuple[str, ...] = ()
    """Names of variables that reach the program beside the standard ones; ``*`` ends a prefix."""
    is_active: bool = True
    max_concurrent: int = 1
    """Most executions at one time; 0 means no limit of its own."""
    failure_streak: int = 0
    """How many of its executions failed one after the other."""
    parked_until: datetime | None = None
    """Nothing of it starts before; a time that is past means nothing."""
    park_reason: ParkReason | None = None
    park_note: str | None = None
    """The vendor's or agentmon's sentence about it."""
    discovery_method: DiscoveryMethod = DiscoveryMethod.PRESET
    version: str | None = None
    icon: str = ""
    description: str = ""
    capabilities: tuple[Capability, ...] = ()
    """In the order of the preset; the first enabled one is the default."""

    def choose_capability(self, key: str | None) -> Capability:
        """Return the capability of this key, or the first enabled one when no key is given.

        Raises:
            NotFoundError: The agent has none of this key; the hint names those it has.
            UsageError: It is turned off.
        """
        if key is None:
            enabled = [capability for capability in self.capabilities if capability.is_enabled]
            if not enabled:
                raise UsageError(f"{self.slug} has no capability that is turned on")
            return enabled[0]
        for capability in self.capabilities:
            if capability.key == key:
                if not capability.is_enabled:
                    raise UsageError(f"the capability {key} of {self.slug} is turned off")
                return capability
        known = ", ".join(capability.key for capability in self.capabilities)
        raise NotFoundError(f"{self.slug} has no capability {key}", hint=f"it has: {known}")
