"""Ends of executions, from what a journal says to what counts, as the worker brings them about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.domain.clock import SystemClock
from agentmon.store.ingest import IngestRepository
from agentmon.store.settling import SettlementRepository
from agentmon.worker.finalizing import Finalizer
from agentmon.worker.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from agentmon.domain.executions import ExecutionEnding, ExecutionProgress
    from agentmon.domain.ids import ExecutionId
    from agentmon.paths import Paths
    from agentmon.store.database import Database


async def record(
    database: Database, stretches: Sequence[ExecutionProgress], *, at: datetime, park_after: int = 0
) -> Mapping[ExecutionId, bool]:
    """Write stretches, and let the ends that they tell of count; each with whether it was queued again."""
    recorded = await IngestRepository(database).record(stretches, at=at)
    for problem in recorded.problems.values():
        raise problem
    return await _settle(database, recorded.ended, park_after=park_after, at=at)


async def end_without_journal(
    database: Database, execution_id: ExecutionId, ending: ExecutionEnding, *, at: datetime, park_after: int = 0
) -> Mapping[ExecutionId, bool]:
    """End an execution whose journal does not tell."""
    if await SettlementRepository(database).begin(execution_id, ending, at=at) is None:
        return {}
    return await _settle(database, [execution_id], park_after=park_after, at=at)


def watch_of(database: Database, paths: Paths, *, ingest: IngestRepository | None = None) -> Watch:
    """Return a watch as a worker has it."""
    return Watch(
        ingest=ingest or IngestRepository(database),
        settlement=SettlementRepository(database),
        paths=paths,
        clock=SystemClock(),
    )


async def finish(watch: Watch, database: Database, *, park_after: int = 0) -> None:
    """Bring what has ended to its end."""
    finalizer = Finalizer(
        watch=watch, settlement=SettlementRepository(database), clock=SystemClock(), on_settled=lambda: None
    )
    finalizer.park_after = park_after
    plain, long = finalizer.begin()
    await finalizer.settle(plain)
    for watched in long:
        await finalizer.finish(watched)


async def _settle(
    database: Database,
    execution_ids: Collection[ExecutionId],
    *,
    park_after: int,
    at: datetime,
) -> Mapping[ExecutionId, bool]:
    over, problems = await SettlementRepository(database).settle(
        execution_ids, park_after=park_after, follow_ups=dict.fromkeys(execution_ids), at=at
    )
    for problem in problems.values():
        raise problem
    return over
