"""Whatever an agent writes, it is taken in whole, judged, kept and shown, and holds nothing else up."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING

import pytest

from agentmon.cli.conversation_text import event_line, message_text, operation_line, plan_lines
from agentmon.cli.request_text import request_lines
from agentmon.domain.approvals import ApprovalStatus, RuleDecision
from agentmon.domain.clock import SystemClock
from agentmon.domain.events import EventType
from agentmon.runners.journal import MAX_READ_BYTES
from agentmon.services.actors import USER_ACTOR
from agentmon.store.approval_rules import ApprovalRuleRepository
from agentmon.store.approvals import ApprovalRepository
from agentmon.widgets.conversation_blocks import conversation_blocks
from agentmon.widgets.question_blocks import unanswered_blocks
from agentmon.widgets.request_blocks import request_blocks
from agentmon.worker.approving import Approver
from tests.conversing import conversing
from tests.endings import watch_of
from tests.seeds import seeds
from tests.worker.hostile_journal import hostile_lines

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.domain.ids import ExecutionId
    from tests.conversing import Conversing

_LINES = 150


@pytest.mark.parametrize("seed", seeds(30, quick=2))
async def test_whatever_a_journal_holds_is_taken_in_and_can_be_read_back(tmp_path: Path, seed: int) -> None:
    dice = Random(seed)
    async with conversing(tmp_path) as place:
        execution = await place.begin((await place.add_task()).id)
        await _add_rules(place)
        database = place.services.database
        watch = watch_of(database, place.services.paths)
        await watch.add(place.claimed[execution.id])
        watched = watch.find(execution.id)
        assert watched is not None
        watched.journal_offset = place.offsets[execution.id]
        approver = Approver(
            approvals=ApprovalRepository(database),
            rules=ApprovalRuleRepository(database),
            watch=watch,
            clock=SystemClock(),
        )
        journal = place.services.paths.execution_dir(execution.id) / "journal.jsonl"
        journal.write_bytes(b"\n" * watched.journal_offset)
        for _ in range(3):
            with journal.open("ab") as file:
                file.write(hostile_lines(dice, _LINES // 3))
            while watched.journal_offset < journal.stat().st_size:
                before = watched.journal_offset
                await watch.read_journals()
                await approver.apply_rules(has_news=True)
                assert watched.journal_offset > before
                assert watched.journal_offset - before <= 8 * MAX_READ_BYTES

        await _show_everything(place, execution.id)


async def _add_rules(place: Conversing) -> None:
    add = place.services.approvals.add_rule
    await add(decision=RuleDecision.ALLOW, tool="B*h", command_prefix="ls", actor=USER_ACTOR)
    await add(decision=RuleDecision.DENY, path="**/a/**/a*b/**", actor=USER_ACTOR)
    await add(decision=RuleDecision.ALLOW, path="/**", actor=USER_ACTOR)
    await add(decision=RuleDecision.DENY, command_prefix="rm", actor=USER_ACTOR)
    await add(decision=RuleDecision.ASK, tool="*?*", actor=USER_ACTOR)


async def _show_everything(place: Conversing, execution_id: ExecutionId) -> None:
    """Read all rows back, as lines of the command line and as rows of the screens."""
    services, now = place.services, datetime.now(UTC)
    execution = await services.executions.get(execution_id)
    session_id = execution.session_id
    assert session_id is not None
    messages = await services.conversations.messages(session_id)
    operations = await services.conversations.operations(session_id=session_id)
    plan = await services.conversations.plan(execution_id)
    events = await services.conversations.events(execution_id=execution_id, limit=9_999)
    asked = await services.approvals.history(None, limit=999)
    await services.approvals.try_rules_on_history(None)
    lines = [message_text(one) for one in messages] + [operation_line(one) for one in operations]
    lines += [event_line(one) for one in events] + ([] if plan is None else plan_lines(plan))
    lines += [line for one in asked for line in request_lines(one, now, is_whole=True)]
    blocks = list(
        conversation_blocks(
            messages=messages,
            operations=operations,
            approvals=[one.approval for one in asked],
            diffs=[one for one in events if one.type is EventType.DIFF],
            agent_name="demo",
            now=now,
            plans={} if plan is None else {execution_id: plan},
        )
    )
    for one in asked:
        blocks += request_blocks(one, unanswered_blocks(one.approval.questions), now)
    lines += ["".join(span.text for span in row) for block in blocks for row in block.rows(80, is_unfolded=True)]
    "\n".join(lines).encode()
    json.dumps([dict(one.payload) for one in events], allow_nan=False).encode()
    assert events
    assert all(event.timestamp_ms >= 0 for event in events)
    for one in asked:
        if one.approval.status is ApprovalStatus.PENDING:
            await services.approvals.deny(one.approval.id, actor=USER_ACTOR, seen_digest=one.approval.input_digest)
