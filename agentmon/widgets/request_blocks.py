"""One request of an agent, whole: who asks, for what, why, the exact command or difference, the choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import DangerLevel
from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.conversation import AskDecision
from agentmon.domain.near_paths import near_text
from agentmon.domain.plain_text import exact_lines
from agentmon.domain.request_words import failure_words, is_command
from agentmon.domain.start_danger import danger_text
from agentmon.widgets.cells import even_line
from agentmon.widgets.local_time import local_time_text
from agentmon.widgets.request_words import decision_style, decision_words, kind_word, waited_text
from agentmon.widgets.text_rows import Span, diff_rows, is_diff, text_rows

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from agentmon.domain.approvals import Approval, ApprovalListing
    from agentmon.widgets.block_view import Block
    from agentmon.widgets.text_rows import Row

_NAME_CELLS: Final = 10
_BLANK: Final[Row] = (Span(""),)
_GONE: Final = "The agent no longer asks this. Nothing is decided by a key any more; j and k go to the next."
_LONGEST_TITLE: Final = 120
_DECISIONS: Final = {
    AskDecision.ALLOW.value: "Allow",
    AskDecision.ALLOW_FOR_SESSION.value: "Session",
    AskDecision.DENY.value: "Deny",
}


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What is asked, and why."""

    listing: ApprovalListing
    key: str = "head"
    can_unfold: bool = False

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:  # noqa: ARG002 - there is nothing folded
        """Return the title, what became of it, what it is about, and the reason."""
        listing, approval = self.listing, self.listing.approval
        title = even_line(near_text(approval.title, listing.working_dir), max_characters=_LONGEST_TITLE)
        target = near_text(approval.target, listing.working_dir)
        is_asked_below = any(even_line(one.question) == title for one in approval.questions)
        rows = [] if is_asked_below else text_rows(title, width, "bold")
        if approval.status is not ApprovalStatus.PENDING or failure_words(approval):
            rows += text_rows(decision_words(approval), width, decision_style(approval))
        if approval.status is ApprovalStatus.WITHDRAWN:
            rows += text_rows(_GONE, width, "muted")
        told = [kind_word(approval.ask_kind)]
        if not approval.ask_kind.is_question:
            told += [approval.tool_name, "" if _is_said_above(listing, title) else target]
        rows += text_rows(" · ".join(part for part in told if part), width, "muted")
        if approval.danger_level >= DangerLevel.DANGEROUS or approval.danger_reason:
            style = "bad" if approval.danger_level is DangerLevel.DESTRUCTIVE else "warning"
            rows += text_rows(f"▲ {danger_text(approval.danger_level, approval.danger_reason)}", width, style)
        if approval.reason:
            rows += text_rows(f"“{approval.reason}”", width, "text")
        return rows


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """Who asks, where, and since when."""

    listing: ApprovalListing
    waited: str
    asked: str
    key: str = "facts"
    can_unfold: bool = False

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:  # noqa: ARG002 - there is nothing folded
        """Return the facts below a blank row."""
        listing = self.listing
        is_pending = listing.approval.status is ApprovalStatus.PENDING
        facts = [
            ("Task", f"#{listing.task_number} {listing.task_title}"),
            ("Agent", f"{listing.agent_slug} in {listing.workspace_name}"),
            ("Folder", listing.working_dir),
            ("Asked", f"{self.asked} · waits {self.waited}" if is_pending else self.asked),
        ]
        rows: list[Row] = [_BLANK]
        for name, fact in facts:
            rows += _fact_rows(name, fact, "muted", width)
        return rows


@dataclass(frozen=True, slots=True)
class RequestTyped:
    """What each decision types into the agent's own screen."""

    approval: Approval
    key: str = "typed"
    can_unfold: bool = False

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:  # noqa: ARG002 - there is nothing folded
        """Return a row for each decision, below a blank one."""
        rows: list[Row] = [_BLANK]
        for decision, choice in self.approval.typed.items():
            rows += _fact_rows(
                _DECISIONS[decision], f"{choice.description} into its terminal: {choice.label}", "text", width
            )
        return rows


@dataclass(frozen=True, slots=True)
class RequestDetail:
    """What is to be decided on, letter for letter."""

    text: str
    is_command: bool
    circumstances: str = ""
    """What is told of a command beside it: another folder, a host, more permissions."""
    key: str = "detail"
    can_unfold: bool = False

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:  # noqa: ARG002 - there is nothing folded
        """Return the command, the difference or the text below a blank row."""
        rows: list[Row] = [_BLANK]
        if is_diff(self.text):
            return rows + diff_rows(self.text.rstrip("\n"), width)
        if self.is_command:
            for at, row in enumerate(text_rows(exact_lines(self.text), width - 2, "heading", at_words=False)):
                rows.append((Span("$ " if not at else "  ", "muted"), *row))
            return rows + (text_rows(self.circumstances, width) if self.circumstances else [])
        return rows + text_rows(self.text, width)


def request_blocks(listing: ApprovalListing, questions: Iterable[Block], now: datetime) -> list[Block]:
    """Return the blocks of a request, what is to be decided on before who asks."""
    approval = listing.approval
    detail = approval.detail or (approval.target if _is_said_below(listing) else "")
    blocks: list[Block] = [RequestHead(listing)]
    if detail and is_command(listing.approval):
        command, circumstances = _parted(detail, listing)
        blocks.append(RequestDetail(text=command, is_command=True, circumstances=circumstances))
    elif detail:
        blocks.append(RequestDetail(text=detail, is_command=False))
    blocks += questions
    if approval.typed and approval.status is ApprovalStatus.PENDING:
        blocks.append(RequestTyped(approval))
    waited, asked = waited_text(approval.asked_at, now), local_time_text(approval.asked_at, now)
    return [*blocks, RequestFacts(listing, waited, asked)]


def _parted(detail: str, listing: ApprovalListing) -> tuple[str, str]:
    """Return the command of a detail, and what else it tells; that it runs in the folder of the facts goes unsaid."""
    command = listing.approval.tool_input.get("command")
    if not isinstance(command, str) or not command or not detail.startswith(f"{command}\n"):
        return detail, ""
    rest = detail[len(command) :].strip("\n").split("\n")
    return command, "\n".join(line for line in rest if line != f"In {listing.working_dir}")


def _is_said_below(listing: ApprovalListing) -> bool:
    """Whether the detail is the target itself."""
    approval = listing.approval
    return is_command(listing.approval) and (not approval.detail or approval.detail.strip() == approval.target.strip())


def _is_said_above(listing: ApprovalListing, title: str) -> bool:
    """Whether the target stands in the detail, or at the end of the title."""
    target = near_text(listing.approval.target, listing.working_dir)
    return _is_said_below(listing) or title.endswith(target)


def _fact_rows(name: str, fact: str, style: str, width: int) -> list[Row]:
    rows = text_rows(fact, max(1, width - _NAME_CELLS), style)
    return [(Span(f"{name if not at else '':<{_NAME_CELLS}}", "muted"), *row) for at, row in enumerate(rows)]
