"""Changes of cards from the board: each is written after the one before, and remembered so that it can be undone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agentmon.domain.board import BoardSort
from agentmon.domain.errors import ConflictError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.task_status import TaskStatus
from agentmon.screens.frame import WRITES
from agentmon.screens.undo import Change, UndoStack

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import TypeAlias

    from agentmon.bootstrap import Services
    from agentmon.domain.board import Card
    from agentmon.domain.ids import TaskId
    from agentmon.domain.tasks import Task
    from agentmon.screens.editing import StoredEdit
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
        self.begun_count = 0
        """How many changes were begun; what was read before the last one may be older than what is shown."""

    @property
    def is_writing(self) -> bool:
        """Whether something is shown that is not written yet."""
        return self._writes_open > 0

    def remember_edit(self, edit: StoredEdit) -> None:
        """Remember an edit that was stored; a new task leaves nothing to remember."""
        if edit.before is not None:
            self._undo.push(_edit_change(edit.before, edit))

    def move(self, cards: Sequence[Card], status: TaskStatus, index: int | None) -> None:
        """Move the cards to a place of another column; None is where the column puts them."""

        async def work(services: Services) -> None:
            from agentmon.services.actors import USER_ACTOR  # noqa: PLC0415 - not part of the first frame

            workspace = await self._screen.workspace()
            inverses: list[Inverse] = []
            stopping: list[Card] = []
            cut_off: list[Card] = []
            for card in cards:
                place = await services.board.locate(workspace, card.task_id, sort=BoardSort.ORDER)
                before = None if status.is_open else await services.executions.newest(card.task_id)
                moved = await services.tasks.move(card.task_id, status, actor=USER_ACTOR, index=index)
                if moved.status is not status:
                    stopping.append(card)
                    inverses.insert(0, _take_back_cancel(card))
                    continue
                if before is not None and before.status is ExecutionStatus.QUEUED:
                    cut_off.append(card)
                if place is not None:
                    inverses.insert(0, _move_back(card.task_id, *place))
            self._tell_ends(stopping, cut_off)
            words = f"the move of {_names(cards)}"
            if cut_off:
                words = f"{words}; the queued run stays cancelled · r queues it again"
            self._undo.push(Change(words=words, inverses=inverses, task_id=cards[0].task_id))

        self._write(work, name=f"move {_names(cards)}")

    def shift(self, cards: Sequence[Card], steps: int) -> None:
        """Move the cards up or down in their columns."""

        async def work(services: Services) -> None:
            from agentmon.services.actors import USER_ACTOR  # noqa: PLC0415 - not part of the first frame

            workspace = await self._screen.workspace()
            inverses: list[Inverse] = []
            for card in cards:
                place = await services.board.locate(workspace, card.task_id, sort=BoardSort.ORDER)
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
            try:
                for inverse in change.inverses:
                    await inverse(services)
            except _NotYetError:
                self._undo.push(change)
                raise
            self._screen.notify(f"Undid {change.words}")
            await self._follow(services, change.task_id)

        self._write(work, name="undo")

    def _tell_ends(self, stopping: Sequence[Card], cut_off: Sequence[Card]) -> None:
        """Say what became of runs whose cards were closed."""
        if len(stopping) == 1:
            self._screen.notify(
                f"{_names(stopping)} is being stopped; it moves to Cancelled when nothing of it is alive"
            )
        elif stopping:
            self._screen.notify(
                f"{_names(stopping)} are being stopped; each moves to Cancelled when nothing of it is alive"
            )
        if cut_off:
            runs = "its queued run was" if len(cut_off) == 1 else "their queued runs were"
            self._screen.notify(f"{_names(cut_off)}: {runs} cancelled")

    def _write(self, work: Work, *, name: str) -> None:
        """Do the work after all that was asked before; the board is read again when all is done."""
        self._writes_open += 1
        self.begun_count += 1
        self._screen.start(self._written(work), name=name, group=WRITES)

    async def _written(self, work: Work) -> None:
        try:
            services = await self._screen.services()
            async with self._writes:
                await work(services)
        finally:
            self._writes_open -= 1
            self._screen.request_refresh()


class _NotYetError(ConflictError):
    """A change cannot be taken back at this moment, but can be soon."""


def _names(cards: Sequence[Card]) -> str:
    return ", ".join(f"#{card.number}" for card in cards)


def _move_back(task_id: TaskId, status: TaskStatus, index: int) -> Inverse:
    async def move_back(services: Services) -> None:
        from agentmon.services.actors import USER_ACTOR  # noqa: PLC0415 - not part of the first frame

        await services.tasks.move(task_id, status, actor=USER_ACTOR, index=index)

    return move_back


def _take_back_cancel(card: Card) -> Inverse:
    """Return the call that brings a card back which was cancelled while its run went on."""

    async def take_back(services: Services) -> None:
        from agentmon.services.actors import USER_ACTOR  # noqa: PLC0415 - not part of the first frame

        newest = await services.executions.newest(card.task_id)
        if newest is not None and newest.status.is_live:
            raise _NotYetError(f"#{card.number} is still being stopped", hint="ctrl+z brings it back after that")
        # To do again, as any stopped run: nothing of it is in progress any more.
        await services.tasks.move(card.task_id, TaskStatus.TODO, actor=USER_ACTOR)

    return take_back


def _restore(task_id: TaskId) -> Inverse:
    async def restore(services: Services) -> None:
        from agentmon.services.actors import USER_ACTOR  # noqa: PLC0415 - not part of the first frame

        await services.tasks.restore(task_id, actor=USER_ACTOR)

    return restore


def _edit_change(before: Task, edit: StoredEdit) -> Change:
    from agentmon.domain.tasks import draft_of  # noqa: PLC0415 - not part of the first frame
    from agentmon.screens.editing import store_dependencies  # noqa: PLC0415 - not part of the first frame

    draft = draft_of(before)

    async def edit_back(services: Services) -> None:
        from agentmon.services.actors import USER_ACTOR  # noqa: PLC0415 - not part of the first frame

        await services.tasks.edit(before.id, draft, expected_version=edit.after.version, actor=USER_ACTOR)
        await store_dependencies(services, before.id, edit.dependencies_before)

    return Change(words=f"the edit of #{before.number}", inverses=(edit_back,), task_id=before.id)
