"""Interrupting an agent in its own screen: the keys are pressed, and once more when it goes on as if they were not.

A dialog is drawn before it listens, so that keys which come at once get lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.runners.screens.judging import OUTPUT_SOURCE

if TYPE_CHECKING:
    from agentmon.runners.screens.judging import Verdict

_EFFECT_WITHIN_S: Final = 1.5
"""Longer than the host needs to press keys when its wake-up got lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt:
    """Keys that were pressed to interrupt an agent."""

    command_id: str
    pressed_at: float
    """Monotonic."""
    refused_at: float = float("-inf")
    """When they could not be pressed once more; monotonic."""

    @property
    def due_at(self) -> float:
        """When it is known whether they had an effect, or can be pressed once more; monotonic."""
        return max(self.pressed_at, self.refused_at) + _EFFECT_WITHIN_S

    @property
    def second_id(self) -> str:
        """The id of the command that presses them once more."""
        return f"{self.command_id}-again"

    def had_no_effect(self, verdict: Verdict, *, same_since: float) -> bool:
        """Return whether the agent works or asks by its own words, and has said just that since before the keys.

        Args:
            verdict: What it does when the interrupt is due.
            same_since: Since when all looks have read the same; monotonic.
        """
        finding = verdict.finding
        if finding is None or finding.source == OUTPUT_SOURCE or same_since >= self.pressed_at:
            return False
        return finding.state.is_busy or finding.state.is_asking
