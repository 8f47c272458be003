"""What is told when a workspace is opened whose file of agents waits for a decision; small, since most have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.domain.agent_files import FileTrust
from agentmon.widgets.cells import even_line

if TYPE_CHECKING:
    from agentmon.domain.agent_files import AgentFileState


def news_text(state: AgentFileState, name: str) -> str:
    """Return what a person is told when the workspace of this name is opened; empty when there is nothing to decide."""
    match state.trust:
        case FileTrust.UNTRUSTED:
            return f"{even_line(name)} brings agents of its own that are not used yet: 4, then T, shows what they run"
        case FileTrust.CHANGED:
            return f"The agents that {even_line(name)} brings along have changed: 4, then T, shows what they run now"
        case FileTrust.BROKEN:
            return f"The agents that {even_line(name)} brings along cannot be used: {even_line(state.problem)}"
        case FileTrust.NONE | FileTrust.TRUSTED | FileTrust.GONE:
            return ""
