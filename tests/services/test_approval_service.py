from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.approvals import ApprovalScope, ApprovalStatus, RuleDecision
from agentmon.domain.conversation import AskChoice, AskClosedNews, AskKind, AskOutcome, AskQuestion
from agentmon.domain.errors import ConflictError, NotFoundError, UsageError
from agentmon.domain.events import Actor, ActorType, TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import CommandType
from agentmon.domain.ids import ExecutionId, WorkspaceId, new_id
from agentmon.services.actors import USER_ACTOR
from agentmon.services.findings import FindingLevel
from agentmon.store.errors import ConstraintError
from tests.conversing import a_wish, conversing

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.domain.events import TaskEvent
    from agentmon.domain.ids import TaskId
    from tests.conversing import Conversing

QUESTIONS = (
    AskQuestion(
        question="Which database?",
        choices=(AskChoice(key="test", label="The test one"), AskChoice(key="live", label="The live one")),
    ),
    AskQuestion(
        question="Which tables?",
        choices=(AskChoice(key="a", label="a"), AskChoice(key="b", label="b")),
        is_multiple=True,
    ),
)


async def decisions(place: Conversing, task_id: TaskId) -> list[TaskEvent]:
    events = await place.services.audit.of_task(task_id, limit=1000)
    return [event for event in events if event.event_type is TaskEventType.APPROVAL_DECIDED]


async def test_what_was_seen_is_allowed_once_and_the_agent_is_told(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        task = await place.add_task()
        execution = await place.begin(task.id)
        asked = (await place.ask(execution.id, a_wish())).approval

        decided = await place.services.approvals.allow(asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest)
        (command,) = await place.commands(execution.id)
        (told,) = await decisions(place, task.id)

        assert (decided.status, decided.scope, decided.decided_by) == (
            ApprovalStatus.ALLOWED,
            ApprovalScope.ONCE,
            USER_ACTOR,
        )
        assert command.type is CommandType.ANSWER
        assert command.payload == {
            "decision": "allow",
            "request_id": asked.request_id,
            "input_digest": asked.input_digest,
        }
        assert (told.actor, told.payload["title"], told.payload["status"]) == (USER_ACTOR, asked.title, "allowed")
        assert await place.services.approvals.inbox(None) == ()


async def test_of_two_requests_within_a_moment_each_answer_reaches_its_own(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        tasks = [await place.add_task("one"), await place.add_task("two")]
        first, second = [await place.begin(task.id) for task in tasks]
        seen = (await place.ask(first.id, a_wish("git status"))).approval
        newer = (await place.ask(second.id, a_wish("rm -rf /"))).approval

        await place.services.approvals.allow(seen.id, actor=USER_ACTOR, seen_digest=seen.input_digest)
        with pytest.raises(ConflictError, match="something else by now"):
            await place.services.approvals.allow(newer.id, actor=USER_ACTOR, seen_digest=seen.input_digest)

        assert [command.payload["request_id"] for command in await place.commands(first.id)] == [seen.request_id]
        assert await place.commands(second.id) == ()
        assert [one.approval.id for one in await place.services.approvals.inbox(None)] == [newer.id]


async def test_an_answer_to_what_was_taken_back_is_refused_and_reaches_nobody(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        task = await place.add_task()
        execution = await place.begin(task.id)
        seen = (await place.ask(execution.id, a_wish("git status"))).approval
        await place.tell(execution.id, AskClosedNews(request_id="r1", outcome=AskOutcome.WITHDRAWN))
        newer = (await place.ask(execution.id, a_wish("rm -rf /", request_id="r2"))).approval

        with pytest.raises(ConflictError, match="nobody asks this any more"):
            await place.services.approvals.allow(seen.id, actor=USER_ACTOR, seen_digest=seen.input_digest)

        assert await place.commands(execution.id) == ()
        assert [one.approval.id for one in await place.services.approvals.of_task(task.id)] == [newer.id]
        assert await decisions(place, task.id) == []


async def test_of_two_decisions_at_the_same_time_one_counts(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        execution = await place.begin((await place.add_task()).id)
        asked = (await place.ask(execution.id, a_wish())).approval
        approvals = place.services.approvals

        outcomes = await asyncio.gather(
            approvals.allow(asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest),
            approvals.deny(asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest),
            return_exceptions=True,
        )

        assert sorted(isinstance(outcome, ConflictError) for outcome in outcomes) == [False, True]
        assert len(await place.commands(execution.id)) == 1


async def test_no_decision_reaches_a_run_that_is_over(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        execution = await place.begin((await place.add_task()).id)
        asked = (await place.ask(execution.id, a_wish())).approval
        await place.end(execution.id)

        with pytest.raises(ConflictError):
            await place.services.approvals.allow(asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest)


async def test_a_denial_tells_the_reason_and_may_interrupt(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        execution = await place.begin((await place.add_task()).id)
        asked = (await place.ask(execution.id, a_wish())).approval

        denied = await place.services.approvals.deny(
            asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest, reason="not that folder", interrupts=True
        )
        (command,) = await place.commands(execution.id)

        assert (denied.status, denied.decision_reason) == (ApprovalStatus.DENIED, "not that folder")
        assert command.payload["decision"] == "deny"
        assert command.payload["reason"] == "not that folder"
        assert command.payload["interrupts"] is True


async def test_an_edited_input_goes_only_to_an_agent_that_takes_one(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        execution = await place.begin((await place.add_task()).id)
        fixed = (await place.ask(execution.id, a_wish(can_edit_input=False))).approval
        free = (await place.ask(execution.id, a_wish(request_id="r2"))).approval
        edited = {"command": "rm -rf tmp/cache"}

        with pytest.raises(UsageError, match="cannot be changed"):
            await place.services.approvals.allow(
                fixed.id, actor=USER_ACTOR, seen_digest=fixed.input_digest, tool_input=edited
            )
        await place.services.approvals.allow(
            free.id, actor=USER_ACTOR, seen_digest=free.input_digest, tool_input=edited
        )
        (command,) = await place.commands(execution.id)

        assert command.payload["tool_input"] == edited


async def test_the_whole_session_is_allowed_only_where_the_agent_offers_it(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        execution = await place.begin((await place.add_task()).id)
        narrow = (await place.ask(execution.id, a_wish(can_allow_for_session=False))).approval
        wide = (await place.ask(execution.id, a_wish(request_id="r2"))).approval

        with pytest.raises(UsageError, match="whole session"):
            await place.services.approvals.allow(
                narrow.id, actor=USER_ACTOR, seen_digest=narrow.input_digest, scope=ApprovalScope.SESSION
            )
        await place.services.approvals.allow(
            wide.id, actor=USER_ACTOR, seen_digest=wide.input_digest, scope=ApprovalScope.SESSION
        )
        (command,) = await place.commands(execution.id)

        assert command.payload["decision"] == "allow_for_session"


async def test_allowing_always_adds_the_rule_that_was_proposed(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        approvals = place.services.approvals
        execution = await place.begin((await place.add_task()).id)
        asked = (await place.ask(execution.id, a_wish("git status --short"))).approval

        await approvals.allow(asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest, scope=ApprovalScope.ALWAYS)
        (rule,) = await approvals.rules()
        verdict = await approvals.try_rules(
            tool="Bash",
            path=None,
            command="git status",
            workspace_id=place.workspace.id,
            agent_id=execution.agent_id,
        )
        (tried,) = await approvals.try_rules_on_history(place.workspace.id)

        assert (rule.decision, rule.tool, rule.command_prefix) == (RuleDecision.ALLOW, "Bash", "git status")
        assert (rule.workspace_id, rule.agent_id) == (place.workspace.id, execution.agent_id)
        assert (verdict.decision, verdict.rule) == (RuleDecision.ALLOW, rule)
        assert tried[1].rule == rule


async def test_a_compound_command_is_never_allowed_always(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        execution = await place.begin((await place.add_task()).id)
        asked = (await place.ask(execution.id, a_wish("git status; rm -rf /"))).approval

        with pytest.raises(ConflictError, match="one plain command"):
            await place.services.approvals.allow(
                asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest, scope=ApprovalScope.ALWAYS
            )

        assert await place.services.approvals.rules() == ()
        assert (await place.services.approvals.get(asked.id)).approval.status is ApprovalStatus.PENDING


async def test_a_stale_decision_adds_no_rule(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        execution = await place.begin((await place.add_task()).id)
        asked = (await place.ask(execution.id, a_wish("git status"))).approval

        with pytest.raises(ConflictError):
            await place.services.approvals.allow(
                asked.id, actor=USER_ACTOR, seen_digest="another", scope=ApprovalScope.ALWAYS
            )

        assert await place.services.approvals.rules() == ()


async def test_questions_are_answered_by_key_label_or_words(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        execution = await place.begin((await place.add_task()).id)
        ask = a_wish(ask_kind=AskKind.QUESTION, questions=QUESTIONS)
        asked = (await place.ask(execution.id, ask)).approval
        approvals = place.services.approvals

        with pytest.raises(UsageError, match="has no answer"):
            await approvals.answer(
                asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest, answers={"Which database?": "test"}
            )
        with pytest.raises(UsageError, match="takes one answer"):
            await approvals.answer(
                asked.id,
                actor=USER_ACTOR,
                seen_digest=asked.input_digest,
                answers={"Which database?": ["test", "live"], "Which tables?": "a"},
            )
        with pytest.raises(UsageError, match="nothing was asked"):
            await approvals.answer(asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest, answers={"What?": "a"})
        with pytest.raises(UsageError, match="answered, not allowed"):
            await approvals.allow(asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest)
        answered = await approvals.answer(
            asked.id,
            actor=USER_ACTOR,
            seen_digest=asked.input_digest,
            answers={"Which database?": "the LIVE one", "Which tables?": ["b", "another"]},
        )
        (command,) = await place.commands(execution.id)

        assert answered.status is ApprovalStatus.ANSWERED
        assert command.payload["answers"] == {"Which database?": "live", "Which tables?": ["b", "another"]}


async def test_a_permission_is_not_answered_and_a_dialog_is_decided_on_its_screen(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        task = await place.add_task()
        execution = await place.begin(task.id)
        wish = (await place.ask(execution.id, a_wish())).approval
        dialog = (await place.ask(execution.id, a_wish(request_id="r2", ask_kind=AskKind.DIALOG))).approval

        with pytest.raises(UsageError, match="not for an answer"):
            await place.services.approvals.answer(
                wish.id, actor=USER_ACTOR, seen_digest=wish.input_digest, answers={"x": "y"}
            )
        with pytest.raises(UsageError, match="own screen") as refused:
            await place.services.approvals.allow(dialog.id, actor=USER_ACTOR, seen_digest=dialog.input_digest)

        assert refused.value.hint == f"`agentmon attach {task.number}` shows it"


async def test_no_agent_decides_about_agents_unless_a_person_lets_it(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        approvals, settings = place.services.approvals, place.services.settings
        execution = await place.begin((await place.add_task()).id)
        asked = (await place.ask(execution.id, a_wish())).approval
        agent = Actor(type=ActorType.AGENT, id=ExecutionId("another"))

        with pytest.raises(ConflictError, match="an agent may not decide"):
            await approvals.allow(asked.id, actor=agent, seen_digest=asked.input_digest)
        with pytest.raises(ConflictError, match="an agent may not decide"):
            await approvals.deny(asked.id, actor=agent, seen_digest=asked.input_digest)
        with pytest.raises(ConflictError, match="an agent may not decide"):
            await approvals.add_rule(decision=RuleDecision.ALLOW, actor=agent)
        with pytest.raises(ConflictError, match="an agent may not"):
            await settings.set("approvals.agents_may_decide", "true", actor=agent)
        still_waiting = await approvals.inbox(None)
        await settings.set("approvals.agents_may_decide", "true", actor=USER_ACTOR)
        decided = await approvals.allow(asked.id, actor=agent, seen_digest=asked.input_digest)

        assert [one.approval.id for one in still_waiting] == [asked.id]
        assert decided.decided_by == agent


async def test_the_environment_does_not_let_agents_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTMON_APPROVALS_AGENTS_MAY_DECIDE", "true")
    async with conversing(tmp_path) as place:
        with pytest.raises(ConflictError, match="an agent may not decide"):
            await place.services.approvals.add_rule(
                decision=RuleDecision.ALLOW, actor=Actor(type=ActorType.AGENT, id="a")
            )


async def test_a_request_is_found_by_the_start_of_its_id_or_its_task(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        approvals = place.services.approvals
        task = await place.add_task()
        execution = await place.begin(task.id)
        asked = (await place.ask(execution.id, a_wish())).approval

        by_task = await approvals.find(f"#{task.number}", place.workspace.id)
        by_id = await approvals.find(asked.id[:30], None)
        await place.ask(execution.id, a_wish(request_id="r2"))

        assert by_task.approval.id == by_id.approval.id == asked.id
        with pytest.raises(UsageError, match="waits for several decisions"):
            await approvals.find(f"#{task.number}", place.workspace.id)
        with pytest.raises(UsageError, match="several requests begin with"):
            await approvals.find("0", None)
        with pytest.raises(NotFoundError):
            await approvals.find("#99", place.workspace.id)
        with pytest.raises(NotFoundError):
            await approvals.find("zzz", None)


async def test_a_dangerous_start_waits_for_leave_and_is_cancelled_without_it(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        start = a_wish("deploy --all", ask_kind=AskKind.START)
        kept, denied = await place.add_task("a"), await place.add_task("b")
        await place.enqueue(kept.id, start_approval=start)
        await place.enqueue(denied.id, start_approval=start)
        (first,) = await place.services.approvals.of_task(kept.id)
        (second,) = await place.services.approvals.of_task(denied.id)
        held = await place.services.executions.newest(kept.id)

        await place.services.approvals.allow(
            first.approval.id, actor=USER_ACTOR, seen_digest=first.approval.input_digest
        )
        await place.services.approvals.deny(
            second.approval.id, actor=USER_ACTOR, seen_digest=second.approval.input_digest
        )
        allowed = await place.services.executions.newest(kept.id)
        cancelled = await place.services.executions.newest(denied.id)

        assert held is not None
        assert held.is_held
        assert allowed is not None
        assert (allowed.status, allowed.is_held) == (ExecutionStatus.QUEUED, False)
        assert cancelled is not None
        assert cancelled.status is ExecutionStatus.CANCELLED


async def test_rules_are_listed_switched_and_removed_with_a_trail(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        approvals = place.services.approvals
        rule = await approvals.add_rule(decision=RuleDecision.DENY, command_prefix="rm", actor=USER_ACTOR)

        await approvals.set_rule_enabled(rule.id, False, actor=USER_ACTOR)
        (switched,) = await approvals.rules()
        found = await approvals.find_rule(rule.id[-8:])
        await approvals.remove_rule(rule.id, actor=USER_ACTOR)
        lines = await place.services.audit.all(None, limit=100)
        changes = [line.event for line in lines if line.event.event_type is TaskEventType.APPROVAL_RULE_CHANGED]

        assert not switched.is_enabled
        assert found.id == rule.id
        assert await approvals.rules() == ()
        assert [change.payload["change"] for change in changes] == ["added", "switched off", "removed"]
        with pytest.raises(NotFoundError):
            await approvals.find_rule(rule.id)
        with pytest.raises(UsageError):
            await approvals.add_rule(decision=RuleDecision.ALLOW, command_prefix="a; b", actor=USER_ACTOR)


async def test_the_doctor_names_what_nobody_decided_for_an_hour(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        task = await place.add_task()
        execution = await place.begin(task.id)
        await place.ask(execution.id, a_wish())
        fresh = [finding for finding in await place.services.doctor.check() if finding.name == "requests"]
        await place.ask(execution.id, a_wish(request_id="r2"), at=datetime.now(UTC) - timedelta(hours=1, minutes=5))
        late = [finding for finding in await place.services.doctor.check() if finding.name == "requests"]

        assert [finding.level for finding in fresh] == [FindingLevel.OK]
        assert late[0].level is not FindingLevel.OK
        assert late[0].text.startswith("1 wait for a decision for more than an hour; the oldest, of #1 in project")


async def test_allowing_always_writes_the_decision_and_the_rule_or_neither(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        approvals = place.services.approvals
        execution = await place.begin((await place.add_task()).id)
        asked = (await place.ask(execution.id, a_wish())).approval
        proposed = await approvals.proposed_rule(asked.id)
        of_nowhere = replace(proposed, workspace_id=WorkspaceId(new_id()))

        with pytest.raises(ConstraintError):
            await approvals.allow(
                asked.id,
                actor=USER_ACTOR,
                seen_digest=asked.input_digest,
                scope=ApprovalScope.ALWAYS,
                rule=of_nowhere,
            )
        refused = (await approvals.get(asked.id)).approval, await approvals.rules(), await place.commands(execution.id)
        allowed = await approvals.allow(
            asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest, scope=ApprovalScope.ALWAYS
        )
        rules = await approvals.rules()

    assert refused == (asked, (), ())
    assert (allowed.status, [rule.tool for rule in rules]) == (ApprovalStatus.ALLOWED, [proposed.tool])


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"], ids=["NUL", "surrogate"])
async def test_what_no_database_and_no_path_holds_is_stored_as_a_replacement_and_fits_as_such(
    tmp_path: Path, text: str
) -> None:
    async with conversing(tmp_path) as place:
        approvals, workspace = place.services.approvals, place.workspace
        execution = await place.begin((await place.add_task()).id)
        asked = (await place.ask(execution.id, a_wish())).approval
        agent_id = (await place.services.executions.get(execution.id)).agent_id

        rules = [
            await approvals.add_rule(decision=RuleDecision.DENY, path=f"/{text}", note=text, actor=USER_ACTOR),
            await approvals.add_rule(decision=RuleDecision.DENY, tool=text, actor=USER_ACTOR),
        ]
        verdicts = [
            await approvals.try_rules(tool=tool, path=path, command=None, workspace_id=workspace.id, agent_id=agent_id)
            for tool, path in (("Read", f"/{text}"), (text, None))
        ]
        denied = await approvals.deny(asked.id, actor=USER_ACTOR, seen_digest=asked.input_digest, reason=text)

        assert await approvals.rules() == tuple(rules)
        assert (rules[0].path, rules[1].tool) == ("/a\ufffdb", "a\ufffdb")
        assert [verdict.rule for verdict in verdicts] == rules
        assert (denied.status, denied.decision_reason) == (ApprovalStatus.DENIED, "a\ufffdb")


async def test_a_request_that_is_too_long_to_be_tried_is_refused(tmp_path: Path) -> None:
    async with conversing(tmp_path) as place:
        for tool, path in (("x" * 201, None), ("Read", "/" + "x" * 4_096)):
            with pytest.raises(UsageError):
                await place.services.approvals.try_rules(
                    tool=tool,
                    path=path,
                    command=None,
                    workspace_id=place.workspace.id,
                    agent_id=(await place.services.agents.list())[0].id,
                )
