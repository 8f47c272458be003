from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from agentmon.domain.approvals import Approval, ApprovalScope, ApprovalStatus
from agentmon.domain.conversation import AskKind, PlanNews, PlanStatus, PlanStep
from agentmon.domain.events import Actor, ActorType, Event, EventType
from agentmon.domain.ids import ApprovalId, ExecutionId, OperationId, SessionId
from agentmon.domain.operations import Operation, OperationStatus, OperationType
from agentmon.widgets.conversation_blocks import conversation_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.widgets.block_view import Block

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
RUN = ExecutionId("run")
EDIT_DIFF = "@@ -1 +1 @@\n-return 1\n+return 2\n"


def a_call(name: str, *, at_s: float = 0, target: str = "", kind: OperationType = OperationType.QUERY) -> Operation:
    return Operation(
        id=OperationId(f"{name}-{at_s}"),
        session_id=SessionId("session"),
        execution_id=RUN,
        tool_name=name,
        type=kind,
        target=target,
        input_summary=f"input of {name}",
        output_summary=f"output of {name}",
        status=OperationStatus.SUCCESS,
        started_at=AT + timedelta(seconds=at_s),
        finished_at=AT + timedelta(seconds=at_s + 1),
    )


def an_edit(*, at_s: float = 0, target: str = "/shop/cart.py") -> Operation:
    return a_call("Edit", at_s=at_s, target=target, kind=OperationType.WRITE)


def a_change(path: str, *, at_s: float, diff: str = EDIT_DIFF, number: int = 1) -> Event:
    return Event(
        id=number,
        execution_id=RUN,
        trace_id=RUN,
        type=EventType.DIFF,
        timestamp_ms=int((AT.timestamp() + at_s) * 1000),
        payload={"path": path, "diff": diff, "added_lines": 1, "removed_lines": 1},
    )


def a_request(operation: Operation, *, status: ApprovalStatus = ApprovalStatus.PENDING, asked_s: float = 0) -> Approval:
    is_allowed = status is ApprovalStatus.ALLOWED
    return Approval(
        id=ApprovalId(f"{operation.id}-{asked_s}"),
        execution_id=RUN,
        operation_id=operation.id,
        request_id="r",
        ask_kind=AskKind.PERMISSION,
        tool_name=operation.tool_name,
        title=f"{operation.tool_name}: {operation.target}",
        detail=EDIT_DIFF,
        status=status,
        scope=ApprovalScope.ONCE if is_allowed else None,
        decided_by=None if status is ApprovalStatus.PENDING else Actor(type=ActorType.USER, id="local"),
        asked_at=AT + timedelta(seconds=asked_s),
    )


def blocks(
    *operations: Operation,
    diffs: tuple[Event, ...] = (),
    approvals: tuple[Approval, ...] = (),
    plans: Mapping[ExecutionId, PlanNews] | None = None,
) -> tuple[Block, ...]:
    return conversation_blocks(
        messages=(),
        operations=operations,
        approvals=approvals,
        diffs=diffs,
        agent_name="claude",
        now=AT,
        plans=plans,
        folder="/shop",
    )


def shown(block: Block, *, is_unfolded: bool = False, width: int = 80) -> list[str]:
    rows = block.rows(width, is_unfolded=is_unfolded)
    return [text for row in rows if (text := "".join(span.text for span in row).strip())]


def a_plan(*statuses: PlanStatus) -> PlanNews:
    return PlanNews(steps=tuple(PlanStep(text=f"step {at}", status=one) for at, one in enumerate(statuses, 1)))


def test_an_edit_is_one_row_with_its_counts_and_unfolds_to_its_difference_once() -> None:
    (block,) = blocks(an_edit(), diffs=(a_change("/shop/cart.py", at_s=1),))

    (row,) = shown(block)
    unfolded = shown(block, is_unfolded=True)

    assert row.split() == ["✓", "Edit", "cart.py", "+1", "−1", "1s"]
    assert unfolded[1:] == ["@@ -1 +1 @@", "-return 1", "+return 2"]


def test_each_of_two_edits_of_a_file_has_its_own_difference() -> None:
    later = EDIT_DIFF.replace("return 2", "return 3")
    first, second = blocks(
        an_edit(),
        an_edit(at_s=5),
        diffs=(a_change("/shop/cart.py", at_s=1), a_change("/shop/cart.py", at_s=6, diff=later, number=2)),
    )

    assert "+return 2" in shown(first, is_unfolded=True)
    assert "+return 3" in shown(second, is_unfolded=True)


def test_one_call_that_changes_two_files_names_each_above_its_difference() -> None:
    (block,) = blocks(
        an_edit(target="/shop/cart.py, /shop/tax.py"),
        diffs=(a_change("/shop/cart.py", at_s=1), a_change("/shop/tax.py", at_s=1, number=2)),
    )

    assert "+2 −2" in shown(block)[0]
    assert [row for row in shown(block, is_unfolded=True)[1:] if row.endswith(".py")] == ["cart.py", "tax.py"]


def test_a_change_that_no_call_names_stands_for_itself() -> None:
    call, change = blocks(an_edit(), diffs=(a_change("/shop/other.py", at_s=1),))

    assert "+1" not in shown(call)[0]
    assert shown(change) == ["± other.py +1 −1"]


def test_a_call_that_waits_for_a_decision_stands_once_as_the_request() -> None:
    call = replace(an_edit(), status=OperationStatus.PENDING, finished_at=None)

    (block,) = blocks(call, approvals=(a_request(call),))

    assert block.key.startswith("ask-")


def test_a_call_that_was_decided_on_carries_the_decision() -> None:
    call = an_edit()

    (block,) = blocks(call, approvals=(a_request(call, status=ApprovalStatus.ALLOWED),))

    assert shown(block)[1] == "✓ allowed once by you"


def test_a_call_that_was_asked_for_twice_carries_the_last_decision() -> None:
    call = an_edit()
    again = a_request(call, status=ApprovalStatus.ALLOWED, asked_s=3)

    carrying, standing = blocks(call, approvals=(again, a_request(call, status=ApprovalStatus.WITHDRAWN)))

    assert shown(carrying)[1] == "✓ allowed once by you"
    assert standing.key.startswith("ask-")


def test_a_denied_edit_unfolds_to_what_was_denied() -> None:
    call = replace(an_edit(), status=OperationStatus.BLOCKED)

    (block,) = blocks(call, approvals=(a_request(call, status=ApprovalStatus.DENIED),))

    assert "+return 2" in shown(block, is_unfolded=True)
    assert "input of Edit" not in shown(block, is_unfolded=True)


def test_all_notes_of_a_plan_are_one_row_that_shows_it_as_it_is_now() -> None:
    plan = a_plan(PlanStatus.COMPLETED, PlanStatus.IN_PROGRESS, PlanStatus.PENDING)

    block, read, edit = blocks(
        a_call("TodoWrite"),
        a_call("Read", at_s=2),
        a_call("TodoWrite", at_s=4),
        a_call("Edit", at_s=6),
        plans={RUN: plan},
    )

    assert shown(block) == ["▸ Plan 1 of 3 done · step 2"]
    assert shown(block, is_unfolded=True)[1:] == ["☑ step 1", "▸ step 2", "☐ step 3"]
    assert [shown(one)[0].split()[1] for one in (read, edit)] == ["Read", "Edit"]


def test_notes_of_a_plan_that_is_not_known_stay_calls() -> None:
    assert len(blocks(a_call("TodoWrite"), a_call("TodoWrite", at_s=4), plans={})) == 2


def test_the_input_of_a_tool_is_a_row_for_each_name_and_keeps_its_lines() -> None:
    call = replace(a_call("Bash"), input_summary='{"command": "make\\nmake test", "timeout": 5}', output_summary="")

    (block,) = blocks(call)

    assert shown(block, is_unfolded=True)[1:] == ["In", "command:", "make", "make test", "timeout: 5"]


def test_an_input_that_was_cut_off_is_shown_as_it_is() -> None:
    (block,) = blocks(replace(a_call("Bash"), input_summary='{"command": "make', output_summary=""))

    assert shown(block, is_unfolded=True)[1:] == ["In", '{"command": "make']
