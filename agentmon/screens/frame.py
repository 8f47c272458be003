"""What every screen that shows stored things shares: the services, notices of changes, background work, errors."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import finalize

from textual.app import ScreenError
from textual.css.query import QueryError
from textual.message import Message
from textual.reactive import var
from textual.screen import Screen
from textual.widget import MountError

from agentmon.widgets.guarded import Guarded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import TypeAlias

    from textual.widget import Widget
    from textual.worker import Worker

    from agentmon.bootstrap import Services
    from agentmon.domain.ids import ExecutionId, TaskId
    from agentmon.domain.tasks import Workspace
    from agentmon.widgets.cursor_table import CursorTable

    ServicesGetter: TypeAlias = Callable[[], Awaitable[Services]]
    WorkspaceGetter: TypeAlias = Callable[[], Awaitable[Workspace]]

_ResultT = TypeVar("_ResultT")
_AnswerT = TypeVar("_AnswerT")

REFRESH_INTERVAL_S: Final = 0.1
"""Least time between the starts of two refreshes of one screen."""

WRITES: Final = "writes"
"""The group of workers that store what is shown already."""
_ACTIONS: Final = "actions"
BEGUN_BY_KEYS: Final = frozenset({WRITES, _ACTIONS, "dialog", "runs", "sort"})
"""The groups of workers that leaving waits for."""
_REFRESH: Final = "refresh"
_PAINT_TIMEOUT_S: Final = 0.1
_HOLD_S: Final = 5.0
"""How long keys are held back: as long as one would wait before pressing another key in earnest."""


class StoreChanged(Message, bubble=False):
    """Something in the database changed; the application posts it to every screen of the stack that is shown."""


class StoreReplaced(Message, bubble=False):
    """Another database took the place of the one that was open: what was remembered of it means nothing any more."""


class FirstFrameShown(Message, bubble=False):
    """The first frame is on the terminal; what it did not need can be made now."""


class AttachRequested(Message):
    """A person wants to enter the terminal of an execution; the application suspends itself for it."""

    def __init__(self, execution_id: ExecutionId) -> None:
        super().__init__()
        self.execution_id = execution_id


class WorkStarted(Message):
    """A person's action began in the background; the application says so when it has to wait for the services."""


class KeysReleased(Message):
    """What a screen held keys back for is there, or will not come; they can go on."""

    def __init__(self, release: Callable[[], None]) -> None:
        """Make the message.

        Args:
            release: Lets later keys through; called right before the held ones are handed on, so that none overtakes.
        """
        super().__init__()
        self.release = release


class ServiceScreen(Guarded, Screen[_ResultT]):
    """A screen over the services.

    A subclass overrides ``refresh_snapshot``; it is called after mounting, after each ``StoreChanged`` and after each
    ``request_refresh``, never twice at a time and at most ten times a second. Whatever takes longer than a frame goes
    through ``start``. Errors of both reach the application's one policy. Textual calls the ``on_…`` handlers of every
    class of the inheritance by itself, so a subclass defines its own without calling these.
    """

    focused: var[Widget | None] = var(None)
    """The widget that gets the keys. As Textual declares it, the whole screen is painted anew whenever it changes; the
    two widgets that it is about do that for themselves."""

    def __init__(self, services: ServicesGetter, workspace: WorkspaceGetter, *, name: str | None = None) -> None:
        super().__init__(name=name)
        self.services = services
        self.workspace = workspace
        self.replaced_at = float("-inf")
        """When what was under the cursor went away and something else came there, by the clock of events."""
        self.is_queue_paused = False
        """Whether the queue was paused when the screen was refreshed last."""
        self._is_refresh_wanted = False
        self._is_refreshing = False
        self._refreshed_at = 0.0
        self._dialog: Worker[object] | None = None
        self._keys_held_since: float | None = None

    @property
    def holds_keys(self) -> bool:
        """Whether what keys are for was asked for and is not on the screen yet; false again when it takes too long."""
        return self._keys_held_since is not None and monotonic() - self._keys_held_since < _HOLD_S

    def hold_keys(self) -> None:
        """Keep keys for what comes next on the screen; ``release_keys`` hands them on."""
        self._keys_held_since = monotonic()
        self.set_timer(_HOLD_S, lambda: self.post_message(KeysReleased(lambda: None)), name="held keys")

    def release_keys(self) -> None:
        """Hand the held keys on, behind the messages that are waiting already."""
        if self._keys_held_since is not None:
            self.post_message(KeysReleased(self._end_hold))

    def open_dialog(self, work: Coroutine[None, None, object], *, name: str) -> None:
        """Run work that asks the person something through ``ask``; nothing happens while another one does.

        Keys that are pressed until the dialog is there are for the dialog: the application holds them back.
        """
        if self._dialog is not None and not self._dialog.is_finished:
            work.close()
            return
        self.hold_keys()
        self._dialog = self.start(self._with_dialog(work), name=name, group="dialog")

    async def ask(self, dialog: Screen[_AnswerT]) -> _AnswerT | None:
        """Show the dialog and return what it ends with; None when this screen is closed. Must run in its worker."""
        if not self.is_running:
            return None
        answer = self.app.push_screen(dialog, wait_for_dismiss=True)
        # Behind the message that gives the dialog its focus.
        dialog.call_later(self.release_keys)
        return await answer

    def _end_hold(self) -> None:
        self._keys_held_since = None

    async def _with_dialog(self, work: Coroutine[None, None, object]) -> object:
        try:
            return await work
        finally:
            self.release_keys()

    @property
    def is_everywhere(self) -> bool:
        """Whether what it shows is of all workspaces together."""
        return False

    async def workspace_of(self, task_id: TaskId) -> Workspace:
        """Return the workspace of a task.

        Raises:
            NotFoundError: The task is gone.
        """
        services = await self.services()
        return await services.workspaces.get((await services.tasks.get(task_id)).workspace_id)

    def show_changes_of(
        self, task_id: TaskId, execution_id: ExecutionId | None = None, *, spot: tuple[str, int] | None = None
    ) -> None:
        """Show what a run of a task changed; the newest one when none is named.

        Args:
            task_id: The task.
            execution_id: The run; None for the newest.
            spot: The file where it begins, and the line in its new text.
        """
        from agentmon.screens.changes.screen import ChangesScreen  # noqa: PLC0415 - not part of the first frame

        workspace = partial(self.workspace_of, task_id)
        self.app.push_screen(
            ChangesScreen(
                task_id=task_id, execution_id=execution_id, services=self.services, workspace=workspace, spot=spot
            )
        )

    async def show_worktrees(self, workspace: Workspace | None, task_id: TaskId | None) -> None:
        """Show the worktrees of a workspace or of all, that of a task first. Must run in a worker of this screen."""
        from agentmon.screens.worktrees.dialog import WorktreesDialog  # noqa: PLC0415 - not part of the first frame

        services = await self.services()
        await self.ask(WorktreesDialog(services, workspace.id if workspace is not None else None, task_id=task_id))

    async def refresh_snapshot(self) -> None:
        """Read what the screen shows and set it on the widgets; the default shows nothing stored."""

    def start(
        self,
        work: Coroutine[None, None, object],
        *,
        name: str,
        group: str = _ACTIONS,
        exclusive: bool = False,
    ) -> Worker[object]:
        """Run the coroutine in the background; a failure is shown to the person, the screen goes on.

        What a key began comes to its end also when the screen is closed meanwhile.

        Args:
            work: What to do.
            name: Its name in logs.
            group: The work it belongs with.
            exclusive: Whether it takes the place of what is running in the group; it ends with the screen.
        """
        if group != _REFRESH:
            self.post_message(WorkStarted())
        if exclusive or group == _REFRESH:
            worker = self.run_worker(work, name=name, group=group, exclusive=exclusive, exit_on_error=False)
        else:
            outliving = self._outliving(work)
            worker = self.app.run_worker(outliving, name=name, group=group, exit_on_error=False)
            finalize(worker, outliving.close).atexit = False
        # One that is cancelled before it began would leave a coroutine that was never awaited.
        finalize(worker, work.close).atexit = False
        return worker

    async def _outliving(self, work: Coroutine[None, None, object]) -> object:
        try:
            return await work
        except (QueryError, MountError, ScreenError):
            # What it would have shown has no place any more.
            if self.is_running:
                raise
            return None

    async def painted(self) -> None:
        """Return once what has changed until now is on the terminal, or soon all the same. Must run in a worker.

        Reading and writing share one interpreter with the painting: what begins before it makes a key wait.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_PAINT_TIMEOUT_S):
                await self.wait_for_refresh()

    def request_refresh(self, *, at_once: bool = False) -> None:
        """Let ``refresh_snapshot`` run soon; requests that come meanwhile are answered by the same run.

        What a person waits for asks for it ``at_once``: it runs as soon as none is running.
        """
        if self._is_refresh_wanted or not self.is_running:
            return
        self._is_refresh_wanted = True
        if at_once:
            self._refreshed_at = 0.0
        if not self._is_refreshing:
            self._plan_refresh()

    def on_mount(self) -> None:
        """Ask for the first snapshot."""
        self.request_refresh()

    def on_screen_resume(self) -> None:
        """Catch up with what changed while another screen was shown."""
        self.request_refresh()

    def on_cursor_table_replaced(self, message: CursorTable.Replaced) -> None:
        """Note that keys may be meant for the row that was there."""
        message.stop()
        self.replaced_at = monotonic()

    def on_store_changed(self, message: StoreChanged) -> None:
        """Refresh."""
        message.stop()
        self.request_refresh()

    def _plan_refresh(self) -> None:
        wait_s = self._refreshed_at + REFRESH_INTERVAL_S - monotonic()
        if wait_s > 0:
            self.set_timer(wait_s, self._start_refresh, name="refresh")
        else:
            self._start_refresh()

    def _start_refresh(self) -> None:
        self.start(self._refresh(), name="refresh", group=_REFRESH)

    async def _refresh(self) -> None:
        self._is_refresh_wanted = False
        self._is_refreshing = True
        self._refreshed_at = monotonic()
        try:
            await self.refresh_snapshot()
        finally:
            self._is_refreshing = False
            if self._is_refresh_wanted and self.is_running:
                self._plan_refresh()
