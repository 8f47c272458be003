"""The words of a card: two or three lines of styled parts, each line exactly as wide as asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.amounts import cost_text, duration_text
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import Priority, TaskStatus
from agentmon.widgets.cells import cells, cut, even_line, pad

if TYPE_CHECKING:
    from datetime import datetime
    from typing import TypeAlias

    from agentmon.domain.board import Card


class Part(NamedTuple):
    """A piece of a line and the name of its style."""

    text: str
    style: str


if TYPE_CHECKING:
    Line: TypeAlias = tuple[Part, ...]

STATE_STYLES: Final = {
    LiveState.QUEUED: "muted",
    LiveState.RUNNING: "running",
    LiveState.NEEDS_YOU: "warning",
    LiveState.PARKED: "warning",
    LiveState.STOPPING: "warning",
    LiveState.DONE: "good",
    LiveState.FAILED: "bad",
    LiveState.TIMED_OUT: "bad",
    LiveState.CANCELLED: "muted",
    LiveState.UNKNOWN: "warning",
}
_ONGOING: Final = {LiveState.RUNNING, LiveState.STOPPING, LiveState.NEEDS_YOU, LiveState.PARKED}
_WITH_ERROR: Final = {LiveState.FAILED, LiveState.TIMED_OUT, LiveState.UNKNOWN}
_ROOM_FOR_WORD: Final = 30
"""Width from which a running card shows the word of its state beside the glyph."""


def is_ongoing(card: Card) -> bool:
    """Whether the card's execution has or may have a process, so that its elapsed time moves."""
    return card.state in _ONGOING


def card_lines(card: Card, *, width: int, now: datetime, is_pulse_low: bool = False) -> tuple[Line, ...]:
    """Return the card's lines, each exactly ``width`` cells wide; fewer than eight cells are drawn blank."""
    lines = [_title_line(card, width), _state_line(card, width, now, is_pulse_low=is_pulse_low)]
    third = _third_line(card)
    if third is not None:
        lines.append((Part(pad(third.text, width), third.style),))
    return tuple(lines)


def elapsed_text(card: Card, now: datetime) -> str:
    """Return how long the newest execution runs or ran; empty when it never started."""
    if card.started_at is None:
        return ""
    return duration_text(((card.ended_at or now) - card.started_at).total_seconds())


def state_text(card: Card) -> str:
    """Return the glyph and the word of the card's state; empty when it never ran."""
    if card.state is None:
        return ""
    return f"{card.state.glyph} {card.state.with_cause(exit_code=card.exit_code)}"


def cause_text(error: str, exit_code: int | None) -> str:
    """Return the error in one line, without the exit code, which stands beside it in the words of the state."""
    return even_line(error, max_characters=300).removeprefix(f"exit {exit_code}: ")


def _title_line(card: Card, width: int) -> Line:
    number = f"#{card.number} "
    priority = f"P{card.priority} "
    room = width - len(number) - len(priority)
    if room < 1:
        return (Part(pad(number + priority, width), "muted"),)
    return (
        Part(number, "muted"),
        Part(priority, _priority_style(card.priority)),
        Part(pad(even_line(card.title, max_characters=room + 60), room), "title"),
    )


def _priority_style(priority: int) -> str:
    if priority == Priority.URGENT:
        return "bad"
    return "warning" if priority == Priority.HIGH else "muted"


def _state_line(card: Card, width: int, now: datetime, *, is_pulse_low: bool) -> Line:
    program = card.command_word or card.agent_slug
    parts = [Part(even_line(program, max_characters=40) if program else "no program", "muted")]
    if card.state is None:
        after = _waits_text(card)
        if after and card.status is not TaskStatus.BLOCKED:
            parts.append(Part(f" · after {after}", "muted"))
        return _fill(parts, width)
    style = STATE_STYLES[card.state]
    elapsed = elapsed_text(card, now)
    glyph_style = "low" if is_pulse_low and card.state is LiveState.RUNNING else style
    parts.append(Part(f" {card.state.glyph}", glyph_style))
    word = (
        ""
        if card.state is LiveState.RUNNING and width < _ROOM_FOR_WORD
        else card.state.with_cause(exit_code=card.exit_code)
    )
    if word == LiveState.DONE.value and elapsed:
        word = ""
    if word:
        parts.append(Part(f" {word}", style))
    if elapsed:
        parts.append(Part(f" {elapsed}", style if card.state in _ONGOING else "muted"))
    cost = cost_text(card.cost_nano)
    used = sum(cells(part.text) for part in parts)
    if cost and used + 1 + len(cost) <= width:
        parts.append(Part(" " * (width - used - len(cost)) + cost, "muted"))
    return _fill(parts, width)


def _third_line(card: Card) -> Part | None:
    if card.waits_for and card.status is TaskStatus.BLOCKED:
        return Part(f"waits for {_waits_text(card)}", "muted")
    if card.state in _WITH_ERROR and card.error:
        return Part(cause_text(card.error, card.exit_code), "bad")
    if (card.state in _ONGOING or card.state in _WITH_ERROR) and card.last_line:
        return Part(f"› {even_line(card.last_line, max_characters=300)}", "muted")
    return None


def _waits_text(card: Card) -> str:
    return ", ".join(f"#{number}" for number in card.waits_for)


def _fill(parts: list[Part], width: int) -> Line:
    line: list[Part] = []
    room = width
    for part in parts:
        if room <= 0:
            break
        text = cut(part.text, room)
        room -= cells(text)
        line.append(Part(text, part.style))
    if room > 0:
        line.append(Part(" " * room, "muted"))
    return tuple(line)
