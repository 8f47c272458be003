"""News of requests, and of commands that were obeyed or not, into rows."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from sqlalchemy import select, update
from sqlalchemy.dialects.sqlite import insert

from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.conversation import AskClosedNews, AskNews, AskOutcome
from agentmon.domain.events import TaskEventType
from agentmon.domain.ids import CommandId, new_id
from agentmon.store import tables
from agentmon.store.approvals import ask_columns, put_back
from agentmon.store.audit import append_task_event
from agentmon.store.operation_rows import find_operation_ids
from agentmon.store.task_moves import SYSTEM_ACTOR
from agentmon.store.told_conversation import in_pieces, moment_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.conversation import CommandNews
    from agentmon.store.told_conversation import ToldConversation

_ASKED: Final = (
    "request_id",
    "ask_kind",
    "tool_name",
    "type",
    "target",
    "title",
    "detail",
    "reason",
    "tool_input",
    "input_digest",
    "can_allow_for_session",
    "can_edit_input",
    "questions",
    "danger_level",
    "danger_name",
    "danger_reason",
)
_FORGED: Final = "its agent got the answer “{}” from somewhere else: nobody decided that here"
_STANDING: Final = ("status", "decision_reason", "decided_at", "closed_at", "updated_at")


async def write_approvals(
    connection: AsyncConnection, conversation: ToldConversation, told: Sequence[tuple[int, AskNews | AskClosedNews]]
) -> None:
    """Write requests and their ends.

    A request that comes again while it waits is the same request as it is now; one that is settled stays so. One that
    ends while it waits was settled by other means than a decision here, and gets the outcome that the agent tells.
    """
    approvals = tables.approvals
    refs = list(dict.fromkeys(conversation.ref(news.request_id) for _, news in told))
    rows: dict[str, dict[str, object]] = {}
    for piece in in_pieces(refs):
        statement = select(approvals).where(
            approvals.c.execution_id == conversation.execution_id, approvals.c.request_ref.in_(piece)
        )
        rows |= {row["request_ref"]: dict(row) for row in (await connection.execute(statement)).mappings()}
    operation_ids = await find_operation_ids(
        connection,
        conversation,
        {news.tool_ref for _, news in told if isinstance(news, AskNews) and news.tool_ref is not None},
    )
    changed, asked, withdrawn = dict[str, None](), dict[str, datetime](), dict[str, datetime]()
    undecided: dict[str, datetime] = {}
    for at_ms, news in told:
        ref, at = conversation.ref(news.request_id), moment_of(at_ms)
        row = rows.get(ref)
        if isinstance(news, AskNews) and (row is None or row["status"] is ApprovalStatus.PENDING):
            if row is None:
                asked[ref] = at
            operation_id = None if news.tool_ref is None else operation_ids.get(news.tool_ref)
            rows[ref] = (_new(conversation, ref, at) if row is None else row) | ask_columns(news)
            rows[ref] |= {"operation_id": operation_id, "updated_at": at}
            changed[ref] = None
        elif isinstance(news, AskClosedNews) and row is not None:
            was_pending = row["status"] is ApprovalStatus.PENDING
            if not _close(row, news, at):
                continue
            changed[ref] = None
            if was_pending and news.command_id is not None and news.outcome is not AskOutcome.WITHDRAWN:
                undecided[ref] = at
            if row["status"] is ApprovalStatus.WITHDRAWN:
                withdrawn[ref] = at
    if not changed:
        return
    upsert = insert(approvals)
    names = (*_ASKED, "operation_id", *_STANDING)
    await connection.execute(
        upsert.on_conflict_do_update(
            index_elements=["execution_id", "request_ref"], set_={name: upsert.excluded[name] for name in names}
        ),
        [rows[ref] for ref in changed],
    )
    lines = [(TaskEventType.APPROVAL_ASKED, at, rows[ref]) for ref, at in asked.items()]
    lines += [(TaskEventType.APPROVAL_WITHDRAWN, at, rows[ref]) for ref, at in withdrawn.items()]
    lines += [
        (TaskEventType.APPROVAL_WITHDRAWN, at, rows[ref] | {"cause": _FORGED.format(rows[ref]["status"])})
        for ref, at in undecided.items()
    ]
    await _tell(connection, conversation, lines)


async def write_command_outcomes(
    connection: AsyncConnection, execution_id: str, told: Sequence[tuple[int, CommandNews]]
) -> None:
    """Write what became of commands; one that nobody knows is passed over.

    An answer that was not taken, while the agent still asks, puts its request back for a person.
    """
    commands = tables.execution_commands
    for at_ms, news in told:
        at = moment_of(at_ms)
        outcome: dict[str, object] = {"is_queued": news.is_queued and not news.was_obeyed}
        if news.was_obeyed:
            outcome |= {"obeyed_at": at, "error": None}
        elif not news.is_queued:
            outcome |= {"error": news.error or "the agent did not obey"}
        obeyed = await connection.execute(
            update(commands)
            .where(commands.c.id == news.command_id, commands.c.execution_id == execution_id)
            .values(**outcome)
        )
        if obeyed.rowcount and not news.was_obeyed and not news.is_queued:
            cause = str(outcome["error"])
            await put_back(connection, CommandId(news.command_id), cause=cause, at=at)
            await _tell_unheard(connection, execution_id, news.command_id, cause, at=at)


async def _tell_unheard(
    connection: AsyncConnection, execution_id: str, command_id: str, cause: str, *, at: datetime
) -> None:
    """Write into the audit trail that a decision came when its request was settled otherwise."""
    approvals, executions = tables.approvals, tables.executions
    statement = (
        select(approvals.c.id, approvals.c.title, executions.c.task_id)
        .join(executions, executions.c.id == approvals.c.execution_id)
        .where(
            approvals.c.execution_id == execution_id,
            approvals.c.command_id == command_id,
            approvals.c.closed_at.is_not(None),
        )
    )
    for row in (await connection.execute(statement)).all():
        payload = {"execution_id": execution_id, "approval_id": row.id, "title": row.title, "cause": cause}
        await append_task_event(
            connection,
            task_id=row.task_id,
            actor=SYSTEM_ACTOR,
            event_type=TaskEventType.APPROVAL_WITHDRAWN,
            payload=payload,
            at=at,
        )


def _close(row: dict[str, object], news: AskClosedNews, at: datetime) -> bool:
    """Write the end of a request into its row; return False when it had ended already."""
    if row["closed_at"] is not None:
        return False
    row |= {"closed_at": at, "updated_at": at}
    if row["status"] is ApprovalStatus.PENDING:
        row |= {"status": ApprovalStatus(news.outcome.value), "decision_reason": None, "decided_at": at}
    return True


def _new(conversation: ToldConversation, ref: str, at: datetime) -> dict[str, object]:
    return {
        "id": new_id(),
        "execution_id": conversation.execution_id,
        "session_id": conversation.session_id,
        "request_ref": ref,
        "status": ApprovalStatus.PENDING,
        "scope": None,
        "decided_by_type": None,
        "decided_by_id": None,
        "decision_reason": None,
        "rule_id": None,
        "command_id": None,
        "asked_at": at,
        "decided_at": None,
        "closed_at": None,
        "created_at": at,
    }


async def _tell(
    connection: AsyncConnection,
    conversation: ToldConversation,
    lines: Sequence[tuple[TaskEventType, datetime, Mapping[str, object]]],
) -> None:
    if lines:
        await connection.execute(
            insert(tables.task_events),
            [
                {
                    "task_id": conversation.task_id,
                    "actor_type": SYSTEM_ACTOR.type,
                    "actor_id": SYSTEM_ACTOR.id,
                    "event_type": event_type.value,
                    "payload": {
                        "execution_id": conversation.execution_id,
                        "approval_id": row["id"],
                        "ask_kind": str(row["ask_kind"]),
                        "title": row["title"],
                    }
                    | ({"cause": row["cause"]} if "cause" in row else {}),
                    "created_at": at,
                }
                for event_type, at, row in lines
            ],
        )
