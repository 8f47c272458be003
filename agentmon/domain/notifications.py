"""What a person is told of while looking elsewhere, over which channels, and when they are left in peace."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import time
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.audit import event_sentence
from agentmon.domain.errors import UsageError
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.live_state import end_label
from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from agentmon.domain.events import TaskEvent

MOST_TOLD_APART: Final = 3
"""More of one kind at one time are told in one sentence."""
_SETTLED_BY: Final = frozenset({TaskEventType.APPROVAL_DECIDED, TaskEventType.APPROVAL_WITHDRAWN})
_TRIED_AGAIN_BY: Final = frozenset({TaskEventType.EXECUTION_REQUEUED, TaskEventType.EXECUTION_PARKED})
_LONGEST_TEXT: Final = 300
_LONGEST_TITLE: Final = 120
_HOURS: Final = re.compile(r"^(\d{1,2}):(\d{2})\s*[-–]\s*(\d{1,2}):(\d{2})$")


class NotificationKind(StrEnum):
    """What happened."""

    NEEDS_YOU = "needs_you"
    """An agent waits for a decision, or a start waits for leave."""
    DONE = "done"
    FAILED = "failed"
    """A run failed, timed out or was lost, and is not tried again by itself."""
    PARKED = "parked"
    """A run or an agent waits until its vendor serves it again."""
    BUDGET = "budget"
    """A share of a budget is used that is told of, or all of it."""
    OVERLAP = "overlap"
    """Two live runs get into each other's way."""


class Channel(StrEnum):
    """How it is told."""

    TOAST = "toast"
    """In the app."""
    BELL = "bell"
    """Of the app's terminal."""
    DESKTOP = "desktop"
    COMMAND = "command"
    WEBHOOK = "webhook"

    @property
    def is_of_app(self) -> bool:
        """Whether an open app tells it; the others are told by the worker."""
        return self in {Channel.TOAST, Channel.BELL}


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One thing to be told."""

    kind: NotificationKind
    title: str
    """One line: the task, and in what state it is."""
    text: str
    """One line that says why; empty when the title says all."""
    at: datetime
    event_id: int
    """That of the line of the audit trail; of several, the newest."""
    task_number: int | None = None
    task_title: str = ""
    workspace: str = ""
    execution_id: str = ""

    def as_document(self) -> dict[str, object]:
        """Return what commands and webhooks get, as JSON values."""
        return {
            "kind": self.kind.value,
            "title": self.title,
            "text": self.text,
            "at": self.at.isoformat(),
            "event_id": self.event_id,
            "task_number": self.task_number,
            "task_title": self.task_title,
            "workspace": self.workspace,
            "execution_id": self.execution_id,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietHours:
    """A stretch of each day, in local time; it may go over midnight."""

    begin: time
    end: time

    def hold(self, at: datetime) -> bool:
        """Return whether the local time lies in it."""
        now = at.timetz().replace(tzinfo=None)
        if self.begin <= self.end:
            return self.begin <= now < self.end
        return now >= self.begin or now < self.end


def parse_quiet_hours(text: str) -> QuietHours | None:
    """Return the hours of ``22:00-07:00``; None for an empty text.

    Raises:
        UsageError: It is no stretch of a day.
    """
    written = text.strip()
    if not written:
        return None
    found = _HOURS.match(written)
    try:
        if found is None:
            raise ValueError  # noqa: TRY301 - the same answer as for a time that does not exist
        begin, end = time(int(found[1]), int(found[2])), time(int(found[3]) % 24, int(found[4]))
    except ValueError as error:
        raise UsageError(f"{text!r} is no stretch of a day", hint="write it like 22:00-07:00") from error
    return QuietHours(begin=begin, end=end)


def parse_channels(text: str) -> frozenset[Channel]:
    """Return the channels that a text names: ``toast bell desktop``; ``none`` and an empty text name none.

    Raises:
        UsageError: A word is no channel.
    """
    words = [word for word in re.split(r"[\s,]+", text.strip().lower()) if word and word != "none"]
    unknown = [word for word in words if word not in set(Channel)]
    if unknown:
        raise UsageError(
            f"{unknown[0]!r} is no channel", hint=f"channels are: {', '.join(Channel)}; several may be named, or none"
        )
    return frozenset(Channel(word) for word in words)


def notification_of(
    event: TaskEvent, *, task_number: int | None, task_title: str = "", workspace: str = ""
) -> Notification | None:
    """Return what is to be told of a line of the audit trail; None when nothing is.

    Args:
        event: The line.
        task_number: That of the task it is about; None for what concerns no single task.
        task_title: Of that task.
        workspace: Its name.
    """
    kind = _kind_of(event.event_type, event.payload)
    if kind is None:
        return None
    title = plain_line(redact(task_title), max_characters=_LONGEST_TITLE)
    name = "" if task_number is None else f"#{task_number} {title}".strip()
    words, text = _words(kind, event)
    return Notification(
        kind=kind,
        title=f"{name}: {words}" if name else words,
        text=plain_line(redact(text), max_characters=_LONGEST_TEXT),
        at=event.created_at,
        event_id=event.id,
        task_number=task_number,
        task_title=title,
        workspace=workspace,
        execution_id=str(event.payload.get("execution_id") or ""),
    )


def notifications_in(lines: Sequence[tuple[TaskEvent, int | None, str, str]]) -> list[Notification]:
    """Return what is to be told of a stretch of the audit trail, oldest first.

    What was settled within the stretch is left out: a request that was decided, a failure that is tried again.

    Args:
        lines: Each with number, title and workspace of the task it is about.
    """
    settled = {event.payload.get("approval_id"): event.id for event, *_ in lines if event.event_type in _SETTLED_BY}
    retried = {event.payload.get("execution_id") for event, *_ in lines if event.event_type in _TRIED_AGAIN_BY}
    found = []
    for event, number, title, workspace in lines:
        settled_at = settled.get(event.payload.get("approval_id"), 0)
        if event.event_type is TaskEventType.APPROVAL_ASKED and event.id < settled_at:
            continue
        one = notification_of(event, task_number=number, task_title=title, workspace=workspace)
        if one is None or (one.kind is NotificationKind.FAILED and one.execution_id in retried):
            continue
        found.append(one)
    return found


def gathered(notifications: Sequence[Notification]) -> list[Notification]:
    """Return the same in few words: more than ``MOST_TOLD_APART`` of one kind become one that names their tasks."""
    by_kind: dict[NotificationKind, list[Notification]] = {}
    for one in notifications:
        by_kind.setdefault(one.kind, []).append(one)
    found = []
    for kind, own in by_kind.items():
        if len(own) <= MOST_TOLD_APART:
            found += own
            continue
        numbers = list(dict.fromkeys(f"#{one.task_number}" for one in own if one.task_number is not None))
        title = f"{len(own)} {_MANY[kind]}"
        text = plain_line(", ".join(numbers), max_characters=_LONGEST_TEXT)
        found.append(
            replace(own[-1], title=title, text=text, task_number=None, task_title="", workspace="", execution_id="")
        )
    return sorted(found, key=lambda one: one.event_id)


_MANY: Final = {
    NotificationKind.NEEDS_YOU: "things wait for you",
    NotificationKind.DONE: "runs are done",
    NotificationKind.FAILED: "runs failed",
    NotificationKind.PARKED: "runs are parked",
    NotificationKind.BUDGET: "budgets are told of",
    NotificationKind.OVERLAP: "runs overlap with others",
}


def _kind_of(event_type: TaskEventType, payload: Mapping[str, object]) -> NotificationKind | None:
    if event_type is TaskEventType.EXECUTION_ENDED:
        return {
            ExecutionStatus.SUCCEEDED.value: NotificationKind.DONE,
            ExecutionStatus.FAILED.value: NotificationKind.FAILED,
            ExecutionStatus.TIMED_OUT.value: NotificationKind.FAILED,
        }.get(str(payload.get("status")))
    return {
        TaskEventType.APPROVAL_ASKED: NotificationKind.NEEDS_YOU,
        TaskEventType.EXECUTION_HELD: NotificationKind.NEEDS_YOU,
        TaskEventType.EXECUTION_PARKED: NotificationKind.PARKED,
        TaskEventType.AGENT_PARKED: NotificationKind.PARKED,
        TaskEventType.BUDGET_REACHED: NotificationKind.BUDGET,
        TaskEventType.RUNS_OVERLAP: NotificationKind.OVERLAP,
        TaskEventType.EDITS_DISCARDED: NotificationKind.OVERLAP,
    }.get(event_type)


def _words(kind: NotificationKind, event: TaskEvent) -> tuple[str, str]:
    payload = event.payload
    if kind is NotificationKind.NEEDS_YOU:
        return "needs you", str(payload.get("title") or "")
    if event.event_type is TaskEventType.EXECUTION_ENDED:
        return end_label(payload), str(payload.get("error") or "")
    if kind is NotificationKind.OVERLAP:
        return "overlap", str(payload.get("text") or "")
    sentence = event_sentence(event)
    if kind is NotificationKind.BUDGET:
        return "budget", sentence.removeprefix("noted that ")
    return "parked", sentence
