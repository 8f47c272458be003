"""A real application over a database of its own, for tests of screens."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from textual.widgets import OptionList

from agentmon.app import AgentmonApp
from agentmon.bootstrap import open_services
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import TaskDraft
from agentmon.paths import find_paths
from agentmon.screens.board.screen import BoardScreen
from agentmon.services.actors import USER_ACTOR
from agentmon.widgets.board_column import BoardColumn
from tests.waiting import DEADLINE_S, next_look_s

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from textual.pilot import Pilot

    from agentmon.bootstrap import Services
    from agentmon.domain.clock import Clock
    from agentmon.domain.tasks import Task, Workspace
    from agentmon.paths import Paths
    from agentmon.screens.frame import ServiceScreen


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A database and a workspace that a test may fill."""

    paths: Paths
    root: Path

    @asynccontextmanager
    async def services(self) -> AsyncIterator[tuple[Services, Workspace]]:
        async with open_services(self.paths) as services:
            yield services, await services.workspaces.open(self.root)

    async def fill(self, *titles: str, status: TaskStatus = TaskStatus.TODO) -> list[Task]:
        """Make tasks; the first title ends up on top of its column."""
        async with self.services() as (services, workspace):
            tasks = [await services.tasks.add(workspace, TaskDraft(title=title), actor=USER_ACTOR) for title in titles]
            if status is not TaskStatus.TODO:
                for task in reversed(tasks):
                    await services.tasks.move(task.id, status, actor=USER_ACTOR)
            return tasks

    async def titles(self, status: TaskStatus) -> list[str]:
        async with self.services() as (services, workspace):
            return [task.title for task in await services.tasks.list(workspace, statuses=[status])]


def make_place(folder: Path) -> Place:
    root = folder / "project"
    root.mkdir()
    return Place(paths=find_paths({"AGENTMON_HOME": str(folder / "home")}), root=root)


@dataclass(frozen=True, slots=True)
class Board:
    """A running application with its board."""

    app: AgentmonApp
    pilot: Pilot[None]

    @property
    def screen(self) -> BoardScreen:
        screen = self.app.get_screen_stack("board")[0] if hasattr(self.app, "get_screen_stack") else self.app.screen
        assert isinstance(screen, BoardScreen)
        return screen

    def column(self, status: TaskStatus) -> BoardColumn:
        return self.screen.query_one(f"#column-{status.replace('_', '-')}", BoardColumn)

    @property
    def selected(self) -> str | None:
        focused = self.app.focused
        card = focused.selected if isinstance(focused, BoardColumn) else None
        return None if card is None else card.title

    def shown(self, status: TaskStatus) -> list[str]:
        page = self.column(status).page
        return [] if page is None else [card.title for card in page.cards]

    @property
    def toasts(self) -> list[str]:
        return [notification.message for notification in self.app._notifications]

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def until(self, condition: Callable[[], bool], what: str = "") -> None:
        """Wait until the condition holds, and what the screen is made of is there."""
        await until(lambda: condition() and self.app.screen.is_mounted, what)

    async def told(self, words: str) -> None:
        """Wait until a toast says so."""
        await until(lambda: any(words in toast for toast in self.toasts), words)

    async def until_menu(self) -> None:
        """Wait until a menu is there, with the place where it begins: it has that when it gets the focus."""
        await until(
            lambda: (
                self.app.focused is not None
                and any(menu.highlighted is not None for menu in self.app.screen.query(OptionList))
            ),
            "the menu",
        )

    @staticmethod
    def is_answered(screen: ServiceScreen[None]) -> bool:
        """Whether what asked something with a dialog has done what was answered."""
        return screen._dialog is None or screen._dialog.is_finished

    async def settled(self) -> None:
        """Wait until nothing is being written or read any more."""
        await self.pilot.pause()
        screen = self.screen
        await until(
            lambda: (
                not screen.is_writing
                and not screen._is_refreshing
                and not screen._is_refresh_wanted
                and (self.app.screen is not screen or self.is_answered(screen))
            ),
            "settled",
        )
        await self.pilot.pause()


async def until(condition: Callable[[], bool], what: str = "", *, deadline_s: float = DEADLINE_S) -> None:
    began = monotonic()
    while not condition():
        assert monotonic() < began + deadline_s, f"it never came true: {what or condition}"
        await asyncio.sleep(next_look_s(began))


@asynccontextmanager
async def open_board(
    place: Place, *, size: tuple[int, int] = (120, 40), clock: Clock | None = None
) -> AsyncIterator[Board]:
    app = AgentmonApp(place.paths, place.root, clock=clock)
    # A pilot types as fast as it can, and what it means.
    app.esc_doubt_s = app.split_sequence.within_s = app.replaced_doubt_s = 0.0
    async with app.run_test(size=size) as pilot:
        board = Board(app, pilot)
        await until(lambda: app._is_opened, "services are open")
        await board.settled()
        yield board
        if app.is_running:
            await until(lambda: not board.screen.is_writing, "what is shown is stored")
        assert not app.failures, app.failures
