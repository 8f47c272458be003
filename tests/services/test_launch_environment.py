from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.agents import Agent
from agentmon.domain.errors import AgentNotInstalledError, UsageError
from agentmon.domain.ids import AgentId, TaskId, WorkspaceId, new_id
from agentmon.domain.tasks import InputContext, Task
from agentmon.runners.presets import agents_of, load_presets
from agentmon.services.launch_check import launch_environment, require_launchable

if TYPE_CHECKING:
    from pathlib import Path


def path_for(binary: str, search_path: str) -> str:
    agent = Agent(id=AgentId(new_id()), slug="tool", name="Tool", binary_path=binary)
    return launch_environment(agent, InputContext(), {"PATH": search_path})["PATH"]


def test_a_program_named_by_its_whole_path_finds_what_stands_beside_it() -> None:
    assert path_for("/h/.nvm/v20/bin/codex", "/usr/bin:/bin") == "/usr/bin:/bin:/h/.nvm/v20/bin"
    assert path_for("/usr/bin/git", "/usr/bin:/bin") == "/usr/bin:/bin"
    assert path_for("git", "/usr/bin:/bin") == "/usr/bin:/bin"


def test_an_agent_without_a_program_of_its_own_needs_the_one_that_its_first_word_names(tmp_path: Path) -> None:
    acp = next(agent for agent in agents_of(load_presets()) if agent.slug == "acp")
    now = datetime(2026, 9, 1, tzinfo=UTC)
    task = Task(id=TaskId("t"), number=1, workspace_id=WorkspaceId("w"), title="A", created_at=now, updated_at=now)

    def require(*argv: str) -> object:
        given = {"argv": list(argv)}
        environment = {"PATH": os.environ["PATH"]}
        return require_launchable(task, acp, acp.capabilities[0], given, environment=environment, working_dir=tmp_path)

    assert require("sh", "--acp") == {"argv": ["sh", "--acp"]}
    with pytest.raises(AgentNotInstalledError, match="no-such-agent"):
        require("no-such-agent", "--acp")
    with pytest.raises(UsageError, match="argv"):
        require()
