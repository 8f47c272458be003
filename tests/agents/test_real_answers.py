"""Real agents that are asked what a program can do, and answer in a run of their own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.agent_changes import AgentChanges
from agentmon.domain.agents import Agent, CapabilitySource
from agentmon.domain.ids import AgentId, new_id
from agentmon.services.actors import USER_ACTOR

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agents.drive import Drive

pytestmark = pytest.mark.agents


async def test_what_a_real_agent_says_of_a_program_is_proposed(drive: Drive, tmp_path: Path) -> None:
    asked = await drive.services.agents.by_slug(drive.agent.slug)
    allowed = AgentChanges(env_allowlist=(*asked.env_allowlist, *drive.agent.passed))
    await drive.services.agents.edit(asked.slug, allowed, actor=USER_ACTOR)
    told = {"capabilities": [{"key": "brew", "label": "Brew", "words": ["brew", "--strong"]}]}
    answer = json.dumps([{"text": f"```json\n{json.dumps(told)}\n```"}])
    program = tmp_path / "brewer"
    program.write_text(f"#!/bin/sh\ncat <<'EOF'\nusage: brewer brew [--strong]\n#mock:{answer}\nEOF\n")
    program.chmod(0o755)
    agent = Agent(id=AgentId(new_id()), slug="brewer", name="Brewer", binary_path=str(program))
    await drive.services.agents.add(agent)
    problems: list[str] = []

    found = await drive.services.capability_scans.scan(
        "brewer",
        [CapabilitySource.LLM_GENERATED],
        ask=drive.agent.slug,
        on_problem=problems.append,
        actor=drive.services.actor,
    )

    assert problems == []
    assert [one.capability.command_tokens for one in found] == [("brew", "--strong")]
