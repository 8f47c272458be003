"""Agents of tests that have a screen of their own, run by a real worker in a real tmux."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

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
from agentmon.domain.tasks import TaskDraft
from agentmon.services.actors import USER_ACTOR
from tests.shared_folders import let_agents_share_folders
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from tests.live_home import LiveHome

STUB = Path(__file__).with_name("stub_agent.py")
RULES = r"""
agent = "stub"
ready_s = 0.05
settled_s = 0.1
box = '^>(?: (.*))?\n(?:(?:  .*)?\n)*={20,}'
paste_marks = ['\[Pasted text #\d+\]']

[[rule]]
name = "trust"
state = "dialog"
pattern = '^(?P<what>Do you trust .*)$[\s\S]*Enter to confirm'
note = "{what}"

[[rule]]
name = "permission"
state = "permission"
pattern = '^May I run this\?\n  \$ (?P<command>(?P<target>.*)\n)> 1\. Yes\n  2\. No\n\nallow or deny'
note = "permission: {target}"
tool = "Run"
type = "execute"

[[rule.answer]]
decision = "allow"
pattern = '^> (?P<key>1)\. (?P<label>Yes)$'

[[rule.answer]]
decision = "deny"
pattern = '^  2\. (?P<label>No)$'
keys = "\u001b"

[[rule]]
name = "working"
state = "working"
pattern = 'esc to interrupt'

[[rule]]
name = "background"
state = "background"
pattern = '^  (?P<what>\d+ helpers running)'
note = "works in the background: {what}"

[[rule]]
name = "ready"
state = "ready"
pattern = '^={20,}\n>.*\n(?:(?:  .*)?\n)*={20,}'
"""


async def start_stub(
    services: Services,
    home: LiveHome,
    prompt: str,
    *,
    name: str = "stub",
    flags: Mapping[str, tuple[str, ...]] | None = None,
    **wishes: object,
) -> Execution:
    """Queue a task for an agent that does as a test wishes (``stub_agent``); several need names of their own."""
    rules = home.paths.config_dir / "screens" / f"{name}.toml"
    rules.parent.mkdir(parents=True, exist_ok=True)
    rules.write_text(RULES.replace('agent = "stub"', f'agent = "{name}"'))
    agent_id = AgentId(new_id())
    capability = Capability(
        id=CapabilityId(new_id()),
        agent_id=agent_id,
        key="screen",
        label="Work",
        source=CapabilitySource.MANUAL,
        interaction_mode=InteractionMode.PROMPT,
        prompt_template="{{task_description}}",
        mode=ExecutionMode.TMUX,
        timeout_s=0,
    )
    agent = Agent(
        id=agent_id,
        slug=name,
        name=name.capitalize(),
        tool_type=ToolType.AI_AGENT,
        binary_path=sys.executable,
        base_args=(str(STUB), repr({"received": str(home.folder / f"received-by-{name}"), **wishes})),
        discovery_method=DiscoveryMethod.MANUAL,
        session_config=SessionConfig(bidirectional_protocol=ExecutionMode.TMUX, flags=flags or {}),
        max_concurrent=0,
        capabilities=(capability,),
    )
    agent = await services.agents.add(agent)
    workspace = await services.workspaces.open(home.project)
    await let_agents_share_folders(services.database, workspace.id)
    task = await services.tasks.add(
        workspace, TaskDraft(title="a task", description="x", assignee_agent_id=agent.id), actor=USER_ACTOR
    )
    return await services.queue.run(task.id, actor=USER_ACTOR, message=prompt)


def received(home: LiveHome, name: str = "stub") -> list[str]:
    """Return the texts that the stub got, in their order."""
    path = home.folder / f"received-by-{name}"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def until_note(services: Services, execution: Execution, note: str) -> Execution:
    """Wait until the row says this of the agent, and return it."""

    async def says_so() -> bool:
        present = await services.executions.get(execution.id)
        return note in (present.activity_note or "")

    await until(says_so, f"the note {note!r}")
    return await services.executions.get(execution.id)
