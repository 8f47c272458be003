"""The words of what an agent wants of a person: the same in the inbox, on cards, in dialogs and in conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.domain import request_words
from agentmon.domain.amounts import duration_text
from agentmon.domain.approvals import ApprovalScope, ApprovalStatus
from agentmon.domain.audit import actor_name
from agentmon.domain.conversation import AskKind
from agentmon.domain.events import ActorType
from agentmon.widgets.cells import even_line

if TYPE_CHECKING:
    from datetime import datetime

    from agentmon.domain.approvals import Approval

_KIND_WORDS: Final = {
    AskKind.PERMISSION: "permission",
    AskKind.QUESTION: "question",
    AskKind.PLAN: "plan",
    AskKind.START: "start",
    AskKind.DIALOG: "dialog of its own screen",
    AskKind.BUDGET: "budget",
}
_SCOPE_WORDS: Final = {
    None: "",
    ApprovalScope.ONCE: " once",
    ApprovalScope.SESSION: " for this session",
    ApprovalScope.ALWAYS: " by a rule",
}
_STATUS_STYLES: Final = {
    ApprovalStatus.PENDING: "warning",
    ApprovalStatus.ALLOWED: "good",
    ApprovalStatus.DENIED: "bad",
    ApprovalStatus.ANSWERED: "good",
    ApprovalStatus.WITHDRAWN: "muted",
    ApprovalStatus.EXPIRED: "bad",
}


def wish_words(approval: Approval, *, folder: str = "") -> str:
    """Return what is asked in one line that is as wide as its characters are."""
    return even_line(request_words.wish_words(approval, folder=folder))


def kind_word(kind: AskKind) -> str:
    """Return the kind of a request in a word or two."""
    return _KIND_WORDS[kind]


def decision_style(approval: Approval) -> str:
    """Return the style of the decision."""
    return _STATUS_STYLES[approval.status]


def decision_words(approval: Approval) -> str:
    """Return what became of the request, by whom and why: ``✓ allowed once by you``, ``⊘ withdrawn``."""
    words = request_words.status_words(approval.status)
    if approval.status is ApprovalStatus.PENDING:
        return f"{words}: {even_line(request_words.failure_words(approval)) or 'waits for you'}"
    if approval.status is ApprovalStatus.ALLOWED:
        words += _SCOPE_WORDS[approval.scope]
    if approval.decided_by is not None and approval.status is not ApprovalStatus.WITHDRAWN:
        who = "you" if approval.decided_by.type is ActorType.USER else actor_name(approval.decided_by)
        words += f" by {who}"
    reason = even_line(approval.decision_reason or "", max_characters=request_words.MAX_WISH_CHARACTERS)
    return f"{words}: {reason}" if reason else words


def waited_text(since: datetime, now: datetime) -> str:
    """Return how long something waits: ``4m12s``."""
    return duration_text((now - since).total_seconds())
