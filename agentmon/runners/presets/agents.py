"""Agents made of presets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.domain.agents import Agent, Capability, CapabilitySource, DiscoveryMethod
from agentmon.domain.argument_order import with_order
from agentmon.domain.ids import AgentId, CapabilityId, new_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.runners.presets.preset import PresetAgent


def agents_of(presets: Sequence[PresetAgent]) -> tuple[Agent, ...]:
    """Return new agents with new ids for these presets; the ids sort in the order given, capabilities included.

    The agents keep the name of their program, not the path where it was found: which ``pytest`` or ``node`` is meant
    depends on the PATH of each run.
    """
    return tuple(_agent(preset) for preset in presets)


def _agent(preset: PresetAgent) -> Agent:
    agent_id = AgentId(new_id())
    return Agent(
        id=agent_id,
        slug=preset.slug,
        name=preset.name,
        tool_type=preset.tool_type,
        binary_path=preset.binary,
        base_args=preset.base_args,
        env_allowlist=preset.env_allowlist,
        max_concurrent=preset.max_concurrent,
        is_active=preset.is_active,
        discovery_method=_discovery_method(preset),
        icon=preset.icon,
        color=preset.color,
        role=preset.role,
        description=preset.description,
        homepage=preset.homepage,
        session_config=preset.session_config,
        capabilities=tuple(
            Capability(
                id=CapabilityId(new_id()),
                agent_id=agent_id,
                key=capability.key,
                label=capability.label,
                description=capability.description,
                source=CapabilitySource.PRESET,
                interaction_mode=capability.interaction_mode,
                command_tokens=capability.command_tokens,
                prompt_template=capability.prompt_template,
                mode=capability.mode,
                args_schema=with_order(capability.args_schema),
                requires_approval=capability.requires_approval,
                danger_level=capability.danger_level,
                timeout_s=capability.timeout_s,
                max_output_bytes=capability.max_output_bytes,
            )
            for capability in preset.capabilities
        ),
    )


def _discovery_method(preset: PresetAgent) -> DiscoveryMethod:
    if not preset.is_active:
        # What is off and came as a preset would be turned on as soon as its program is found.
        return DiscoveryMethod.MANUAL
    return DiscoveryMethod.PATH_SCAN if preset.binary else DiscoveryMethod.PRESET
