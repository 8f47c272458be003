"""Who wrote what a task runs: a person alone, or an agent too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from agentmon.domain.events import ActorType, TaskEventType
from agentmon.domain.sandboxes import Sandbox, sandbox_of
from agentmon.store.card_states import ALTERNATIVES

if TYPE_CHECKING:
    from agentmon.domain.events import Actor
    from agentmon.domain.ids import TaskId
    from agentmon.store.database import Database

_OF_AGENTS: Final = f"""
FROM task_events AS e LEFT JOIN executions AS x ON x.id = e.actor_id
 WHERE e.task_id IN ({ALTERNATIVES}) AND e.actor_type = '{ActorType.AGENT}'
   AND (e.event_type = '{TaskEventType.TASK_CREATED}' OR (e.event_type = '{TaskEventType.TASK_EDITED}' AND EXISTS (
        SELECT 1 FROM json_each(e.payload, '$.changed') AS c
         WHERE c.value IN ('input_context', 'assignee_agent_id', 'title', 'description', 'cron', 'cron_zone'))))"""
_BY_AGENT: Final = text(f"SELECT 1 {_OF_AGENTS} LIMIT 1")
_SANDBOXES: Final = text(f"SELECT DISTINCT x.sandbox {_OF_AGENTS}")
_MAKERS: Final = f"""
WITH RECURSIVE makers(task_id) AS (
    SELECT :task_id
    UNION
    SELECT x.task_id FROM makers AS m
      JOIN task_events AS e ON e.task_id = m.task_id AND e.event_type = '{TaskEventType.TASK_CREATED}'
                           AND e.actor_type = '{ActorType.AGENT}'
      JOIN executions AS x ON x.id = e.actor_id
)
SELECT 1 FROM makers JOIN executions AS own ON own.task_id = makers.task_id WHERE own.id = :execution_id"""
"""Whether the task is that of an execution, or an agent of it made the task, or one that made one, and so on."""
_IS_OWN: Final = text(f"{_MAKERS} LIMIT 1")
_IS_MADE: Final = text(f"{_MAKERS} AND makers.task_id <> :task_id LIMIT 1")


class TaskAuthorRepository:
    """Reads from the audit trail who wrote a task."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def has_agent(self, task_id: TaskId) -> bool:
        """Return whether an agent made the task, or ever changed its program, its arguments, its text or its times.

        What it wrote of an alternative counts too: one has the text of the other.
        """
        async with self._database.reading() as connection:
            return (await connection.execute(_BY_AGENT, {"task_id": task_id})).first() is not None

    async def sandbox(self, task_id: TaskId) -> Sandbox | None:
        """Return the strictest sandbox among the runs of agents that wrote the task; None when no agent did."""
        async with self._database.reading() as connection:
            found = (await connection.execute(_SANDBOXES, {"task_id": task_id})).scalars().all()
        return max((sandbox_of(one) or Sandbox.OFF for one in found), key=list(Sandbox).index, default=None)

    async def is_own(self, task_id: TaskId, actor: Actor, *, is_made_only: bool = False) -> bool:
        """Return whether a task is an agent's own: the one that it works on, or one that was made from that.

        Args:
            task_id: The task.
            actor: The agent, known by its execution.
            is_made_only: Whether the one that it works on does not count.
        """
        statement = _IS_MADE if is_made_only else _IS_OWN
        async with self._database.reading() as connection:
            row = (await connection.execute(statement, {"task_id": task_id, "execution_id": actor.id})).first()
        return row is not None
