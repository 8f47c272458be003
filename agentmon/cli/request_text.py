"""Requests of agents and the rules about them as lines for a person."""

from datetime import datetime

from agentmon.cli.local_time import local_words
from agentmon.domain.agents import DangerLevel
from agentmon.domain.amounts import duration_text
from agentmon.domain.approvals import Approval, ApprovalListing, ApprovalRule, ApprovalStatus
from agentmon.domain.audit import actor_name
from agentmon.domain.conversation import AskDecision, AskKind, AskQuestion
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import ExecutionListing
from agentmon.domain.plain_text import exact_lines, plain_line, plain_lines
from agentmon.domain.request_words import failure_words, is_command, status_words, wish_words
from agentmon.domain.start_danger import danger_text

_DETAIL_LINES = 12
_COMMANDS = {
    AskDecision.ALLOW.value: "approve",
    AskDecision.ALLOW_FOR_SESSION.value: "approve --session",
    AskDecision.DENY.value: "deny",
}


def status_text(approval: Approval) -> str:
    """Return what became of a request, and who decided: ``✓ allowed by You``."""
    by = f" by {actor_name(approval.decided_by)}" if approval.decided_by is not None else ""
    return f"{status_words(approval.status)}{by}"


def request_lines(listing: ApprovalListing, now: datetime, *, is_whole: bool = False) -> list[str]:
    """Return a request as the lines of one block: who asks, what, all of it, and its id.

    Args:
        listing: The request.
        now: The time now.
        is_whole: Whether all of a long detail is shown.
    """
    approval = listing.approval
    waited = duration_text((now - approval.asked_at).total_seconds())
    place = f"{plain_line(listing.workspace_name, max_characters=30)}, {listing.agent_slug}"
    title = plain_line(listing.task_title, max_characters=60)
    wish = wish_words(approval, folder=listing.working_dir)
    lines = [f"#{listing.task_number} {title}  ({place}, asked {waited} ago)", f"  {wish}"]
    told = exact_lines(approval.detail) if is_command(approval) else plain_lines(approval.detail)
    detail = [f"    {line}" for line in told.rstrip("\n").split("\n")] if told else []
    if is_whole or len(detail) <= _DETAIL_LINES:
        lines += detail
    else:
        lines += [*detail[:_DETAIL_LINES], f"    … {len(detail) - _DETAIL_LINES} more lines: agentmon inbox --whole"]
    if approval.danger_level >= DangerLevel.DANGEROUS or approval.danger_reason:
        lines.append(f"    ▲ {plain_line(danger_text(approval.danger_level, approval.danger_reason))}")
    is_pending = approval.status is ApprovalStatus.PENDING
    if approval.name_to_type and is_pending:
        lines.append(f"    agentmon approve {approval.id} --name '{plain_line(approval.name_to_type)}' allows it")
    if failure := failure_words(approval):
        lines.append(f"    {failure}")
    if approval.reason:
        lines.append(f"    why: {plain_line(approval.reason, max_characters=300)}")
    for question in () if approval.is_in_screen else approval.questions:
        lines += question_lines(question)
    for decision, choice in approval.typed.items() if is_pending else ():
        label, command = plain_line(choice.label, max_characters=200), f"agentmon {_COMMANDS[decision]} {approval.id}"
        lines.append(f"    {command}  {choice.description} into its terminal: {label}")
    if approval.ask_kind is AskKind.BUDGET and is_pending:
        lines.append(f"    agentmon answer {approval.id} raise, once or stop; --text AMOUNT raises it to another limit")
    behind = [f"  {listing.more:,} more requests of this run are not listed"] if listing.more else []
    return [*lines, f"  {approval.id}", *behind]


def waiting_lines(listing: ExecutionListing, now: datetime) -> list[str]:
    """Return an agent that waits without a request as the lines of one block: who, what for, and what helps."""
    execution = listing.execution
    state, words = execution.state_label(now)
    title = plain_line(listing.task_title, max_characters=60)
    note = plain_line(execution.activity_note or "waits for a message", max_characters=300)
    number, elapsed = listing.task_number, execution.elapsed_text(now)
    if execution.end_reason is EndReason.BUDGET:
        note = plain_line(execution.error or "", max_characters=300)
        help_line = f"agentmon budget lists it, and its help says how it is raised; agentmon run {number} runs it again"
    elif execution.status is ExecutionStatus.QUEUED:
        help_line = (
            f"agentmon run {number} --anyway starts it now; agentmon task after {number} --remove OTHER drops one "
            f"dependency; agentmon stop {number} takes it out of the queue"
        )
    elif execution.mode.is_conversation:
        help_line = f"agentmon message '#{number}' TEXT answers; agentmon finish '#{number}' ends it"
    else:
        help_line = f"agentmon attach {number} answers in its terminal; agentmon stop {number} ends it"
    return [
        f"#{number} {title}  ({', '.join(part for part in (listing.agent_slug, elapsed) if part)})",
        f"  {state.glyph} {words}: {note}",
        f"  {help_line}",
    ]


def question_lines(question: AskQuestion) -> list[str]:
    """Return a question with its choices, numbered as ``agentmon answer`` takes them."""
    kind = " (several may be chosen)" if question.is_multiple else "" if question.choices else " (answer in words)"
    lines = [f"    {plain_line(question.question, max_characters=300)}{kind}"]
    for number, choice in enumerate(question.choices, 1):
        about = f": {plain_line(choice.description, max_characters=200)}" if choice.description else ""
        lines.append(f"      {number} {plain_line(choice.label, max_characters=100)}{about}")
    return lines


def history_row(listing: ApprovalListing) -> tuple[str, ...]:
    """Return a request of the past as cells: what became of it, task, time, id, and what it was."""
    approval = listing.approval
    return (
        status_text(approval),
        f"#{listing.task_number}",
        local_words(approval.asked_at),
        approval.id,
        wish_words(approval) + (f" ({plain_line(approval.decision_reason)})" if approval.decision_reason else ""),
    )


def rule_row(rule: ApprovalRule, workspaces: dict[str, str], agents: dict[str, str]) -> tuple[str, ...]:
    """Return a rule as cells: its decision, tool, what it is about, where it counts, and its id.

    Args:
        rule: The rule.
        workspaces: Names by id.
        agents: Slugs by id.
    """
    where = [
        "everywhere" if rule.workspace_id is None else workspaces.get(rule.workspace_id, rule.workspace_id),
        "" if rule.agent_id is None else agents.get(rule.agent_id, rule.agent_id),
    ]
    about = rule.path if rule.path is not None else rule.command_prefix
    return (
        rule.decision.value if rule.is_enabled else f"({rule.decision.value}, off)",
        plain_line(rule.tool, max_characters=30),
        plain_line(about or "", max_characters=60),
        plain_line(", ".join(word for word in where if word), max_characters=40),
        rule.id,
        plain_line(rule.note),
    )
