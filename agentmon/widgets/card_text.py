"""The words of a card: two to four lines of styled parts, each line exactly as wide as asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.labels import labels_text
from agentmon.domain.letters import cut_before
from agentmon.domain.live_state import LiveState, numbers_text, short_moment
from agentmon.domain.task_status import Priority, TaskStatus
from agentmon.domain.verifications import VerificationStatus
from agentmon.widgets.cells import cells, cut, even_line, pad
from agentmon.widgets.state_words import (
    WAITING_STATES,
    cause_text,
    stuck_text,
    styled_state,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from typing import TypeAlias

    from agentmon.domain.board import Card
    from agentmon.domain.verifications import Verdict
    from agentmon.widgets.state_words import StateWords


class Part(NamedTuple):
    """A piece of a line and the name of its style."""

    text: str
    style: str


if TYPE_CHECKING:
    Line: TypeAlias = tuple[Part, ...]

_ONGOING: Final = {
    LiveState.RUNNING,
    LiveState.PAUSED,
    LiveState.STOPPING,
    LiveState.FINALIZING,
    LiveState.VERIFYING,
    LiveState.STUCK,
    LiveState.NEEDS_YOU,
    LiveState.UNKNOWN,
}
_WITH_ERROR: Final = {LiveState.FAILED, LiveState.LOST, LiveState.TIMED_OUT, LiveState.UNKNOWN}
_VERDICT_STYLES: Final = {
    VerificationStatus.RUNNING: "muted",
    VerificationStatus.PASSED: "good",
    VerificationStatus.FAILED: "bad",
    VerificationStatus.TIMED_OUT: "bad",
    VerificationStatus.STOPPED: "muted",
}
_ROOM_FOR_WORD: Final = 30
"""Width from which a running card shows the word of its state beside the glyph."""


def is_ongoing(card: Card) -> bool:
    """Whether the card's execution has or may have a process, so that its elapsed time moves."""
    return card.state in _ONGOING and (card.state is not LiveState.NEEDS_YOU or card.started_at is not None)


def is_open(card: Card) -> bool:
    """Whether the card's execution waits or runs."""
    return card.state in _ONGOING or card.state in WAITING_STATES


def is_dated(card: Card) -> bool:
    """Whether the card's words name a time that passes by itself."""
    return card.waits_until is not None or card.next_run_at is not None or card.due_at is not None


def card_lines(card: Card, *, width: int, now: datetime, is_pulse_low: bool = False) -> tuple[Line, ...]:
    """Return two to four lines, each exactly ``width`` cells wide; fewer than eight cells are drawn blank."""
    line, left_over = _state_line(card, width, now, is_pulse_low=is_pulse_low)
    third = _third_line(card)
    overlap = even_line(card.overlap_line, max_characters=300)
    below = [_fill(left_over, width)] if left_over else []
    if overlap and below and third is not None:
        # No card is higher than four lines: what says least gives way.
        below, third = ([], third) if third.style != "muted" else (below, None)
    if third is not None:
        below.append((Part(pad(third.text, width), third.style),))
    if overlap:
        below.append((Part(pad(overlap, width), "warning"),))
    return (_title_line(card, width), line, *below)


def find_state_words(card: Card, now: datetime) -> StateWords | None:
    """Return how the card's state is told; None when it never ran."""
    label = card.state_label(now)
    return None if label is None else styled_state(label)


def need_words(card: Card) -> str:
    """Return what the card's agent wants of a person, in one line."""
    return even_line(card.activity_note or "waits for a message", max_characters=300)


def schedule_words(moment: datetime, now: datetime) -> str:
    """Return the next time of a schedule as cards show it: ``↻ Mon 07:00``."""
    return f"↻ {short_moment(moment, now)}"


def subtask_words(count: int, closed: int) -> str:
    """Return how far the subtasks are: ``3/5 subtasks``; empty when there are none."""
    return f"{closed}/{count} subtask{'' if count == 1 else 's'}" if count else ""


def _title_line(card: Card, width: int) -> Line:
    number = f"{_name(card, width)} "
    priority = f"P{card.priority} "
    room = width - cells(number) - len(priority)
    if room < 1:
        return (Part(pad(number + priority, width), "muted"),)
    return (
        Part(number, "muted"),
        Part(priority, _priority_style(card.priority)),
        Part(pad(even_line(card.title, max_characters=4 * room + 60), room), "title"),
    )


def _name(card: Card, width: int) -> str:
    """Return the number, with the end of the workspace's name before it where cards of several are shown."""
    number = f"#{card.number}"
    workspace = even_line(card.workspace_name)
    room = max(0, width // 2 - cells(number))
    return f"{cut_before(workspace, room, cells) if room > 1 else ''}{number}"


def _priority_style(priority: int) -> str:
    if priority == Priority.URGENT:
        return "bad"
    return "warning" if priority == Priority.HIGH else "muted"


def _state_line(card: Card, width: int, now: datetime, *, is_pulse_low: bool) -> tuple[Line, list[Part]]:
    """Return the line, and what had no room on it and can stand below."""
    program = card.command_word or card.agent_slug
    parts = [Part(even_line(program, max_characters=40) if program else "no program", "muted")]
    told = find_state_words(card, now)
    left_over: list[Part] = []
    if told is None:
        if card.waits_for and card.status is not TaskStatus.BLOCKED:
            parts.append(Part(f" · after {card.awaited_text}", "muted"))
    else:
        room = width - cells(parts[0].text) - len(" ◌ ")
        words = told.words if cells(told.words) <= room else told.short_words
        if card.waits_for and card.state is LiveState.QUEUED and cells(words) > room:
            words = f"after {numbers_text(card.waits_for)}"
            left_over.append(Part(card.awaited_text, "muted"))
        told = told._replace(words=words)
        parts += _state_parts(card, told, width - cells(parts[0].text), now, is_pulse_low=is_pulse_low)
    cost = card.spent_text
    is_cost_here = bool(cost) and _width(parts) + 1 + cells(cost) <= width
    room = width - 1 - cells(cost) if is_cost_here else width
    for extra in _extras(card, now):
        text = f" · {extra.text}" if len(parts) == 1 else f"  {extra.text}"
        if not left_over and _width(parts) + cells(text) <= room:
            parts.append(Part(text, extra.style))
        else:
            left_over.append(Part(f" · {extra.text}" if left_over else extra.text, extra.style))
    if is_cost_here:
        parts = _with_end(parts, cost, width)
    elif cost:
        left_over = _with_end(left_over, cost, width)
    return _fill(parts, width), left_over


def _state_parts(card: Card, told: StateWords, width: int, now: datetime, *, is_pulse_low: bool) -> list[Part]:
    is_running = card.state is LiveState.RUNNING
    elapsed = card.elapsed_text(now)
    parts = [Part(f" {told.glyph}", "low" if is_pulse_low and is_running else told.style)]
    is_only_word = told.words == LiveState.RUNNING.value
    is_word_clear = (is_only_word and width < _ROOM_FOR_WORD) or (card.state is LiveState.DONE and elapsed)
    if not is_word_clear:
        parts.append(Part(f" {told.words}", told.style))
    used = _width(parts)
    if elapsed and used + 1 + len(elapsed) <= width:
        parts.append(Part(f" {elapsed}", told.style if is_ongoing(card) else "muted"))
    return parts


def _extras(card: Card, now: datetime) -> list[Part]:
    schedule = "" if card.next_run_at is None else schedule_words(card.next_run_at, now)
    parts = (
        # While it runs, the words of the state say so.
        verdict_part(None if card.state is LiveState.VERIFYING else card.verification),
        Part("" if card.taken_number is not None else card.alternatives_text, "muted"),
        due_part(card, now),
        Part(schedule, "muted"),
        Part(subtask_words(card.subtask_count, card.subtasks_closed), "muted"),
        Part(labels_text(card.labels), "muted"),
        Part(card.changes_text, "muted"),
        Part(card.pull_request, "muted"),
    )
    return [part for part in parts if part.text]


def verdict_part(verdict: Verdict | None) -> Part:
    """Return how the newest verification of a run ended; without text when there is none."""
    return Part("", "muted") if verdict is None else Part(verdict.text, _VERDICT_STYLES[verdict.status])


def due_part(card: Card, now: datetime) -> Part:
    """Return when an open card is due, and that it is overdue; without text when it is not due."""
    if card.due_at is None or not card.status.is_open:
        return Part("", "muted")
    from agentmon.domain.due_dates import due_words  # noqa: PLC0415 - most first frames show no due date

    zone = card.due_at.astimezone().tzinfo
    words = "" if zone is None else due_words(card.due_at, now=now, zone=zone)
    return Part(words, "warning" if card.due_at < now else "muted")


def _third_line(card: Card) -> Part | None:
    if card.state is LiveState.NEEDS_YOU:
        return Part(f"◆ {need_words(card)}", "warning")
    if card.taken_number is not None:
        return Part(card.alternatives_text, "warning")
    if card.waits_for and card.status is TaskStatus.BLOCKED and card.state is not LiveState.QUEUED:
        return Part(f"waits for {card.awaited_text}", "muted")
    if card.state is LiveState.STUCK and card.error:
        return Part(stuck_text(card.error), "bad")
    if card.state is LiveState.PARKED and card.error:
        return Part(even_line(card.error, max_characters=300), "muted")
    if card.state in {LiveState.CANCELLED, LiveState.BUDGET_SPENT} and card.error:
        return Part(even_line(card.error, max_characters=300), "warning")
    if card.state in _WITH_ERROR and card.error:
        return Part(cause_text(card.error, card.exit_code), "bad")
    if (card.state in _ONGOING or card.state in _WITH_ERROR) and card.last_line:
        return Part(f"› {even_line(card.last_line, max_characters=300)}", "muted")
    return None


def _with_end(parts: list[Part], text: str, width: int) -> list[Part]:
    """Return a line with the text at its right end, before which the rest is cut."""
    room = width - cells(text) - 1
    return [*(_fill(parts, room) if room > 0 else ()), Part(f" {text}", "muted")]


def _width(parts: Iterable[Part]) -> int:
    return sum(cells(part.text) for part in parts)


def _fill(parts: list[Part], width: int) -> Line:
    line: list[Part] = []
    room = width
    for part in parts:
        if room <= 0:
            break
        text = cut(part.text, room)
        room -= cells(text)
        line.append(Part(text, part.style))
        if text != part.text:
            break
    if room > 0:
        line.append(Part(" " * room, "muted"))
    return tuple(line)
