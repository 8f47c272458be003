"""The rules that decide requests of agents without a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select, update

from agentmon.domain.errors import NotFoundError
from agentmon.domain.events import TaskEventType
from agentmon.store import tables
from agentmon.store.audit import append_task_event
from agentmon.store.conversation_mapping import approval_rule_of

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.approvals import ApprovalRule
    from agentmon.domain.events import Actor
    from agentmon.domain.ids import ApprovalRuleId
    from agentmon.store.database import Database


class ApprovalRuleRepository:
    """Reads and changes the rules; each change stands in the audit trail."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self) -> tuple[ApprovalRule, ...]:
        """Return all rules, also those that are switched off, oldest first."""
        statement = select(tables.approval_rules).order_by(tables.approval_rules.c.id).limit(10_000)
        async with self._database.reading() as connection:
            return tuple(approval_rule_of(row) for row in (await connection.execute(statement)).mappings())

    async def add(self, rule: ApprovalRule, *, actor: Actor, at: datetime) -> ApprovalRule:
        """Write a new rule and return it.

        Raises:
            ConstraintError: Its workspace or agent is gone.
        """
        async with self._database.writing() as connection:
            return await add_rule(connection, rule, actor=actor, at=at)

    async def remove(self, rule_id: ApprovalRuleId, *, actor: Actor, at: datetime) -> None:
        """Take a rule away; what it decided stays decided.

        Raises:
            NotFoundError: There is none of this id.
        """
        async with self._database.writing() as connection:
            row = await _read(connection, rule_id)
            await connection.execute(delete(tables.approval_rules).where(tables.approval_rules.c.id == rule_id))
            await _tell(connection, row, "removed", actor=actor, at=at)

    async def set_enabled(self, rule_id: ApprovalRuleId, is_enabled: bool, *, actor: Actor, at: datetime) -> None:
        """Switch a rule on or off; one that is so already stays without an entry in the audit trail.

        Raises:
            NotFoundError: There is none of this id.
        """
        rules = tables.approval_rules
        async with self._database.writing() as connection:
            row = await _read(connection, rule_id)
            if row["is_enabled"] == is_enabled:
                return
            await connection.execute(
                update(rules).where(rules.c.id == rule_id).values(is_enabled=is_enabled, updated_at=at)
            )
            await _tell(connection, row, "switched on" if is_enabled else "switched off", actor=actor, at=at)


async def add_rule(connection: AsyncConnection, rule: ApprovalRule, *, actor: Actor, at: datetime) -> ApprovalRule:
    """Write a new rule inside the caller's transaction and return it."""
    await connection.execute(
        insert(tables.approval_rules).values(
            id=rule.id,
            workspace_id=rule.workspace_id,
            agent_id=rule.agent_id,
            decision=rule.decision,
            tool=rule.tool,
            path=rule.path,
            command_prefix=rule.command_prefix,
            note=rule.note,
            is_enabled=rule.is_enabled,
            created_at=rule.created_at,
            updated_at=at,
        )
    )
    row = await _read(connection, rule.id)
    await _tell(connection, row, "added", actor=actor, at=at)
    return approval_rule_of(row)


async def _read(connection: AsyncConnection, rule_id: str) -> RowMapping:
    statement = select(tables.approval_rules).where(tables.approval_rules.c.id == rule_id)
    row = (await connection.execute(statement)).mappings().first()
    if row is None:
        raise NotFoundError(f"there is no rule {rule_id}", hint="`agentmon rules` lists them")
    return row


async def _tell(connection: AsyncConnection, row: RowMapping, change: str, *, actor: Actor, at: datetime) -> None:
    named = ("decision", "tool", "path", "command_prefix", "workspace_id", "agent_id")
    await append_task_event(
        connection,
        task_id=None,
        actor=actor,
        event_type=TaskEventType.APPROVAL_RULE_CHANGED,
        payload={"rule_id": row["id"], "change": change} | {name: row[name] for name in named if row[name] is not None},
        at=at,
    )
