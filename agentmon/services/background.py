"""How the background work fares: the worker and its loops, without the database, which may be the trouble."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.amounts import duration_text
from agentmon.domain.background_loops import LoopCondition
from agentmon.runners.host.process_table import is_halted
from agentmon.worker.loop_report import REPORT_EVERY_S, read_loop_report
from agentmon.worker.presence import read_presence

if TYPE_CHECKING:
    from datetime import datetime

    from agentmon.domain.background_loops import LoopState
    from agentmon.domain.clock import Clock
    from agentmon.paths import Paths

_FOLDERS: Final = re.compile(r"/(?:[^\s/]+/)+")
_SILENT_AFTER_S: Final = 6 * REPORT_EVERY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something in the background that does not go as it should."""

    what: str
    """A few words, such as ``the worker is halted``."""
    text: str
    """All of it in a sentence."""
    hint: str
    """The next step."""
    is_lasting: bool = True
    """Whether only somebody ends it; a worker that is silent may be about to speak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerHealth:
    """The worker of this folder, as it is and as it says it is."""

    is_running: bool
    pid: int | None = None
    is_halted: bool = False
    """Whether it was stopped by a signal, so that it does nothing until it is let go on."""
    silent_s: float | None = None
    """Seconds since it last told how its loops fare; None when it never did."""
    loops: tuple[LoopState, ...] = ()


class BackgroundService:
    """Looks at the background work; nothing is changed."""

    def __init__(self, paths: Paths, clock: Clock) -> None:
        self._paths = paths
        self._clock = clock

    async def worker(self) -> WorkerHealth:
        """Return how the worker fares; takes a fraction of a millisecond, in a thread."""
        return await asyncio.to_thread(self._look)

    async def troubles(self) -> tuple[Trouble, ...]:
        """Return what is wrong with the worker, the worst first; empty when all is well or none runs."""
        health = await self.worker()
        stuck = _trouble_of_worker(health, str(self._paths.worker_log))
        if stuck is not None:
            return (stuck,)
        now = self._clock.now()
        found = [trouble_of(loop, now, where=str(self._paths.worker_log)) for loop in health.loops]
        return tuple(trouble for trouble in found if trouble is not None)

    async def worker_trouble(self) -> Trouble | None:
        """Return why the worker that lives carries nothing out; None when it does."""
        return _trouble_of_worker(await self.worker(), str(self._paths.worker_log))

    def _look(self) -> WorkerHealth:
        presence = read_presence(self._paths.worker_lock)
        if not presence.is_running or presence.pid is None:
            return WorkerHealth(is_running=presence.is_running)
        report = read_loop_report(self._paths.worker_loops)
        if report is None or report.pid != presence.pid:
            return WorkerHealth(is_running=True, pid=presence.pid, is_halted=is_halted(presence.pid))
        return WorkerHealth(
            is_running=True,
            pid=presence.pid,
            is_halted=is_halted(presence.pid),
            silent_s=abs((self._clock.now() - report.beat_at).total_seconds()),
            loops=report.loops,
        )


def trouble_of(loop: LoopState, now: datetime, *, where: str) -> Trouble | None:
    """Return what is wrong with a loop; None when it goes well.

    Args:
        loop: The loop.
        now: The time.
        where: The file with the details.
    """
    match loop.condition(now):
        case LoopCondition.HANGING:
            since = now if loop.busy_since is None else loop.busy_since
            return Trouble(
                what=f"{loop.name} hangs",
                text=f"{loop.name} has been at one thing for {duration_text((now - since).total_seconds())}",
                hint=f"`agentmon worker --stop` ends it, and the next run starts another; its log: {where}",
            )
        case LoopCondition.FAILING:
            tries = "once" if loop.failures == 1 else f"{loop.failures} times"
            return Trouble(
                what=f"{loop.name} fails: {_FOLDERS.sub('', loop.problem)}",
                text=f"{loop.name} failed {tries}: {loop.problem}; {next_try_text(loop, now)}",
                hint=loop.hint or f"details: {where}",
            )
        case _:
            return None


def loop_text(loop: LoopState, now: datetime) -> str:
    """Return how a loop fares, in one line."""
    ok = "" if loop.ok_at is None else f"went well {duration_text((now - loop.ok_at).total_seconds())} ago"
    match loop.condition(now):
        case LoopCondition.WAITING:
            return "has had nothing to do yet"
        case LoopCondition.HANGING:
            since = now if loop.busy_since is None else loop.busy_since
            return f"at one thing for {duration_text((now - since).total_seconds())}" + (f"; {ok}" if ok else "")
        case LoopCondition.FAILING:
            told = f"failed {loop.failures}×, {next_try_text(loop, now)}" + (f"; {ok}" if ok else "")
            return f"{told}: {loop.problem}"
        case _:
            return ok


def next_try_text(loop: LoopState, now: datetime) -> str:
    """Return when a loop that fails is tried again."""
    wait_s = 0.0 if loop.next_try_at is None else (loop.next_try_at - now).total_seconds()
    return f"tried again in {duration_text(wait_s)}" if wait_s >= 1 else "being tried again"


def _trouble_of_worker(health: WorkerHealth, log: str) -> Trouble | None:
    if health.is_halted:
        return Trouble(
            what="the worker is halted",
            text=f"the worker (pid {health.pid}) is halted, so nothing starts and nothing that ends is noted",
            hint=f"`kill -CONT {health.pid}` lets it go on; after `kill -KILL {health.pid}` the next command starts "
            "another, and what runs goes on",
        )
    if health.silent_s is not None and health.silent_s > _SILENT_AFTER_S:
        return Trouble(
            what="the worker does not answer",
            text=f"the worker (pid {health.pid}) has said nothing for {duration_text(health.silent_s)}",
            hint=f"its log may say why: {log}; after `kill -KILL {health.pid}` the next command starts another, and "
            "what runs goes on",
            is_lasting=False,
        )
    return None
