"""Changed files as events."""

from __future__ import annotations

from agentmon.domain.letters import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.protocols.adapter import Event

MAX_DIFF_CHARACTERS = 40_000
MAX_PATH_CHARACTERS = 1_000


def diff_event(path: str, change_type: str, diff: str, added_lines: int, removed_lines: int, tool_ref: str) -> Event:
    """Return the event ``diff`` with its texts cut to what is kept; ``diff`` is unified hunks without a head."""
    return {
        "kind": "diff",
        "path": cut(path, MAX_PATH_CHARACTERS),
        "change_type": change_type,
        "diff": cut(diff, MAX_DIFF_CHARACTERS),
        "added_lines": added_lines,
        "removed_lines": removed_lines,
        "tool_ref": tool_ref,
    }
