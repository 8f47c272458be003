"""Agents: programs that can be given work, and what each can be asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import NotFoundError, UsageError
from agentmon.domain.execution_mode import ExecutionMode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agentmon.domain.ids import AgentId, CapabilityId, WorkspaceId
    from agentmon.domain.sandboxes import Sandbox
    from agentmon.domain.worktrees import Isolation

ROLE_MARK: Final = "Your role: "
"""Text before the prompt that gives an agent its role."""


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


class SessionIdSource(StrEnum):
    """Where an agent's own id of a conversation is learned."""

    JSON_FIELD = "json_field"
    FILESYSTEM = "filesystem"
    LIST_COMMAND = "list_command"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfig:
    """How an AI agent is started and spoken to; the same for every conversation with it."""

    bidirectional_protocol: ExecutionMode
    """Its own protocol, or ``tmux`` when it knows none."""
    session_id_source: SessionIdSource = SessionIdSource.JSON_FIELD
    session_id_field: str = ""
    session_file_glob: str = ""
    list_sessions_command: tuple[str, ...] = ()
    list_sessions_pattern: str = ""
    protocol_args: tuple[str, ...] = ()
    """Arguments that make it speak its protocol."""
    screen_args: tuple[str, ...] = ()
    """Arguments that make it show its own screen in the pane."""
    resume_flags: tuple[str, ...] = ()
    """Arguments that go on with a conversation; ``{{value}}`` is the agent's id of it. Empty: its protocol does it."""
    continue_flags: tuple[str, ...] = ()
    """Arguments that go on with the newest conversation of the folder; never used, since it may be another task's."""
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Arguments by purpose, with ``{{value}}``: ``session_id``, ``fork``, ``model``, ``permission_mode``,
    ``instructions``, ``max_turns``, ``max_budget``, ``allow_tool`` and ``deny_tool`` (once for each tool).
    A ``fork`` that names the conversation stands in the place of ``resume_flags``, any other behind them."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that it always gets."""
    permission_modes: tuple[str, ...] = ()
    """The first is the default."""
    models: tuple[str, ...] = ()
    """Models to choose from, as far as they are known without asking it."""

    def own_args(self, mode: ExecutionMode) -> tuple[str, ...]:
        """Return the arguments that let it work in this mode."""
        return self.screen_args if mode is ExecutionMode.TMUX else self.protocol_args

    def parts(self) -> dict[str, object]:
        """Return it in the types of JSON, by the names of its fields; parts that say nothing are left out."""
        parts: dict[str, object] = {
            "bidirectional_protocol": self.bidirectional_protocol.value,
            "session_id_source": self.session_id_source.value,
            "session_id_field": self.session_id_field,
            "session_file_glob": self.session_file_glob,
            "list_sessions_command": list(self.list_sessions_command),
            "list_sessions_pattern": self.list_sessions_pattern,
            "protocol_args": list(self.protocol_args),
            "screen_args": list(self.screen_args),
            "resume_flags": list(self.resume_flags),
            "continue_flags": list(self.continue_flags),
            "permission_modes": list(self.permission_modes),
            "models": list(self.models),
            "flags": {name: list(words) for name, words in self.flags.items()},
            "environment": dict(self.environment),
        }
        return {name: part for name, part in parts.items() if part}


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
    """The first message, with placeholders such as ``{{task_title}}``."""
    mode: ExecutionMode | None = None
    """How the agent is spoken to for this; None means its own protocol, or a plain command for a template."""
    args_schema: Mapping[str, object] = field(default_factory=dict)
    """A JSON Schema whose type is ``object``."""
    requires_approval: bool = False
    is_enabled: bool = True
    danger_level: DangerLevel = DangerLevel.SAFE
    timeout_s: int = 300
    """Seconds from the program's start until it is stopped; 0 means no limit."""
    max_output_bytes: int = 10 * 1024 * 1024
    """Size of the kept output log; what is over it is cut from the middle. 0 means no limit."""
    edited_fields: tuple[str, ...] = ()
    """Names of the fields that a person changed, sorted; neither a preset nor a scan changes them again."""
    removed_at: datetime | None = None
    """When a person took it away; it is kept for what ran with it, and only lists of what has run have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A program of this machine that a task can be assigned to."""

    id: AgentId
    workspace_id: WorkspaceId | None = None
    """The workspace whose own file of agents names it; None for an agent of all workspaces."""
    slug: str
    """Unique, typed by people, lower-case."""
    name: str
    kind: AgentKind = AgentKind.BUILTIN
    tool_type: ToolType = ToolType.CLI_TOOL
    binary_path: str = ""
    """Absolute path, or a name that is looked up on the PATH of each run; empty for the agent that runs any command."""
    base_args: tuple[str, ...] = ()
    working_dir: str | None = None
    """Where it works when the task names no folder; None means the workspace's."""
    isolation: Isolation | None = None
    """Whether its runs get a worktree of their own; None leaves it to the workspace."""
    sandbox: Sandbox | None = None
    """The sandbox of its runs; None leaves it to the workspace."""
    verify: str | None = None
    """The command that its work has to pass; empty for none, None leaves it to the workspace."""
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
    """As the program itself told it; None until it was asked."""
    package_name: str | None = None
    """With its manager: ``npm:@anthropic-ai/claude-code``."""
    package_section: str | None = None
    last_scanned_at: datetime | None = None
    missing_since: datetime | None = None
    """When a scan first saw that its program is gone; None while it is there."""
    mcp_enabled: bool = False
    """Whether its capabilities are the tools of the MCP server that it starts."""
    session_config: SessionConfig | None = None
    """None for what is not an AI agent."""
    role: str | None = None
    """What it is for, in a few words of the person: ``reviewer``."""
    model: str | None = None
    """None means its own default."""
    model_tier: int | None = None
    temperature: float | None = None
    instructions: str | None = None
    """What it is told before every task."""
    tools: Mapping[str, bool] = field(default_factory=dict)
    """Its own tools that are allowed (True) or taken away (False); those not named are as it has them."""
    icon: str = ""
    color: str = ""
    description: str = ""
    homepage: str = ""
    edited_fields: tuple[str, ...] = ()
    """Names of the fields that a person changed, sorted; neither a preset nor a scan changes them again."""
    removed_at: datetime | None = None
    """When it was taken out of the registry; it is kept for what it has done, and can be brought back."""
    capabilities: tuple[Capability, ...] = ()
    """In the order of the preset; the first enabled one is the default."""

    @property
    def takes_temperature(self) -> bool:
        """Whether there is a way to tell it a temperature: a flag, or a variable with ``{{temperature}}``."""
        config = self.session_config
        return config is not None and (
            "temperature" in config.flags or any("{{temperature}}" in value for value in config.environment.values())
        )

    @property
    def told_role(self) -> str:
        """The role that it is told before every task: one that a person gave it, not that of its preset."""
        return (self.role or "").strip() if self.kind is AgentKind.CUSTOM or "role" in self.edited_fields else ""

    @property
    def is_history_alone(self) -> bool:
        """Whether only files of it were here when it entered the registry, and nobody has switched it since."""
        is_of_preset = self.discovery_method is DiscoveryMethod.PRESET
        return is_of_preset and not self.is_active and "is_active" not in self.edited_fields

    @property
    def off_words(self) -> str:
        """Why nothing of it starts until a person says so, such as ``make is switched off``; empty when it may."""
        if self.removed_at is not None:
            return f"{self.slug} was removed"
        return "" if self.is_active else f"{self.slug} is switched off"

    def require_usable(self, workspace_id: WorkspaceId) -> None:
        """Refuse an agent that cannot be given work in this workspace now.

        Raises:
            UsageError: It was removed, is switched off, or belongs to another workspace; the hint says what to do.
        """
        if self.removed_at is not None:
            hint = "`agentmon agents trust` brings back those of the workspace's file"
            if self.workspace_id is None:
                hint = f"`agentmon agents restore {self.slug}` brings it back, or choose another one"
            raise UsageError(f"the agent {self.slug} was removed", hint=hint)
        if not self.is_active:
            why = "is known from its history only" if self.is_history_alone else "is switched off"
            then = " once it is installed" if self.is_history_alone else ""
            raise UsageError(f"the agent {self.slug} {why}", hint=f"`agentmon agents enable {self.slug}`{then}")
        if self.workspace_id not in {None, workspace_id}:
            raise UsageError(
                f"the agent {self.slug} belongs to another workspace", hint="`agentmon agents` lists those of this one"
            )

    def work_folder(self, asked: str | None, workspace_root: str) -> str:
        """Return the folder in which it works: that of the task, its own, or the workspace's."""
        return asked or self.working_dir or workspace_root

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
        capability = self.get_capability(key)
        if not capability.is_enabled:
            raise UsageError(f"the capability {key} of {self.slug} is turned off")
        return capability

    def get_capability(self, key: str) -> Capability:
        """Return the capability of this key, also one that is turned off.

        Raises:
            NotFoundError: The agent has none; the hint names those it has.
        """
        for capability in self.capabilities:
            if capability.key == key:
                return capability
        known = ", ".join(capability.key for capability in self.capabilities)
        raise NotFoundError(f"{self.slug} has no capability {key}", hint=f"it has: {known}")
