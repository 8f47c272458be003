"""Whoever decides in the storm: allows, denies, answers, comes too late, sends messages and interrupts."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from agentmon.domain.approvals import ApprovalScope
from agentmon.domain.conversation import AskKind
from agentmon.domain.errors import AgentmonError
from agentmon.domain.ids import TaskId
from agentmon.services.actors import USER_ACTOR

if TYPE_CHECKING:
    import random

    from agentmon.bootstrap import Services
    from agentmon.domain.approvals import ApprovalListing
    from benchmarks.chaos.actions import Actions

_LATE: Final = 0.15
_DENIED: Final = 0.2
_FORGED: Final = 0.1
_FORGED_DIGEST: Final = "0" * 64


class Decider:
    """Reads the inbox and decides what stands there, some of it long after it was read."""

    def __init__(self, services: Services, actions: Actions, chance: random.Random) -> None:
        self._services = services
        self._actions = actions
        self._chance = chance
        self._put_off: list[ApprovalListing] = []

    async def decide_some(self) -> None:
        """Decide about a part of what waits, and about things that may not wait any more."""
        with contextlib.suppress(AgentmonError):
            for listing in await self._services.approvals.inbox(None):
                throw = self._chance.random()
                if throw < _LATE:
                    self._put_off.append(listing)
                elif throw < 2 * _LATE:
                    continue
                else:
                    await self._decide(listing)
        if self._put_off and self._chance.random() < 0.3:
            await self._decide(self._put_off.pop(self._chance.randrange(len(self._put_off))))

    async def decide_all(self) -> None:
        """Decide about all that waits."""
        with contextlib.suppress(AgentmonError):
            for listing in await self._services.approvals.inbox(None):
                await self._decide(listing)

    async def disturb(self, task_id: str) -> None:
        """Say something to the agent of a task, or interrupt it."""
        with contextlib.suppress(AgentmonError):
            if self._chance.random() < 0.6:
                await self._services.conversations.send(TaskId(task_id), "and what else?", actor=USER_ACTOR)
            else:
                await self._services.conversations.interrupt(TaskId(task_id), actor=USER_ACTOR)

    async def finish(self, task_id: str) -> None:
        """Let a conversation end that waits for a person's word."""
        with contextlib.suppress(AgentmonError):
            await self._services.conversations.finish(TaskId(task_id), actor=USER_ACTOR)

    async def _decide(self, listing: ApprovalListing) -> None:
        approval, approvals = listing.approval, self._services.approvals
        if self._chance.random() < _FORGED:
            with contextlib.suppress(AgentmonError):
                await approvals.allow(approval.id, actor=USER_ACTOR, seen_digest=_FORGED_DIGEST)
                self._actions.client_words.append(f"{approval.id} was allowed by who had not seen it")
        is_denied = self._chance.random() < _DENIED
        if is_denied and approval.ask_kind is AskKind.START:
            self._actions.stopped_tasks.add(listing.task_number)
        # A full disk takes no decision, and of several the first counts.
        with contextlib.suppress(AgentmonError):
            if is_denied:
                await approvals.deny(approval.id, actor=USER_ACTOR, seen_digest=approval.input_digest, reason="not now")
            elif approval.ask_kind is AskKind.QUESTION:
                answers = {one.question: one.choices[0].key for one in approval.questions}
                await approvals.answer(
                    approval.id, actor=USER_ACTOR, seen_digest=approval.input_digest, answers=answers
                )
            else:
                is_for_session = approval.can_allow_for_session and self._chance.random() < 0.2
                await approvals.allow(
                    approval.id,
                    actor=USER_ACTOR,
                    seen_digest=approval.input_digest,
                    scope=ApprovalScope.SESSION if is_for_session else ApprovalScope.ONCE,
                )
        await asyncio.sleep(0)
