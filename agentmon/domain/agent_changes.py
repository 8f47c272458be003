"""What a person changes of an agent or a capability: a field that is not named stays as it is."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.agents import Agent, Capability, DangerLevel, InteractionMode, SessionConfig, ToolType
    from agentmon.domain.execution_mode import ExecutionMode
    from agentmon.domain.sandboxes import Sandbox
    from agentmon.domain.worktrees import Isolation


class Unchanged(Enum):
    """The type of ``UNCHANGED``, which no value of a field can be."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
"""Leaves a field as it is; None and the empty text clear it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChanges:
    """New values for fields of an agent; they mean what they mean in ``Agent``."""

    name: str | Unchanged = UNCHANGED
    tool_type: ToolType | Unchanged = UNCHANGED
    binary_path: str | Unchanged = UNCHANGED
    base_args: tuple[str, ...] | Unchanged = UNCHANGED
    working_dir: str | Unchanged | None = UNCHANGED
    isolation: Isolation | Unchanged | None = UNCHANGED
    sandbox: Sandbox | Unchanged | None = UNCHANGED
    verify: str | Unchanged | None = UNCHANGED
    env_allowlist: tuple[str, ...] | Unchanged = UNCHANGED
    is_active: bool | Unchanged = UNCHANGED
    max_concurrent: int | Unchanged = UNCHANGED
    role: str | Unchanged | None = UNCHANGED
    model: str | Unchanged | None = UNCHANGED
    model_tier: int | Unchanged | None = UNCHANGED
    temperature: float | Unchanged | None = UNCHANGED
    instructions: str | Unchanged | None = UNCHANGED
    session_config: SessionConfig | Unchanged | None = UNCHANGED
    permission_modes: tuple[str, ...] | Unchanged = UNCHANGED
    """The same modes in another order; the first is the default."""
    mcp_enabled: bool | Unchanged = UNCHANGED
    icon: str | Unchanged = UNCHANGED
    color: str | Unchanged = UNCHANGED
    description: str | Unchanged = UNCHANGED
    homepage: str | Unchanged = UNCHANGED

    def named(self) -> dict[str, Any]:
        """Return the new values by the names of their fields."""
        return _named(self)

    def applied(self, agent: Agent) -> Agent:
        """Return the agent with the new values."""
        new = self.named()
        modes = new.pop("permission_modes", None)
        config: SessionConfig | None = new.get("session_config", agent.session_config)
        if modes is not None and config is not None:
            new["session_config"] = replace(config, permission_modes=modes)
        return replace(agent, **new)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityChanges:
    """New values for fields of a capability; they mean what they mean in ``Capability``."""

    label: str | Unchanged = UNCHANGED
    description: str | Unchanged = UNCHANGED
    interaction_mode: InteractionMode | Unchanged = UNCHANGED
    command_tokens: tuple[str, ...] | Unchanged = UNCHANGED
    prompt_template: str | Unchanged = UNCHANGED
    mode: ExecutionMode | Unchanged | None = UNCHANGED
    args_schema: Mapping[str, object] | Unchanged = UNCHANGED
    requires_approval: bool | Unchanged = UNCHANGED
    is_enabled: bool | Unchanged = UNCHANGED
    danger_level: DangerLevel | Unchanged = UNCHANGED
    timeout_s: int | Unchanged = UNCHANGED
    max_output_bytes: int | Unchanged = UNCHANGED

    def named(self) -> dict[str, Any]:
        """Return the new values by the names of their fields."""
        return _named(self)

    def applied(self, capability: Capability) -> Capability:
        """Return the capability with the new values."""
        return replace(capability, **self.named())


def _named(changes: AgentChanges | CapabilityChanges) -> dict[str, Any]:
    values = {field.name: getattr(changes, field.name) for field in fields(changes)}
    return {name: value for name, value in values.items() if value is not UNCHANGED}


_COMMAND_FIELDS: Final = ("interaction_mode", "command_tokens", "prompt_template", "mode", "args_schema")


def judged_anew(
    before: Capability, after: Capability, *, told: DangerLevel, is_other_program: bool = False
) -> Capability:
    """Return the capability without the level that a person gave to another command: the rules count for it again.

    A level that is higher than the one it comes with stays.

    Args:
        before: As the person knew it.
        after: As it becomes, with what the person changed.
        told: The level that it comes with.
        is_other_program: Whether what runs it has changed.
    """
    is_same = all(getattr(before, name) == getattr(after, name) for name in _COMMAND_FIELDS)
    if "danger_level" not in after.edited_fields or (is_same and not is_other_program):
        return after
    edited = tuple(name for name in after.edited_fields if name != "danger_level")
    return replace(after, danger_level=max(after.danger_level, told), edited_fields=edited)
