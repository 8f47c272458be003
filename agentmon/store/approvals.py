"""Approvals: what agents ask, who decided what, each decision exactly once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import case, func, insert, literal, literal_column, select, true, update

from agentmon.domain.approvals import ApprovalScope, ApprovalStatus
from agentmon.domain.clock import CLOCK_JITTER
from agentmon.domain.conversation import AskDecision, AskKind
from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.events import ActorType, TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import CommandCause, CommandType
from agentmon.domain.ids import LOCAL_USER_ID, ApprovalId, ExecutionId, new_id
from agentmon.domain.task_status import TaskStatus
from agentmon.store import tables
from agentmon.store.approval_rules import add_rule
from agentmon.store.audit import append_task_event
from agentmon.store.budgets import read_budgets, set_budget
from agentmon.store.conversation_mapping import approval_listing_of, approval_of, questions_row
from agentmon.store.execution_commands import add_command
from agentmon.store.idempotency import find_result, note_result
from agentmon.store.mapping import execution_of
from agentmon.store.session_moves import APPROVAL_SOURCE, show_activity
from agentmon.store.stops import ask_to_stop, cancel_queued
from agentmon.store.task_moves import SYSTEM_ACTOR, ask_about_waiting, move_task, open_column_of
from agentmon.store.text_search import starts_with

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from sqlalchemy import ColumnElement, RowMapping, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.approvals import Approval, ApprovalListing, ApprovalRule
    from agentmon.domain.conversation import AskNews
    from agentmon.domain.events import Actor
    from agentmon.domain.idempotency import IdempotencyKey
    from agentmon.domain.ids import ApprovalRuleId, CommandId, WorkspaceId
    from agentmon.store.database import Database

_MAX_PENDING: Final = 1000
_MAX_PENDING_OF_ONE: Final = 100
"""Most of one execution: its flood must not keep what others ask from being seen."""
_MAX_FOUND: Final = 10
_NO_MORE: Final = literal(0).label("more")


class ApprovalRepository:
    """Reads approvals and writes decisions."""

    def __init__(self, database: Database, *, money_words: Mapping[str, str] | None = None) -> None:
        """Make it; ``money_words`` as of ``BudgetRepository``."""
        self._database = database
        self._money_words = money_words or {}

    async def pending(self, workspace_id: WorkspaceId | None) -> tuple[ApprovalListing, ...]:
        """Return what waits for a decision, of each execution the oldest 100, oldest first; None: all workspaces."""
        return await self._read(_waiting().where(_in_workspace(workspace_id)))

    async def history(
        self, workspace_id: WorkspaceId | None, *, limit: int, offset: int = 0
    ) -> tuple[ApprovalListing, ...]:
        """Return approvals of all states, newest first; None means all workspaces."""
        approvals = tables.approvals
        statement = (
            _listed()
            .where(_in_workspace(workspace_id))
            .order_by(approvals.c.asked_at.desc(), approvals.c.id.desc())
            .limit(max(0, limit))
            .offset(max(0, offset))
        )
        return await self._read(statement)

    async def get(self, approval_id: ApprovalId) -> ApprovalListing:
        """Return one approval.

        Raises:
            NotFoundError: There is none of this id.
        """
        found = await self._read(_listed().where(tables.approvals.c.id == approval_id))
        if not found:
            raise NotFoundError("there is no such approval", hint="`agentmon inbox` lists what waits")
        return found[0]

    async def find_by_prefix(self, text: str) -> tuple[ApprovalListing, ...]:
        """Return at most ten approvals whose id begins with the text, newest first; none for an empty one."""
        if not text:
            return ()
        approvals = tables.approvals
        statement = (
            _listed().where(starts_with(approvals.c.id, text.lower())).order_by(approvals.c.id.desc()).limit(_MAX_FOUND)
        )
        return await self._read(statement)

    async def of_execution(self, execution_id: ExecutionId) -> tuple[Approval, ...]:
        """Return the approvals of an execution, oldest first."""
        approvals = tables.approvals
        statement = (
            select(approvals).where(approvals.c.execution_id == execution_id).order_by(approvals.c.id).limit(10_000)
        )
        async with self._database.reading() as connection:
            return tuple(approval_of(row) for row in (await connection.execute(statement)).mappings())

    async def undecided(self, execution_ids: Collection[ExecutionId]) -> tuple[ApprovalListing, ...]:
        """Return what waits for a decision of these executions, of each the oldest 100, oldest first."""
        if not execution_ids:
            return ()
        return await self._read(_waiting().where(tables.approvals.c.execution_id.in_(sorted(execution_ids))))

    async def expire(self, asked_before: datetime, *, at: datetime) -> tuple[ApprovalListing, ...]:
        """Return what has waited since before that time, oldest first, for the caller to decide.

        Dialogs of an agent's own screen that are about no tool are left out: they wait for whoever sits there. So are
        budgets, which only more money or a person lets go on, and what was put back once. What was asked by a clock
        that has been set back since then waits from now on.
        """
        approvals = tables.approvals
        is_ahead = (tables.IS_PENDING_APPROVAL, approvals.c.asked_at > at + CLOCK_JITTER)
        async with self._database.reading() as connection:
            has_ahead = (await connection.execute(select(approvals.c.id).where(*is_ahead).limit(1))).first() is not None
        if has_ahead:
            async with self._database.writing() as connection:
                await connection.execute(update(approvals).where(*is_ahead).values(asked_at=at, updated_at=at))
        statement = (
            _listed()
            .where(
                tables.IS_PENDING_APPROVAL,
                approvals.c.asked_at < min(asked_before, at),
                approvals.c.ask_kind.not_in([AskKind.DIALOG, AskKind.BUDGET]),
                approvals.c.decision_reason.is_(None),
            )
            .order_by(approvals.c.asked_at, approvals.c.id)
            .limit(_MAX_PENDING)
        )
        return await self._read(statement)

    async def decide(
        self,
        approval_id: ApprovalId,
        *,
        status: ApprovalStatus,
        scope: ApprovalScope,
        actor: Actor,
        reason: str,
        answer: Mapping[str, object],
        rule_id: ApprovalRuleId | None,
        seen_digest: str,
        added_rule: ApprovalRule | None = None,
        key: IdempotencyKey | None = None,
        at: datetime,
    ) -> Approval:
        """Write a decision, and the command that carries it to the agent; of several decisions the first counts.

        What waits before its start has no agent yet: it may start when it is allowed, and is cancelled otherwise.

        Args:
            approval_id: What is decided.
            status: Allowed, denied, answered or expired.
            scope: How far the decision reaches.
            actor: Who decides.
            reason: Why, in the decider's words; empty when none were given.
            answer: Payload of the command; the request's id and digest are added here. Of a budget, with ``limit``
                when it is raised.
            rule_id: The rule that decides.
            seen_digest: ``input_digest`` of what the decider has seen.
            added_rule: A new rule that comes with the decision.
            key: Of the request for it; what came of the same one before is returned instead.
            at: The time now.

        Raises:
            NotFoundError: There is none of this id.
            ConflictError: It is decided already, asks for something else by now, or nobody waits for the answer.
            ConstraintError: The workspace or agent of the rule is gone.
        """
        approvals, executions = tables.approvals, tables.executions
        async with self._database.writing() as connection:
            known = await find_result(connection, key, actor=actor)
            chosen = select(approvals).where(approvals.c.id == (known or approval_id))
            if known is not None:
                return approval_of((await connection.execute(chosen)).mappings().one())
            row = (await connection.execute(chosen)).mappings().first()
            if row is None:
                raise NotFoundError("there is no such approval", hint="`agentmon inbox` lists what waits")
            execution_rows = await connection.execute(select(executions).where(executions.c.id == row["execution_id"]))
            execution = execution_rows.mappings().one()
            _require_decidable(row, execution, status, scope, seen_digest)
            command_id = None
            if row["ask_kind"] not in {AskKind.START, AskKind.BUDGET}:
                sent = {**answer, "request_id": row["request_id"], "input_digest": row["input_digest"]}
                command_id = await add_command(
                    connection,
                    row["execution_id"],
                    CommandType.ANSWER,
                    sent,
                    actor=actor,
                    cause=CommandCause.RULE if actor.type is ActorType.SYSTEM else None,
                    at=at,
                )
            await connection.execute(
                update(approvals)
                .where(approvals.c.id == approval_id)
                .values(
                    status=status,
                    scope=scope,
                    decided_by_type=actor.type,
                    decided_by_id=actor.id,
                    decision_reason=reason or None,
                    rule_id=rule_id,
                    command_id=command_id,
                    decided_at=at,
                    # The worker closes what lets a run go on, when it does.
                    closed_at=at if command_id is None and row["ask_kind"] is not AskKind.BUDGET else None,
                    updated_at=at,
                )
            )
            await _tell_decision(connection, row, execution, status, scope, rule_id, reason, actor=actor, at=at)
            if row["ask_kind"] is AskKind.START:
                await _settle_start(connection, execution, status, actor=actor, at=at)
            elif row["ask_kind"] is AskKind.BUDGET:
                await self._settle_budget(connection, row, execution, status, answer, actor=actor, at=at)
            else:
                await _approve_operation(connection, row, status, actor, at=at)
                await show_activity(connection, row["execution_id"], at=at)
            if added_rule is not None:
                await add_rule(connection, added_rule, actor=actor, at=at)
            await note_result(connection, key, approval_id, actor=actor, at=at)
            return approval_of((await connection.execute(chosen)).mappings().one())

    async def _settle_budget(
        self,
        connection: AsyncConnection,
        row: RowMapping,
        execution: RowMapping,
        status: ApprovalStatus,
        answer: Mapping[str, object],
        *,
        actor: Actor,
        at: datetime,
    ) -> None:
        """Stop the run or raise the budget, unless somebody raised it further; the next look lets the run go on."""
        if status is ApprovalStatus.DENIED:
            await ask_to_stop(connection, execution_of(execution), CommandType.STOP, actor=actor, at=at)
            return
        await show_activity(connection, row["execution_id"], at=at)
        limit = answer.get("limit")
        if not isinstance(limit, int):
            return
        budgets = await read_budgets(connection, self._money_words)
        budget = next((one for one in budgets if one.id == row["tool_input"].get("budget_id")), None)
        if budget is not None and limit > budget.limit:
            await set_budget(connection, replace(budget, limit=limit), self._money_words, actor=actor, at=at)

    async def _read(self, statement: Select[Any]) -> tuple[ApprovalListing, ...]:
        async with self._database.reading() as connection:
            return tuple(approval_listing_of(row) for row in (await connection.execute(statement)).mappings())


async def hold_for_approval(
    connection: AsyncConnection, execution_id: ExecutionId, ask: AskNews, *, at: datetime
) -> ApprovalId:
    """Let a queued execution wait for a person's leave to start, inside the caller's transaction."""
    executions = tables.executions
    held = await connection.execute(
        update(executions)
        .where(executions.c.id == execution_id)
        .values(
            is_held=True, activity_note=ask.danger_reason or ask.title, activity_source=APPROVAL_SOURCE, updated_at=at
        )
        .returning(executions.c.task_id, executions.c.session_id, executions.c.attempt)
    )
    row = held.one()
    # Requests of the agent begin with the number of the try, so that none has the name of this one.
    ref = f"start:{row.attempt}:{ask.request_id}"
    return await add_request(
        connection, ask, ref, execution_id=execution_id, session_id=row.session_id, task_id=row.task_id, at=at
    )


async def add_request(
    connection: AsyncConnection,
    ask: AskNews,
    request_ref: str,
    *,
    execution_id: str,
    session_id: str | None,
    task_id: str,
    at: datetime,
) -> ApprovalId:
    """Write a request that waits for a decision, and the line of the audit trail that tells of it."""
    approval_id = ApprovalId(new_id())
    await connection.execute(
        insert(tables.approvals).values(
            id=approval_id,
            execution_id=execution_id,
            session_id=session_id,
            request_ref=request_ref,
            **ask_columns(ask),
            status=ApprovalStatus.PENDING,
            asked_at=at,
            created_at=at,
            updated_at=at,
        )
    )
    told = {"execution_id": execution_id, "approval_id": approval_id, "ask_kind": ask.ask_kind, "title": ask.title}
    await _tell_asked(connection, task_id, told, at=at)
    return approval_id


async def put_back(connection: AsyncConnection, command_id: CommandId, *, cause: str, at: datetime) -> None:
    """Let the request of a decision that did not reach its agent wait for a person, who reads why.

    One that is settled stays so: nobody asks it any more.
    """
    approvals, executions = tables.approvals, tables.executions
    undecided = dict.fromkeys(("scope", "decided_by_type", "decided_by_id", "rule_id", "command_id", "decided_at"))
    waiting = (
        update(approvals)
        .where(approvals.c.command_id == command_id, approvals.c.closed_at.is_(None))
        .values(**undecided, status=ApprovalStatus.PENDING, decision_reason=cause, updated_at=at)
        .returning(approvals.c.id, approvals.c.execution_id, approvals.c.ask_kind, approvals.c.title)
    )
    for row in (await connection.execute(waiting)).all():
        task_id = await connection.execute(select(executions.c.task_id).where(executions.c.id == row.execution_id))
        told = {"execution_id": row.execution_id, "approval_id": row.id, "ask_kind": row.ask_kind, "title": row.title}
        await _tell_asked(connection, task_id.scalar_one(), {**told, "cause": cause}, at=at)


async def _tell_asked(connection: AsyncConnection, task_id: str, told: Mapping[str, object], *, at: datetime) -> None:
    asked = TaskEventType.APPROVAL_ASKED
    await append_task_event(connection, task_id=task_id, actor=SYSTEM_ACTOR, event_type=asked, payload=told, at=at)


def ask_columns(ask: AskNews) -> dict[str, object]:
    """Return the columns of ``approvals`` that say what is asked."""
    return {
        "request_id": ask.request_id,
        "ask_kind": ask.ask_kind,
        "tool_name": ask.tool_name,
        "type": ask.type,
        "target": ask.target,
        "title": ask.title,
        "detail": ask.detail,
        "reason": ask.reason,
        "tool_input": dict(ask.tool_input),
        "input_digest": ask.input_digest,
        "can_allow_for_session": ask.can_allow_for_session,
        "can_edit_input": ask.can_edit_input,
        "questions": questions_row(ask.questions),
        "danger_level": ask.danger_level.value,
        "danger_name": ask.danger_name,
        "danger_reason": ask.danger_reason,
    }


def _require_decidable(
    row: RowMapping, execution: RowMapping, status: ApprovalStatus, scope: ApprovalScope, seen_digest: str
) -> None:
    present = ApprovalStatus(row["status"])
    if status in {ApprovalStatus.PENDING, ApprovalStatus.WITHDRAWN}:
        raise ConflictError(f"nobody decides {status.value}")
    if present is not ApprovalStatus.PENDING:
        word = {
            ApprovalStatus.WITHDRAWN: "nobody asks this any more",
            ApprovalStatus.EXPIRED: "it was denied, since nobody decided in time",
        }.get(present, f"it was {present.value} already")
        raise ConflictError(word, hint="`agentmon inbox` lists what waits")
    if row["input_digest"] != seen_digest:
        raise ConflictError("it asks for something else by now", hint="look at it again")
    if not approval_of(row).takes(_decision_of(status, scope)):
        raise ConflictError("only the agent's own screen takes this answer", hint="attach to it: a on the card")
    standing = ExecutionStatus(execution["status"])
    if row["ask_kind"] is AskKind.START:
        if standing is not ExecutionStatus.QUEUED or not execution["is_held"]:
            raise ConflictError("it does not wait for its start any more")
    elif standing is not ExecutionStatus.RUNNING:
        raise ConflictError(f"its run is {standing.value}, so nobody waits for the answer")


def _decision_of(status: ApprovalStatus, scope: ApprovalScope) -> AskDecision | None:
    """Return what the decision is; None for an answer to a question."""
    if status is ApprovalStatus.ANSWERED:
        return None
    if status is not ApprovalStatus.ALLOWED:
        return AskDecision.DENY
    return AskDecision.ALLOW_FOR_SESSION if scope is ApprovalScope.SESSION else AskDecision.ALLOW


async def _tell_decision(
    connection: AsyncConnection,
    row: RowMapping,
    execution: RowMapping,
    status: ApprovalStatus,
    scope: ApprovalScope,
    rule_id: ApprovalRuleId | None,
    reason: str,
    *,
    actor: Actor,
    at: datetime,
) -> None:
    payload = {
        "execution_id": row["execution_id"],
        "approval_id": row["id"],
        "ask_kind": row["ask_kind"].value,
        "title": row["title"],
        "status": status.value,
        "scope": scope.value,
        "rule_id": rule_id,
        "reason": reason,
    }
    await append_task_event(
        connection,
        task_id=execution["task_id"],
        actor=actor,
        event_type=TaskEventType.APPROVAL_DECIDED,
        payload={name: content for name, content in payload.items() if content},
        at=at,
    )


async def _approve_operation(
    connection: AsyncConnection, row: RowMapping, status: ApprovalStatus, actor: Actor, *, at: datetime
) -> None:
    if row["operation_id"] is None or status is not ApprovalStatus.ALLOWED:
        return
    operations = tables.operations
    await connection.execute(
        update(operations)
        .where(operations.c.id == row["operation_id"])
        .values(approved=True, approved_by=LOCAL_USER_ID if actor.type is ActorType.USER else None, updated_at=at)
    )


async def _settle_start(
    connection: AsyncConnection, execution: RowMapping, status: ApprovalStatus, *, actor: Actor, at: datetime
) -> None:
    executions, tasks = tables.executions, tables.tasks
    if status in {ApprovalStatus.ALLOWED, ApprovalStatus.ANSWERED}:
        await connection.execute(
            update(executions)
            .where(executions.c.id == execution["id"])
            .values(is_held=False, activity_note=None, activity_source=None, updated_at=at)
        )
        await ask_about_waiting(connection, execution["task_id"], at=at)
        return
    await cancel_queued(connection, execution_of(execution), actor=actor, at=at)
    task = (await connection.execute(select(tasks).where(tasks.c.id == execution["task_id"]))).mappings().one()
    if TaskStatus(task["status"]) is TaskStatus.IN_PROGRESS:
        target = await open_column_of(connection, execution["task_id"])
        await move_task(connection, task, target, actor=actor, at=at, cause="its start was not allowed")
    await ask_about_waiting(connection, execution["task_id"], at=at)


def _listed(more: ColumnElement[int] = _NO_MORE) -> Select[Any]:
    approvals, executions, tasks = tables.approvals, tables.executions, tables.tasks
    agents, workspaces, sessions = tables.agents, tables.workspaces, tables.sessions
    return (
        select(
            approvals,
            tasks.c.id.label("task_id"),
            tasks.c.number.label("task_number"),
            tasks.c.title.label("task_title"),
            workspaces.c.id.label("workspace_id"),
            workspaces.c.name.label("workspace_name"),
            agents.c.slug.label("agent_slug"),
            func.coalesce(sessions.c.workspace, workspaces.c.root_path).label("working_dir"),
            more,
        )
        .join(executions, executions.c.id == approvals.c.execution_id)
        .join(tasks, tasks.c.id == executions.c.task_id)
        .join(workspaces, workspaces.c.id == tasks.c.workspace_id)
        .join(agents, agents.c.id == executions.c.agent_id)
        .outerjoin(sessions, sessions.c.id == approvals.c.session_id)
    )


def _waiting() -> Select[Any]:
    approvals = tables.approvals
    # The sign keeps SQLite from walking through all approvals in the order of this index.
    of_one: ColumnElement[str] = literal_column("+approvals.execution_id")
    place = func.row_number().over(partition_by=of_one, order_by=(approvals.c.asked_at, approvals.c.id))
    count = func.count().over(partition_by=of_one)
    chosen = select(approvals.c.id, place.label("place"), (count - place).label("behind"))
    own = chosen.where(tables.IS_PENDING_APPROVAL).subquery()
    more = case((own.c.place == _MAX_PENDING_OF_ONE, own.c.behind), else_=0).label("more")
    return (
        _listed(more)
        .join(own, own.c.id == approvals.c.id)
        .where(own.c.place <= _MAX_PENDING_OF_ONE)
        .order_by(approvals.c.asked_at, approvals.c.id)
    )


def _in_workspace(workspace_id: WorkspaceId | None) -> ColumnElement[bool]:
    return true() if workspace_id is None else tables.tasks.c.workspace_id == workspace_id
