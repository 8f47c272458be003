"""Changes of cards from the board: each is written after the one before, and remembered so that it can be undone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agentmon.screens.frame import WRITES
from agentmon.screens.undo import Change, UndoStack

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import TypeAlias

    from agentmon.bootstrap import Services
    from agentmon.domain.board import Card
    from agentmon.domain.ids import TaskId
    from agentmon.domain.task_status import TaskStatus
    from agentmon.domain.tasks import Task
    from agentmon.screens.frame import ServiceScreen
    from agentmon.screens.undo import Inverse

    Work: TypeAlias = Callable[[Services], Awaitable[None]]
    Follow: TypeAlias = Callable[[Services, TaskId], Awaitable[None]]


class CardChanges:
    """Writes what a person changed on a screen, one change at a time, and takes it back."""

    def __init__(self, screen: ServiceScreen[None], *, follow: Follow) -> None:
        """Begin with nothing to undo.

        Args:
            screen: Runs the writes, and is asked to refresh after each.
            follow: Selects the task whose change was undone.
        """
        self._screen = screen
        self._follow = follow
        self._undo = UndoStack()
        self._writes = asyncio.Lock()
        self._writes_open = 0

    @property
    def is_writing(self) -> bool:
        """Whether something is shown that is not written yet."""
        return self._writes_open > 0

    def remember_edit(self, before: Task, version: int) -> None:
        """Remember an edit that was stored, to the version, over the task as it was before."""
        self._undo.push(_edit_change(before, version))

    def move(self, cards: Sequence[Card], status: TaskStatus, index: int | None) -> None:
        """Move the cards to a place of another column; None is where the column puts them."""

        async def work(services: Services) -> None:
            from agentmon.services.actors import USER_ACTOR  # noqa: PLC0415 - not part of the first frame

            workspace = await self._screen.workspace()
            inverses: list[Inverse] = []
            for card in cards:
                place = await services.board.locate(workspace, card.task_id)
                await services.tasks.move(card.task_id, status, actor=USER_ACTOR, index=index)
                if place is not None:
                    inverses.insert(0, _move_back(card.task_id, *place))
            self._undo.push(Change(words=f"the move of {_names(cards)}", inverses=inverses, task_id=cards[0].task_id))

        self._write(work, name=f"move {_names(cards)}")

    def shift(self, cards: Sequence[Card], steps: int) -> None:
        """Move the cards up or down in their columns."""

        async def work(services: Services) -> None:
            from agentmon.services.actors import USER_ACTOR  # noqa: PLC0415 - not part of the first frame

            workspace = await self._screen.workspace()
            inverses: list[Inverse] = []
            for card in cards:
                place = await services.board.locate(workspace, card.task_id)
                await services.tasks.shift(card.task_id, steps, actor=USER_ACTOR)
                if place is not None:
                    inverses.insert(0, _move_back(card.task_id, *place))
            self._undo.push(Change(words=f"the move of {_names(cards)}", inverses=inverses, task_id=cards[0].task_id))

        self._write(work, name=f"move {_names(cards)}")

    def delete(self, cards: Sequence[Card]) -> None:
        """Delete the cards."""

        async def work(services: Services) -> None:
            from agentmon.services.actors import USER_ACTOR  # noqa: PLC0415 - not part of the first frame

            deleted: list[Card] = []
            try:
                for card in cards:
                    await services.tasks.delete(card.task_id, actor=USER_ACTOR)
                    deleted.append(card)
            finally:
                if deleted:
                    inverses = [_restore(card.task_id) for card in reversed(deleted)]
                    words = f"the deletion of {_names(deleted)}"
                    self._undo.push(Change(words=words, inverses=inverses, task_id=deleted[0].task_id))
                    them = "it" if len(deleted) == 1 else "them"
                    self._screen.notify(f"Deleted {_names(deleted)} · ctrl+z brings {them} back")

        self._write(work, name=f"delete {_names(cards)}")

    def undo(self) -> None:
        """Take back the newest change."""

        async def work(services: Services) -> None:
            change = self._undo.pop()
            if change is None:
                self._screen.notify("nothing to undo")
                return
            for inverse in change.inverses:
                await inverse(services)
            self._screen.notify(f"Undid {change.words}")
            await self._follow(services, change.task_id)

        self._write(work, name="undo")

    def _write(self, work: Work, *, name: str) -> None:
        """Do the work after all that was asked before; the board is read again when all is done."""
        self._writes_open += 1
        self._screen.start(self._written(work), name=name, group=WRITES)

    async def _written(self, work: Work) -> None:
        try:
            services = await self._screen.services()
            async with self._writes:
                await work(services)
        finally:
            self._writes_open -= 1
            self._screen.request_refresh()


def _names(cards: Sequence[Card]) -> str:
    return ", ".join(f"#{card.number}" for card in cards)


def _move_back(task_id: TaskId, status: TaskStatus, index: int) -> Inverse:
    async def move_back(services: Services) -> None:
        from agentmon.services.actors import USER_ACTOR  # noqa: PLC0415 - not part of the first frame

        await services.tasks.move(task_id, status, actor=USER_ACTOR, index=index)

    return move_back


def _restore(task_id: TaskId) -> Inverse:
    async def restore(services: Services) -> None:
        from agentmon.services.actors import USER_ACTOR  # noqa: PLC0415 - not part of the first frame

        await services.tasks.restore(task_id, actor=USER_ACTOR)

    return restore


def _edit_change(before: Task, version: int) -> Change:
    from agentmon.domain.tasks import TaskDraft  # noqa: PLC0415 - not part of the first frame

    draft = TaskDraft(
        title=before.title,
        description=before.description,
        priority=before.priority,
        assignee_agent_id=before.assignee_agent_id,
        input_context=before.input_context,
        due_at=before.due_at,
    )

    async def edit_back(services: Services) -> None:
        from agentmon.services.actors import USER_ACTOR  # noqa: PLC0415 - not part of the first frame

        await services.tasks.edit(before.id, draft, expected_version=version, actor=USER_ACTOR)

    return Change(words=f"the edit of #{before.number}", inverses=(edit_back,), task_id=before.id)
