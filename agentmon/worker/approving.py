"""Decisions that need no person: rules as soon as something is asked, and a denial when nobody decided in time."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import defaultdict
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import DangerLevel
from agentmon.domain.amounts import duration_text
from agentmon.domain.approval_rules import judge, names_whole
from agentmon.domain.approvals import ApprovalScope, ApprovalStatus, RuleDecision
from agentmon.domain.conversation import AskKind
from agentmon.domain.danger import TOO_MUCH
from agentmon.domain.errors import ConflictError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.requested_actions import requested_action
from agentmon.threads import in_daemon_thread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.approval_rules import RuleVerdict
    from agentmon.domain.approvals import ApprovalListing, ApprovalRule
    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ClaimedExecution
    from agentmon.domain.ids import ApprovalId, ApprovalRuleId, ExecutionId
    from agentmon.store.approval_rules import ApprovalRuleRepository
    from agentmon.store.approvals import ApprovalRepository
    from agentmon.worker.watching import Watch

_log = logging.getLogger(__name__)

_SYSTEM: Final = Actor(type=ActorType.SYSTEM)
_JUDGED_WITHIN_S: Final = 3.0
_MOST_JUDGING: Final = 16
"""Most executions whose requests are judged at one time, each in a thread of its own."""


class Approver:
    """Decides about what the agents ask that this worker watches."""

    def __init__(
        self, *, approvals: ApprovalRepository, rules: ApprovalRuleRepository, watch: Watch, clock: Clock
    ) -> None:
        self._approvals = approvals
        self._rules = rules
        self._watch = watch
        self._clock = clock
        self._has_undecided = True
        self._unjudged: set[ApprovalId] = set()
        """Requests that could not be judged, or not in time; a person decides about them."""
        self._stuck: set[ExecutionId] = set()
        """Executions of which a request is still being judged; their others wait until that is over."""
        self._judging = asyncio.Semaphore(_MOST_JUDGING)

    async def apply_rules(self, *, has_news: bool) -> bool:
        """Decide by the rules what was asked since the last call, and, on other news, what waits already.

        Each request is judged apart: one that cannot be judged, or not within 3 s, since it names a path that does not
        answer, waits for a person, and the others are decided.

        Args:
            has_news: Whether somebody changed the database, so that there may be other rules.

        Returns:
            Whether anything was decided.

        Raises:
            StoreError: The next call decides the same again.
        """
        if not self._watch.has_asked and not (has_news and self._has_undecided):
            return False
        self._watch.has_asked = False
        try:
            waiting = await self._approvals.undecided(self._watch.ids)
            decided = await self._decide_all(waiting)
        except BaseException:
            self._watch.has_asked = True
            raise
        self._has_undecided = len(waiting) > decided or any(listing.more for listing in waiting)
        # Behind what was decided there may be more than one look lists.
        self._watch.has_asked |= bool(decided) and any(listing.more for listing in waiting)
        return bool(decided)

    async def deny_late(self, timeout_s: float) -> bool:
        """Deny what waited for longer than that; return whether anything was; 0 means that everything may wait.

        Raises:
            StoreError: The next call decides the same again.
        """
        if not timeout_s:
            return False
        now = self._clock.now()
        late = await self._approvals.expire(now - timedelta(seconds=timeout_s), at=now)
        reason = f"nobody decided within {duration_text(timeout_s)}"
        denied = [
            await self._decide(listing, ApprovalStatus.EXPIRED, reason=reason, rule_id=None)
            for listing in late
            if listing.approval.ask_kind is AskKind.START or listing.approval.execution_id in self._watch
        ]
        return any(denied)

    async def _decide_all(self, waiting: Sequence[ApprovalListing]) -> int:
        # What was put back says why, and is for a person: the rule would decide the same again, without end.
        asked = [
            listing
            for listing in waiting
            if listing.approval.ask_kind is AskKind.PERMISSION and not listing.approval.decision_reason
        ]
        rules = await self._rules.list() if asked else ()
        if not rules:
            return 0
        self._unjudged &= {listing.approval.id for listing in asked}
        by_execution: defaultdict[ExecutionId, list[ApprovalListing]] = defaultdict(list)
        for listing in asked:
            if listing.approval.id not in self._unjudged:
                by_execution[listing.approval.execution_id].append(listing)
        judging = [
            self._judge(own, watched.claimed, rules)
            for execution_id, own in by_execution.items()
            if (watched := self._watch.find(execution_id)) is not None and execution_id not in self._stuck
        ]
        decided = 0
        for judged in asyncio.as_completed(judging):
            for listing, verdict in await judged:
                decided += await self._decide_by(listing, verdict)
        return decided

    async def _judge(
        self, asked: Sequence[ApprovalListing], claimed: ClaimedExecution, rules: Sequence[ApprovalRule]
    ) -> list[tuple[ApprovalListing, RuleVerdict]]:
        """Judge what one execution asks, in a thread that nobody waits for longer than that."""
        verdicts: list[RuleVerdict | None] = []
        name = claimed.execution.id
        async with self._judging:
            work = asyncio.ensure_future(
                in_daemon_thread(partial(_judge_all, asked, claimed, rules, verdicts), name=f"rules for {name}")
            )
            await asyncio.wait([work], timeout=_JUDGED_WITHIN_S)
        in_time = tuple(verdicts)
        if not work.done():
            self._stuck.add(name)
            work.add_done_callback(lambda _: self._go_on_with(name))
            if len(in_time) < len(asked):
                late = asked[len(in_time)].approval.id
                self._unjudged.add(late)
                _log.warning("execution %s: request %s is left to a person: its paths do not answer", name, late)
        judged = list(zip(asked, in_time, strict=False))
        self._unjudged |= {listing.approval.id for listing, verdict in judged if verdict is None}
        return [(listing, verdict) for listing, verdict in judged if verdict is not None]

    def _go_on_with(self, execution_id: ExecutionId) -> None:
        self._stuck.discard(execution_id)
        self._watch.has_asked = True

    async def _decide_by(self, listing: ApprovalListing, verdict: RuleVerdict) -> bool:
        if verdict.rule is None or verdict.decision is RuleDecision.ASK:
            return False
        is_allowed = verdict.decision is RuleDecision.ALLOW
        status = ApprovalStatus.ALLOWED if is_allowed else ApprovalStatus.DENIED
        return await self._decide(listing, status, reason=verdict.why, rule_id=verdict.rule.id)

    async def _decide(
        self, listing: ApprovalListing, status: ApprovalStatus, *, reason: str, rule_id: ApprovalRuleId | None
    ) -> bool:
        approval = listing.approval
        is_allowed = status is ApprovalStatus.ALLOWED
        answer = {"decision": "allow"} if is_allowed else {"decision": "deny", "reason": f"Not allowed: {reason}."}
        try:
            await self._approvals.decide(
                approval.id,
                status=status,
                scope=ApprovalScope.ONCE,
                actor=_SYSTEM,
                reason=reason,
                answer=answer,
                rule_id=rule_id,
                seen_digest=approval.input_digest,
                at=self._clock.now(),
            )
        except ConflictError as error:
            # A person was quicker, or the agent took it back.
            _log.info("execution %s: not decided: %s", approval.execution_id, error)
            return False
        return True


def _judge_all(
    asked: Sequence[ApprovalListing],
    claimed: ClaimedExecution,
    rules: Sequence[ApprovalRule],
    verdicts: list[RuleVerdict | None],
) -> None:
    """Add the verdict about each, one by one; None for what cannot be judged."""
    for listing in asked:
        try:
            verdicts.append(_verdict(listing, claimed, rules))
        except Exception:  # noqa: BLE001 - whatever one agent asks, what others ask is judged
            verdicts.append(None)
            approval = listing.approval
            _log.exception("execution %s: request %s is left to a person", approval.execution_id, approval.id)


def _verdict(listing: ApprovalListing, claimed: ClaimedExecution, rules: Sequence[ApprovalRule]) -> RuleVerdict:
    action = requested_action(
        listing.approval,
        working_dir=listing.working_dir,
        workspace_id=listing.workspace_id,
        workspace_root=claimed.workspace_root,
        agent_id=claimed.agent.id,
        resolve=os.path.realpath,
    )
    approval = listing.approval
    if approval.danger_level is DangerLevel.DESTRUCTIVE or TOO_MUCH in approval.danger_reason:
        # The beginning of a command was allowed by somebody who did not think of what destroys things.
        rules = [rule for rule in rules if rule.decision is not RuleDecision.ALLOW or names_whole(rule, action)]
    return judge(action, rules)
