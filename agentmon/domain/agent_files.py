"""Files of agents: what a person exports and imports, and the file of a workspace that is used once it is trusted."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from agentmon.domain.agents import DangerLevel, InteractionMode
from agentmon.domain.argument_order import argument_names

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agentmon.domain.agents import Agent, Capability
    from agentmon.domain.ids import WorkspaceId


class FileTrust(StrEnum):
    """How a workspace's file of agents stands."""

    NONE = "none"
    """There is no file."""
    UNTRUSTED = "untrusted"
    CHANGED = "changed"
    """It is not the one that was trusted; nothing of it runs before it is trusted again."""
    TRUSTED = "trusted"
    BROKEN = "broken"
    """It cannot be used; ``problem`` says why."""
    GONE = "gone"
    """One was trusted, and there is none any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedFile:
    """The file of a workspace in the very state that a person has trusted."""

    workspace_id: WorkspaceId
    path: str
    digest: str
    """SHA-256 of its bytes, in hexadecimal digits."""
    trusted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCommand:
    """One thing that an agent of a file could be asked to do, as a person has to see it before."""

    agent: str
    capability: str
    label: str
    command_line: str
    """With its placeholders, quoted as for a shell."""
    prompt: str
    """What the agent is told; empty for a command and for the task's own text."""
    danger_level: DangerLevel
    requires_approval: bool
    defaults: Mapping[str, object]
    """What its placeholders stand for where no argument is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFileState:
    """A workspace's file of agents, and whether it is trusted."""

    path: str
    trust: FileTrust
    digest: str = ""
    """Of the bytes that ``agents`` were read from; empty where there is no file."""
    agents: tuple[Agent, ...] = ()
    """As the file says; empty where it cannot be used."""
    setup: str = ""
    """What it runs in each new worktree; empty for nothing."""
    verification: str = ""
    """What the work of AI agents has to pass; empty for nothing."""
    notes: tuple[str, ...] = ()
    """What is otherwise than the file says, such as a name that is taken."""
    problem: str = ""
    hint: str = ""
    trusted_at: datetime | None = None

    @property
    def asks(self) -> bool:
        """Whether a person has something to decide."""
        return self.trust in {FileTrust.UNTRUSTED, FileTrust.CHANGED}

    @property
    def commands(self) -> tuple[FileCommand, ...]:
        """All that it would run."""
        return tuple(file_command(agent, capability) for agent in self.agents for capability in agent.capabilities)


def file_command(agent: Agent, capability: Capability) -> FileCommand:
    """Return what a capability runs, as far as it is known before its arguments are."""
    config = agent.session_config
    is_prompt = capability.interaction_mode is InteractionMode.PROMPT
    own = config.own_args(capability.mode or config.bidirectional_protocol) if is_prompt and config is not None else ()
    return FileCommand(
        agent=agent.slug,
        capability=capability.key,
        label=capability.label,
        command_line=shlex.join([agent.binary_path, *agent.base_args, *own, *capability.command_tokens]),
        prompt=capability.prompt_template,
        danger_level=capability.danger_level,
        requires_approval=capability.requires_approval,
        defaults=_defaults(capability.args_schema),
    )


def file_facts(agent: Agent) -> dict[str, str]:
    """Return what an agent is started with beside the words of its capabilities, by its name; all that is not empty."""
    config = agent.session_config
    facts = {
        "starts": shlex.join([agent.binary_path, *agent.base_args]),
        "works in": agent.working_dir or "",
        "may see": " ".join(agent.env_allowlist),
        "model": agent.model or "",
        "role": agent.role or "",
        "own tools": " ".join(f"{'' if is_allowed else 'not '}{name}" for name, is_allowed in agent.tools.items()),
        "verified by": agent.verify or "",
        "is told": agent.instructions or "",
    }
    if config is not None:
        facts |= {
            "always gets": " ".join(f"{name}={value}" for name, value in config.environment.items()),
            "mode": next(iter(config.permission_modes), ""),
            "own screen": shlex.join(config.screen_args),
            "goes on by": shlex.join(config.resume_flags),
            "lists by": shlex.join(config.list_sessions_command),
            "adds": "\n".join(f"{purpose}: {shlex.join(words)}" for purpose, words in config.flags.items()),
        }
    return {name: text for name, text in facts.items() if text}


def default_text(value: object) -> str:
    """Return a default as it is shown: a text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _defaults(schema: Mapping[str, object]) -> dict[str, object]:
    described = schema.get("properties")
    properties = described if isinstance(described, dict) else {}
    abouts = {name: properties[name] for name in argument_names(schema)}
    return {
        name: about["default"]
        for name, about in abouts.items()
        if isinstance(about, dict) and about.get("default") is not None
    }


class ImportVerdict(StrEnum):
    """What an import does with one agent."""

    ADDED = "added"
    CHANGED = "changed"
    SAME = "same"
    KEPT = "kept"
    """One of its name is there and differs; it is replaced only when that is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedAgent:
    """One agent of an imported file."""

    slug: str
    verdict: ImportVerdict
    notes: tuple[str, ...] = ()
    """What could not be taken as it stands, such as a folder that is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedAgents:
    """Agents as a text in TOML."""

    text: str
    slugs: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    """What looks like a secret and is not in the text, such as ``claude: environment API_KEY``."""
