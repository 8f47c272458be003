"""The end of executions whose processes are gone: steps that are bounded in time, then the outcome counts.

A step may be done again after a kill, so each has to bear that. What was done and what it changed of the end stands in
the row; ``finalizing.jsonl`` of the execution's folder tells of it and is not believed: a program may write there.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.errors import StoreError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import redact
from agentmon.store.settling import SpokenToError
from agentmon.threads import in_daemon_thread
from agentmon.worker.refusal_reading import with_refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ExecutionEnding, FollowUp
    from agentmon.domain.ids import ExecutionId
    from agentmon.store.settling import SettlementRepository
    from agentmon.worker.watching import Watch, Watched

_log = logging.getLogger(__name__)

_TRY_AGAIN_AFTER_S: Final = 5.0
_PROBLEM_MAX_CHARACTERS: Final = 300


class EndStep(NamedTuple):
    """Something that belongs to the end of an execution."""

    name: str
    is_due: Callable[[Watched, ExecutionEnding], bool]
    work: Callable[[Watched, ExecutionEnding], Awaitable[ExecutionEnding]]
    """Returns the ending with what it found out, and blocks in a thread of its own; called once more after a kill."""
    limit_s: float | None
    """After that the end goes on without it.

    None where the outcome depends on it: it keeps its own time, and what it could not write is done again.
    """


async def _why_it_failed(watched: Watched, ending: ExecutionEnding) -> ExecutionEnding:
    reading = partial(with_refusal, ending, watched.claimed, watched.folder)
    return await in_daemon_thread(reading, name="why it failed")


END_STEPS: Final = (
    EndStep("why it failed", lambda _, ending: ending.status is ExecutionStatus.FAILED, _why_it_failed, limit_s=10.0),
)


async def _no_follow_ups(ended: Sequence[Watched]) -> Mapping[ExecutionId, FollowUp | None]:
    return {watched.id: None for watched in ended}


class Finalizer:
    """Brings the executions of a watch whose processes are gone to their end.

    Args:
        watch: Whose executions.
        settlement: Writes what counts.
        clock: Dates what is written.
        on_settled: Called when executions are over.
        follow_ups: Returns the runs with which agents go on whose work did not pass, or that were spoken to too late.
        steps: What belongs to an end, in order.
    """

    def __init__(
        self,
        *,
        watch: Watch,
        settlement: SettlementRepository,
        clock: Clock,
        on_settled: Callable[[], None],
        follow_ups: Callable[[Sequence[Watched]], Awaitable[Mapping[ExecutionId, FollowUp | None]]] = _no_follow_ups,
        steps: Sequence[EndStep] = END_STEPS,
    ) -> None:
        self._watch = watch
        self._settlement = settlement
        self._clock = clock
        self._on_settled = on_settled
        self._follow_ups = follow_ups
        self._steps = steps
        self.park_after = 0
        """After how many failures in a row an agent is parked; 0 means never."""
        self.reviews = False
        """Whether a person looks at what AI agents changed before it is done."""
        self._in_hand: set[ExecutionId] = set()
        self._not_before: dict[ExecutionId, float] = {}

    def begin(self) -> tuple[tuple[Watched, ...], tuple[Watched, ...]]:
        """Take in hand what has ended: what can be settled at once, and what has steps to do first.

        Whoever calls this hands the first to ``settle``, and each of the second to ``finish``.
        """
        now = time.monotonic()
        ended = [
            watched
            for watched in self._watch.ended()
            if watched.id not in self._in_hand and self._not_before.get(watched.id, now) <= now
        ]
        self._in_hand |= {watched.id for watched in ended}
        plain = tuple(watched for watched in ended if not self._due(watched))
        return plain, tuple(watched for watched in ended if self._due(watched))

    async def settle(self, ended: Sequence[Watched]) -> None:
        """Let the ends of executions count that are taken in hand.

        Raises:
            StoreError: Nothing was written; they are taken in hand again.
        """
        if not ended:
            return
        try:
            follow_ups = await self._follow_ups(ended)
            over, problems = await self._settlement.settle(
                [watched.id for watched in ended],
                park_after=self.park_after,
                reviews=self.reviews,
                follow_ups=follow_ups,
                at=self._clock.now(),
            )
        finally:
            self._in_hand -= {watched.id for watched in ended}
        settled_elsewhere = [watched.id for watched in ended if watched.id not in over and watched.id not in problems]
        for execution_id in (*over, *settled_elsewhere):
            self._not_before.pop(execution_id, None)
        await self._watch.forget({**over, **dict.fromkeys(settled_elsewhere, True)})
        self._on_settled()
        for execution_id, error in problems.items():
            if isinstance(error, SpokenToError):
                continue
            self._not_before[execution_id] = time.monotonic() + _TRY_AGAIN_AFTER_S
            await self._watch.note_problem(execution_id, f"its end cannot be written: {error}")

    async def finish(self, watched: Watched) -> None:
        """Do the steps of one execution that is taken in hand, then let its end count.

        Raises:
            StoreError: The next look takes it in hand again and goes on behind the last step that was done.
        """
        try:
            for step in self._steps:
                # What one finds out may be what another is for.
                is_open = watched.ending is not None and step.name not in watched.ending.done_steps
                if is_open and step in self._due(watched):
                    await self._do(step, watched)
        except BaseException:
            self._in_hand.discard(watched.id)
            raise
        await self.settle([watched])

    def _due(self, watched: Watched) -> list[EndStep]:
        ending = watched.ending
        return [] if ending is None else [step for step in self._steps if step.is_due(watched, ending)]

    async def _do(self, step: EndStep, watched: Watched) -> None:
        before, begun_at, problem = watched.ending, time.monotonic(), ""
        assert before is not None, "only what has ended is taken in hand"
        try:
            async with asyncio.timeout(step.limit_s):
                watched.ending = await step.work(watched, before)
        except StoreError as error:
            if step.limit_s is None:
                raise
            problem = _words_of(error)
        except TimeoutError:
            problem = f"not done within {step.limit_s:g} s"
        except Exception as error:  # noqa: BLE001 - a step that fails must not keep a run from its end
            problem = _words_of(error)
        if problem:
            _log.warning("execution %s: %s: %s", watched.id, step.name, problem)
        found = watched.ending or before
        watched.ending = replace(found, done_steps=(*before.done_steps, step.name))
        await self._settlement.revise(watched.id, watched.ending, at=self._clock.now())
        await asyncio.to_thread(
            _note_step, watched, self._line(step, problem, took_ms=round(1000 * (time.monotonic() - begun_at)))
        )

    def _line(self, step: EndStep, problem: str, *, took_ms: int) -> Mapping[str, object]:
        line = {"at": self._clock.now().isoformat(), "step": step.name, "took_ms": took_ms}
        return line | ({"problem": problem} if problem else {})


def _words_of(error: Exception) -> str:
    return plain_line(redact(str(error) or type(error).__name__), max_characters=_PROBLEM_MAX_CHARACTERS)


def _note_step(watched: Watched, line: Mapping[str, object]) -> None:
    try:
        watched.folder.append_end_step(line)
    except OSError as error:
        _log.warning("execution %s: its end cannot be noted: %s", watched.id, error)
