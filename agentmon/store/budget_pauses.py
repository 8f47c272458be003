"""Runs that a spent budget holds up: each waits with one request, and goes on when a person or the budget lets it."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import bindparam, select, text, update

from agentmon.domain.activity import Activity
from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.budget_requests import CONTINUE, budget_ask, is_granted
from agentmon.domain.clock import CLOCK_JITTER
from agentmon.domain.events import TaskEventType
from agentmon.domain.executions import CommandCause, CommandType
from agentmon.domain.ids import new_id
from agentmon.domain.sessions import SessionStatus
from agentmon.store import tables
from agentmon.store.approvals import add_request, ask_columns
from agentmon.store.audit import append_task_event
from agentmon.store.budget_reach import COVERS
from agentmon.store.column_types import Json, Moment
from agentmon.store.execution_commands import add_command
from agentmon.store.mapping import execution_of
from agentmon.store.session_moves import APPROVAL_SOURCE, find_oldest_request, move_session, show_activity
from agentmon.store.stops import ask_to_stop
from agentmon.store.task_moves import SYSTEM_ACTOR

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.domain.budgets import BudgetState
    from agentmon.domain.executions import Execution

INTERRUPT_GRACE: Final = timedelta(seconds=10)
"""How long an agent may take to obey an interrupt, before its processes are asked to end."""
RUNNING_OF_AGENTS: Final = """
agents a CROSS JOIN executions q INDEXED BY ix_executions_agent_id_status ON q.agent_id = a.id AND q.status
"""
"""Through agents, of which there are few: what is open may be a queue of thousands."""
# What has a bill of its own is an agent, whatever started it.
_COVERED: Final = text(f"""
SELECT q.id, b.id AS budget_id
FROM {RUNNING_OF_AGENTS} = 'running'
JOIN tasks t ON t.id = q.task_id
JOIN budgets b ON b.action = 'stop' AND b.spent_until > :at AND (
    {COVERS}
    OR (b.scope = 'all' OR b.scope = 'workspace' AND b.scope_id = t.workspace_id)
        AND EXISTS (SELECT 1 FROM llm_interactions u WHERE u.execution_id = q.id AND u.success))
ORDER BY q.id, b.id
""").bindparams(bindparam("at", type_=Moment()))
_REQUESTS: Final = text(f"""
SELECT p.id, p.execution_id, p.status, p.title, p.tool_input, p.closed_at
FROM {RUNNING_OF_AGENTS} = 'running'
JOIN approvals p ON p.execution_id = q.id AND p.ask_kind = 'budget'
ORDER BY p.id
""").columns(tool_input=Json())
# What became of the last interrupt since the request, how many there were, how many answers were billed since, what it
# asks itself, and when it was let go on after a pause, in which nobody obeys.
_OBEYED: Final = text("""
SELECT c.created_at, c.obeyed_at, c.error, (
    SELECT max(coalesce(r.delivered_at, r.created_at)) FROM execution_commands r
    WHERE r.execution_id = q.id AND r.type = 'resume') AS resumed_at, (
    SELECT count(*) FROM execution_commands i
    WHERE i.execution_id = q.id AND i.attempt = q.attempt AND i.cause = 'budget' AND i.type = 'interrupt'
        AND i.created_at >= p.asked_at) AS interrupts, (
    SELECT count(*) FROM approvals o
    WHERE o.execution_id = q.id AND o.status = 'pending' AND o.ask_kind <> 'budget') AS asks, (
    SELECT count(*) FROM llm_interactions u
    WHERE u.execution_id = q.id AND u.success
        AND u.at_ms > CAST(strftime('%s', coalesce(c.created_at, p.asked_at)) AS INTEGER) * 1000 + 999) AS answers
FROM approvals p JOIN executions q ON q.id = p.execution_id
LEFT JOIN execution_commands c ON c.id = (
    SELECT max(i.id) FROM execution_commands i
    WHERE i.execution_id = q.id AND i.attempt = q.attempt AND i.cause = 'budget' AND i.type = 'interrupt'
        AND i.created_at >= p.asked_at)
WHERE p.id = :request_id AND q.paused_at IS NULL
""").columns(created_at=Moment(), resumed_at=Moment())
_ANSWERS_OF_AN_INTERRUPT: Final = 1
"""The answer that is being written is billed, although it is cut off."""
_MOST_INTERRUPTS: Final = 2
"""What spends on after so many is asked to end, however it obeyed them."""


class PauseStep(NamedTuple):
    """What is to be done about one run."""

    execution_id: str
    request: RowMapping | None
    """The one that is open: it waits, or was answered and nobody has seen to that yet."""
    holder: BudgetState | None
    """A spent budget under which the run may not go on; None when it may."""
    again: CommandType | None = None
    """What is asked of a run that waits and spends all the same."""


async def find_steps(
    connection: AsyncConnection, states: Mapping[str, BudgetState], *, began_at: datetime, at: datetime
) -> list[PauseStep]:
    """Return the runs that have to wait, go on or be asked once more, by their ids.

    Args:
        connection: It is only read.
        states: The budgets by their ids, with what is spent now.
        began_at: Since when somebody looks; no interrupt before that can be late.
        at: The time now.
    """
    covered: defaultdict[str, list[BudgetState]] = defaultdict(list)
    for row in (await connection.execute(_COVERED, {"at": at})).all():
        if row.budget_id in states:
            covered[row.id].append(states[row.budget_id])
    asked: defaultdict[str, list[RowMapping]] = defaultdict(list)
    for one in (await connection.execute(_REQUESTS)).mappings():
        asked[one["execution_id"]].append(one)
    steps = []
    for execution_id in sorted({*covered, *asked}):
        requests = asked[execution_id]
        request = next((one for one in requests if one["closed_at"] is None), None)
        granted = [one["tool_input"] for one in requests if one["status"] == ApprovalStatus.ALLOWED]
        just_granted = None if request is None or request["status"] != ApprovalStatus.ALLOWED else request["tool_input"]
        holders = [
            state
            for state in covered[execution_id]
            if not is_granted(state, granted) and (just_granted is None or just_granted["budget_id"] != state.budget.id)
        ]
        asked_of = next((state for state in holders if request is not None and _is_about(request, state)), None)
        if request is not None and asked_of is not None:
            again = await _find_again(connection, request["id"], began_at=began_at, at=at)
            if again is not None or request["tool_input"].get("spent") != asked_of.use.spent:
                steps.append(PauseStep(execution_id, request, asked_of, again))
        elif request is not None or holders:
            steps.append(PauseStep(execution_id, request, holders[0] if holders else None))
    return steps


async def take_step(
    connection: AsyncConnection, step: PauseStep, states: Mapping[str, BudgetState], *, at: datetime
) -> None:
    """Do what is to be done about one run, inside the caller's transaction."""
    execution = await _read(connection, step.execution_id)
    request, holder = step.request, step.holder
    if request is not None and holder is not None and _is_about(request, holder):
        is_again = step.again is CommandType.INTERRUPT
        await _tell_spent(connection, execution, request, holder, is_interrupted=is_again, at=at)
    if request is not None and step.again is CommandType.INTERRUPT:
        await _interrupt(connection, execution, str(request["title"]), at=at)
    elif request is not None and step.again is CommandType.STOP:
        budget = states[request["tool_input"]["budget_id"]].budget
        await _stop(connection, execution, budget.spent_words, at=at)
    elif holder is not None and not execution.mode.is_conversation:
        await _stop(connection, execution, holder.budget.spent_words, at=at)
    elif request is None and holder is not None:
        await _pause(connection, execution, holder, at=at)
    elif request is not None and (holder is None or not _is_about(request, holder)):
        await _close(connection, execution, request, states, at=at)
        if holder is not None:
            before = request["tool_input"]
            again = {"was_interrupted": before.get("was_interrupted"), "waited": before.get("waited")}
            await _ask(connection, execution, holder, again, at=at)
        else:
            await _go_on(connection, execution, request, at=at)


def _is_about(request: RowMapping, state: BudgetState) -> bool:
    """Return whether the request waits for a decision on this budget as it is now."""
    asked = request["tool_input"]
    return request["status"] == ApprovalStatus.PENDING and (
        asked.get("budget_id"),
        asked.get("limit"),
        asked.get("first_day"),
    ) == (state.budget.id, state.budget.limit, state.first_day)


async def _find_again(
    connection: AsyncConnection, request_id: str, *, began_at: datetime, at: datetime
) -> CommandType | None:
    """Return what is asked of a run that waits and goes on all the same; None for one that waits."""
    last = (await connection.execute(_OBEYED, {"request_id": request_id})).first()
    if last is None:
        return None
    is_open = last.created_at is not None and last.obeyed_at is None and last.error is None
    since = max(last.created_at or began_at, last.resumed_at or began_at, began_at)
    if is_open and not at - INTERRUPT_GRACE < since <= at + CLOCK_JITTER:
        return CommandType.STOP
    if last.created_at is None and last.asks:
        # It was taken for idle, and an answer to that would let it go on.
        return CommandType.INTERRUPT
    if not is_open and last.answers > _ANSWERS_OF_AN_INTERRUPT:
        is_heard = last.error is None and last.interrupts < _MOST_INTERRUPTS
        return CommandType.INTERRUPT if is_heard else CommandType.STOP
    return None


async def _pause(connection: AsyncConnection, execution: Execution, holder: BudgetState, *, at: datetime) -> None:
    is_idle = execution.activity is Activity.WAITING and await find_oldest_request(connection, execution.id) is None
    waited = {"note": execution.activity_note, "source": execution.activity_source} if is_idle else None
    title = await _ask(connection, execution, holder, {"was_interrupted": not is_idle, "waited": waited}, at=at)
    if not is_idle:
        await _interrupt(connection, execution, title, at=at)


async def _interrupt(connection: AsyncConnection, execution: Execution, cause: str, *, at: datetime) -> None:
    await _command(connection, execution, CommandType.INTERRUPT, {}, cause, at=at)


async def _ask(
    connection: AsyncConnection,
    execution: Execution,
    holder: BudgetState,
    circumstances: Mapping[str, object],
    *,
    at: datetime,
) -> str:
    """Write the request, and let the run be one that waits; return its title."""
    ask = budget_ask(holder, **circumstances)
    # The agent's own requests begin with the number of the try.
    await add_request(
        connection,
        ask,
        f"budget:{new_id()}",
        execution_id=execution.id,
        session_id=execution.session_id,
        task_id=execution.task_id,
        at=at,
    )
    await _show(connection, execution, ask.title, APPROVAL_SOURCE, at=at)
    return ask.title


async def _tell_spent(
    connection: AsyncConnection,
    execution: Execution,
    request: RowMapping,
    holder: BudgetState,
    *,
    is_interrupted: bool,
    at: datetime,
) -> None:
    """Let a request that waits say what is spent by now: an answer that was cut off is billed later."""
    approvals = tables.approvals
    before = request["tool_input"]
    was_interrupted = is_interrupted or before.get("was_interrupted")
    ask = budget_ask(holder, was_interrupted=was_interrupted, waited=before.get("waited"))
    await connection.execute(
        update(approvals).where(approvals.c.id == request["id"]).values(**ask_columns(ask), updated_at=at)
    )
    await _show(connection, execution, ask.title, APPROVAL_SOURCE, at=at)


async def _close(
    connection: AsyncConnection,
    execution: Execution,
    request: RowMapping,
    states: Mapping[str, BudgetState],
    *,
    at: datetime,
) -> None:
    """Settle a request that was answered, or that nobody has to answer any more."""
    approvals = tables.approvals
    values: dict[str, object] = {"closed_at": at, "updated_at": at}
    state = states.get(request["tool_input"]["budget_id"])
    if request["status"] == ApprovalStatus.PENDING:
        values |= {"status": ApprovalStatus.WITHDRAWN, "decided_at": at}
        told = {"execution_id": execution.id, "approval_id": request["id"], "title": request["title"]}
        told["cause"] = "the budget was changed, or its period is over"
        await _tell(connection, execution, TaskEventType.APPROVAL_WITHDRAWN, told, at=at)
    elif request["status"] == ApprovalStatus.ALLOWED and state is not None:
        granted = {"granted": state.use.spent + state.budget.limit, "first_day": state.first_day}
        values["tool_input"] = dict(request["tool_input"]) | granted
    await connection.execute(update(approvals).where(approvals.c.id == request["id"]).values(**values))


async def _go_on(connection: AsyncConnection, execution: Execution, request: RowMapping, *, at: datetime) -> None:
    before = request["tool_input"]
    waited = before.get("waited")
    if before.get("was_interrupted"):
        cause = "its budget lets it go on"
        await _command(connection, execution, CommandType.MESSAGE, {"text": CONTINUE}, cause, at=at)
        await show_activity(connection, execution.id, at=at)
    elif isinstance(waited, dict):
        await _show(connection, execution, waited.get("note"), waited.get("source"), at=at)


async def _show(
    connection: AsyncConnection, execution: Execution, note: str | None, source: str | None, *, at: datetime
) -> None:
    executions = tables.executions
    await connection.execute(
        update(executions)
        .where(executions.c.id == execution.id)
        .values(activity=Activity.WAITING, activity_note=note, activity_source=source, activity_at=at, updated_at=at)
    )
    if execution.session_id is not None and execution.paused_at is None:
        waiting = SessionStatus.WAITING_FOR_INPUT
        await move_session(connection, execution.session_id, waiting, worker_id=execution.worker_id, at=at)


async def _command(
    connection: AsyncConnection,
    execution: Execution,
    command_type: CommandType,
    payload: Mapping[str, object],
    cause: str,
    *,
    at: datetime,
) -> None:
    by = CommandCause.BUDGET
    await add_command(connection, execution.id, command_type, payload, actor=SYSTEM_ACTOR, cause=by, at=at)
    is_said = command_type is CommandType.MESSAGE
    event_type = TaskEventType.MESSAGE_SENT if is_said else TaskEventType.AGENT_COMMANDED
    told = {"execution_id": execution.id, "type": command_type.value, "cause": cause}
    await _tell(connection, execution, event_type, told, at=at)


async def _stop(connection: AsyncConnection, execution: Execution, reason: str, *, at: datetime) -> None:
    by = CommandCause.BUDGET
    stop = CommandType.STOP
    await ask_to_stop(connection, execution, stop, actor=SYSTEM_ACTOR, cause=by, at=at, reason=reason)


async def _tell(
    connection: AsyncConnection,
    execution: Execution,
    event_type: TaskEventType,
    payload: Mapping[str, object],
    *,
    at: datetime,
) -> None:
    await append_task_event(
        connection,
        task_id=execution.task_id,
        actor=SYSTEM_ACTOR,
        event_type=event_type,
        payload=payload,
        at=at,
    )


async def _read(connection: AsyncConnection, execution_id: str) -> Execution:
    statement = select(tables.executions).where(tables.executions.c.id == execution_id)
    return execution_of((await connection.execute(statement)).mappings().one())
