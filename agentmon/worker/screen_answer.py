"""Answering a dialog of an agent's own screen: seen once more, typed once, seen to be gone.

The keys have the id of the decision's command, which the host obeys once, and which stands in its commands before they
are typed: a worker that comes after a killed one knows by it whether they were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.conversation import AskDecision
from agentmon.runners.screens.reading import Answer, Dialog, count_signs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.screens.judging import Verdict
    from agentmon.runners.screens.reading import ScreenText
    from agentmon.runners.screens.rules import ScreenRules

LISTENS_AFTER_S: Final = 1.5
"""How long a dialog has to be drawn before keys are typed: agents draw it before they listen, and drop what comes."""
HEARD_WITHIN_S: Final = 10.0


@dataclass(slots=True, kw_only=True)
class ScreenAnswer:
    """A decision on its way into one agent's screen."""

    command_id: str
    decision: AskDecision | None
    """None when the command names none."""
    digest: str
    """Of the dialog that was decided on."""
    reason: str
    is_typed: bool
    since: float
    """When it came, or when its keys were typed; monotonic."""
    gone_since: float | None = None
    """Since when the screen does not show the dialog; monotonic."""
    has_moved: bool = False
    """Whether the mark of choice was sent to the option."""

    @classmethod
    def of(cls, command_id: str, payload: Mapping[str, object], *, is_typed: bool, at: float) -> ScreenAnswer:
        """Return the answer of a command of a client."""
        decision, digest, reason = (payload.get(name) for name in ("decision", "input_digest", "reason"))
        return cls(
            command_id=command_id,
            decision=next((one for one in AskDecision if one == decision), None),
            digest=digest if isinstance(digest, str) else "",
            reason=reason if isinstance(reason, str) else "",
            is_typed=is_typed,
            since=at,
        )

    @property
    def move_id(self) -> str:
        """The id of the command that brings the mark of choice to the option."""
        return f"{self.command_id}-move"

    def option_of(self, dialog: Dialog) -> Answer | None:
        """Return the option of the dialog that it chooses; None when that is not offered."""
        return None if self.decision is None else dialog.answers.get(self.decision)

    def due_at(self, drawn_since: float, settled_s: float) -> float:
        """Return when it is known what became of it, or when its keys may be typed; monotonic."""
        if self.gone_since is not None:
            return self.gone_since + settled_s
        if self.is_typed or self.has_moved:
            return self.since + HEARD_WITHIN_S
        return drawn_since + LISTENS_AFTER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenDialog:
    """A dialog as the looks have seen it."""

    dialog: Dialog
    since: float
    """When it was seen first; monotonic."""
    allowed: int
    """How often the screen with it showed that something was allowed, which an agent writes when it was."""
    denied: int

    @classmethod
    def of(cls, dialog: Dialog, rules: ScreenRules, shown: ScreenText, *, at: float) -> SeenDialog:
        """Return the dialog as the first look at it sees it."""
        return cls(
            dialog=dialog, since=at, allowed=count_signs(rules.allowed, shown), denied=count_signs(rules.denied, shown)
        )

    def outcome(self, rules: ScreenRules, shown: ScreenText) -> ApprovalStatus:
        """Return what was decided in the terminal, as far as the screen without the dialog tells for sure."""
        is_allowed = count_signs(rules.allowed, shown) > self.allowed
        is_denied = count_signs(rules.denied, shown) > self.denied
        if is_allowed is is_denied:
            return ApprovalStatus.ANSWERED
        return ApprovalStatus.ALLOWED if is_allowed else ApprovalStatus.DENIED


def gone_outcome(
    seen: SeenDialog | None, rules: ScreenRules, shown: ScreenText | None, verdict: Verdict
) -> ApprovalStatus:
    """Return what became of a dialog that the screen does not show any more and that nobody decided here."""
    if verdict.state is None or verdict.state.is_asking:
        # Nobody knows what the agent does, or it asks something else, or the same in other words.
        return ApprovalStatus.WITHDRAWN
    return ApprovalStatus.ANSWERED if seen is None or shown is None else seen.outcome(rules, shown)
