"""Reads a conversation: all of it at first, then what is new, and what is being written."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Final

from agentmon.domain.events import EventType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.widgets.cells import even_line
from agentmon.widgets.conversation_blocks import DraftBlock, MessageBlock, conversation_blocks, draft_key_of
from agentmon.widgets.local_time import local_time_text
from agentmon.widgets.plan_blocks import is_plan_call
from agentmon.widgets.text_rows import GrowingRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from agentmon.bootstrap import Services
    from agentmon.domain.conversation import PlanNews
    from agentmon.domain.events import Event
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import ExecutionId, SessionId, WorkspaceId
    from agentmon.domain.operations import Operation
    from agentmon.domain.sessions import Draft, Message
    from agentmon.runners.drafts import DraftReader
    from agentmon.widgets.block_view import Block

_PAGE: Final = 500
_MOST_OPERATIONS: Final = 5000
_MOST_REQUESTS: Final = 500
DRAFT_POLL_INTERVAL_S: Final = 0.1
"""How often a conversation that is shown looks for more of what is being written."""
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
    is_own_screen: bool = False
    """Whether its agent works in its own screen now, where it can be watched as it writes."""


class ConversationSource:
    """What is known of one conversation."""

    def __init__(self, session_id: SessionId) -> None:
        self.session_id = session_id
        self._messages: list[Message] = []
        self._diffs: list[Event] = []
        self._plans: dict[ExecutionId, PlanNews] = {}
        self._blocks: tuple[Block, ...] = ()
        """What is in the database."""
        self._newest_id: ExecutionId | None = None
        """The run whose plan may have changed since it was read."""
        self._shown = Conversation()
        self._writing = _Writing()

    @property
    def is_live(self) -> bool:
        """Whether something may be written now that ``poll`` finds."""
        return self._writing.reader is not None

    async def read(
        self, services: Services, workspace_id: WorkspaceId, *, agent_name: str, now: datetime
    ) -> Conversation:
        """Return the conversation with what is new.

        Raises:
            NotFoundError: The conversation is gone.
        """
        # Before the messages: what was in the database then is among these.
        executions = await services.sessions.executions(self.session_id)
        newest = executions[-1] if executions else None
        await self._read_messages(services)
        await self._read_diffs(services)
        operations = await services.conversations.operations(session_id=self.session_id, limit=_MOST_OPERATIONS)
        requests = await services.approvals.history(workspace_id, limit=_MOST_REQUESTS)
        session = await services.sessions.get(self.session_id)
        newest_id = None if newest is None else newest.id
        await self._read_plans(services, {one.execution_id for one in operations if is_plan_call(one)} | {newest_id})
        self._newest_id = newest_id
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
            draft_keys=frozenset(self._writing.keys),
        )
        # Thousands of blocks take a tenth of a second, in which keys are answered all the same.
        self._blocks = await asyncio.to_thread(_renewed, self._blocks, make)
        self._writing.follow(services, newest, agent_name=agent_name, now=now)
        self._shown = Conversation(
            blocks=self._writing.added_to(self._blocks),
            operations=operations,
            plan=None if newest is None else self._plans.get(newest.id),
            folder=session.workspace,
            is_own_screen=newest is not None and newest.status.is_live and newest.mode is ExecutionMode.TMUX,
        )
        return self._shown

    def poll(self) -> Conversation | None:
        """Read more of what is being written, which is a file alone; None when there is no more."""
        if self._writing.reader is None or not self._writing.reader.poll():
            return None
        self._shown = replace(self._shown, blocks=self._writing.added_to(self._blocks))
        return self._shown

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


class _Writing:
    """The messages that the newest run of a conversation is writing."""

    def __init__(self) -> None:
        self.reader: DraftReader | None = None
        self.keys: set[str] = set()
        """Of messages that were shown before they were stored."""
        self._run: tuple[ExecutionId, int] | None = None
        self._journal_offset = 0
        self._wrappings: dict[str, GrowingRows] = {}
        self._agent_name = ""
        self._now: datetime | None = None

    def follow(
        self,
        services: Services,
        newest: Execution | None,
        *,
        agent_name: str,
        now: datetime,
    ) -> None:
        """Take note of the run that writes now, and of how much of its journal was stored."""
        run = None
        if newest is not None and newest.status.is_live and newest.mode.is_protocol:
            run = newest.id, newest.attempt
            if self.reader is None or run != self._run:
                self.reader = services.executions.draft_reader(newest)
                self._wrappings.clear()
            self.reader.poll()
            self._journal_offset = newest.journal_offset
        else:
            self.reader = None
        self._run, self._agent_name, self._now = run, even_line(agent_name, max_characters=40), now

    def added_to(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """Return the blocks with the drafts: each in the place of what is stored of its message, or at the end."""
        drafts = () if self.reader is None else self.reader.drafts(self._journal_offset)
        if not drafts:
            return blocks
        waiting = {draft_key_of(draft): draft for draft in drafts}
        shown: list[Block] = []
        for block in blocks:
            known = draft_key_of(block.message) if isinstance(block, MessageBlock) else ""
            draft = waiting.pop(known, None)
            shown.append(block if draft is None else self._block(block.key, draft))
        self.keys |= waiting.keys()
        return (*shown, *(self._block(key, draft) for key, draft in waiting.items()))

    def _block(self, key: str, draft: Draft) -> DraftBlock:
        wrapping = self._wrappings.setdefault(key, GrowingRows())
        time = "" if self._now is None else local_time_text(draft.begun_at, self._now)
        return DraftBlock(key, draft, self._agent_name, time, wrapping)


def _renewed(known: tuple[Block, ...], make: Callable[[], tuple[Block, ...]]) -> tuple[Block, ...]:
    """Return the blocks as they are now; what did not change is the object of before, so that a look tells it."""
    before = {block.key: block for block in known}
    blocks = tuple(old if (old := before.get(new.key)) is not None and old == new else new for new in make())
    is_same = len(blocks) == len(known) and all(map(is_, blocks, known))
    return known if is_same else blocks
