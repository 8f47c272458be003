"""The demo's agent in the registry: a script that speaks as Claude Code does, through the same adapter."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from agentmon.domain.agents import (
    Agent,
    Capability,
    CapabilitySource,
    DiscoveryMethod,
    InteractionMode,
    SessionConfig,
    ToolType,
)
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.ids import AgentId, CapabilityId, new_id
from agentmon.runners import demo_agent

DEMO_AGENT_SLUG: Final = "demo-agent"
DEMO_MODEL: Final = "demo-model"
_HURRY_S: Final = 4


def make_demo_agent(*, pace_s: float | None = None) -> Agent:
    """Return the agent with new ids.

    Args:
        pace_s: Seconds between its messages; None means as fast as a person can follow.
    """
    agent_id = AgentId(new_id())
    program = Path(demo_agent.__file__).with_name("__main__.py")
    pace = () if pace_s is None else ("--pace", str(pace_s))
    return Agent(
        id=agent_id,
        slug=DEMO_AGENT_SLUG,
        name="Demo agent",
        tool_type=ToolType.AI_AGENT,
        binary_path=sys.executable,
        base_args=("-I", "-S", str(program), *pace),
        max_concurrent=0,
        discovery_method=DiscoveryMethod.MANUAL,
        icon="◇",
        description="Plays a part; no model is called",
        session_config=SessionConfig(
            bidirectional_protocol=ExecutionMode.STREAM_JSON,
            resume_flags=("--resume", "{{value}}"),
            flags={"session_id": ("--session-id", "{{value}}")},
            permission_modes=("manual", "acceptEdits"),
            models=(DEMO_MODEL,),
        ),
        capabilities=(_capability(agent_id, "work", timeout_s=0), _capability(agent_id, "hurry", timeout_s=_HURRY_S)),
    )


def _capability(agent_id: AgentId, key: str, *, timeout_s: int) -> Capability:
    return Capability(
        id=CapabilityId(new_id()),
        agent_id=agent_id,
        key=key,
        label="Play a part" if not timeout_s else f"Play a part within {timeout_s} s",
        description="No model is called",
        source=CapabilitySource.BUILTIN,
        interaction_mode=InteractionMode.PROMPT,
        args_schema={
            "type": "object",
            "properties": {
                "permission_mode": {
                    "type": "string",
                    "title": "Permission mode",
                    "enum": ["manual", "acceptEdits"],
                }
            },
            "required": [],
            "additionalProperties": False,
        },
        timeout_s=timeout_s,
    )
