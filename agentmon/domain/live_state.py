"""The state a person sees: one glyph and one word for each, the same on cards, lists, logs and the command line."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.activity import Activity
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.sightings import NO_SIGHTING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from agentmon.domain.sightings import Sighting

_STUCK_PROCESS: Final = r"(?:pid |, )(\d+) \("


class LiveState(StrEnum):
    """What an execution is doing, in the words of the screens."""

    QUEUED = "queued"
    RUNNING = "running"
    NEEDS_YOU = "needs you"
    PARKED = "parked"
    PAUSED = "paused"
    STOPPING = "stopping"
    FINALIZING = "finalizing"
    VERIFYING = "verifying"
    STUCK = "could not stop"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    BUDGET_SPENT = "budget spent"
    UNKNOWN = "unknown"

    @property
    def glyph(self) -> str:
        """One character that tells the state without colour."""
        return _GLYPHS[self]

    def with_cause(self, *, exit_code: int | None = None) -> str:
        """Return the word, with the exit code where it explains the state: ``failed (exit 1)``."""
        if self is LiveState.FAILED and exit_code:
            return f"{self.value} (exit {exit_code})"
        return self.value


_GLYPHS: Final = {
    LiveState.QUEUED: "◌",
    LiveState.RUNNING: "●",
    LiveState.NEEDS_YOU: "◆",
    LiveState.PARKED: "⏸",
    LiveState.PAUSED: "‖",
    LiveState.STOPPING: "◍",
    LiveState.FINALIZING: "◍",
    LiveState.VERIFYING: "◍",
    LiveState.STUCK: "◍",
    LiveState.DONE: "✓",
    LiveState.FAILED: "✗",
    LiveState.LOST: "✗",
    LiveState.TIMED_OUT: "✗",
    LiveState.CANCELLED: "⊘",
    LiveState.BUDGET_SPENT: "⊘",
    LiveState.UNKNOWN: "?",
}

_BY_STATUS: Final = {
    ExecutionStatus.QUEUED: LiveState.QUEUED,
    ExecutionStatus.RUNNING: LiveState.RUNNING,
    ExecutionStatus.CANCELLING: LiveState.STOPPING,
    ExecutionStatus.FINALIZING: LiveState.FINALIZING,
    ExecutionStatus.SUCCEEDED: LiveState.DONE,
    ExecutionStatus.FAILED: LiveState.FAILED,
    ExecutionStatus.CANCELLED: LiveState.CANCELLED,
    ExecutionStatus.TIMED_OUT: LiveState.TIMED_OUT,
}

_BY_ACTIVITY: Final = {Activity.WAITING: LiveState.NEEDS_YOU, Activity.UNKNOWN: LiveState.UNKNOWN}


def live_state(
    status: ExecutionStatus,
    *,
    end_reason: EndReason | None = None,
    is_parked: bool = False,
    is_paused: bool = False,
    is_stuck: bool = False,
    is_held: bool = False,
    is_verifying: bool = False,
    activity: Activity | None = None,
) -> LiveState:
    """Return the state that a person sees.

    Args:
        status: Of the execution.
        end_reason: Why it is over.
        is_parked: Whether it waits in the queue for a vendor or a parked agent.
        is_paused: Whether its processes are halted.
        is_stuck: Whether some of its processes could not be stopped.
        is_held: Whether it waits in the queue for a person's leave to start.
        is_verifying: Whether the command that its work has to pass runs.
        activity: What its agent is doing; of one in the queue, whether it waits for what will not be done by itself.
    """
    if status is ExecutionStatus.QUEUED and (is_held or activity is Activity.WAITING):
        return LiveState.NEEDS_YOU
    if status is ExecutionStatus.QUEUED and is_parked:
        return LiveState.PARKED
    if status.is_live and is_stuck:
        return LiveState.STUCK
    if status is ExecutionStatus.FINALIZING and is_verifying:
        return LiveState.VERIFYING
    if status is ExecutionStatus.RUNNING and is_paused:
        return LiveState.PAUSED
    if status is ExecutionStatus.RUNNING and activity in _BY_ACTIVITY:
        return _BY_ACTIVITY[activity]
    if status is ExecutionStatus.FAILED and end_reason is EndReason.LOST:
        return LiveState.LOST
    if status is ExecutionStatus.CANCELLED and end_reason is EndReason.BUDGET:
        return LiveState.BUDGET_SPENT
    return _BY_STATUS[status]


def seen_state(state: LiveState, last_seen_at: datetime | None) -> LiveState:
    """Return what is still known of the state of a live run whose host was last seen then; None: it is seen now.

    What needs a person needs one all the more.
    """
    return state if last_seen_at is None or state is LiveState.NEEDS_YOU else LiveState.UNKNOWN


def state_label(
    state: LiveState,
    *,
    now: datetime,
    exit_code: int | None = None,
    error: str | None = None,
    waits_for: str = "",
    waits_until: datetime | None = None,
    is_retry: bool = False,
    sighting: Sighting = NO_SIGHTING,
) -> tuple[LiveState, str]:
    """Return the state as every place shows it, and its words: ``parked until 15:04``, ``failed (exit 1)``.

    Args:
        state: The state.
        now: The present; a time that is over is not told.
        exit_code: Of the program.
        error: What is wrong; names the processes that could not be stopped.
        waits_for: Names of the tasks that a queued execution waits for: ``#38, #39 (not queued)``.
        waits_until: The time before which a queued execution does not start.
        is_retry: Whether it waits since its last try failed.
        sighting: What is known of it while no worker is at work.
    """
    state = seen_state(state, sighting.last_seen_at)
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
        words = f"{words} · after {waits_for}"
    elif state is LiveState.QUEUED and waits_until is not None:
        words = f"{words} · {'retry at' if is_retry else 'at'} {short_moment(waits_until, now)}"
    if sighting.last_seen_at is not None:
        words = f"{words} · last seen {elapsed_text(sighting.last_seen_at, None, now)} ago"
    if sighting.undelivered:
        words = f"{words} · undelivered: {', '.join(sighting.undelivered)}"
    return state, words


def end_label(payload: Mapping[str, object]) -> str:
    """Return how an execution ended, from the entry of the audit trail about that.

    Raises:
        ValueError: The status is none of this release.
    """
    reason, exit_code = payload.get("reason"), payload.get("exit_code")
    state = live_state(
        ExecutionStatus(str(payload.get("status"))),
        end_reason=EndReason(str(reason)) if reason in set(EndReason) else None,
    )
    return state.with_cause(exit_code=exit_code if isinstance(exit_code, int) else None)


def elapsed_seconds(started_at: datetime | None, ended_at: datetime | None, now: datetime) -> float | None:
    """Return for how long an execution ran or has been running; None when it never started."""
    return None if started_at is None else max(0.0, ((ended_at or now) - started_at).total_seconds())


def elapsed_text(started_at: datetime | None, ended_at: datetime | None, now: datetime) -> str:
    """Return for how long an execution ran or has been running: ``1m 04s``; empty when it never started."""
    from agentmon.domain.amounts import duration_text  # noqa: PLC0415 - hooks ask for states without times

    seconds = elapsed_seconds(started_at, ended_at, now)
    return "" if seconds is None else duration_text(seconds)


def stuck_pids(error: str | None) -> list[str]:
    """Return the numbers of the processes that could not be stopped."""
    return re.findall(_STUCK_PROCESS, error or "")


def numbers_text(numbers: Sequence[int]) -> str:
    """Return task numbers as people write them: ``#38, #39``."""
    return ", ".join(f"#{number}" for number in numbers)


def short_moment(moment: datetime, now: datetime) -> str:
    """Return the moment in short words of this machine's time zone: ``15:04``, ``Mon 07:00``."""
    from agentmon.domain.moments import moment_words  # noqa: PLC0415 - most first frames show no time

    # The offset of the moment itself: the clocks may change before it comes.
    zone = moment.astimezone().tzinfo
    return moment_words(moment, now=now, zone=zone) if zone is not None else ""
