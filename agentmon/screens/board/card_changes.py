"""Changes of cards from the board: each is written after the one before, and remembered so that it can be undone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from agentmon.domain.board import BoardSort
from agentmon.domain.errors import AgentmonError, ConflictError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.task_status import TaskStatus
from agentmon.screens.board.undo import Change, UndoStack
from agentmon.screens.frame import WRITES
from agentmon.screens.tasks.running import ask_let_go
from agentmon.widgets.guarded import Failed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import TypeAlias

    from agentmon.bootstrap import Services
    from agentmon.domain.board import Card
    from agentmon.domain.ids import TaskId, WorkspaceId
    from agentmon.domain.tasks import Task
    from agentmon.screens.board.undo import Inverse
    from agentmon.screens.frame import ServiceScreen
    from agentmon.screens.tasks.editing import StoredEdit

    Work: TypeAlias = Callable[[Services], Awaitable[None]]
    Follow: TypeAlias = Callable[[Services, TaskId], Awaitable[None]]


class Move(NamedTuple):
    """Cards that go to another column."""

    cards: Sequence[Card]
    """From the top down; they keep this order."""
    status: TaskStatus
    place: int | None
    """Where in the column of their workspace; None is where the column puts them."""


class CardChanges:
    """Writes what a person changed on a screen, one change at a time, and takes it back."""

    def __init__(
        self, screen: ServiceScreen[None], *, follow: Follow, is_shown: Callable[[WorkspaceId], bool] = lambda _: True
    ) -> None:
        """Begin with nothing to undo.

        Args:
            screen: Runs the writes, and is asked to refresh after each.
            follow: Selects the task whose change was undone.
            is_shown: Says whether the cards of a workspace are on the screen.
        """
        self._screen = screen
        self._follow = follow
        self._is_shown = is_shown
        self._undo: UndoStack[Change] = UndoStack()
        self._writes = asyncio.Lock()
        self._writes_open = 0
        self.begun_count = 0
        """How many changes were begun; what was read before the last one may be older than what is shown."""

    @property
    def is_writing(self) -> bool:
        """Whether something is shown that is not written yet."""
        return self._writes_open > 0

    def forget(self) -> None:
        """Forget what was changed: it is in a database that is gone."""
        self._undo.clear()

    def remember_edit(self, edit: StoredEdit) -> None:
        """Remember an edit that was stored; a new task leaves nothing to remember."""
        before = edit.before
        if before is None:
            return

        async def work(services: Services) -> None:
            after = tuple(task.number for task in await services.tasks.dependencies(before.id))
            self._undo.push(_edit_change(before, edit, after))

        self._write(work, name="remember edit")

    def move(self, moves: Sequence[Move]) -> None:
        """Move the cards to places of other columns: one change, however many."""
        cards = [card for move in moves for card in move.cards]

        async def work(services: Services) -> None:
            done = _Done()
            stopping: list[Card] = []
            cut_off: list[Card] = []
            try:
                for move in moves:
                    # What goes to the top is put there from the lowest on, so that the cards keep their order.
                    ordered = reversed(move.cards) if move.place is None else move.cards
                    for at, card in enumerate(ordered):
                        index = None if move.place is None else move.place + at
                        await self._move_one(services, card, move.status, index, done, stopping, cut_off)
            finally:
                self._tell_ends(stopping, cut_off)
                words = "; the queued run stays cancelled · r queues it again" if cut_off else ""
                self._remember(done, "the move of", words)
            if stopping:
                await services.queue.deliver()
            called_done = [card for move in moves if move.status is TaskStatus.DONE for card in move.cards]
            taken = [card for card in called_done if card.alternatives and card.taken_number is None]
            if taken:
                self.ask_let_go(taken[0].task_id)

        self._write(work, name=f"move {_names(cards)}")

    def ask_let_go(self, task_id: TaskId) -> None:
        """Ask whether the alternatives are cancelled that were not taken."""

        async def work() -> None:
            if left := await ask_let_go(self._screen, task_id):
                self.move([Move(left, TaskStatus.CANCELLED, None)])
                self._screen.notify(f"Let {_names(left)} go · T shows what is left, ctrl+z takes it back")

        self._screen.open_dialog(work(), name="let go")

    async def _move_one(
        self,
        services: Services,
        card: Card,
        status: TaskStatus,
        index: int | None,
        done: _Done,
        stopping: list[Card],
        cut_off: list[Card],
    ) -> None:
        place = await _own_place(services, card.task_id)
        before = None if status.is_open else await services.executions.newest(card.task_id)
        moved = await services.tasks.move(card.task_id, status, actor=services.actor, index=index)
        if moved.status is not status:
            stopping.append(card)
            done.add(card, _take_back_cancel(card))
            return
        if before is not None and before.status is ExecutionStatus.QUEUED:
            cut_off.append(card)
        done.add(card, _move_back(card, status, *place))

    def shift(self, cards: Sequence[Card], steps: int) -> None:
        """Move the cards up or down in their columns; at its end a column keeps their order."""

        async def work(services: Services) -> None:
            placed = [(card, *await _own_place(services, card.task_id)) for card in cards]
            placed.sort(key=lambda one: one[2], reverse=steps > 0)
            done = _Done()
            ends: dict[tuple[str, TaskStatus], int] = {}
            try:
                for card, status, index in placed:
                    # At the end of the column the cards pile up, the one nearest to it first.
                    column = (card.workspace_name, status)
                    ends[column] = moved = await _shift_one(services, card, index, steps, ends.get(column))
                    if moved != index:
                        done.add(card, _move_back(card, status, status, index))
            finally:
                self._remember(done, "the move of")

        if cards:
            self._write(work, name=f"move {_names(cards)}")

    def delete(self, cards: Sequence[Card]) -> None:
        """Delete the cards."""

        async def delete(services: Services, card: Card) -> Inverse:
            await services.tasks.delete(card.task_id, actor=services.actor)
            return _restore(card.task_id)

        self._change_each(cards, delete, verb="Deleted", words="the deletion of")

    def archive(self, cards: Sequence[Card]) -> None:
        """Archive the cards."""

        async def archive(services: Services, card: Card) -> Inverse:
            await services.archive.archive(card.task_id, actor=services.actor)
            return _unarchive(card.task_id)

        self._change_each(cards, archive, verb="Archived", words="the archiving of")

    def unarchive(self, cards: Sequence[Card]) -> None:
        """Bring the cards back from the archive."""

        async def unarchive(services: Services, card: Card) -> Inverse:
            await services.archive.unarchive(card.task_id, actor=services.actor)
            return _archive(card.task_id)

        self._change_each(cards, unarchive, verb="Brought back", words="the bringing back of", undone="archives")

    def _change_each(
        self,
        cards: Sequence[Card],
        change: Callable[[Services, Card], Awaitable[Inverse]],
        *,
        verb: str,
        words: str,
        undone: str = "brings",
    ) -> None:
        """Change one card after the other; one that cannot be changed is told and keeps none of the others."""

        async def work(services: Services) -> None:
            done = _Done()
            for card in cards:
                try:
                    done.add(card, await change(services, card))
                except AgentmonError as error:
                    self._screen.post_message(Failed(error))
            if done.cards:
                self._remember(done, words)
                them = "it" if len(done.cards) == 1 else "them"
                back = f"{undone} {them} back" if undone == "brings" else f"{undone} {them} again"
                self._screen.notify(f"{verb} {_names(done.cards)} · ctrl+z {back}")

        self._write(work, name=f"{verb.lower()} {_names(cards)}")

    def undo(self) -> None:
        """Take back the newest change, of every card for which that is still possible."""

        async def work(services: Services) -> None:
            change = self._undo.pop()
            if change is None:
                self._screen.notify("nothing to undo")
                return
            left = list(change.inverses)
            failures: list[AgentmonError] = []
            while left:
                try:
                    await left[0](services)
                except _NotYetError:
                    self._undo.push(change._replace(inverses=left))
                    raise
                except AgentmonError as error:
                    failures.append(error)
                del left[0]
            for failure in failures:
                self._screen.post_message(Failed(failure))
            if len(failures) < len(change.inverses):
                self._screen.notify(f"Undid {change.words}{await self._elsewhere(services, change.task_id)}")
                await self._follow(services, change.task_id)

        self._write(work, name="undo")

    async def _elsewhere(self, services: Services, task_id: TaskId) -> str:
        """Return in which workspace a task is, where that is not the one on the screen."""
        task = await services.tasks.get(task_id)
        if self._is_shown(task.workspace_id):
            return ""
        return f", in {(await services.workspaces.get(task.workspace_id)).name}"

    def _remember(self, done: _Done, words: str, more: str = "") -> None:
        if done.cards:
            self._undo.push(
                Change(
                    words=f"{words} {_names(done.cards)}{more}",
                    inverses=tuple(reversed(done.inverses)),
                    task_id=done.cards[0].task_id,
                )
            )

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
            await self._screen.painted()
            services = await self._screen.services()
            async with self._writes:
                await work(services)
        finally:
            self._writes_open -= 1
            self._screen.request_refresh()


class _NotYetError(ConflictError):
    """A change cannot be taken back at this moment, but can be soon."""


class _Done:
    """The cards that were changed so far, and how each is changed back."""

    def __init__(self) -> None:
        self.cards: list[Card] = []
        self.inverses: list[Inverse] = []

    def add(self, card: Card, inverse: Inverse) -> None:
        self.cards.append(card)
        self.inverses.append(inverse)


def _names(cards: Sequence[Card]) -> str:
    return ", ".join(card.name for card in cards)


async def _own_place(services: Services, task_id: TaskId) -> tuple[TaskStatus, int]:
    """Return the column of a task and its place there in its own order, among the cards of its workspace.

    An archived card has no place; it would come back to the top.
    """
    task = await services.tasks.get(task_id)
    workspace = await services.workspaces.get(task.workspace_id)
    return await services.board.locate(workspace, task_id, sort=BoardSort.ORDER) or (task.status, 0)


async def _shift_one(services: Services, card: Card, index: int, steps: int, end: int | None) -> int:
    """Move a card by the steps, but not to or beyond the card at ``end``, which moved before; return its index then."""
    wanted = max(0, index + steps)
    if end is not None:
        wanted = max(wanted, end + 1) if steps < 0 else min(wanted, end - 1)
    if wanted != index:
        await services.tasks.shift(card.task_id, wanted - index, actor=services.actor)
    return (await _own_place(services, card.task_id))[1]


def _move_back(card: Card, moved_to: TaskStatus, status: TaskStatus, index: int) -> Inverse:
    async def move_back(services: Services) -> None:
        present = (await services.tasks.get(card.task_id)).status
        if present is not moved_to:
            raise ConflictError(f"{card.name} has moved on to {present.label} meanwhile, and stays there")
        await services.tasks.move(card.task_id, status, actor=services.actor, index=index)

    return move_back


def _take_back_cancel(card: Card) -> Inverse:
    """Return the call that brings a card back which was cancelled while its run went on."""

    async def take_back(services: Services) -> None:
        newest = await services.executions.newest(card.task_id)
        if newest is not None and newest.status.is_live:
            raise _NotYetError(f"{card.name} is still being stopped", hint="ctrl+z brings it back after that")
        # To do again, as any stopped run: nothing of it is in progress any more.
        await services.tasks.move(card.task_id, TaskStatus.TODO, actor=services.actor)

    return take_back


def _restore(task_id: TaskId) -> Inverse:
    async def restore(services: Services) -> None:
        await services.tasks.restore(task_id, actor=services.actor)

    return restore


def _unarchive(task_id: TaskId) -> Inverse:
    async def unarchive(services: Services) -> None:
        await services.archive.unarchive(task_id, actor=services.actor)

    return unarchive


def _archive(task_id: TaskId) -> Inverse:
    async def archive(services: Services) -> None:
        await services.archive.archive(task_id, actor=services.actor)

    return archive


def _edit_change(before: Task, edit: StoredEdit, dependencies_after: tuple[int, ...]) -> Change:
    from agentmon.domain.tasks import draft_of  # noqa: PLC0415 - not part of the first frame
    from agentmon.screens.tasks.editing import changed_dependencies  # noqa: PLC0415 - not part of the first frame
    from agentmon.screens.tasks.merging import clashes, merged, merged_numbers  # noqa: PLC0415 - as above
    from agentmon.screens.tasks.task_budget import changed_budget, find_budget, limit_of  # noqa: PLC0415 - as above

    old, edited = draft_of(before), draft_of(edit.after)

    async def edit_back(services: Services) -> None:
        task = await services.tasks.get(before.id)
        present = draft_of(task)
        names = clashes(edited, old, present)
        budget = await find_budget(services, before.id) if edit.changed_budget else None
        if edit.changed_budget and limit_of(budget) != edit.budget_nano:
            names.append("budget")
        if names:
            raise ConflictError(
                f"#{before.number} was changed again meanwhile ({', '.join(names)}), and stays as it is",
                hint="e changes it by hand",
            )
        # What somebody else changed meanwhile stays.
        draft = merged(edited, old, present)
        numbers = tuple(one.number for one in await services.tasks.dependencies(before.id))
        wanted = merged_numbers(dependencies_after, edit.dependencies_before, numbers)
        added, removed = await changed_dependencies(services, before.id, wanted)
        old_budget = edit.budget_before
        await services.tasks.edit(
            before.id,
            draft,
            expected_version=task.version,
            added=added,
            removed=removed,
            budget=changed_budget(budget, limit_of(old_budget), removed=old_budget) if edit.changed_budget else None,
            actor=services.actor,
        )

    return Change(words=f"the edit of #{before.number}", inverses=(edit_back,), task_id=before.id)
