from __future__ import annotations

from agentmon.domain.agents import Agent
from agentmon.domain.ids import AgentId, new_id
from agentmon.domain.tasks import InputContext
from agentmon.services.launch_check import launch_environment


def path_for(binary: str, search_path: str) -> str:
    agent = Agent(id=AgentId(new_id()), slug="tool", name="Tool", binary_path=binary)
    return launch_environment(agent, InputContext(), {"PATH": search_path})["PATH"]


def test_a_program_named_by_its_whole_path_finds_what_stands_beside_it() -> None:
    assert path_for("/h/.nvm/v20/bin/codex", "/usr/bin:/bin") == "/usr/bin:/bin:/h/.nvm/v20/bin"
    assert path_for("/usr/bin/git", "/usr/bin:/bin") == "/usr/bin:/bin"
    assert path_for("git", "/usr/bin:/bin") == "/usr/bin:/bin"
