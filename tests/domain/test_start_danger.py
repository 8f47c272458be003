from __future__ import annotations

from dataclasses import replace

import pytest

from agentmon.domain.agents import Agent, Capability, DangerLevel, InteractionMode
from agentmon.domain.danger import DangerFinding, DangerReason
from agentmon.domain.ids import AgentId, CapabilityId
from agentmon.domain.start_danger import danger_text, start_danger

ONE = CapabilityId("one")
PUSH = Capability(id=ONE, agent_id=AgentId("a"), key="push", label="Push", danger_level=DangerLevel.CAUTION)
GIT = Agent(id=AgentId("a"), slug="git", name="Git", capabilities=(PUSH,))
RUN = replace(PUSH, key="run")
COMMAND = replace(GIT, slug="command", capabilities=(RUN,))
NOTHING = DangerFinding()
FORCED = DangerFinding(
    level=DangerLevel.DESTRUCTIVE,
    reasons=(
        DangerReason(level=DangerLevel.DESTRUCTIVE, text="replaces what others have pushed", command="git push"),
        DangerReason(level=DangerLevel.CAUTION, text="deletes files", command="rm"),
    ),
)


def changed(capability: Capability, **fields: object) -> Capability:
    return replace(capability, **fields)  # type: ignore[arg-type] # named by the rows


@pytest.mark.parametrize(
    ("agent", "capability", "finding", "is_typed", "level", "waits", "name"),
    [
        (GIT, PUSH, NOTHING, True, 1, False, "git.push"),
        (GIT, PUSH, FORCED, True, 3, True, "git.push"),
        (GIT, PUSH, FORCED, False, 3, True, "git.push"),
        (GIT, changed(PUSH, danger_level=DangerLevel.DANGEROUS), NOTHING, True, 2, True, "git.push"),
        (GIT, changed(PUSH, edited_fields=("danger_level",)), FORCED, False, 1, False, "git.push"),
        (GIT, changed(PUSH, edited_fields=("label",)), FORCED, False, 3, True, "git.push"),
        (GIT, changed(PUSH, requires_approval=True), NOTHING, True, 1, True, "git.push"),
        (COMMAND, RUN, FORCED, True, 3, False, "git push"),
        (COMMAND, RUN, FORCED, False, 3, True, "git push"),
        (COMMAND, changed(RUN, danger_level=DangerLevel.DANGEROUS), FORCED, True, 3, True, "git push"),
        (GIT, changed(PUSH, interaction_mode=InteractionMode.PROMPT), FORCED, True, 3, False, "git.push"),
        (GIT, changed(PUSH, interaction_mode=InteractionMode.PROMPT), FORCED, False, 3, True, "git.push"),
    ],
)
def test_the_higher_level_counts_unless_a_person_has_said_otherwise(
    agent: Agent, capability: Capability, finding: DangerFinding, is_typed: bool, level: int, waits: bool, name: str
) -> None:
    danger = start_danger(agent, capability, finding, is_typed=is_typed)

    assert (danger.level, danger.waits, danger.name) == (level, waits, name)


def test_the_reason_is_that_of_the_level() -> None:
    by_rules = start_danger(GIT, PUSH, FORCED, is_typed=True)
    by_setting = start_danger(GIT, changed(PUSH, danger_level=DangerLevel.DANGEROUS), NOTHING, is_typed=True)

    assert by_rules.reason == "git push: replaces what others have pushed"
    assert by_setting.reason == "git.push is set to level 2"
    assert danger_text(by_rules.level, by_rules.reason) == (
        "level 3, destroys things: git push: replaces what others have pushed"
    )
