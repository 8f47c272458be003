"""States of cards as conditions of SQL, for the filter and the order of the board.

It must not import SQLAlchemy: the board is read with the standard library's sqlite3 too.
"""

from __future__ import annotations

from typing import Final

ON_BOARD: Final = "t.deleted_at IS NULL AND t.archived_at IS NULL"
"""A task ``t`` is on the board, in the words of the partial indexes."""
ARCHIVED: Final = "t.deleted_at IS NULL AND t.archived_at IS NOT NULL"
OPEN: Final = "o.status IN ('cancelling', 'finalizing', 'queued', 'running')"
"""An execution ``o`` is open, in the words of the partial index."""
NEEDS_YOU: Final = """((o.status = 'running' AND o.activity = 'waiting' AND o.paused_at IS NULL AND o.error IS NULL)
            OR (o.status = 'queued' AND (o.is_held OR o.activity = 'waiting')))"""
"""An open execution ``o`` needs a person, as ``domain.live_state.live_state`` says it."""
FAILED_TASKS: Final = """SELECT f.task_id FROM executions f WHERE f.status IN ('failed', 'timed_out') AND NOT EXISTS (
            SELECT 1 FROM executions n WHERE n.task_id = f.task_id AND n.created_at >= f.created_at
            AND (n.created_at > f.created_at OR n.id > f.id))"""
"""The tasks whose newest execution failed or timed out; the partial index over those gives them."""
RANKS: Final = f"""ranks(task_id, place) AS MATERIALIZED (
    SELECT task_id, min(place) FROM (
        SELECT o.task_id, CASE WHEN {NEEDS_YOU} THEN 0 WHEN o.status <> 'queued' THEN 1 ELSE 2 END AS place
        FROM executions o WHERE {OPEN}
        UNION ALL SELECT failed.task_id, 3 FROM ({FAILED_TASKS}) failed)
    GROUP BY task_id)"""
"""The places of the tasks that come before the rest where cards are sorted by state."""
NO_RANK: Final = 4
"""The place of the rest."""

OVERLAP_SHOWN: Final = "(v.path_count > 0 OR v.kind = 'checkout')"
"""An overlap ``v`` is there now: one that is over keeps its row, without paths, while both runs live."""


ALTERNATIVES: Final = """SELECT g.id FROM tasks g WHERE g.id = :task_id
            OR g.alternatives_id = (SELECT own.alternatives_id FROM tasks own WHERE own.id = :task_id)"""
"""The task ``:task_id`` and its alternatives."""


def holds(task: str) -> str:
    """Return the condition that a task keeps what waits for it from starting, for the name of its row in a statement.

    Only one that is done and has no open execution does not, or that has such an alternative.
    """
    return f"""(({task}.status <> 'done' OR {_is_open(task)}) AND NOT EXISTS (SELECT 1 FROM tasks taken
            WHERE taken.alternatives_id = {task}.alternatives_id AND taken.status = 'done'
            AND NOT {_is_open("taken")}))"""


def _is_open(task: str) -> str:
    return f"""EXISTS (SELECT 1 FROM executions r
            WHERE r.task_id = {task}.id AND r.status IN ('cancelling', 'finalizing', 'queued', 'running'))"""


def awaited(task: str) -> str:
    """Return the ``domain.task_status.AwaitedState`` of a task, likewise; NULL when what waits for it may start."""
    return f"""CASE WHEN NOT {holds(task)} THEN NULL
            WHEN EXISTS (SELECT 1 FROM tasks other WHERE other.alternatives_id = {task}.alternatives_id
                AND other.id <> {task}.id AND other.status NOT IN ('blocked', 'cancelled')
                AND other.deleted_at IS NULL) THEN ''
            WHEN {task}.deleted_at IS NOT NULL THEN 'deleted'
            WHEN {task}.status = 'cancelled' THEN 'cancelled'
            WHEN {task}.archived_at IS NOT NULL THEN 'archived'
            ELSE coalesce((
                SELECT CASE WHEN l.status = 'queued' THEN ''
                    WHEN l.status IN ('cancelling', 'finalizing', 'running')
                        THEN CASE WHEN {task}.status = 'done' THEN 'still running' ELSE '' END
                    WHEN l.status = 'timed_out' THEN 'timed out'
                    WHEN l.status = 'cancelled' AND l.end_reason = 'budget' THEN 'budget spent'
                    WHEN l.status = 'cancelled' THEN 'stopped'
                    WHEN l.status = 'failed' AND l.end_reason = 'lost' THEN 'lost'
                    WHEN l.status = 'failed' THEN 'failed' END
                FROM executions l WHERE l.task_id = {task}.id
                ORDER BY l.created_at DESC, l.id DESC LIMIT 1),
                CASE WHEN {task}.status = 'review' THEN 'in review'
                    WHEN {task}.assignee_agent_id IS NULL THEN '' ELSE 'not queued' END) END"""
