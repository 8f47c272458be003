"""Claiming: queued executions taken by a worker, as many as every limit allows, each exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, func, select, text

from agentmon.domain.card_moves import status_at_start
from agentmon.domain.clock import CLOCK_JITTER
from agentmon.domain.events import TaskEventType
from agentmon.domain.executions import ClaimedExecution
from agentmon.domain.refusals import RESET_MAX
from agentmon.domain.sandboxes import sandbox_of
from agentmon.domain.task_status import TaskStatus
from agentmon.store import tables
from agentmon.store.agent_rows import read_agents
from agentmon.store.audit import append_task_events
from agentmon.store.budget_reach import HOLDS_BACK
from agentmon.store.card_states import holds
from agentmon.store.column_types import Moment
from agentmon.store.conversation_starts import read_origins
from agentmon.store.mapping import execution_of, task_of
from agentmon.store.parking import LAST_REST, release_after_set_back
from agentmon.store.retries import LAST_RETRY_AFTER
from agentmon.store.task_labels import select_tasks
from agentmon.store.task_moves import SYSTEM_ACTOR, ask_about_waiting, move_tasks
from agentmon.store.work_places import DEFAULT_PER_FOLDER, FOLDER, FOLDER_HOLDERS, KEPT_WORKTREE, PLACE, overlap, tree
from agentmon.store.worktrees import give_worktrees

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.ids import ExecutionId, TaskId, WorkerId
    from agentmon.domain.worktrees import WorktreePlaces
    from agentmon.store.database import Database

_CANDIDATES_PER_CLAIM: Final = 2
_MORE_CANDIDATES: Final = 64
"""Rows looked at beyond what is asked for, since neighbours in the queue often share an agent's last free place."""

# No wait of its reason ends so late, or it was written later than now: the clock was set back.
_OUTWAITED: Final = """
q.wait_reason IN ('failures', 'not_started', 'rate_limit', 'retry', 'usage_limit') AND (
    q.updated_at > :last_written OR q.not_before > CASE q.wait_reason
        WHEN 'retry' THEN :last_retry WHEN 'not_started' THEN :last_retry
        WHEN 'failures' THEN :last_rest ELSE :last_reset END)
"""


_AGENTS_IN_FOLDER: Final = f"""
SELECT coalesce(sum(h.runs), 0) FROM held h WHERE {overlap("h.tree", tree(FOLDER))}
"""
# Plain SQL with its words written out: a partial index is used only where the statement repeats its condition, and
# building the statement anew for each claim costs more than all else about it. `room` says how many more executions an
# agent or a workspace may have: worked out once, not for each row of the queue, counted only where there is a limit;
# one that failed too often gets a single place until it succeeds. The folder is as `Agent.work_folder` names it, and is
# held from the claim on: the AI agents that work in it, above it and below it, in no worktree of their own, are
# counted among what has a worker.
_ROOMS: Final = f"""
agent_room AS MATERIALIZED (
    SELECT a.id, a.tool_type, nullif(a.working_dir, '') AS working_dir,
        json_extract(a.metadata, '$.isolation') AS isolation, CASE
        WHEN a.max_concurrent = 0 AND (:park_after = 0 OR a.failure_streak < :park_after) THEN 1000000
        ELSE min(
            CASE WHEN a.max_concurrent = 0 THEN 1000000 ELSE a.max_concurrent END,
            CASE WHEN :park_after > 0 AND a.failure_streak >= :park_after THEN 1 ELSE 1000000 END
        ) - (
            SELECT count(*) FROM executions e INDEXED BY ix_executions_agent_id_status
            WHERE e.agent_id = a.id AND e.status IN ('cancelling', 'finalizing', 'running'))
        END AS room
    FROM agents a
    WHERE (a.parked_until IS NULL OR a.parked_until <= :at) AND a.is_active AND a.removed_at IS NULL
),
workspace_room AS MATERIALIZED (
    SELECT w.id, w.root_path, coalesce(json_extract(w.settings, '$.isolation'), 'auto') AS isolation,
        coalesce(json_extract(w.settings, '$.max_per_folder'), {DEFAULT_PER_FOLDER}) AS max_per_folder, CASE
        WHEN coalesce(json_extract(w.settings, '$.max_running'), 0) = 0 THEN 1000000
        ELSE json_extract(w.settings, '$.max_running') - (
            SELECT count(*) FROM agents a
            CROSS JOIN executions e INDEXED BY ix_executions_agent_id_status
                ON e.agent_id = a.id AND e.status IN ('cancelling', 'finalizing', 'running')
            CROSS JOIN tasks t ON t.id = e.task_id AND t.workspace_id = w.id)
        END AS room
    FROM workspaces w
),
held AS MATERIALIZED (
    SELECT {tree("e.working_dir")} AS tree, count(*) AS runs
    FROM agents a
    CROSS JOIN executions e INDEXED BY ix_executions_agent_id_status
        ON e.agent_id = a.id AND e.status IN ('cancelling', 'finalizing', 'running')
    WHERE a.tool_type = 'ai-agent' AND e.worktree_id IS NULL AND e.working_dir IS NOT NULL
    GROUP BY 1
)
"""
_IN_ALL: Final = """(
    SELECT count(*) FROM agents a
    CROSS JOIN executions e INDEXED BY ix_executions_agent_id_status
        ON e.agent_id = a.id AND e.status IN ('cancelling', 'finalizing', 'running'))"""
_CLAIM: Final = text(f"""
WITH {_ROOMS},
ready AS (
    SELECT q.id, q.priority, q.queued_at, q.agent_id, t.workspace_id, a.room AS agent_room, w.room AS workspace_room,
        {FOLDER} AS folder, {tree(FOLDER)} AS tree, w.max_per_folder, a.tool_type = 'ai-agent' AS is_agent,
        {PLACE} AS place, {KEPT_WORKTREE} AS kept_id
    FROM executions q INDEXED BY ix_executions_queued
    CROSS JOIN tasks t ON t.id = q.task_id
    CROSS JOIN agent_room a ON a.id = q.agent_id
    CROSS JOIN workspace_room w ON w.id = t.workspace_id
    WHERE q.status = 'queued' AND NOT q.is_held
      AND a.room > 0 AND w.room > 0
      AND (q.not_before IS NULL OR q.not_before <= :at OR ({_OUTWAITED}))
      AND t.deleted_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM settings WHERE key = 'queue.paused')
      AND NOT EXISTS (
          SELECT 1 FROM task_dependencies d
          JOIN tasks p ON p.id = d.depends_on_task_id
          WHERE d.task_id = q.task_id AND {holds("p")})
      AND NOT EXISTS (SELECT 1 FROM budgets b WHERE {HOLDS_BACK})
      AND (w.max_per_folder = 0 OR a.tool_type <> 'ai-agent' OR w.max_per_folder > ({_AGENTS_IN_FOLDER})
           OR {PLACE} <> 'folder')
    ORDER BY q.priority, q.queued_at, q.id
    LIMIT :candidates
),
ranked AS (
    SELECT id, priority, queued_at, agent_room, workspace_room, folder, place, kept_id,
        CASE WHEN NOT is_agent OR place IN ('kept', 'new') OR place = 'folder' AND max_per_folder = 0 THEN 0
            ELSE EXISTS (
                SELECT 1 FROM ready o
                WHERE o.is_agent AND o.place IN ('folder', 'either')
                  AND (o.priority, o.queued_at, o.id) < (r.priority, r.queued_at, r.id)
                  AND {overlap("o.tree", "r.tree")})
            OR place = 'either' AND EXISTS (SELECT 1 FROM held h WHERE {overlap("h.tree", "r.tree")})
        END AS is_behind_another,
        row_number() OVER (PARTITION BY agent_id ORDER BY priority, queued_at, id) AS agent_rank,
        row_number() OVER (PARTITION BY workspace_id ORDER BY priority, queued_at, id) AS workspace_rank
    FROM ready r
),
placed AS (
    SELECT *, place = 'new' OR place = 'either' AND is_behind_another AS is_new FROM ranked
)
UPDATE executions
SET status = 'running', worker_id = :worker_id, started_at = :at, heartbeat_at = :at, updated_at = :at,
    working_dir = chosen.folder, worktree_id = chosen.worktree_id, wait_reason = NULL, error = NULL
FROM (
    SELECT id, CASE WHEN is_new OR place = 'kept' THEN NULL ELSE folder END AS folder,
        CASE WHEN place = 'kept' THEN kept_id END AS worktree_id
    FROM placed
    WHERE agent_rank <= agent_room AND workspace_rank <= workspace_room
      AND CASE WHEN is_new THEN :makes_worktrees ELSE NOT is_behind_another END
    ORDER BY priority, queued_at, id
    LIMIT max(0, min(:limit, :max_running - {_IN_ALL}))) chosen
WHERE executions.id = chosen.id
RETURNING id, working_dir
""").bindparams(
    *(bindparam(name, type_=Moment()) for name in ("at", "last_written", "last_retry", "last_rest", "last_reset"))
)


# By the counts of `_CLAIM`, for one execution in the queue.
_FULL: Final = text(f"""
WITH {_ROOMS}
SELECT CASE
    WHEN a.tool_type = 'ai-agent' AND w.max_per_folder > 0 AND w.max_per_folder <= ({_AGENTS_IN_FOLDER})
        AND {PLACE} = 'folder' THEN 'folder'
    WHEN a.room <= 0 THEN 'agent'
    WHEN w.room <= 0 THEN 'workspace'
    WHEN :max_running <= {_IN_ALL} THEN 'all' END
FROM executions q
CROSS JOIN tasks t ON t.id = q.task_id
CROSS JOIN agent_room a ON a.id = q.agent_id
CROSS JOIN workspace_room w ON w.id = t.workspace_id
WHERE q.id = :execution_id
""").bindparams(bindparam("at", type_=Moment()))


class ClaimRepository:
    """Takes executions out of the queue."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(
        self,
        *,
        worker_id: WorkerId,
        max_running: int,
        park_after: int,
        limit: int,
        worktrees: WorktreePlaces | None = None,
        at: datetime,
    ) -> tuple[ClaimedExecution, ...]:
        """Take up to ``limit`` queued executions that every limit allows, in the order of the queue.

        One guarded statement holds the limits over all, per agent and per workspace, leaves out what waits for
        tasks, for a time, for a person's leave, for an agent that is parked, switched off or removed, or for a budget
        that is spent, and takes nothing while the queue is paused. Urgent tasks come first, then the oldest; a retry
        counts as new. What waits longer than its reason ever asks for, or since a time to come, is due, since the clock
        was set back, and agents that were parked in that time are let go. The cards move to In progress in the same
        transaction, which also says in which folder each works, and writes down the worktrees that are to be made.
        When fewer come than asked for, another call may find more.

        Args:
            worker_id: Who takes them.
            max_running: Most executions that may have a process, over all workers.
            park_after: An agent with this many failures in a row gets one place only; 0 means that none does.
            limit: Most executions to take.
            worktrees: Where worktrees are made; None leaves what needs a new one in the queue.
            at: The time now.
        """
        executions, tasks = tables.executions, tables.tasks
        parameters = {
            "worker_id": worker_id,
            "max_running": max_running,
            "park_after": park_after,
            "limit": limit,
            "makes_worktrees": worktrees is not None,
            "candidates": limit * _CANDIDATES_PER_CLAIM + _MORE_CANDIDATES,
            "at": at,
            "last_written": at + CLOCK_JITTER,
            "last_retry": at + LAST_RETRY_AFTER,
            "last_rest": at + LAST_REST,
            "last_reset": at + RESET_MAX + CLOCK_JITTER,
        }
        async with self._database.writing() as connection:
            await release_after_set_back(connection, at=at)
            taken = (await connection.execute(_CLAIM, parameters)).all()
            if not taken:
                return ()
            ids = [execution_id for execution_id, _ in taken]
            isolated = [execution_id for execution_id, folder in taken if folder is None]
            if isolated:
                await give_worktrees(connection, isolated, folder=FOLDER, places=worktrees, at=at)
            begun = await connection.execute(
                select(
                    executions.c.id.label("execution_id"),
                    executions.c.retry_count,
                    tasks.c.id,
                    tasks.c.status,
                    tasks.c.workspace_id,
                )
                .join(tasks, tasks.c.id == executions.c.task_id)
                .where(executions.c.id.in_(ids))
                .order_by(executions.c.priority, executions.c.queued_at, executions.c.id)
            )
            rows = begun.mappings().all()
            await append_task_events(
                connection,
                [(row["id"], {"execution_id": row["execution_id"], "retry_count": row["retry_count"]}) for row in rows],
                actor=SYSTEM_ACTOR,
                event_type=TaskEventType.EXECUTION_STARTED,
                at=at,
            )
            moving = [
                row for row in rows if status_at_start(TaskStatus(row["status"])) is not TaskStatus(row["status"])
            ]
            await move_tasks(
                connection, moving, TaskStatus.IN_PROGRESS, actor=SYSTEM_ACTOR, at=at, cause="its run started"
            )
        async with self._database.reading() as connection:
            return await read_claimed(connection, [row["execution_id"] for row in rows])

    async def ask_about_waiting(self, *, at: datetime) -> None:
        """Let every queued execution ask whose task waits for what will not be done by itself.

        Whatever changes a task sees to this; earlier releases did not.
        """
        async with self._database.writing() as connection:
            await ask_about_waiting(connection, None, at=at)

    async def find_full(
        self, execution_id: ExecutionId, *, max_running: int, park_after: int, at: datetime
    ) -> str | None:
        """Return what has no room for a queued execution: ``folder``, ``agent``, ``workspace`` or ``all``.

        None for none of them; the limits are those of ``claim``.
        """
        parameters = {"execution_id": execution_id, "max_running": max_running, "park_after": park_after, "at": at}
        async with self._database.reading() as connection:
            full: str | None = (await connection.execute(_FULL, parameters)).scalar()
        return full

    async def find_folder_holder(self, task_id: TaskId) -> int | None:
        """Return the number of the task whose run keeps that of this one out of its folder; None for none."""
        statement = text(f"SELECT min(number) FROM ({FOLDER_HOLDERS.format(ids=':task_id')})")
        async with self._database.reading() as connection:
            holder: int | None = (await connection.execute(statement, {"task_id": task_id})).scalar()
        return holder

    async def numbers_in_folder(self, folder: str, *, but: TaskId) -> tuple[int, ...]:
        """Return the tasks, but for one, whose AI agents work in a folder, above it or below it: their numbers."""
        statement = text(f"""
            SELECT DISTINCT t.number FROM agents a
            CROSS JOIN executions e INDEXED BY ix_executions_agent_id_status
                ON e.agent_id = a.id AND e.status IN ('cancelling', 'finalizing', 'running')
            CROSS JOIN tasks t ON t.id = e.task_id
            WHERE a.tool_type = 'ai-agent' AND e.worktree_id IS NULL AND e.working_dir IS NOT NULL AND t.id <> :but
              AND {overlap(tree("e.working_dir"), tree(":folder"))}
            ORDER BY t.number
        """)
        async with self._database.reading() as connection:
            return tuple((await connection.execute(statement, {"folder": folder, "but": but})).scalars())

    async def count_waiting(self) -> int:
        """Return how many executions are in the queue."""
        statement = select(func.count()).select_from(tables.executions).where(tables.IS_QUEUED)
        async with self._database.reading() as connection:
            return (await connection.execute(statement)).scalar_one()


async def read_claimed(connection: AsyncConnection, execution_ids: Sequence[str]) -> tuple[ClaimedExecution, ...]:
    """Return the executions, in the order of the ids, with all that starting them needs."""
    tasks, executions, workspaces = tables.tasks, tables.executions, tables.workspaces
    chosen = select(executions).where(executions.c.id.in_(execution_ids))
    found = {row["id"]: execution_of(row) for row in (await connection.execute(chosen)).mappings()}
    joined = (
        select_tasks()
        .add_columns(workspaces.c.root_path, workspaces.c.settings)
        .join(workspaces, workspaces.c.id == tasks.c.workspace_id)
        .where(tasks.c.id.in_({execution.task_id for execution in found.values()}))
    )
    task_rows = {row["id"]: row for row in (await connection.execute(joined)).mappings()}
    agent_ids = {execution.agent_id for execution in found.values()}
    chosen_agents = await read_agents(connection, tables.agents.c.id.in_(agent_ids), with_removed_capabilities=True)
    agents = {agent.id: agent for agent in chosen_agents}
    origins = await read_origins(connection, list(found.values()))
    claimed = []
    for execution_id in execution_ids:
        execution = found[execution_id]
        start, resumed_ref = origins[execution_id]
        row, agent = task_rows[execution.task_id], agents[execution.agent_id]
        (capability,) = [part for part in agent.capabilities if part.id == execution.capability_id]
        claimed.append(
            ClaimedExecution(
                execution=execution,
                task=task_of(row),
                agent=agent,
                capability=capability,
                workspace_root=row["root_path"],
                start=start,
                resumed_ref=resumed_ref,
                workspace_sandbox=sandbox_of(row["settings"].get("sandbox")),
            )
        )
    return tuple(claimed)
