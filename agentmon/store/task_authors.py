"""Who wrote what a task runs: a person alone, or an agent too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from agentmon.domain.events import ActorType, TaskEventType
from agentmon.store.card_states import ALTERNATIVES

if TYPE_CHECKING:
    from agentmon.domain.ids import TaskId
    from agentmon.store.database import Database

_BY_AGENT: Final = text(f"""
SELECT 1 FROM task_events AS e
 WHERE e.task_id IN ({ALTERNATIVES}) AND e.actor_type = '{ActorType.AGENT}'
   AND (e.event_type = '{TaskEventType.TASK_CREATED}' OR (e.event_type = '{TaskEventType.TASK_EDITED}' AND EXISTS (
        SELECT 1 FROM json_each(e.payload, '$.changed') AS c
         WHERE c.value IN ('input_context', 'assignee_agent_id', 'title'))))
 LIMIT 1
""")


class TaskAuthorRepository:
    """Reads from the audit trail who wrote a task."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def has_agent(self, task_id: TaskId) -> bool:
        """Return whether an agent made the task, or ever changed its program, its arguments or its title.

        What it wrote of an alternative counts too: one has the text of the other.
        """
        async with self._database.reading() as connection:
            return (await connection.execute(_BY_AGENT, {"task_id": task_id})).first() is not None
