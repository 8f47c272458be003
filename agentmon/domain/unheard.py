"""What is noted of a command that came when its agent had ended, and so reached nobody."""

from __future__ import annotations

AGENT_ENDED = "The agent has ended; nothing reaches it any more."
ENDED_UNANSWERED = "The agent ended before it answered."
ENDED_BEFORE = "its agent ended before this reached it"
UNHEARD = frozenset({AGENT_ENDED, ENDED_UNANSWERED, ENDED_BEFORE})
