"""Facts of an agent and its capabilities, as text."""

from __future__ import annotations

from agentmon.domain.agents import Agent, Capability
from agentmon.domain.ids import AgentId, CapabilityId
from agentmon.screens.agents.agent_facts import told_content

SHUFFLE = Capability(
    id=CapabilityId("c"),
    agent_id=AgentId("a"),
    key="shuffle",
    label="Shuffle",
    command_tokens=("-n", "{{args.count}}", "--", "{{args.files}}"),
    args_schema={
        "type": "object",
        "properties": {
            "count": {"type": "integer", "default": 20},
            "files": {"type": "array", "items": {"type": "string"}, "default": ["a b", "c"]},
            "order": {"enum": ["up", "down"]},
            "deep": {"type": "boolean", "description": "Below too"},
        },
        "required": ["files"],
        "x-order": ["files", "count", "order", "deep"],
    },
)


def test_arguments_are_told_in_their_order_and_in_the_words_of_the_dialog_that_describes_them() -> None:
    agent = Agent(id=AgentId("a"), slug="shuf", name="shuf", binary_path="shuf")

    told = told_content(agent, SHUFFLE).plain.splitlines()

    assert [" ".join(line.split()) for line in told[-4:]] == [
        "files several texts · needed · default 'a b' c",
        "count whole number · default 20",
        "order up | down",
        "deep yes or no · Below too",
    ]
