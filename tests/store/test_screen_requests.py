"""What agents ask in their own screens: one row for one dialog, and who answered it how."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.activity import Activity
from agentmon.domain.approvals import ApprovalScope, ApprovalStatus
from agentmon.domain.conversation import ActivityNews, AskChoice, AskKind, AskNews, AskQuestion
from agentmon.domain.errors import ConflictError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import CommandType
from agentmon.domain.live_state import LiveState
from agentmon.services.actors import USER_ACTOR
from agentmon.store.activity import ActivityRepository
from tests.store.conversation_place import an_ending, opened_place
from tests.store.queue_place import NOON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agentmon.domain.approvals import Approval
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import CommandId
    from tests.store.conversation_place import ConversationPlace

ASK = AskNews(
    request_id="screen:1:d1",
    ask_kind=AskKind.PERMISSION,
    title="permission: touch it",
    input_digest="d1",
    questions=(
        AskQuestion(
            question="Typed into its terminal",
            choices=(
                AskChoice(key="allow", label="Yes", description="types 1"),
                AskChoice(key="deny", label="No", description="types 2"),
            ),
        ),
    ),
)
ASKING = ActivityNews(activity=Activity.WAITING, note="permission: touch it", source="rule claude/permission")
WORKING = ActivityNews(activity=Activity.WORKING, source="rule claude/working")
LATER = NOON + timedelta(seconds=5)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ConversationPlace]:
    async with opened_place(tmp_path) as opened:
        yield opened


async def _record(
    place: ConversationPlace,
    execution: Execution,
    ask: AskNews | None,
    gone: ApprovalStatus = ApprovalStatus.WITHDRAWN,
) -> None:
    news = WORKING if ask is None else ASKING
    assert await ActivityRepository(place.database).record(
        execution.id, news, ask=ask, gone=gone, evidence={}, at=LATER
    )


async def _asked(place: ConversationPlace, ask: AskNews = ASK) -> tuple[Execution, Approval]:
    execution = await place.begin(mode=ExecutionMode.TMUX)
    await _record(place, execution, ask)
    (approval,) = await place.approvals.of_execution(execution.id)
    return execution, approval


async def _decide(
    place: ConversationPlace,
    approval: Approval,
    status: ApprovalStatus = ApprovalStatus.ALLOWED,
    scope: ApprovalScope = ApprovalScope.ONCE,
) -> CommandId:
    await place.approvals.decide(
        approval.id,
        status=status,
        scope=scope,
        actor=USER_ACTOR,
        reason="",
        answer={"decision": "allow"},
        rule_id=None,
        seen_digest=approval.input_digest,
        at=LATER,
    )
    (command,) = await place.commands.of_execution(approval.execution_id, types=[CommandType.ANSWER])
    return command.id


async def test_the_same_dialog_seen_by_another_worker_stays_one_request(place: ConversationPlace) -> None:
    execution, approval = await _asked(place)

    await _record(place, execution, replace(ASK, request_id="screen:2:d1"))

    assert [one.id for one in await place.approvals.of_execution(execution.id)] == [approval.id]


async def test_another_dialog_takes_the_place_of_the_one_before(place: ConversationPlace) -> None:
    execution, _ = await _asked(place)

    await _record(place, execution, replace(ASK, request_id="screen:2:d2", input_digest="d2"))

    states = [one.status for one in await place.approvals.of_execution(execution.id)]
    assert states == [ApprovalStatus.WITHDRAWN, ApprovalStatus.PENDING]


@pytest.mark.parametrize("gone", [ApprovalStatus.ALLOWED, ApprovalStatus.DENIED, ApprovalStatus.ANSWERED])
async def test_what_was_answered_in_the_terminal_says_so(place: ConversationPlace, gone: ApprovalStatus) -> None:
    execution, _ = await _asked(place)

    await _record(place, execution, None, gone)

    (approval,) = await place.approvals.of_execution(execution.id)
    assert (approval.status, approval.decided_by, approval.decision_reason) == (gone, None, "in its terminal")


async def test_a_decision_here_stays_what_it_is_when_the_dialog_goes(place: ConversationPlace) -> None:
    execution, approval = await _asked(place)
    command_id = await _decide(place, approval)

    await _record(place, execution, None, ApprovalStatus.DENIED)
    await ActivityRepository(place.database).settle_command(command_id, at=LATER)

    (approval,) = await place.approvals.of_execution(execution.id)
    assert (approval.status, approval.decided_by) == (ApprovalStatus.ALLOWED, USER_ACTOR)
    assert place.rows("SELECT 1 FROM approvals WHERE closed_at IS NULL") == []


async def test_a_dialog_that_is_decided_on_is_not_asked_again_while_it_is_typed(place: ConversationPlace) -> None:
    execution, approval = await _asked(place)
    await _decide(place, approval)

    await _record(place, execution, replace(ASK, request_id="screen:2:d1"))

    assert [one.status for one in await place.approvals.of_execution(execution.id)] == [ApprovalStatus.ALLOWED]


async def test_the_same_dialog_once_more_is_another_request(place: ConversationPlace) -> None:
    execution, approval = await _asked(place)
    await ActivityRepository(place.database).settle_command(await _decide(place, approval), at=LATER)

    await _record(place, execution, replace(ASK, request_id="screen:2:d1"))

    states = [one.status for one in await place.approvals.of_execution(execution.id)]
    assert states == [ApprovalStatus.ALLOWED, ApprovalStatus.PENDING]


async def test_a_denial_whose_reason_is_still_to_be_said_holds_back_no_dialog(place: ConversationPlace) -> None:
    execution, approval = await _asked(place)
    await ActivityRepository(place.database).close_request(
        await _decide(place, approval, ApprovalStatus.DENIED), at=LATER
    )

    await _record(place, execution, replace(ASK, request_id="screen:2:d1"))

    states = [one.status for one in await place.approvals.of_execution(execution.id)]
    assert states == [ApprovalStatus.DENIED, ApprovalStatus.PENDING]
    assert place.rows("SELECT obeyed_at, error FROM execution_commands") == [{"obeyed_at": None, "error": None}]


@pytest.mark.parametrize("status", [ApprovalStatus.PENDING, ApprovalStatus.ANSWERED, ApprovalStatus.WITHDRAWN])
async def test_a_decision_that_was_not_typed_is_none(place: ConversationPlace, status: ApprovalStatus) -> None:
    execution, approval = await _asked(place)
    command_id = await _decide(place, approval)

    activity = ActivityRepository(place.database)
    await activity.settle_answer(command_id, error="the dialog was gone", status=status, at=LATER)

    (approval,) = await place.approvals.of_execution(execution.id)
    assert (approval.status, approval.decided_by, approval.scope) == (status, None, None)
    assert "the dialog was gone" in (approval.decision_reason or "")
    (command,) = place.rows("SELECT error, obeyed_at FROM execution_commands")
    assert command == {"error": "the dialog was gone", "obeyed_at": None}
    if status is ApprovalStatus.PENDING:
        await _record(place, execution, replace(ASK, request_id="screen:2:d1"))
        assert (await place.queue.executions.get(execution.id)).live_state is LiveState.NEEDS_YOU
        assert len(await place.approvals.of_execution(execution.id)) == 1


@pytest.mark.parametrize(
    ("status", "last"),
    [
        (ApprovalStatus.PENDING, "approval_asked"),
        (ApprovalStatus.ANSWERED, "approval_decided"),
        (ApprovalStatus.DENIED, "approval_decided"),
        (ApprovalStatus.WITHDRAWN, "approval_withdrawn"),
    ],
)
async def test_the_trail_says_what_became_of_a_decision_that_was_not_typed(
    place: ConversationPlace, status: ApprovalStatus, last: str
) -> None:
    _, approval = await _asked(place)
    command_id = await _decide(place, approval)

    await ActivityRepository(place.database).settle_answer(command_id, error="gone", status=status, at=LATER)

    told = place.rows("SELECT event_type FROM task_events WHERE event_type LIKE 'approval%' ORDER BY id")
    assert [line["event_type"] for line in told] == ["approval_asked", "approval_decided", last]


@pytest.mark.parametrize("status", [ApprovalStatus.PENDING, ApprovalStatus.ANSWERED])
async def test_what_the_end_of_its_run_has_settled_is_not_asked_again(
    place: ConversationPlace, status: ApprovalStatus
) -> None:
    execution, approval = await _asked(place)
    command_id = await _decide(place, approval)
    await place.tell(execution.id, ending=an_ending(ExecutionStatus.FAILED))

    await ActivityRepository(place.database).settle_answer(command_id, error="still there", status=status, at=LATER)

    assert (await place.approvals.get(approval.id)).approval.status is ApprovalStatus.ALLOWED
    assert await place.approvals.pending(None) == ()


async def test_what_the_screen_does_not_offer_is_not_decided(place: ConversationPlace) -> None:
    _, approval = await _asked(place)

    with pytest.raises(ConflictError, match="own screen"):
        await _decide(place, approval, scope=ApprovalScope.SESSION)

    assert (await place.approvals.get(approval.id)).approval.status is ApprovalStatus.PENDING
