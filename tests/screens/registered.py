"""An AI agent and a tool for dialogs over the registry; presets change, these do not."""

from __future__ import annotations

from agentmon.domain.agents import (
    Agent,
    Capability,
    DangerLevel,
    InteractionMode,
    SessionConfig,
    ToolType,
)
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.ids import AgentId, CapabilityId, new_id


def a_coder() -> Agent:
    agent_id = AgentId(new_id())
    return Agent(
        id=agent_id,
        slug="coder",
        name="Claude Code",
        tool_type=ToolType.AI_AGENT,
        binary_path="sh",
        env_allowlist=("ANTHROPIC_*", "API_KEY"),
        description="Anthropic's coding agent",
        icon="✳",
        session_config=SessionConfig(
            bidirectional_protocol=ExecutionMode.STREAM_JSON,
            protocol_args=("-p", "--output-format", "stream-json"),
            flags={
                "model": ("--model", "{{value}}"),
                "permission_mode": ("--permission-mode", "{{value}}"),
                "allow_tool": ("--allowedTools={{value}}",),
                "deny_tool": ("--disallowedTools={{value}}",),
            },
            permission_modes=("manual", "acceptEdits", "plan"),
            models=("opus", "sonnet", "haiku"),
        ),
        capabilities=(
            Capability(
                id=CapabilityId(new_id()),
                agent_id=agent_id,
                key="work",
                label="Work on the task",
                interaction_mode=InteractionMode.PROMPT,
                command_tokens=("--max-turns={{args.max_turns}}",),
                args_schema={"type": "object", "properties": {"max_turns": {"type": "integer", "minimum": 1}}},
                danger_level=DangerLevel.CAUTION,
                timeout_s=0,
            ),
        ),
    )


def a_tool() -> Agent:
    agent_id = AgentId(new_id())
    return Agent(
        id=agent_id,
        slug="vcs",
        name="Git",
        binary_path="git",
        base_args=("--no-pager",),
        env_allowlist=("GIT_AUTHOR_*",),
        description="Looks at the repository",
        icon="±",
        capabilities=(
            Capability(
                id=CapabilityId(new_id()),
                agent_id=agent_id,
                key="log",
                label="Show history",
                description="The newest commits, one line each",
                command_tokens=("log", "--oneline", "-n", "{{args.count}}", "{{--all args.all}}", "{{args.paths}}"),
                args_schema={
                    "type": "object",
                    "properties": {
                        "count": {"type": "integer", "title": "Commits", "minimum": 1, "maximum": 100, "default": 20},
                        "all": {"type": "boolean", "description": "Of every branch"},
                        "paths": {"type": "array", "items": {"type": "string"}, "description": "Only these"},
                    },
                    "required": ["count"],
                },
            ),
        ),
    )
