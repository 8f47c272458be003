from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from agentmon.cli.request_text import request_lines
from agentmon.domain.approvals import Approval, ApprovalListing, ApprovalStatus
from agentmon.domain.conversation import AskKind
from agentmon.domain.ids import ApprovalId, ExecutionId, TaskId, WorkspaceId
from agentmon.domain.operations import OperationType
from agentmon.domain.request_words import wish_words
from agentmon.widgets.inbox_blocks import InboxItem, inbox_blocks
from agentmon.widgets.request_blocks import request_blocks
from tests.conversing import a_typed_wish

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def a_request(detail: str, *, command: str) -> ApprovalListing:
    approval = Approval(
        id=ApprovalId("a"),
        execution_id=ExecutionId("e"),
        request_id="r",
        ask_kind=AskKind.PERMISSION,
        tool_name="shell",
        type=OperationType.EXECUTE,
        target=command,
        title=f"Run {command}",
        detail=detail,
        tool_input={"command": command},
        asked_at=AT,
    )
    return ApprovalListing(
        approval=approval,
        task_id=TaskId("t"),
        task_number=1,
        task_title="Build it",
        workspace_id=WorkspaceId("w"),
        workspace_name="shop",
        agent_slug="codex",
        working_dir="/shop",
    )


def shown(listing: ApprovalListing) -> list[str]:
    rows = [row for block in request_blocks(listing, (), AT) for row in block.rows(80, is_unfolded=False)]
    return [text for row in rows if (text := "".join(span.text for span in row).rstrip())]


def test_the_folder_of_a_command_stands_among_the_facts_alone() -> None:
    rows = shown(a_request("make -C api\nIn /shop", command="make -C api"))

    assert "$ make -C api" in rows
    assert [row for row in rows if "/shop" in row] == ["Folder    /shop"]


def test_another_folder_and_more_permissions_are_told_below_the_command_and_not_as_part_of_it() -> None:
    rows = shown(a_request("make\nIn /etc\nWith more permissions: {}", command="make"))

    at = rows.index("$ make")
    assert rows[at + 1 : at + 3] == ["In /etc", "With more permissions: {}"]


def test_a_line_of_the_command_itself_stays_in_it() -> None:
    rows = shown(a_request("cat <<E\nIn /shop\nE\nIn /shop", command="cat <<E\nIn /shop\nE"))

    at = rows.index("$ cat <<E")
    assert rows[at + 1 : at + 3] == ["  In /shop", "  E"]


def test_a_detail_that_does_not_begin_with_the_command_is_shown_as_it_is() -> None:
    rows = shown(a_request("sh -c 'make'\nIn /shop", command="make"))

    at = rows.index("$ sh -c 'make'")
    assert rows[at + 1] == "  In /shop"


def test_a_request_that_is_over_names_no_command_that_decides_it() -> None:
    listing = a_request("", command="make")
    ask = a_typed_wish()
    typed = replace(listing.approval, request_id=ask.request_id, questions=ask.questions)

    assert any("approve" in line for line in request_lines(replace(listing, approval=typed), AT))
    over = replace(listing, approval=replace(typed, status=ApprovalStatus.WITHDRAWN))
    assert not any("approve" in line for line in request_lines(over, AT))


def test_what_waits_again_says_why() -> None:
    listing = a_request("", command="make")
    again = replace(listing, approval=replace(listing.approval, decision_reason="it was typed in vain"))

    for lines in (shown(again), request_lines(again, AT)):
        assert any("it was typed in vain" in line for line in lines)


def test_what_a_command_hides_in_an_escape_sequence_is_seen_before_it_is_allowed() -> None:
    command = "echo \x1b]; rm -rf src #\x07\u200d"
    seen = "echo \\u001b]; rm -rf src #\\u0007\\u200d"

    for listing in (a_request("", command=command), a_request(f"{command}\nIn /shop", command=command)):
        assert f"$ {seen}" in shown(listing)
        assert wish_words(listing.approval) == f"wants shell: {seen}"
    assert f"    {seen}" in request_lines(listing, AT)


def test_a_request_behind_which_more_wait_that_are_not_listed_says_how_many() -> None:
    listing = replace(a_request("make", command="make"), more=951)
    (block,) = inbox_blocks((InboxItem(listing=listing, since=AT),), AT)

    texts = ["".join(span.text for span in row) for row in block.rows(80, is_unfolded=False)]

    assert any("951 more" in text for text in texts)
    assert any("951 more" in line for line in request_lines(listing, AT))
