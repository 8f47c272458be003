"""Agents: the programs of this machine that can be given work."""

from __future__ import annotations

from agentmon.services.agent_adding import AgentAdding
from agentmon.services.agent_testing import AgentTesting
from agentmon.services.capability_editing import CapabilityEditing


class AgentService(AgentAdding, CapabilityEditing, AgentTesting):
    """The registry: read, added to, edited, tested; what each part does stands beside it."""
