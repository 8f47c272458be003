"""What the executions and costs of agents tell of how they fare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select

from agentmon.domain.execution_status import LIVE_STATUSES, OPEN_STATUSES, ExecutionStatus
from agentmon.domain.ids import AgentId
from agentmon.store import tables

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agentmon.store.database import Database

_OVER: Final = tuple(status for status in ExecutionStatus if status not in OPEN_STATUSES)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRuns:
    """The executions and costs of one agent."""

    running: int = 0
    last_status: ExecutionStatus | None = None
    last_ended_at: datetime | None = None
    answers: int = 0
    unpriced_answers: int = 0
    cost_nano: int = 0


class AgentHealthRepository:
    """Reads how the executions of agents went."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def runs(self, *, since_day: str) -> Mapping[AgentId, AgentRuns]:
        """Return the executions and costs of each agent that has any.

        Args:
            since_day: The first day whose costs count, ``2026-03-01``, in the zone of the days.
        """
        executions = tables.executions
        live = (
            select(executions.c.agent_id, func.count())
            .where(executions.c.status.in_(LIVE_STATUSES))
            .group_by(executions.c.agent_id)
        )
        # With max() SQLite takes the other columns from the row that has it.
        ended = (
            select(executions.c.agent_id, executions.c.status, func.max(executions.c.ended_at))
            .where(executions.c.status.in_(_OVER), executions.c.ended_at.is_not(None))
            .group_by(executions.c.agent_id)
        )
        costs = tables.daily_model_usage.c
        paid = (
            select(costs.agent_id, func.sum(costs.answers), func.sum(costs.unpriced_answers), func.sum(costs.cost_nano))
            .where(costs.day_local >= since_day)
            .group_by(costs.agent_id)
        )
        found: dict[AgentId, dict[str, object]] = {}
        async with self._database.reading() as connection:
            for agent_id, running in await connection.execute(live):
                found.setdefault(AgentId(agent_id), {})["running"] = running
            for agent_id, status, ended_at in await connection.execute(ended):
                found.setdefault(AgentId(agent_id), {}).update(
                    last_status=ExecutionStatus(status), last_ended_at=ended_at
                )
            for agent_id, answers, unpriced, cost_nano in await connection.execute(paid):
                found.setdefault(AgentId(agent_id), {}).update(
                    answers=answers, unpriced_answers=unpriced, cost_nano=cost_nano
                )
        return {agent_id: AgentRuns(**facts) for agent_id, facts in found.items()}  # type: ignore[arg-type]
