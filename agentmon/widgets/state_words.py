"""How the state of an execution is told, with what it waits for: the same words on cards, in tables and on pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.live_state import LiveState, stuck_pids
from agentmon.widgets.cells import even_line

if TYPE_CHECKING:
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
    LiveState.VERIFYING: "muted",
    LiveState.STUCK: "bad",
    LiveState.DONE: "good",
    LiveState.FAILED: "bad",
    LiveState.LOST: "bad",
    LiveState.TIMED_OUT: "bad",
    LiveState.CANCELLED: "muted",
    LiveState.BUDGET_SPENT: "warning",
    LiveState.UNKNOWN: "warning",
}
WAITING_STATES: Final = {LiveState.QUEUED, LiveState.PARKED}
"""States of what has no process yet."""


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
        """The words for little room, where the glyph has to tell the state: ``at 15:04``, ``last seen 40s ago``."""
        return self.words.partition(" · ")[2] or self.words.removeprefix("parked ")


class Wait(NamedTuple):
    """What a queued execution waits for beside what its own row says."""

    waits_for: str = ""
    """Names of the tasks that have to be done first: ``#38, #39 (not queued)``."""
    parked_until: datetime | None = None
    """Nothing of its agent starts before."""
    park_note: str | None = None


NO_WAIT: Final = Wait()


def execution_words(execution: Execution, now: datetime, wait: Wait = NO_WAIT) -> StateWords:
    """Return how the state of an execution is told."""
    return styled_state(execution.state_label(now, waits_for=wait.waits_for, parked_until=wait.parked_until))


def reason_text(execution: Execution, wait: Wait = NO_WAIT) -> str:
    """Return why an execution failed or waits, in one line; empty when there is nothing to say."""
    if execution.live_state in WAITING_STATES:
        return even_line(wait.park_note or execution.error or "", max_characters=300)
    return cause_text(execution.error, execution.exit_code) if execution.error else ""


def cause_text(error: str, exit_code: int | None) -> str:
    """Return the error in one line, without the exit code, which stands beside it in the words of the state."""
    return even_line(error, max_characters=300).removeprefix(f"exit {exit_code}: ")


def styled_state(label: tuple[LiveState, str]) -> StateWords:
    """Return a state and its words with the style in which they are shown."""
    state, words = label
    return StateWords(state.glyph, words, STATE_STYLES[state])


def stuck_text(error: str) -> str:
    """Return the processes that could not be stopped, without the words that the state says already."""
    return even_line(error, max_characters=300).removeprefix(f"{LiveState.STUCK.value} ")


def stuck_hint(error: str | None) -> str:
    """Return what a person can do about processes that could not be stopped."""
    pids = stuck_pids(error)
    command = f"`sudo kill -9 {' '.join(pids)}`" if pids else "`sudo kill -9` with its number"
    return f"X tries again; {command} ends what belongs to another user"
