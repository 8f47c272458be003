"""What an agent wants of a person in one line, and the marks of what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.conversation import AskKind
from agentmon.domain.near_paths import near_text
from agentmon.domain.operations import OperationType
from agentmon.domain.plain_text import exact_line, plain_line

if TYPE_CHECKING:
    from agentmon.domain.approvals import Approval

MAX_WISH_CHARACTERS: Final = 300
_STATUS_GLYPHS: Final = {
    ApprovalStatus.PENDING: "◆",
    ApprovalStatus.ALLOWED: "✓",
    ApprovalStatus.DENIED: "✗",
    ApprovalStatus.ANSWERED: "✓",
    ApprovalStatus.WITHDRAWN: "⊘",
    ApprovalStatus.EXPIRED: "✗",
}


def is_command(approval: Approval) -> bool:
    """Return whether a command waits for leave, which has to be seen letter for letter."""
    return approval.type is OperationType.EXECUTE and approval.ask_kind in {AskKind.PERMISSION, AskKind.START}


def wish_words(approval: Approval, *, folder: str = "") -> str:
    """Return what is asked in one line: ``wants Bash: rm -r tmp``, ``asks: Which file?``, ``shows a plan: …``.

    Paths below the folder are told from there.
    """
    target = near_text(approval.target, folder)
    target = plain_line(exact_line(target) if is_command(approval) else target, max_characters=MAX_WISH_CHARACTERS)
    title = plain_line(near_text(approval.title, folder), max_characters=MAX_WISH_CHARACTERS)
    match approval.ask_kind:
        case AskKind.PERMISSION:
            tool = plain_line(approval.tool_name, max_characters=60)
            return f"wants {tool}: {target}" if tool and target else f"wants {tool or target or title}"
        case AskKind.QUESTION:
            return f"asks: {title}"
        case AskKind.PLAN:
            return f"shows a plan: {title}"
        case AskKind.START:
            return f"may it start? {target or title}"
        case AskKind.DIALOG:
            return f"its screen asks: {title}"
        case AskKind.BUDGET:
            return title


def failure_words(approval: Approval) -> str:
    """Return why a request waits again; empty for any other."""
    reason = plain_line(approval.decision_reason or "", max_characters=MAX_WISH_CHARACTERS)
    is_again = reason and approval.status is ApprovalStatus.PENDING
    return f"the last answer failed: {reason}" if is_again else ""


def status_words(status: ApprovalStatus) -> str:
    """Return what became of a request: ``✓ allowed``."""
    return f"{_STATUS_GLYPHS[status]} {status.value}"
