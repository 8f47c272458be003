"""What came out when a person had an agent looked at: nothing of a task is run for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTest:
    """Whether an agent could work now."""

    slug: str
    found_path: str | None
    """Where its program is; None when it is not there."""
    version: str | None
    """As the program told it now."""
    is_logged_in: bool | None
    """None when that cannot be told without asking its vendor."""
    login_note: str = ""
    """How that was told, or what to do."""
    problems: tuple[str, ...] = ()
    """Sentences; empty when all is well."""

    @property
    def is_fine(self) -> bool:
        """Whether nothing stands in the way."""
        return not self.problems
