"""Approvals: what waits for a person, decisions, and the rules that decide without one."""

from __future__ import annotations

import asyncio
import os
import posixpath
import re
from typing import TYPE_CHECKING, Final

from agentmon.domain.approval_rules import (
    RequestedAction,
    RuleVerdict,
    judge,
    proposed_rule,
    require_short,
    usable_rule,
)
from agentmon.domain.approvals import ApprovalRule, ApprovalScope, ApprovalStatus
from agentmon.domain.budget_requests import QUESTION, BudgetAnswer, new_limit
from agentmon.domain.conversation import AskDecision, AskKind
from agentmon.domain.errors import ConflictError, NotFoundError, UsageError
from agentmon.domain.ids import ApprovalId, ApprovalRuleId, new_id
from agentmon.domain.plain_text import storable
from agentmon.domain.requested_actions import requested_action
from agentmon.services.naming import require_named
from agentmon.services.question_answers import answers_text, checked_answers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.approvals import Approval, ApprovalListing, RuleDecision
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.idempotency import IdempotencyKey
    from agentmon.domain.ids import AgentId, TaskId, WorkspaceId
    from agentmon.services.agents import AgentService
    from agentmon.services.queue import QueueService
    from agentmon.services.settings import SettingsService
    from agentmon.services.workspaces import WorkspaceService
    from agentmon.store.approval_rules import ApprovalRuleRepository
    from agentmon.store.approvals import ApprovalRepository
    from agentmon.store.idempotency import IdempotencyRepository

_MOST_NAMED: Final = 5
_HISTORY_TRIED: Final = 1000


class ApprovalService:
    """Reads requests, decides them, and keeps the rules."""

    def __init__(
        self,
        *,
        approvals: ApprovalRepository,
        rules: ApprovalRuleRepository,
        keys: IdempotencyRepository,
        agents: AgentService,
        workspaces: WorkspaceService,
        settings: SettingsService,
        queue: QueueService,
        clock: Clock,
    ) -> None:
        self._approvals = approvals
        self._rules = rules
        self._keys = keys
        self._agents = agents
        self._workspaces = workspaces
        self._settings = settings
        self._queue = queue
        self._clock = clock

    async def inbox(self, workspace_id: WorkspaceId | None) -> tuple[ApprovalListing, ...]:
        """Return what waits for a decision, oldest first; None means all workspaces."""
        return await self._approvals.pending(workspace_id)

    async def history(
        self, workspace_id: WorkspaceId | None, *, limit: int, offset: int = 0
    ) -> tuple[ApprovalListing, ...]:
        """Return requests of every state, newest first; None means all workspaces."""
        return await self._approvals.history(workspace_id, limit=limit, offset=offset)

    async def get(self, approval_id: ApprovalId) -> ApprovalListing:
        """Return one request.

        Raises:
            NotFoundError: There is none of this id.
        """
        return await self._approvals.get(approval_id)

    async def find(self, text: str, workspace_id: WorkspaceId | None) -> ApprovalListing:
        """Return the request that a person means by the start of its id, or by the number of its task.

        Args:
            text: The start of an id, or ``#12`` for the one request that waits of task 12.
            workspace_id: Where the number counts; None means every workspace.

        Raises:
            NotFoundError: Nothing of that name waits.
            UsageError: It may mean several; the hint names them.
        """
        text = text.strip()
        number = re.fullmatch(r"#?([0-9]{1,18})", text, re.ASCII)
        if number is not None:
            waiting = [one for one in await self.inbox(workspace_id) if one.task_number == int(number[1])]
            if waiting:
                return _the_only_one(waiting, f"#{int(number[1])} waits for several decisions")
            if text.startswith("#"):
                raise NotFoundError(f"{text} waits for no decision", hint="`agentmon inbox` lists what waits")
        found = [
            one
            for one in await self._approvals.find_by_prefix(text)
            if workspace_id is None or one.workspace_id == workspace_id
        ]
        if not found:
            raise NotFoundError(f"nothing that waits is named {text!r}", hint="`agentmon inbox` lists what waits")
        return _the_only_one(found, f"several requests begin with {text!r}")

    async def find_decided(self, key: IdempotencyKey | None, *, actor: Actor) -> ApprovalListing | None:
        """Return the request that the same decision under this key was about, looked after; None when it is new.

        Raises:
            ConflictError: The actor asked for something else under this key.
            UndeliveredError: Nobody carries it out yet.
        """
        known = await self._keys.find_result(key, actor=actor)
        if known is None:
            return None
        # Whoever decided first may have died before somebody carried it out.
        await self._queue.deliver()
        return await self._approvals.get(ApprovalId(known))

    async def of_task(self, task_id: TaskId) -> tuple[ApprovalListing, ...]:
        """Return what waits for a decision of this task, oldest first."""
        return tuple(one for one in await self.inbox(None) if one.task_id == task_id)

    async def allow(
        self,
        approval_id: ApprovalId,
        *,
        actor: Actor,
        seen_digest: str,
        scope: ApprovalScope = ApprovalScope.ONCE,
        tool_input: Mapping[str, object] | None = None,
        rule: ApprovalRule | None = None,
        typed_name: str | None = None,
        key: IdempotencyKey | None = None,
    ) -> Approval:
        """Allow what was seen.

        Args:
            approval_id: The request.
            actor: Who decides.
            seen_digest: ``input_digest`` of what was shown; another input is never allowed.
            scope: How far it reaches; ``always`` adds a rule.
            tool_input: Another input for the tool, where the agent takes one.
            rule: The rule that ``always`` adds; None means the proposed one.
            typed_name: What the person typed, for what destroys things; see ``Approval.name_to_type``.
            key: Of this request; what came of the same one before is returned.

        Raises:
            NotFoundError: There is none of this id.
            UsageError: It cannot be allowed this way; the hint says what can be done.
            ConflictError: An agent would decide; or it was decided or withdrawn, asks for something else by now, or no
                rule can allow it.
            UndeliveredError: It is decided, and nobody tells the agent yet.
        """
        listing = await self._approvals.get(approval_id)
        approval = listing.approval
        if approval.ask_kind is AskKind.QUESTION:
            raise UsageError(
                "a question is answered, not allowed", hint=f"`agentmon answer {approval.id} CHOICE` answers it"
            )
        wanted = AskDecision.ALLOW_FOR_SESSION if scope is ApprovalScope.SESSION else AskDecision.ALLOW
        _require_answerable(listing, wanted)
        require_named(approval, scope=scope, actor=actor, typed_name=typed_name, tool_input=tool_input)
        if scope is ApprovalScope.SESSION and not approval.can_allow_for_session:
            raise UsageError("this cannot be allowed for the whole session", hint="allow it once, or always by a rule")
        if tool_input is not None and not approval.can_edit_input:
            raise UsageError(
                "the input of this request cannot be changed", hint="deny it, and say what should be done instead"
            )
        added = None
        if scope is ApprovalScope.ALWAYS:
            added = usable_rule(rule or await self.proposed_rule(approval_id))
        answer: dict[str, object] = {"decision": wanted.value}
        if tool_input is not None:
            answer["tool_input"] = dict(tool_input)
        return await self._decide(
            approval_id,
            ApprovalStatus.ALLOWED,
            answer,
            scope=scope,
            added_rule=added,
            key=key,
            actor=actor,
            reason="with another input" if tool_input is not None else "",
            seen_digest=seen_digest,
        )

    async def deny(
        self,
        approval_id: ApprovalId,
        *,
        actor: Actor,
        seen_digest: str,
        reason: str = "",
        interrupts: bool = False,
        key: IdempotencyKey | None = None,
    ) -> Approval:
        """Deny what was seen; the agent gets the reason, with the answer or as its next message.

        Args:
            approval_id: The request.
            actor: Who decides.
            seen_digest: ``input_digest`` of what was shown.
            reason: What the agent is told; empty for the plain denial.
            interrupts: Whether the agent stops what it does and waits for a message.
            key: Of this request; what came of the same one before is returned.

        Raises:
            NotFoundError: There is none of this id.
            UsageError: Only the agent's own screen takes the answer.
            ConflictError: An agent would decide; or it was decided or withdrawn, or asks for something else by now.
            UndeliveredError: It is decided, and nobody tells the agent yet.
        """
        listing = await self._approvals.get(approval_id)
        _require_answerable(listing, AskDecision.DENY)
        if interrupts and listing.approval.is_in_screen:
            raise UsageError(
                "its own screen knows no denial that also stops it", hint="deny it, then interrupt the agent"
            )
        answer: dict[str, object] = {"decision": AskDecision.DENY.value}
        if reason and listing.approval.hears_reason:
            answer["reason"] = reason
        if interrupts:
            answer["interrupts"] = True
        return await self._decide(
            approval_id, ApprovalStatus.DENIED, answer, key=key, actor=actor, reason=reason, seen_digest=seen_digest
        )

    async def answer(
        self,
        approval_id: ApprovalId,
        *,
        actor: Actor,
        seen_digest: str,
        answers: Mapping[str, str | Sequence[str]],
        key: IdempotencyKey | None = None,
    ) -> Approval:
        """Answer the questions of an agent.

        Args:
            approval_id: The request.
            actor: Who answers.
            seen_digest: ``input_digest`` of what was shown.
            answers: By the text of each question: the key or label of a choice, several of them, or a text.
            key: Of this request; what came of the same one before is returned.

        Raises:
            NotFoundError: There is none of this id.
            UsageError: It asks no question, or the answers do not fit.
            ConflictError: It was answered or withdrawn, or asks for something else by now.
            UndeliveredError: It is answered, and nobody tells the agent yet.
        """
        listing = await self._approvals.get(approval_id)
        _require_answerable(listing, None)
        if not listing.approval.ask_kind.is_question:
            raise UsageError("this asks for a leave, not for an answer", hint="allow or deny it")
        checked = checked_answers(listing.approval.questions, answers)
        if listing.approval.ask_kind is AskKind.BUDGET:
            return await self._answer_budget(listing.approval, checked, seen_digest=seen_digest, key=key, actor=actor)
        answer: dict[str, object] = {"decision": "answer", "answers": checked}
        said = answers_text(listing.approval.questions, checked)
        return await self._decide(
            approval_id, ApprovalStatus.ANSWERED, answer, key=key, actor=actor, reason=said, seen_digest=seen_digest
        )

    async def _answer_budget(
        self,
        approval: Approval,
        checked: Mapping[str, str | list[str]],
        *,
        seen_digest: str,
        key: IdempotencyKey | None,
        actor: Actor,
    ) -> Approval:
        said = str(checked[QUESTION])
        if said == BudgetAnswer.ONCE:
            return await self.allow(approval.id, actor=actor, seen_digest=seen_digest, key=key)
        if said == BudgetAnswer.STOP:
            return await self.deny(approval.id, actor=actor, seen_digest=seen_digest, key=key)
        limit = new_limit(approval, said, await self._settings.money())
        reason = answers_text(approval.questions, checked)
        return await self._decide(
            approval.id,
            ApprovalStatus.ANSWERED,
            {"limit": limit},
            key=key,
            actor=actor,
            reason=reason,
            seen_digest=seen_digest,
        )

    async def proposed_rule(self, approval_id: ApprovalId) -> ApprovalRule:
        """Return the rule that allowing this always would add.

        Raises:
            NotFoundError: There is no such request.
            ConflictError: No rule can allow it.
        """
        listing = await self._approvals.get(approval_id)
        if listing.approval.ask_kind is not AskKind.PERMISSION:
            raise ConflictError("rules decide about tools only", hint="allow it once")
        rule_id, at = ApprovalRuleId(new_id()), self._clock.now()
        return await asyncio.to_thread(proposed_rule, await self._action(listing), rule_id=rule_id, at=at)

    async def rules(self) -> tuple[ApprovalRule, ...]:
        """Return all rules, oldest first."""
        return await self._rules.list()

    async def find_rule(self, text: str) -> ApprovalRule:
        """Return the rule whose id begins or ends with the text.

        Raises:
            NotFoundError: There is none.
            UsageError: There are several.
        """
        found = [rule for rule in await self.rules() if text and (rule.id.startswith(text) or rule.id.endswith(text))]
        if not found:
            raise NotFoundError(f"there is no rule {text}", hint="`agentmon rules` lists them")
        if len(found) > 1:
            raise UsageError(f"several rules are named {text}", hint="write more of the id")
        return found[0]

    async def add_rule(
        self,
        *,
        decision: RuleDecision,
        tool: str = "*",
        path: str | None = None,
        command_prefix: str | None = None,
        workspace_id: WorkspaceId | None = None,
        agent_id: AgentId | None = None,
        note: str = "",
        actor: Actor,
    ) -> ApprovalRule:
        """Add a rule; it decides what is asked from now on, and what waits already.

        Raises:
            UsageError: It could never fit, or is too long.
        """
        now = self._clock.now()
        rule = ApprovalRule(
            id=ApprovalRuleId(new_id()),
            decision=decision,
            tool=tool,
            path=path,
            command_prefix=command_prefix,
            workspace_id=workspace_id,
            agent_id=agent_id,
            note=note,
            created_at=now,
        )
        added = await self._rules.add(usable_rule(rule), actor=actor, at=now)
        await self._queue.deliver()
        return added

    async def remove_rule(self, rule_id: ApprovalRuleId, *, actor: Actor) -> None:
        """Take a rule away; what it decided stays decided.

        Raises:
            NotFoundError: There is none of this id.
        """
        await self._rules.remove(rule_id, actor=actor, at=self._clock.now())
        await self._queue.deliver()

    async def set_rule_enabled(self, rule_id: ApprovalRuleId, is_enabled: bool, *, actor: Actor) -> None:
        """Switch a rule on or off.

        Raises:
            NotFoundError: There is none of this id.
        """
        await self._rules.set_enabled(rule_id, is_enabled, actor=actor, at=self._clock.now())
        await self._queue.deliver()

    async def try_rules(
        self,
        *,
        tool: str,
        path: str | None,
        command: str | None,
        workspace_id: WorkspaceId,
        agent_id: AgentId,
    ) -> RuleVerdict:
        """Return what the rules would decide about such a request; nothing is changed.

        Raises:
            NotFoundError: There is no such workspace.
            UsageError: The tool or the path is too long.
        """
        require_short(tool=tool, path=path)
        root = (await self._workspaces.get(workspace_id)).root_path
        named = None if path is None else posixpath.normpath(posixpath.join(root, storable(path)))
        action = RequestedAction(
            tool=storable(tool),
            paths=() if named is None else (await asyncio.to_thread(os.path.realpath, named),),
            named_paths=() if named is None else (named,),
            command=command,
            workspace_id=workspace_id,
            workspace_root=await asyncio.to_thread(os.path.realpath, root),
            agent_id=agent_id,
        )
        return await asyncio.to_thread(judge, action, await self.rules())

    async def try_rules_on_history(
        self, workspace_id: WorkspaceId | None, *, limit: int = _HISTORY_TRIED
    ) -> tuple[tuple[ApprovalListing, RuleVerdict], ...]:
        """Return past requests with what the present rules would decide about each, newest first."""
        rules = await self.rules()
        asked = [
            one
            for one in await self._approvals.history(workspace_id, limit=limit)
            if one.approval.ask_kind is AskKind.PERMISSION
        ]
        actions = [await self._action(one) for one in asked]
        verdicts = await asyncio.to_thread(lambda: [judge(action, rules) for action in actions])
        return tuple(zip(asked, verdicts, strict=True))

    async def _decide(
        self,
        approval_id: ApprovalId,
        status: ApprovalStatus,
        answer: Mapping[str, object],
        *,
        scope: ApprovalScope = ApprovalScope.ONCE,
        added_rule: ApprovalRule | None = None,
        key: IdempotencyKey | None,
        actor: Actor,
        reason: str,
        seen_digest: str,
    ) -> Approval:
        decided = await self._approvals.decide(
            approval_id,
            status=status,
            scope=scope,
            actor=actor,
            reason=storable(reason),
            answer=answer,
            rule_id=None,
            seen_digest=seen_digest,
            added_rule=added_rule,
            key=key,
            at=self._clock.now(),
        )
        await self._queue.deliver()
        return decided

    async def _action(self, listing: ApprovalListing) -> RequestedAction:
        agent = await self._agents.by_slug(listing.agent_slug, removed_too=True)
        workspace = await self._workspaces.get(listing.workspace_id)
        return await asyncio.to_thread(
            requested_action,
            listing.approval,
            working_dir=listing.working_dir,
            workspace_id=listing.workspace_id,
            workspace_root=workspace.root_path,
            agent_id=agent.id,
            resolve=os.path.realpath,
        )


def _require_answerable(listing: ApprovalListing, decision: AskDecision | None) -> None:
    approval = listing.approval
    if approval.takes(decision):
        return
    attach = f"`agentmon attach {listing.task_number}` shows it"
    if approval.typed:
        offered = ", ".join(f"{choice.label} ({choice.description})" for choice in approval.typed.values())
        raise UsageError("its own screen does not offer this", hint=f"it offers: {offered}; {attach}")
    raise UsageError("only the agent's own screen takes this answer", hint=attach)


def _the_only_one(found: Sequence[ApprovalListing], complaint: str) -> ApprovalListing:
    if len(found) == 1:
        return found[0]
    named = "; ".join(
        f"{one.approval.id} ({one.workspace_name} #{one.task_number}: {one.approval.title})" for one in found[:5]
    )
    raise UsageError(complaint, hint=f"name one by its id: {named}")
