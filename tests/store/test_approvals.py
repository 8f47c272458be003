from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.activity import Activity
from agentmon.domain.approvals import ApprovalRule, ApprovalScope, ApprovalStatus, RuleDecision
from agentmon.domain.conversation import (
    ActivityNews,
    AskChoice,
    AskClosedNews,
    AskKind,
    AskNews,
    AskOutcome,
    AskQuestion,
    CommandNews,
    ToolStartedNews,
)
from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import CommandType
from agentmon.domain.ids import ApprovalId, ApprovalRuleId, WorkerId, new_id
from agentmon.domain.live_state import LiveState
from agentmon.domain.operations import OperationStatus, OperationType
from agentmon.domain.sessions import SessionStatus
from agentmon.services.actors import USER_ACTOR
from agentmon.store.status_counts import find_status_counts
from tests.store.conversation_place import an_ending, opened_place
from tests.store.queue_place import NOON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agentmon.domain.approvals import Approval
    from agentmon.domain.ids import ExecutionId
    from tests.store.conversation_place import ConversationPlace

ASK = AskNews(
    request_id="7",
    ask_kind=AskKind.PERMISSION,
    tool_ref="t1",
    tool_name="Bash",
    type=OperationType.EXECUTE,
    target="make test",
    title="Run make test",
    detail="make test",
    tool_input={"command": "make test"},
    input_digest="d1",
    questions=(AskQuestion(question="Which?", choices=(AskChoice(key="a", label="A"),), is_multiple=True),),
)
START = AskNews(request_id="start", ask_kind=AskKind.START, title="Start claude without limits")


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ConversationPlace]:
    async with opened_place(tmp_path) as opened:
        yield opened


async def _asked(place: ConversationPlace, ask: AskNews = ASK) -> tuple[ExecutionId, Approval]:
    execution = await place.begin()
    await place.tell(execution.id, ask)
    (listing,) = await place.approvals.pending(None)
    return execution.id, listing.approval


async def _decide(
    place: ConversationPlace,
    approval_id: ApprovalId,
    status: ApprovalStatus = ApprovalStatus.ALLOWED,
    *,
    seen_digest: str = "d1",
) -> Approval:
    return await place.approvals.decide(
        approval_id,
        status=status,
        scope=ApprovalScope.ONCE,
        actor=USER_ACTOR,
        reason="",
        answer={"decision": "allow"},
        rule_id=None,
        seen_digest=seen_digest,
        at=NOON,
    )


async def test_a_request_waits_with_all_that_it_asks_and_its_call_is_pending(place: ConversationPlace) -> None:
    execution_id, approval = await _asked(place)

    (operation,) = await place.conversations.operations(execution_id=execution_id)
    assert (approval.tool_input, approval.questions, approval.input_digest) == (ASK.tool_input, ASK.questions, "d1")
    assert approval.operation_id == operation.id
    assert (operation.status, operation.target) == (OperationStatus.PENDING, "make test")
    execution = await place.queue.executions.get(execution_id)
    assert (execution.live_state, execution.activity_note) == (LiveState.NEEDS_YOU, "Run make test")
    assert (await place.sessions.get(await place.session_id(execution_id))).status is SessionStatus.WAITING_FOR_INPUT
    (listing,) = await place.approvals.pending(place.queue.workspaces["w"])
    assert (listing.agent_slug, listing.working_dir, listing.workspace_name) == ("claude", "/w", "w")
    assert await place.approvals.pending(place.queue.workspaces["v"]) == ()
    counts = find_status_counts(str(place.database.path))
    assert counts is not None
    assert counts.needs_you == 1


async def test_a_decision_reaches_the_agent_as_one_command_and_the_audit_trail(place: ConversationPlace) -> None:
    execution_id, approval = await _asked(place)

    decided = await _decide(place, approval.id)

    (command,) = await place.commands.of_execution(execution_id, types=[CommandType.ANSWER])
    assert command.payload == {"decision": "allow", "request_id": "7", "input_digest": "d1"}
    assert (decided.status, decided.decided_by, decided.decided_at) == (ApprovalStatus.ALLOWED, USER_ACTOR, NOON)
    (operation,) = await place.conversations.operations(execution_id=execution_id)
    assert operation.approved
    assert (await place.queue.executions.get(execution_id)).activity is Activity.WORKING
    told = place.rows("SELECT event_type FROM task_events WHERE event_type LIKE 'approval%' ORDER BY id")
    assert [row["event_type"] for row in told] == ["approval_asked", "approval_decided"]


async def test_of_many_decisions_at_once_one_counts(place: ConversationPlace) -> None:
    execution_id, approval = await _asked(place)

    outcomes = await asyncio.gather(
        *(_decide(place, approval.id, status) for status in [ApprovalStatus.ALLOWED, ApprovalStatus.DENIED] * 5),
        return_exceptions=True,
    )

    assert sum(isinstance(outcome, ConflictError) for outcome in outcomes) == 9
    assert len(await place.commands.of_execution(execution_id)) == 1


@pytest.mark.parametrize(
    ("becomes", "message"),
    [
        ("another digest", "something else"),
        ("withdrawn", "nobody asks"),
        ("over", "nobody asks"),
        ("unknown", "no such approval"),
        ("cancelling", "is cancelling"),
    ],
)
async def test_a_decision_on_what_changed_meanwhile_is_refused_and_sends_nothing(
    place: ConversationPlace, becomes: str, message: str
) -> None:
    execution_id, approval = await _asked(place)
    approval_id, digest = approval.id, "d1"
    match becomes:
        case "another digest":
            digest = "d2"
        case "withdrawn":
            await place.tell(execution_id, AskClosedNews(request_id="7", outcome=AskOutcome.WITHDRAWN))
        case "over":
            await place.tell(execution_id, ending=an_ending())
        case "cancelling":
            task_id = (await place.queue.executions.get(execution_id)).task_id
            await place.queue.executions.request_stop(task_id, command_type=CommandType.STOP, actor=USER_ACTOR, at=NOON)
        case _:
            approval_id = ApprovalId(new_id())

    with pytest.raises((ConflictError, NotFoundError), match=message):
        await _decide(place, approval_id, seen_digest=digest)

    assert await place.commands.of_execution(execution_id, types=[CommandType.ANSWER]) == ()


async def test_a_dialog_of_the_agents_own_screen_cannot_be_decided_from_here(place: ConversationPlace) -> None:
    _, approval = await _asked(place, AskNews(request_id="1", ask_kind=AskKind.DIALOG, title="Trust this folder?"))

    with pytest.raises(ConflictError, match="own screen"):
        await _decide(place, approval.id, seen_digest="")


async def test_the_end_of_a_run_withdraws_its_requests_and_cancels_its_calls(place: ConversationPlace) -> None:
    execution_id, approval = await _asked(place)

    await place.tell(execution_id, ending=an_ending(ExecutionStatus.FAILED))

    assert (await place.approvals.get(approval.id)).approval.status is ApprovalStatus.WITHDRAWN
    (operation,) = await place.conversations.operations(execution_id=execution_id)
    assert operation.status is OperationStatus.CANCELLED
    assert (await place.queue.executions.get(execution_id)).activity is None


async def test_a_request_that_was_settled_elsewhere_tells_how(place: ConversationPlace) -> None:
    execution_id, approval = await _asked(place)

    await place.tell(execution_id, AskClosedNews(request_id="7", outcome=AskOutcome.DENIED))

    settled = (await place.approvals.get(approval.id)).approval
    assert (settled.status, settled.decided_by) == (ApprovalStatus.DENIED, None)
    assert (await place.queue.executions.get(execution_id)).activity is Activity.WORKING


async def test_an_answer_that_the_agent_did_not_take_puts_the_request_back(place: ConversationPlace) -> None:
    execution_id, approval = await _asked(place)
    await _decide(place, approval.id)
    (command,) = await place.commands.of_execution(execution_id)

    await place.tell(execution_id, CommandNews(command_id=command.id, was_obeyed=False, error="not now"))

    again = (await place.approvals.get(approval.id)).approval
    assert (again.status, again.decided_by, again.decided_at) == (ApprovalStatus.PENDING, None, None)
    assert again.decision_reason == "not now"
    assert (await place.queue.executions.get(execution_id)).live_state is LiveState.NEEDS_YOU


async def test_an_answer_that_nobody_gave_here_stands_in_the_audit_trail(place: ConversationPlace) -> None:
    execution_id, _ = await _asked(place)

    await place.tell(execution_id, AskClosedNews(request_id="7", outcome=AskOutcome.ALLOWED, command_id="forged"))

    (told,) = place.rows("SELECT payload FROM task_events WHERE event_type = 'approval_withdrawn'")
    assert "nobody decided that here" in str(told["payload"])


async def test_a_decision_that_the_agent_never_got_is_told_when_it_ends(place: ConversationPlace) -> None:
    execution_id, approval = await _asked(place)
    await _decide(place, approval.id)

    await place.tell(execution_id, ending=an_ending(ExecutionStatus.FAILED))

    (command,) = place.rows("SELECT error, obeyed_at FROM execution_commands")
    (row,) = place.rows("SELECT status, closed_at FROM approvals")
    (told,) = place.rows("SELECT payload FROM task_events WHERE event_type = 'approval_withdrawn'")
    assert (command["error"], command["obeyed_at"]) == ("its agent ended before this reached it", None)
    assert row["status"] == "allowed"
    assert row["closed_at"] is not None
    assert "its agent ended before this reached it" in str(told["payload"])


async def test_a_decision_that_comes_after_its_request_was_taken_back_is_told(place: ConversationPlace) -> None:
    execution_id, approval = await _asked(place)
    await _decide(place, approval.id)
    (command,) = await place.commands.of_execution(execution_id)

    await place.tell(
        execution_id,
        AskClosedNews(request_id="7", outcome=AskOutcome.WITHDRAWN),
        CommandNews(command_id=command.id, was_obeyed=False, error="nobody asks this any more"),
    )

    (told,) = place.rows("SELECT payload FROM task_events WHERE event_type = 'approval_withdrawn'")
    assert "nobody asks this any more" in str(told["payload"])


async def test_an_agent_waits_until_the_last_of_its_requests_is_decided(place: ConversationPlace) -> None:
    execution_id, first = await _asked(place)
    await place.tell(execution_id, AskNews(request_id="8", ask_kind=AskKind.QUESTION, title="Which?"))
    await _decide(place, first.id)
    await place.tell(execution_id, ActivityNews(activity=Activity.WORKING))

    execution = await place.queue.executions.get(execution_id)

    assert (execution.activity, execution.activity_note) == (Activity.WAITING, "Which?")
    assert [one.approval.request_id for one in await place.approvals.undecided([execution_id])] == ["8"]
    assert await place.approvals.undecided([]) == ()


async def test_a_card_tells_what_is_asked_rather_than_that_its_agent_waits(place: ConversationPlace) -> None:
    execution_id, _ = await _asked(place)

    await place.tell(execution_id, ActivityNews(activity=Activity.WAITING, note="permission", source="status"))

    execution = await place.queue.executions.get(execution_id)
    assert (execution.activity_note, execution.activity_source) == ("Run make test", "status")


async def test_what_waits_for_too_long_is_named_but_dialogs_and_new_requests_are_not(place: ConversationPlace) -> None:
    execution_id, approval = await _asked(place)
    await place.tell(execution_id, AskNews(request_id="d", ask_kind=AskKind.DIALOG, title="Trust?"))

    assert await place.approvals.expire(NOON, at=NOON + timedelta(hours=1)) == ()
    found = await place.approvals.expire(NOON + timedelta(seconds=1), at=NOON + timedelta(hours=1))

    assert [one.approval.id for one in found] == [approval.id]
    assert (await _decide(place, approval.id, ApprovalStatus.EXPIRED)).status is ApprovalStatus.EXPIRED


async def test_what_was_asked_before_the_clock_was_set_back_waits_from_then_on(place: ConversationPlace) -> None:
    await _asked(place)
    earlier = NOON - timedelta(days=365)

    assert await place.approvals.expire(earlier - timedelta(minutes=5), at=earlier) == ()

    at = earlier + timedelta(minutes=6)
    assert len(await place.approvals.expire(at - timedelta(minutes=5), at=at)) == 1


async def test_a_run_that_waits_for_leave_is_claimed_only_after_it_was_given(place: ConversationPlace) -> None:
    execution = await place.enqueue(start_approval=START)
    assert execution.live_state is LiveState.NEEDS_YOU
    claim = {"worker_id": WorkerId("w"), "max_running": 9, "park_after": 0, "limit": 9, "at": NOON}
    assert await place.queue.claims.claim(**claim) == ()  # type: ignore[arg-type]
    (listing,) = await place.approvals.pending(None)

    await _decide(place, listing.approval.id, seen_digest="")

    (claimed,) = await place.queue.claims.claim(**claim)  # type: ignore[arg-type]
    assert (claimed.execution.id, claimed.execution.is_held) == (execution.id, False)
    assert await place.commands.of_execution(execution.id) == ()


@pytest.mark.parametrize("status", [ApprovalStatus.DENIED, ApprovalStatus.EXPIRED])
async def test_a_start_that_is_not_allowed_cancels_the_run(place: ConversationPlace, status: ApprovalStatus) -> None:
    execution = await place.enqueue(start_approval=START)
    (listing,) = await place.approvals.pending(None)

    decided = await _decide(place, listing.approval.id, status, seen_digest="")

    assert decided.status is status
    assert (await place.queue.executions.get(execution.id)).status is ExecutionStatus.CANCELLED
    assert (await place.sessions.get(await place.session_id(execution.id))).status is SessionStatus.CANCELLED


async def test_taking_a_held_run_out_of_the_queue_withdraws_its_request(place: ConversationPlace) -> None:
    execution = await place.enqueue(start_approval=START)

    await place.queue.executions.request_stop(
        execution.task_id, command_type=CommandType.STOP, actor=USER_ACTOR, at=NOON
    )

    (approval,) = await place.approvals.of_execution(execution.id)
    assert approval.status is ApprovalStatus.WITHDRAWN
    assert await place.approvals.pending(None) == ()


async def test_history_and_prefixes_find_what_was_decided(place: ConversationPlace) -> None:
    execution_id, approval = await _asked(place)
    await _decide(place, approval.id)
    await place.tell(
        execution_id, ToolStartedNews(tool_ref="t1", tool_name="Bash", type=OperationType.EXECUTE, target="x")
    )

    assert [one.approval.id for one in await place.approvals.history(None, limit=5)] == [approval.id]
    assert await place.approvals.history(None, limit=5, offset=1) == ()
    assert [one.approval.id for one in await place.approvals.find_by_prefix(approval.id[:13].upper())] == [approval.id]
    assert await place.approvals.find_by_prefix("") == await place.approvals.find_by_prefix("%") == ()


async def test_rules_are_added_switched_and_removed_with_a_line_each(place: ConversationPlace) -> None:
    rule = ApprovalRule(
        id=ApprovalRuleId(new_id()), decision=RuleDecision.ALLOW, tool="Bash", command_prefix="make", created_at=NOON
    )

    assert await place.rules.add(rule, actor=USER_ACTOR, at=NOON) == rule
    await place.rules.set_enabled(rule.id, False, actor=USER_ACTOR, at=NOON)
    await place.rules.set_enabled(rule.id, False, actor=USER_ACTOR, at=NOON)
    assert [one.is_enabled for one in await place.rules.list()] == [False]
    await place.rules.remove(rule.id, actor=USER_ACTOR, at=NOON)
    assert await place.rules.list() == ()
    with pytest.raises(NotFoundError):
        await place.rules.remove(rule.id, actor=USER_ACTOR, at=NOON)

    lines = place.rows("SELECT payload FROM task_events WHERE event_type = 'approval_rule_changed'")
    assert len(lines) == 3


async def test_a_command_is_taken_only_for_a_run_that_listens(place: ConversationPlace) -> None:
    execution = await place.enqueue()
    payload = {"text": "Go on"}
    with pytest.raises(ConflictError, match="queued"):
        await place.commands.add(execution.id, (CommandType.MESSAGE, payload), actor=USER_ACTOR, at=NOON)
    await place.claim()

    command_id = await place.commands.add(execution.id, (CommandType.MESSAGE, payload), actor=USER_ACTOR, at=NOON)
    await place.tell(execution.id, CommandNews(command_id=command_id, was_obeyed=False, is_queued=True))
    (queued,) = place.rows("SELECT is_queued, obeyed_at FROM execution_commands")
    await place.tell(execution.id, CommandNews(command_id=command_id, was_obeyed=True))
    (obeyed,) = place.rows("SELECT is_queued, obeyed_at, error FROM execution_commands")

    assert (queued["is_queued"], queued["obeyed_at"]) == (1, None)
    assert (obeyed["is_queued"], obeyed["error"]) == (0, None)
    assert obeyed["obeyed_at"] is not None
    (line,) = place.rows("SELECT payload FROM task_events WHERE event_type = 'message_sent'")
    assert "Go on" not in str(line["payload"])
