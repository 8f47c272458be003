"""What dialogs over agents look like; ``pytest -n 0 …/test_agent_dialog_pictures.py --snapshot-update`` takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.screens.agents.agent_editor import AgentEditor
from agentmon.screens.agents.argument_dialog import ArgumentDialog
from agentmon.screens.agents.capability_editor import CapabilityEditor
from agentmon.screens.agents.capability_proposals import CapabilityProposals
from agentmon.screens.agents.trust_dialog import TrustDialog
from tests.screens.agent_dialogs import (
    agent_editor,
    agent_editor_unfolded,
    argument,
    capability_editor,
    new_capability,
    proposals,
    trust,
    trust_broken,
)
from tests.screens.pictures import SMALL, Picture, compare_pictures
from tests.screens.scenes import scene

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

pytestmark = pytest.mark.proof

PICTURES = (
    Picture("agent-editor", AgentEditor, agent_editor),
    Picture("agent-editor-unfolded", AgentEditor, agent_editor_unfolded),
    Picture("capability-editor", CapabilityEditor, capability_editor),
    Picture("new-capability", CapabilityEditor, new_capability),
    Picture("argument", ArgumentDialog, argument),
    Picture("proposals", CapabilityProposals, proposals),
    Picture("trust", TrustDialog, trust),
    Picture("trust-broken", TrustDialog, trust_broken),
)


async def test_the_dialogs_over_agents_look_as_they_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    async with scene(tmp_path, monkeypatch, size=SMALL, deeds=()) as board:
        await compare_pictures(board, PICTURES, snapshot)
