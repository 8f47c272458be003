"""Billed answers that a running agent told beside its journal: they stand in until its own file tells them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from agentmon.domain.execution_status import LIVE_STATUSES
from agentmon.store import tables
from agentmon.store.conversation_names import name_conversation
from agentmon.store.told_conversation import ToldConversation
from agentmon.store.usage_rows import write_usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.conversation import UsageNews
    from agentmon.domain.ids import ExecutionId
    from agentmon.store.database import Database


class ToldUsageRepository:
    """Writes what agents tell of their answers over another way than the journal."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(
        self, execution_id: ExecutionId, conversation_ref: str, told: Sequence[tuple[int, UsageNews]]
    ) -> int:
        """Write answers of one conversation of a live execution; return how many were taken.

        The conversation of an execution that has not named its own is this one from now on. Answers of another
        conversation, such as that of a subagent, are left to the file that will tell them, and so are those of an
        execution that is over or has no session.

        Args:
            execution_id: Whose agent tells it.
            conversation_ref: The agent's own id of the conversation.
            told: Each answer with its time in UTC milliseconds; their keys are provisional.

        Raises:
            StoreError: Nothing was written.
        """
        executions, sessions = tables.executions, tables.sessions
        statement = (
            select(executions, sessions.c.session_ref.label("conversation_ref"))
            .join(sessions, sessions.c.id == executions.c.session_id)
            .where(executions.c.id == execution_id, executions.c.status.in_(LIVE_STATUSES))
        )
        async with self._database.writing() as connection:
            row = (await connection.execute(statement)).mappings().first()
            if row is None or (row["conversation_ref"] or conversation_ref) != conversation_ref or not told:
                return 0
            if row["conversation_ref"] is None:
                await name_conversation(connection, row["id"], row["session_id"], conversation_ref)
            conversation = ToldConversation(
                execution_id=row["id"],
                session_id=row["session_id"],
                agent_id=row["agent_id"],
                task_id=row["task_id"],
                attempt=row["attempt"],
            )
            await write_usage(connection, conversation, told)
        return len(told)
