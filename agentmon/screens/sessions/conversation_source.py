"""Reads a conversation: all of it at first, then what is new."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Final

from agentmon.domain.events import EventType
from agentmon.widgets.conversation_blocks import conversation_blocks
from agentmon.widgets.plan_blocks import is_plan_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from agentmon.bootstrap import Services
    from agentmon.domain.conversation import PlanNews
    from agentmon.domain.events import Event
    from agentmon.domain.ids import ExecutionId, SessionId, WorkspaceId
    from agentmon.domain.operations import Operation
    from agentmon.domain.sessions import Message
    from agentmon.widgets.block_view import Block

_PAGE: Final = 500
_MOST_OPERATIONS: Final = 5000
_MOST_REQUESTS: Final = 500
_REREAD: Final = 2
"""Messages that are read again: the newest may have gone on since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation as it is shown."""

    blocks: tuple[Block, ...] = ()
    operations: tuple[Operation, ...] = ()
    plan: PlanNews | None = None
    folder: str = ""
    """Where its agent works."""


class ConversationSource:
    """What is known of one conversation."""

    def __init__(self, session_id: SessionId) -> None:
        self.session_id = session_id
        self._messages: list[Message] = []
        self._diffs: list[Event] = []
        self._plans: dict[ExecutionId, PlanNews] = {}
        self._blocks: tuple[Block, ...] = ()
        self._newest_id: ExecutionId | None = None
        """The run whose plan may have changed since it was read."""

    async def read(
        self, services: Services, workspace_id: WorkspaceId, *, agent_name: str, now: datetime
    ) -> Conversation:
        """Return the conversation with what is new.

        Raises:
            NotFoundError: The conversation is gone.
        """
        await self._read_messages(services)
        await self._read_diffs(services)
        operations = await services.conversations.operations(session_id=self.session_id, limit=_MOST_OPERATIONS)
        requests = await services.approvals.history(workspace_id, limit=_MOST_REQUESTS)
        executions = await services.sessions.executions(self.session_id)
        session = await services.sessions.get(self.session_id)
        newest = executions[-1].id if executions else None
        await self._read_plans(services, {one.execution_id for one in operations if is_plan_call(one)} | {newest})
        self._newest_id = newest
        plan = None if newest is None else self._plans.get(newest)
        make = partial(
            conversation_blocks,
            messages=tuple(self._messages),
            operations=operations,
            approvals=[one.approval for one in requests if one.approval.session_id == self.session_id],
            diffs=tuple(self._diffs),
            agent_name=agent_name,
            now=now,
            plans=dict(self._plans),
            folder=session.workspace,
        )
        # Thousands of blocks take a tenth of a second, in which keys are answered all the same.
        blocks = self._blocks = await asyncio.to_thread(_renewed, self._blocks, make)
        return Conversation(blocks=blocks, operations=operations, plan=plan, folder=session.workspace)

    async def _read_messages(self, services: Services) -> None:
        known = self._messages[:-_REREAD]
        while True:
            after = known[-1].id if known else None
            page = await services.conversations.messages(self.session_id, after=after, limit=_PAGE)
            known += page
            if len(page) < _PAGE:
                break
        self._messages = known

    async def _read_plans(self, services: Services, runs: Iterable[ExecutionId | None]) -> None:
        for run in runs:
            if run is not None and (run not in self._plans or run == self._newest_id):
                plan = await services.conversations.plan(run)
                if plan is not None:
                    self._plans[run] = plan

    async def _read_diffs(self, services: Services) -> None:
        while True:
            page = await services.conversations.events(
                session_id=self.session_id,
                types=(EventType.DIFF,),
                after_id=self._diffs[-1].id if self._diffs else 0,
                limit=_PAGE,
            )
            self._diffs += page
            if len(page) < _PAGE:
                break


def _renewed(known: tuple[Block, ...], make: Callable[[], tuple[Block, ...]]) -> tuple[Block, ...]:
    """Return the blocks as they are now; what did not change is the object of before, so that a look tells it."""
    before = {block.key: block for block in known}
    blocks = tuple(old if (old := before.get(new.key)) is not None and old == new else new for new in make())
    is_same = len(blocks) == len(known) and all(map(is_, blocks, known))
    return known if is_same else blocks
