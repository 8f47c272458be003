from __future__ import annotations

import pytest

from agentmon.domain.agents import Agent, Capability, InteractionMode
from agentmon.runners.adapters.arguments import check_arguments
from agentmon.runners.adapters.template import render_command
from agentmon.runners.danger import load_danger_rules
from tests.runners.test_presets import AGENTS, SAMPLES

RULES = load_danger_rules()
PROJECTS_OWN = {("just", "show"), ("ninja", "targets"), ("npm", "audit"), ("uv", "lock-check")}
"""They only read, and the rules call them careful, since what stands behind the same words is the project's."""


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.slug)
def test_no_command_of_a_preset_is_more_dangerous_than_it_says(agent: Agent) -> None:
    judged_higher = {
        capability.key: RULES.judge(words).reasons
        for capability in agent.capabilities
        if capability.interaction_mode is InteractionMode.TEMPLATE and agent.binary_path
        for words in [filled(agent, capability)]
        if RULES.judge(words).level > capability.danger_level and (agent.slug, capability.key) not in PROJECTS_OWN
    }

    assert judged_higher == {}


def test_what_destroys_is_told_so_and_what_publishes_asks_first() -> None:
    by_name = {f"{agent.slug}.{part.key}": part for agent in AGENTS for part in agent.capabilities}

    assert {name for name, part in by_name.items() if part.danger_level == 3} == {
        *("helm.uninstall", "kubectl.delete", "rsync.mirror", "terraform.apply", "terraform.destroy"),
    }
    assert {name for name, part in by_name.items() if part.requires_approval} == {
        *("curl.send", "gh.issue-create", "gh.pr-create", "git.push"),
    }


def filled(agent: Agent, capability: Capability) -> tuple[str, ...]:
    required = capability.args_schema["required"]
    assert isinstance(required, list)
    return render_command(
        capability,
        binary=agent.binary_path,
        base_args=agent.base_args,
        task_title="",
        args=check_arguments(capability.args_schema, {name: SAMPLES[name] for name in required}),
        prompt_additions="",
    )
