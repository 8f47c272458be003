"""How the state of an execution is told, with what it waits for: the same words on cards, in tables and on pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.execution_status import WaitReason
from agentmon.domain.live_state import LiveState
from agentmon.widgets.cells import even_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agentmon.domain.executions import Execution

STATE_STYLES: Final = {
    LiveState.QUEUED: "muted",
    LiveState.RUNNING: "running",
    LiveState.NEEDS_YOU: "warning",
    LiveState.PARKED: "warning",
    LiveState.PAUSED: "warning",
    LiveState.STOPPING: "warning",
    LiveState.FINALIZING: "muted",
    LiveState.STUCK: "bad",
    LiveState.DONE: "good",
    LiveState.FAILED: "bad",
    LiveState.LOST: "bad",
    LiveState.TIMED_OUT: "bad",
    LiveState.CANCELLED: "muted",
    LiveState.UNKNOWN: "warning",
}
WAITING_STATES: Final = {LiveState.QUEUED, LiveState.PARKED}
"""States of what has no process yet."""
_STUCK_PROCESS: Final = r"(?:pid |, )(\d+) \("


class StateWords(NamedTuple):
    """A state as a person reads it."""

    glyph: str
    words: str
    style: str

    @property
    def text(self) -> str:
        """Glyph and words."""
        return f"{self.glyph} {self.words}"

    @property
    def short_words(self) -> str:
        """The words for little room, where the glyph has to tell the state: ``at 15:04``, ``until 15:04``."""
        return self.words.removeprefix("queued · ").removeprefix("parked ")


class Wait(NamedTuple):
    """What a queued execution waits for beside what its own row says."""

    waits_for: tuple[int, ...] = ()
    """Numbers of tasks that are not done."""
    parked_until: datetime | None = None
    """Nothing of its agent starts before."""
    park_note: str | None = None


NO_WAIT: Final = Wait()


def execution_words(execution: Execution, now: datetime, wait: Wait = NO_WAIT) -> StateWords:
    """Return how the state of an execution is told."""
    is_queued = execution.live_state in WAITING_STATES
    is_agent_parked = is_queued and wait.parked_until is not None and wait.parked_until > now
    times = [moment for moment in (execution.not_before, wait.parked_until) if is_queued and moment is not None]
    return state_words(
        LiveState.PARKED if is_agent_parked else execution.live_state,
        now=now,
        exit_code=execution.exit_code,
        error=execution.error,
        waits_for=wait.waits_for if is_queued else (),
        waits_until=max(times, default=None),
        is_retry=execution.wait_reason is WaitReason.RETRY,
    )


def reason_text(execution: Execution, wait: Wait = NO_WAIT) -> str:
    """Return why an execution failed or waits, in one line; empty when there is nothing to say."""
    if execution.live_state in WAITING_STATES:
        return even_line(wait.park_note or execution.error or "", max_characters=300)
    return cause_text(execution.error, execution.exit_code) if execution.error else ""


def cause_text(error: str, exit_code: int | None) -> str:
    """Return the error in one line, without the exit code, which stands beside it in the words of the state."""
    return even_line(error, max_characters=300).removeprefix(f"exit {exit_code}: ")


def state_words(
    state: LiveState,
    *,
    now: datetime,
    exit_code: int | None = None,
    error: str | None = None,
    waits_for: Sequence[int] = (),
    waits_until: datetime | None = None,
    is_retry: bool = False,
) -> StateWords:
    """Return how a state is told: ``⏸ parked until 15:04``, ``◌ queued · after #38``, ``✗ failed (exit 1)``.

    Args:
        state: The state.
        now: The present; a time that is over is not told.
        exit_code: Of the program.
        error: What is wrong; names the processes that could not be stopped.
        waits_for: Numbers of the tasks that a queued execution waits for.
        waits_until: The time before which a queued execution does not start.
        is_retry: Whether it waits since its last try failed.
    """
    if waits_until is not None and waits_until <= now:
        waits_until = None
    if state is LiveState.PARKED and waits_until is None:
        state = LiveState.QUEUED
    words = state.with_cause(exit_code=exit_code)
    if state is LiveState.STUCK and (pids := stuck_pids(error)):
        words = f"{words} pid {', '.join(pids)}"
    elif state is LiveState.PARKED and waits_until is not None:
        words = f"{words} until {short_moment(waits_until, now)}"
    elif state is LiveState.QUEUED and waits_for:
        words = f"{words} · after {numbers_text(waits_for)}"
    elif state is LiveState.QUEUED and waits_until is not None:
        words = f"{words} · {'retry at' if is_retry else 'at'} {short_moment(waits_until, now)}"
    return StateWords(state.glyph, words, STATE_STYLES[state])


def stuck_pids(error: str | None) -> list[str]:
    """Return the numbers of the processes that could not be stopped."""
    return re.findall(_STUCK_PROCESS, error or "")


def stuck_text(error: str) -> str:
    """Return the processes that could not be stopped, without the words that the state says already."""
    return even_line(error, max_characters=300).removeprefix(f"{LiveState.STUCK.value} ")


def stuck_hint(error: str | None) -> str:
    """Return what a person can do about processes that could not be stopped."""
    pids = stuck_pids(error)
    command = f"`sudo kill -9 {' '.join(pids)}`" if pids else "`sudo kill -9` with its number"
    return f"X tries again; {command} ends what belongs to another user"


def numbers_text(numbers: Sequence[int]) -> str:
    """Return task numbers as people write them: ``#38, #39``."""
    return ", ".join(f"#{number}" for number in numbers)


def short_moment(moment: datetime, now: datetime) -> str:
    """Return the moment in short words of this machine's time zone: ``15:04``, ``Mon 07:00``."""
    from agentmon.domain.moments import moment_words  # noqa: PLC0415 - most first frames show no time

    # The offset of the moment itself: the clocks may change before it comes.
    zone = moment.astimezone().tzinfo
    return moment_words(moment, now=now, zone=zone) if zone is not None else ""
