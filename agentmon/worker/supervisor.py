"""Keeps the loops of a process going: one that fails rests, tries again and is told of, and ends no other.

For the worker and the app alike. What a loop did, and how it fares, is for ``states``; whoever made the supervisor is
told of each failure, with the error.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.background_loops import LONGEST_PROBLEM, LoopState
from agentmon.domain.errors import AgentmonError
from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agentmon.domain.clock import Clock

_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0
_MOST_DOUBLINGS: Final = 16
_HANGS_AFTER_S: Final = 60.0


class Turn(NamedTuple):
    """What one loop does again and again."""

    name: str
    work: Callable[[], Awaitable[None]]
    """One turn; when it takes longer than ``hangs_after_s`` the loop hangs."""
    hangs_after_s: float = _HANGS_AFTER_S
    longest_pause_s: float = _LONGEST_PAUSE_S


class Supervisor:
    """Belongs to one event loop.

    Args:
        clock: Dates what is told.
        on_failure: Called with the loop's name and the error after each turn that failed; an ``AgentmonError`` is one
            that was foreseen.
        on_change: Called whenever a loop failed, and when it went well for the first time or again.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        on_failure: Callable[[str, Exception], None],
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._on_failure = on_failure
        self._on_change = on_change
        self._states: dict[str, LoopState] = {}
        self._next_tries: dict[str, float] = {}

    @property
    def states(self) -> tuple[LoopState, ...]:
        """How each loop fares, in the order in which they began."""
        return tuple(self._states.values())

    async def keep(self, turn: Turn, *, rest: Callable[[], Awaitable[None]]) -> None:
        """Do turns for ever, with a rest before each; ends by being cancelled alone.

        Args:
            turn: What to do.
            rest: Waits until the next turn is due; how long that takes says nothing about the loop.
        """
        self._state_of(turn)
        while True:
            await asyncio.sleep(self.pause_s(turn.name))
            if await self._without_error(turn, rest):
                await self.attempt(turn)

    def pause_s(self, name: str) -> float:
        """Return how long the loop still rests after its last failure; 0 when its next turn may begin."""
        return max(0.0, self._next_tries.get(name, 0.0) - time.monotonic())

    def is_busy(self, name: str) -> bool:
        """Return whether a turn of the loop goes on now."""
        state = self._states.get(name)
        return state is not None and state.busy_since is not None

    async def attempt(self, turn: Turn) -> bool:
        """Do one turn; return whether it ended well. Its error is told and goes no further; a cancellation does."""
        self._states[turn.name] = replace(self._state_of(turn), busy_since=self._clock.now())
        try:
            has_ended_well = await self._without_error(turn, turn.work)
        finally:
            self._states[turn.name] = replace(self._states[turn.name], busy_since=None)
        if has_ended_well:
            self._note_success(turn)
        return has_ended_well

    async def _without_error(self, turn: Turn, work: Callable[[], Awaitable[None]]) -> bool:
        try:
            await work()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled this loop: what it waited for was, which must not end it without a word.
            self._note_failure(turn, RuntimeError("what it waited for was cancelled"))
            return False
        except Exception as error:  # noqa: BLE001 - what this class is for: whatever it is, the other loops go on
            self._note_failure(turn, error)
            return False
        return True

    def _state_of(self, turn: Turn) -> LoopState:
        return self._states.setdefault(turn.name, LoopState(name=turn.name, hangs_after_s=turn.hangs_after_s))

    def _note_success(self, turn: Turn) -> None:
        before = self._states[turn.name]
        self._next_tries.pop(turn.name, None)
        self._states[turn.name] = LoopState(
            name=turn.name, ok_at=self._clock.now(), failed_at=before.failed_at, hangs_after_s=turn.hangs_after_s
        )
        if before.failures or before.ok_at is None:
            self._on_change()

    def _note_failure(self, turn: Turn, error: Exception) -> None:
        before = self._states[turn.name]
        pause_s = min(_FIRST_PAUSE_S * 2 ** min(before.failures, _MOST_DOUBLINGS), turn.longest_pause_s)
        self._next_tries[turn.name] = time.monotonic() + pause_s
        now = self._clock.now()
        self._states[turn.name] = replace(
            before,
            failures=before.failures + 1,
            failed_at=now,
            problem=_problem_of(error),
            hint=error.hint if isinstance(error, AgentmonError) else "",
            next_try_at=now + timedelta(seconds=pause_s),
        )
        self._on_failure(turn.name, error)
        self._on_change()


def _problem_of(error: Exception) -> str:
    words = str(error) if isinstance(error, AgentmonError) else f"{type(error).__name__}: {error}".removesuffix(": ")
    return plain_line(redact(words), max_characters=LONGEST_PROBLEM)
