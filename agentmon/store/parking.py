"""Parked agents: one that fails again and again, or whose vendor's quota is used up, starts nothing for a while."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, or_, select, text, update

from agentmon.domain.agents import ParkReason, ToolType
from agentmon.domain.clock import CLOCK_JITTER
from agentmon.domain.errors import ConflictError
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import EndReason, ExecutionStatus, WaitReason
from agentmon.store import tables
from agentmon.store.audit import append_task_event, append_task_events
from agentmon.store.column_types import Moment
from agentmon.store.task_moves import SYSTEM_ACTOR

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.events import Actor
    from agentmon.domain.ids import AgentId
    from agentmon.domain.refusals import Refusal
    from agentmon.store.database import Database

_FIRST_REST: Final = timedelta(minutes=1)
LAST_REST: Final = timedelta(hours=1)
"""The longest time that what failed too often rests."""
_COMMANDS: Final = frozenset({ToolType.CLI_TOOL, ToolType.SHELL_UTIL})
_COMMANDS_LOOKED_AT: Final = 200
_FAILURES: Final = frozenset({ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT})
_NO_FAULT: Final = frozenset({EndReason.LOST, EndReason.TERMINATED, EndReason.UNVERIFIED})
_NOT_PARKED: Final = {"parked_until": None, "parked_at": None, "park_reason": None, "park_note": None}
# Plain SQL, since each claim asks it while all others wait.
_RELEASE_AFTER_SET_BACK: Final = text("""
UPDATE agents SET parked_until = NULL, parked_at = NULL, park_reason = NULL, park_note = NULL, updated_at = :at
WHERE parked_until > :at AND parked_at > :last_written
RETURNING id, slug
""").bindparams(bindparam("at", type_=Moment()), bindparam("last_written", type_=Moment()))


async def count_ending(
    connection: AsyncConnection,
    row: RowMapping,
    status: ExecutionStatus,
    reason: EndReason,
    *,
    park_after: int,
    at: datetime,
) -> None:
    """Count how a try ended, and park what failed too often in a row.

    Of an AI agent that is the agent as a whole. Of a tool, or any command, it is the command: what else the tool is
    asked to do has nothing to do with it, and a person who runs the command once more is not held back.
    After the rest it may try again; when it fails as well the next rest is twice as long, up to an hour. What is no
    fault of the program does not count: a stop, a lost host, work that did not pass its verification.

    Args:
        connection: Of the caller's transaction.
        row: The execution as it was before its end was written.
        status: How the try ended.
        reason: Why it ended.
        park_after: How many failures in a row are too many; 0 means that none are.
        at: The time now.
    """
    agents = tables.agents
    if status is ExecutionStatus.SUCCEEDED:
        await connection.execute(
            update(agents)
            .where(agents.c.id == row["agent_id"], agents.c.failure_streak > 0)
            .values(failure_streak=0, updated_at=at)
        )
        await connection.execute(
            update(agents)
            .where(agents.c.id == row["agent_id"], agents.c.park_reason == ParkReason.FAILURES)
            .values(**_NOT_PARKED, updated_at=at)
        )
        return
    if status not in _FAILURES or reason in _NO_FAULT:
        return
    if await _tool_type(connection, row["agent_id"]) in _COMMANDS:
        tries = await _command_streak(connection, row) if park_after else 0
        if park_after and tries >= park_after:
            await _park_command(connection, row, tries, until=at + _rest(tries - park_after), at=at)
        return
    counted = await connection.execute(
        update(agents)
        .where(agents.c.id == row["agent_id"])
        .values(failure_streak=agents.c.failure_streak + 1, updated_at=at)
        .returning(agents.c.failure_streak)
    )
    streak: int = counted.scalar_one()
    if park_after and streak >= park_after:
        until, note = at + _rest(streak - park_after), _note(streak)
        await _park(connection, row["agent_id"], ParkReason.FAILURES, until=until, note=note, at=at)


def _rest(failures_too_many: int) -> timedelta:
    return min(_FIRST_REST * float(2 ** min(failures_too_many, 20)), LAST_REST)


def _note(streak: int) -> str:
    return f"its last {streak} runs failed"


async def _command_streak(connection: AsyncConnection, row: RowMapping) -> int:
    """Return how many tries of this very command failed one after the other, the one that just ended included."""
    executions = tables.executions
    newest = (
        select(
            *(executions.c[name] for name in ("id", "args", "ended_at", "status", "end_reason", "retry_count")),
        )
        .where(executions.c.agent_id == row["agent_id"])
        .order_by(executions.c.created_at.desc(), executions.c.id.desc())
        .limit(_COMMANDS_LOOKED_AT)
        .subquery()
    )
    others = (
        select(newest.c.status, newest.c.end_reason, newest.c.retry_count)
        .where(newest.c.id != row["id"], newest.c.args == row["args"], newest.c.ended_at.is_not(None))
        .order_by(newest.c.ended_at.desc())
    )
    streak: int = row["retry_count"] + 1
    for other in await connection.execute(others):
        if other.status is ExecutionStatus.SUCCEEDED:
            break
        if other.status in _FAILURES and other.end_reason not in _NO_FAULT:
            streak += other.retry_count + 1
    return streak


async def _park_command(
    connection: AsyncConnection, row: RowMapping, streak: int, *, until: datetime, at: datetime
) -> None:
    executions = tables.executions
    parked = await connection.execute(
        update(executions)
        .where(
            executions.c.agent_id == row["agent_id"],
            executions.c.args == row["args"],
            tables.IS_QUEUED,
            or_(executions.c.not_before.is_(None), executions.c.not_before < until),
        )
        .values(
            not_before=until,
            queued_at=until,
            wait_reason=WaitReason.FAILURES,
            error=_note(streak),
            updated_at=at,
        )
        .returning(executions.c.task_id, executions.c.id)
    )
    particulars = {"reason": ParkReason.FAILURES.value, "until": until.isoformat(), "text": _note(streak)}
    await append_task_events(
        connection,
        [(parked_row.task_id, {"execution_id": parked_row.id} | particulars) for parked_row in parked],
        actor=SYSTEM_ACTOR,
        event_type=TaskEventType.EXECUTION_PARKED,
        at=at,
    )


async def park_for_quota(
    connection: AsyncConnection, agent_id: str, refusal: Refusal, *, until: datetime, at: datetime
) -> None:
    """Park an AI agent whose vendor's quota is used up: each further start would only be refused as well.

    What runs any command is not parked, since its next command may be another vendor's.
    """
    if await _tool_type(connection, agent_id) is ToolType.AI_AGENT:
        await _park(connection, agent_id, ParkReason.USAGE_LIMIT, until=until, note=refusal.text, at=at)


async def _tool_type(connection: AsyncConnection, agent_id: str) -> ToolType:
    agents = tables.agents
    tool_type: ToolType = (
        await connection.execute(select(agents.c.tool_type).where(agents.c.id == agent_id))
    ).scalar_one()
    return tool_type


async def _park(
    connection: AsyncConnection, agent_id: str, reason: ParkReason, *, until: datetime, note: str, at: datetime
) -> None:
    agents = tables.agents
    parked = await connection.execute(
        update(agents)
        .where(
            agents.c.id == agent_id,
            or_(
                agents.c.parked_until.is_(None),
                agents.c.parked_until < until,
                agents.c.parked_at > at + CLOCK_JITTER,
            ),
        )
        .values(parked_until=until, parked_at=at, park_reason=reason, park_note=note, updated_at=at)
        .returning(agents.c.slug)
    )
    slug = parked.scalar()
    if slug is None:
        return
    await append_task_event(
        connection,
        task_id=None,
        actor=SYSTEM_ACTOR,
        event_type=TaskEventType.AGENT_PARKED,
        payload={
            "agent_id": agent_id,
            "agent": slug,
            "reason": reason.value,
            "until": until.isoformat(),
            "text": note,
        },
        at=at,
    )


async def release_after_set_back(connection: AsyncConnection, *, at: datetime) -> None:
    """Let the agents start again that were parked by a clock which has been set back since then.

    How long they would have had to rest nobody knows any more; at worst a vendor refuses one more run.
    """
    released = await connection.execute(_RELEASE_AFTER_SET_BACK, {"at": at, "last_written": at + CLOCK_JITTER})
    for row in released.all():
        await append_task_event(
            connection,
            task_id=None,
            actor=SYSTEM_ACTOR,
            event_type=TaskEventType.AGENT_RELEASED,
            payload={"agent_id": row.id, "agent": row.slug, "cause": "the clock was set back"},
            at=at,
        )


class ParkingRepository:
    """Lets parked agents go on."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def release(self, agent_id: AgentId, *, actor: Actor, at: datetime) -> None:
        """Let an agent start again at once, with its failures forgotten, and each of its parked executions.

        Raises:
            ConflictError: Neither it nor any of its executions is parked.
        """
        agents = tables.agents
        async with self._database.writing() as connection:
            executions = tables.executions
            held_back = (
                executions.c.agent_id == agent_id,
                tables.IS_QUEUED,
                executions.c.wait_reason.in_([reason for reason in WaitReason if reason.is_released]),
            )
            row = (await connection.execute(select(agents).where(agents.c.id == agent_id))).mappings().one()
            is_parked = row["parked_until"] is not None and row["parked_until"] > at
            if not is_parked and (await connection.execute(select(executions.c.id).where(*held_back))).first() is None:
                raise ConflictError(f"{row['slug']} is not parked")
            await connection.execute(
                update(agents).where(agents.c.id == agent_id).values(failure_streak=0, **_NOT_PARKED, updated_at=at)
            )
            await connection.execute(
                update(executions)
                .where(*held_back)
                .values(not_before=None, wait_reason=None, queued_at=at, error=None, updated_at=at)
            )
            await append_task_event(
                connection,
                task_id=None,
                actor=actor,
                event_type=TaskEventType.AGENT_RELEASED,
                payload={"agent_id": agent_id, "agent": row["slug"]},
                at=at,
            )
