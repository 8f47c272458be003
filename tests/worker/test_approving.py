from __future__ import annotations

import asyncio
import json
import os
import threading
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.cli.request_text import request_lines
from agentmon.domain.agents import DangerLevel
from agentmon.domain.approvals import ApprovalStatus, RuleDecision
from agentmon.domain.asked_danger import with_danger
from agentmon.domain.clock import SystemClock
from agentmon.domain.conversation import AskKind, CommandNews
from agentmon.domain.events import ActorType, TaskEventType
from agentmon.domain.operations import OperationType
from agentmon.domain.requested_actions import requested_action
from agentmon.runners.danger import load_danger_rules
from agentmon.services.actors import USER_ACTOR
from agentmon.store.approval_rules import ApprovalRuleRepository
from agentmon.store.approvals import ApprovalRepository
from agentmon.worker.approving import Approver
from tests.conversing import a_wish, conversing
from tests.endings import watch_of
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agentmon.domain.approval_rules import RequestedAction
    from agentmon.domain.approvals import Approval
    from agentmon.domain.conversation import AskNews
    from agentmon.domain.ids import ExecutionId
    from agentmon.worker.watching import Watch
    from tests.conversing import Conversing


class Deciding:
    """An approver over one running conversation."""

    def __init__(self, place: Conversing, watch: Watch, execution_id: ExecutionId) -> None:
        self.place = place
        self.watch = watch
        self.execution_id = execution_id
        database = place.services.database
        self.approver = Approver(
            approvals=ApprovalRepository(database),
            rules=ApprovalRuleRepository(database),
            watch=watch,
            clock=SystemClock(),
        )

    async def asked(self, ask: AskNews) -> Approval:
        """Let the agent ask, let the rules decide, and return what became of it."""
        listing = await self.place.ask(self.execution_id, ask)
        self.watch.has_asked = True
        await self.approver.apply_rules(has_news=False)
        return (await self.place.services.approvals.get(listing.approval.id)).approval

    async def add_rule(self, decision: RuleDecision, **named: str | None) -> None:
        await self.place.services.approvals.add_rule(decision=decision, actor=USER_ACTOR, **named)  # type: ignore[arg-type] # named by tests


@asynccontextmanager
async def deciding(folder: Path) -> AsyncIterator[Deciding]:
    async with conversing(folder) as place:
        execution = await place.begin((await place.add_task()).id)
        watch = watch_of(place.services.database, place.services.paths)
        await watch.add(place.claimed[execution.id])
        yield Deciding(place, watch, execution.id)


async def test_rules_decide_what_fits_and_leave_the_rest_to_a_person(tmp_path: Path) -> None:
    async with deciding(tmp_path) as stage:
        await stage.add_rule(RuleDecision.ALLOW, command_prefix="git")
        await stage.add_rule(RuleDecision.DENY, command_prefix="rm")
        await stage.add_rule(RuleDecision.ASK, command_prefix="git push")

        allowed = await stage.asked(a_wish("git status", request_id="1"))
        denied = await stage.asked(a_wish("ls; rm -rf /", request_id="2"))
        compound = await stage.asked(a_wish("git status; make", request_id="3"))
        asked = await stage.asked(a_wish("git push", request_id="4"))
        commands = await stage.place.commands(stage.execution_id)
        rules = await stage.place.services.approvals.rules()

        assert (allowed.status, allowed.rule_id) == (ApprovalStatus.ALLOWED, rules[0].id)
        assert (denied.status, denied.rule_id) == (ApprovalStatus.DENIED, rules[1].id)
        assert [one.status for one in (compound, asked)] == [ApprovalStatus.PENDING] * 2
        assert [command.payload["decision"] for command in commands] == ["allow", "deny"]
        assert commands[1].payload["reason"] == "Not allowed: the rule “deny any tool rm” fits."


async def test_a_rule_for_the_beginning_of_a_command_lets_nothing_through_that_destroys_things(tmp_path: Path) -> None:
    async with deciding(tmp_path) as stage:
        rules = load_danger_rules()
        await stage.add_rule(RuleDecision.ALLOW, command_prefix="git push")

        plain = await stage.asked(with_danger(a_wish("git push", request_id="1"), rules))
        leased = await stage.asked(with_danger(a_wish("git push --force-with-lease", request_id="2"), rules))
        forced = await stage.asked(with_danger(a_wish("git push --force", request_id="3"), rules))
        assert [one.status for one in (plain, leased)] == [ApprovalStatus.ALLOWED] * 2
        assert forced.status is ApprovalStatus.PENDING

        await stage.add_rule(RuleDecision.ALLOW, command_prefix="git push --force")
        named = await stage.asked(with_danger(a_wish("git push --force", request_id="4"), rules))
        assert named.status is ApprovalStatus.ALLOWED


async def test_what_is_too_long_to_be_judged_whole_is_allowed_by_no_beginning(tmp_path: Path) -> None:
    async with deciding(tmp_path) as stage:
        await stage.add_rule(RuleDecision.ALLOW, command_prefix="rm")
        wish = a_wish("rm a; " * 20_000 + "rm -rf ~", request_id="1")

        hidden = await stage.asked(with_danger(wish, load_danger_rules()))

        assert hidden.status is ApprovalStatus.PENDING


async def test_a_long_way_round_leads_past_no_rule_that_forbids_where_it_ends(tmp_path: Path) -> None:
    async with deciding(tmp_path) as stage:
        await stage.add_rule(RuleDecision.DENY, path="**/.env")
        way = "x/../" * 900 + ".env"
        wish = {"tool_name": "Write", "type": OperationType.WRITE, "tool_input": {"file_path": way}}

        denied = await stage.asked(a_wish(way, request_id="1", **wish))

        assert denied.status is ApprovalStatus.DENIED


async def test_what_an_agent_asks_leave_for_has_its_danger_when_it_comes_into_the_inbox(tmp_path: Path) -> None:
    async with deciding(tmp_path) as stage:
        place = stage.place
        asked = {
            "kind": "ask",
            "request_id": "r1",
            "ask_kind": "permission",
            "tool_name": "Bash",
            "type": "execute",
            "title": "Bash: rm -rf ~",
            "tool_input": {"command": "rm -rf ~"},
            "can_allow_for_session": True,
            "danger_level": 0,
        }
        journal = place.services.paths.execution_dir(stage.execution_id) / "journal.jsonl"
        told = {"n": 1, "at_ms": 1_767_268_800_000, "type": "agent_event", "event": asked}
        # What was read of it already is as long as in the database.
        journal.write_text(" " * (place.offsets[stage.execution_id] - 1) + "\n" + json.dumps(told) + "\n")

        watched = stage.watch.find(stage.execution_id)
        assert watched is not None
        watched.journal_offset = place.offsets[stage.execution_id]

        await stage.watch.read_journals()

        (waiting,) = await place.services.approvals.inbox(None)
        approval = waiting.approval
        assert (approval.danger_level, approval.name_to_type) == (DangerLevel.DESTRUCTIVE, "rm")
        assert not approval.can_allow_for_session


async def test_a_decision_of_a_rule_stands_in_the_trail_with_who_and_what(tmp_path: Path) -> None:
    async with deciding(tmp_path) as stage:
        await stage.add_rule(RuleDecision.ALLOW, command_prefix="git")
        await stage.asked(a_wish("git status"))
        (rule,) = await stage.place.services.approvals.rules()

        lines = await stage.place.services.audit.all(None, limit=100)
        (told,) = [line.event for line in lines if line.event.event_type is TaskEventType.APPROVAL_DECIDED]

        assert told.actor.type is ActorType.SYSTEM
        assert told.payload["rule_id"] == rule.id
        assert told.payload["title"] == "Bash: git status"
        assert told.payload["reason"] == "the rule “allow any tool git” fits"


@pytest.mark.parametrize("kind", [AskKind.QUESTION, AskKind.PLAN, AskKind.DIALOG])
async def test_rules_answer_no_question_plan_or_dialog(tmp_path: Path, kind: AskKind) -> None:
    async with deciding(tmp_path) as stage:
        await stage.add_rule(RuleDecision.ALLOW)
        await stage.add_rule(RuleDecision.DENY)

        assert (await stage.asked(a_wish(ask_kind=kind))).status is ApprovalStatus.PENDING


async def test_a_link_that_leads_out_of_an_allowed_folder_is_not_followed(tmp_path: Path) -> None:
    async with deciding(tmp_path) as stage:
        root = tmp_path / "project"
        (root / "src").mkdir()
        (root / "src" / "inside.py").touch()
        (root / "src" / "outside.py").symlink_to("/etc/passwd")
        await stage.add_rule(RuleDecision.ALLOW, path="src/**")

        def edit(name: str) -> AskNews:
            return a_wish(name, request_id=name, tool_name="Edit", type=None, tool_input={"file_path": f"src/{name}"})

        assert (await stage.asked(edit("inside.py"))).status is ApprovalStatus.ALLOWED
        assert (await stage.asked(edit("outside.py"))).status is ApprovalStatus.PENDING
        assert (await stage.asked(edit("../../x.py"))).status is ApprovalStatus.PENDING


async def test_a_new_rule_decides_what_waits_already(tmp_path: Path) -> None:
    async with deciding(tmp_path) as stage:
        waiting = await stage.asked(a_wish("git status"))
        await stage.add_rule(RuleDecision.ALLOW, command_prefix="git")

        assert not await stage.approver.apply_rules(has_news=False)
        assert await stage.approver.apply_rules(has_news=True)
        decided = (await stage.place.services.approvals.get(waiting.id)).approval

        assert decided.status is ApprovalStatus.ALLOWED


async def test_what_a_rule_decided_in_vain_waits_for_a_person_and_is_not_decided_again(tmp_path: Path) -> None:
    async with deciding(tmp_path) as stage:
        await stage.add_rule(RuleDecision.ALLOW, command_prefix="git")
        decided = await stage.asked(a_wish("git status"))
        (command,) = await stage.place.commands(stage.execution_id)
        refusal = CommandNews(command_id=command.id, was_obeyed=False, error="it did not listen")
        await stage.place.tell(stage.execution_id, refusal)

        stage.watch.has_asked = True
        is_decided = await stage.approver.apply_rules(has_news=True)
        old = datetime.now(UTC) + timedelta(hours=1)
        late = await stage.approver._approvals.expire(old, at=old)

        (waiting,) = await stage.place.services.approvals.inbox(None)
        assert decided.status is ApprovalStatus.ALLOWED
        assert (is_decided, late) == (False, ())
        assert (waiting.approval.rule_id, waiting.approval.decision_reason) == (None, "it did not listen")
        assert "it did not listen" in "\n".join(request_lines(waiting, datetime.now(UTC)))
        await stage.place.services.approvals.allow(
            waiting.approval.id, actor=USER_ACTOR, seen_digest=waiting.approval.input_digest
        )
        assert len(await stage.place.commands(stage.execution_id)) == 2


async def test_a_person_who_is_quicker_wins(tmp_path: Path) -> None:
    async with deciding(tmp_path) as stage:
        await stage.add_rule(RuleDecision.ALLOW, command_prefix="git")
        asked = (await stage.place.ask(stage.execution_id, a_wish("git status"))).approval
        await stage.place.services.approvals.deny(asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest)
        stage.watch.has_asked = True

        assert not await stage.approver.apply_rules(has_news=False)
        assert len(await stage.place.commands(stage.execution_id)) == 1


async def test_what_nobody_decides_in_time_is_denied_with_the_reason(tmp_path: Path) -> None:
    async with deciding(tmp_path) as stage:
        old = datetime.now(UTC) - timedelta(minutes=10)
        late = (await stage.place.ask(stage.execution_id, a_wish(request_id="1"), at=old)).approval
        fresh = (await stage.place.ask(stage.execution_id, a_wish(request_id="2"))).approval

        assert not await stage.approver.deny_late(0)
        assert await stage.approver.deny_late(300)
        get = stage.place.services.approvals.get
        expired = (await get(late.id)).approval
        (command,) = await stage.place.commands(stage.execution_id)

        assert (expired.status, expired.decision_reason) == (ApprovalStatus.EXPIRED, "nobody decided within 5m00s")
        assert command.payload["reason"] == "Not allowed: nobody decided within 5m00s."
        assert (await get(fresh.id)).approval.status is ApprovalStatus.PENDING


async def test_a_worker_that_takes_over_decides_what_was_asked_before(tmp_path: Path) -> None:
    async with deciding(tmp_path) as stage:
        await stage.add_rule(RuleDecision.ALLOW, command_prefix="git")
        asked = (await stage.place.ask(stage.execution_id, a_wish("git status"))).approval
        execution = await stage.place.services.executions.get(stage.execution_id)
        later = watch_of(stage.place.services.database, stage.place.services.paths)
        await later.add(replace(stage.place.claimed[stage.execution_id], execution=execution))

        taken_over = Deciding(stage.place, later, stage.execution_id)
        decided = await taken_over.approver.apply_rules(has_news=False)

        assert decided
        assert (await stage.place.services.approvals.get(asked.id)).approval.status is ApprovalStatus.ALLOWED


async def test_only_what_this_worker_watches_is_decided(tmp_path: Path) -> None:
    async with deciding(tmp_path) as stage:
        other = await stage.place.begin((await stage.place.add_task("another")).id)
        await stage.add_rule(RuleDecision.ALLOW)
        old = datetime.now(UTC) - timedelta(minutes=10)
        foreign = (await stage.place.ask(other.id, a_wish(), at=old)).approval
        stage.watch.has_asked = True

        assert not await stage.approver.apply_rules(has_news=True)
        assert not await stage.approver.deny_late(300)
        assert (await stage.place.services.approvals.get(foreign.id)).approval.status is ApprovalStatus.PENDING


_HOSTILE_PATHS = ("/tmp/a\0b", "/tmp/\ufffd", "/" + "a/" * 100_000, "/" + "a" * 1_000_000)


@pytest.mark.parametrize("path", _HOSTILE_PATHS, ids=["NUL", "replaced", "deep", "long"])
async def test_a_path_that_no_system_takes_waits_for_a_person_and_holds_no_other_up(tmp_path: Path, path: str) -> None:
    async with deciding(tmp_path) as stage:
        await stage.add_rule(RuleDecision.ALLOW, path="/**")
        await stage.add_rule(RuleDecision.ALLOW, command_prefix="git")
        services, wish = stage.place.services, {"tool_name": "Edit", "type": OperationType.WRITE}
        for name, named in (("1", path), ("2", [path, "/tmp/c"])):
            await stage.place.ask(stage.execution_id, a_wish(request_id=name, tool_input={"file_path": named}, **wish))

        decided = await stage.asked(a_wish("git status", request_id="3"))
        waiting = await services.approvals.inbox(None)
        tried = await services.approvals.try_rules_on_history(None)

        assert decided.status is ApprovalStatus.ALLOWED
        assert [one.approval.request_id for one in waiting] == ["1", "2"]
        assert len(tried) == 3
        for listing in waiting:
            shown = listing.approval
            denied = await services.approvals.deny(shown.id, actor=USER_ACTOR, seen_digest=shown.input_digest)
            assert denied.status is ApprovalStatus.DENIED


async def test_a_request_that_cannot_be_judged_is_told_once_and_the_others_are_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(approval: Approval, **named: Any) -> RequestedAction:
        if approval.request_id == "1":
            raise RuntimeError("out of order")
        return requested_action(approval, **named)

    monkeypatch.setattr("agentmon.worker.approving.requested_action", refuse)
    async with deciding(tmp_path) as stage:
        await stage.add_rule(RuleDecision.ALLOW, command_prefix="git")
        first = await stage.asked(a_wish("git status", request_id="1"))
        second = await stage.asked(a_wish("git status", request_id="2"))

        assert [first.status, second.status] == [ApprovalStatus.PENDING, ApprovalStatus.ALLOWED]
        assert [record.exc_text is not None for record in caplog.records if first.id in record.getMessage()] == [True]


async def test_more_than_a_hundred_requests_of_one_run_keep_no_other_from_being_decided_or_listed(
    tmp_path: Path,
) -> None:
    async with deciding(tmp_path) as stage:
        services = stage.place.services
        other = await stage.place.begin((await stage.place.add_task("other")).id)
        await stage.watch.add(stage.place.claimed[other.id])
        await stage.add_rule(RuleDecision.ALLOW, command_prefix="git")
        early = datetime(2026, 1, 1, tzinfo=UTC)
        await stage.place.tell(
            stage.execution_id, *(a_wish(f"make {n}", request_id=f"{n}") for n in range(1_050)), at=early
        )
        await stage.place.tell(
            stage.execution_id, a_wish("git log", request_id="behind"), at=early + timedelta(minutes=1)
        )
        await stage.place.tell(other.id, a_wish("git status", request_id="allowed"), a_wish("ls", request_id="open"))

        stage.watch.has_asked = True
        await stage.approver.apply_rules(has_news=False)
        waiting = await services.approvals.inbox(None)
        (decided,) = [one for one in await services.approvals.history(None, limit=2_000) if one.approval.rule_id]

        assert decided.approval.request_id == "allowed"
        assert [one.approval.request_id for one in waiting] == [*(f"{n}" for n in range(100)), "open"]
        assert [one.more for one in waiting] == [*[0] * 99, 951, 0]


@pytest.mark.proof
async def test_a_path_that_does_not_answer_leaves_its_request_to_a_person_and_holds_no_other_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, real = threading.Event(), os.path.realpath

    def realpath(path: str | Path, **named: bool) -> str:
        if str(path).startswith("/dead/"):
            answers.wait()
        return real(path, **named)

    monkeypatch.setattr("agentmon.worker.approving.os.path.realpath", realpath)
    async with deciding(tmp_path) as stage:
        approvals = ApprovalRepository(stage.place.services.database)
        other = await stage.place.begin((await stage.place.add_task("other")).id)
        await stage.watch.add(stage.place.claimed[other.id])
        await stage.add_rule(RuleDecision.ALLOW, command_prefix="git")
        await stage.add_rule(RuleDecision.ALLOW, path="/dead/**")
        dead = {"file_path": "/dead/mount"}
        read = a_wish(request_id="dead", tool_name="Read", type=OperationType.READ, tool_input=dead)
        await stage.place.tell(stage.execution_id, read, a_wish("git log", request_id="2"))
        await stage.place.ask(other.id, a_wish("git status"))

        async def is_decided(execution_id: ExecutionId) -> bool:
            return "git" not in " ".join(one.approval.title for one in await approvals.undecided([execution_id]))

        async def look() -> None:
            stage.watch.has_asked = True
            await stage.approver.apply_rules(has_news=False)

        try:
            looking = asyncio.create_task(look())
            await until(lambda: is_decided(other.id))
            is_still_judged = not looking.done()
            await looking
            await stage.place.ask(other.id, a_wish("git diff", request_id="3"))
            await look()
            assert await is_decided(other.id)
            assert not await is_decided(stage.execution_id)
        finally:
            answers.set()

        async def goes_on() -> bool:
            return stage.watch.has_asked

        await until(goes_on)
        await look()
        (left,) = await approvals.undecided([stage.execution_id])

        assert is_still_judged
        assert left.approval.request_id == "dead"
