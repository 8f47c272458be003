"""Parked agents: one that fails again and again, or whose vendor's quota is used up, starts nothing for a while."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy import select, update

from agentmon.domain.agents import ParkReason, ToolType
from agentmon.domain.errors import ConflictError
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import EndReason, ExecutionStatus, WaitReason
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.task_moves import SYSTEM_ACTOR

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.domain.ids import AgentId
    from agentmon.domain.refusals import Refusal
    from agentmon.store.database import Database

_FIRST_REST: Final = timedelta(minutes=1)
_LAST_REST: Final = timedelta(hours=1)
_FAILURES: Final = frozenset({ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT})


async def count_ending(
    connection: AsyncConnection,
    agent_id: str,
    status: ExecutionStatus,
    reason: EndReason,
    *,
    park_after: int,
    at: datetime,
) -> None:
    """Count how a try of an agent ended, and park the agent when it failed too often in a row.

    After the rest one execution may try; when it fails as well the next rest is twice as long, up to an hour. What is
    no fault of the agent does not count: a stop, a lost host.
    """
    agents = tables.agents
    if status is ExecutionStatus.SUCCEEDED:
        await connection.execute(
            update(agents)
            .where(agents.c.id == agent_id, agents.c.failure_streak > 0)
            .values(failure_streak=0, parked_until=None, park_reason=None, park_note=None, updated_at=at)
        )
        return
    if status not in _FAILURES or reason in {EndReason.LOST, EndReason.TERMINATED}:
        return
    counted = await connection.execute(
        update(agents)
        .where(agents.c.id == agent_id)
        .values(failure_streak=agents.c.failure_streak + 1, updated_at=at)
        .returning(agents.c.failure_streak)
    )
    streak = counted.scalar_one()
    if park_after and streak >= park_after:
        until = at + min(_FIRST_REST * 2 ** min(streak - park_after, 20), _LAST_REST)
        note = f"its last {streak} runs failed"
        await _park(connection, agent_id, ParkReason.FAILURES, until=until, note=note, at=at)


async def park_for_quota(
    connection: AsyncConnection, agent_id: str, refusal: Refusal, *, until: datetime, at: datetime
) -> None:
    """Park an AI agent whose vendor's quota is used up: each further start would only be refused as well.

    What runs any command is not parked, since its next command may be another vendor's.
    """
    agents = tables.agents
    tool_type = (await connection.execute(select(agents.c.tool_type).where(agents.c.id == agent_id))).scalar_one()
    if tool_type is ToolType.AI_AGENT:
        await _park(connection, agent_id, ParkReason.USAGE_LIMIT, until=until, note=refusal.text, at=at)


async def _park(
    connection: AsyncConnection, agent_id: str, reason: ParkReason, *, until: datetime, note: str, at: datetime
) -> None:
    agents = tables.agents
    parked = await connection.execute(
        update(agents)
        .where(agents.c.id == agent_id)
        .values(parked_until=until, park_reason=reason, park_note=note, updated_at=at)
        .returning(agents.c.slug)
    )
    await append_task_event(
        connection,
        task_id=None,
        actor=SYSTEM_ACTOR,
        event_type=TaskEventType.AGENT_PARKED,
        payload={
            "agent_id": agent_id,
            "agent": parked.scalar_one(),
            "reason": reason.value,
            "until": until.isoformat(),
            "text": note,
        },
        at=at,
    )


class ParkingRepository:
    """Lets parked agents go on."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def release(self, agent_id: AgentId, *, actor: Actor, at: datetime) -> None:
        """Let an agent start again at once, with its failures forgotten.

        Raises:
            ConflictError: It is not parked.
        """
        agents = tables.agents
        async with self._database.writing() as connection:
            parked = await connection.execute(
                select(agents.c.slug).where(agents.c.id == agent_id, agents.c.parked_until > at)
            )
            slug = parked.scalar()
            if slug is None:
                raise ConflictError("this agent is not parked")
            await connection.execute(
                update(agents)
                .where(agents.c.id == agent_id)
                .values(failure_streak=0, parked_until=None, park_reason=None, park_note=None, updated_at=at)
            )
            executions = tables.executions
            vendors = [reason for reason in WaitReason if reason.is_vendors]
            await connection.execute(
                update(executions)
                .where(executions.c.agent_id == agent_id, tables.IS_QUEUED, executions.c.wait_reason.in_(vendors))
                .values(not_before=None, wait_reason=None, queued_at=at, error=None, updated_at=at)
            )
            await append_task_event(
                connection,
                task_id=None,
                actor=actor,
                event_type=TaskEventType.AGENT_RELEASED,
                payload={"agent_id": agent_id, "agent": slug},
                at=at,
            )
