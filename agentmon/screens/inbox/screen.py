"""The place that shows everything that waits for a person, oldest first, and what was decided."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import NotFoundError
from agentmon.screens.bindings import INBOX, REQUEST
from agentmon.screens.frame import AttachRequested
from agentmon.screens.inbox.request_screen import RequestScreen
from agentmon.screens.sessions.talking import send_message
from agentmon.screens.tasks.running import decide_waiting
from agentmon.widgets.block_view import BlockView
from agentmon.widgets.inbox_blocks import IdleBlock, InboxItem, inbox_blocks
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.request_words import waited_text
from agentmon.widgets.status_line import StatusBar

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.bootstrap import Services
    from agentmon.domain.approvals import ApprovalListing
    from agentmon.domain.clock import Clock
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter

_OPEN_ROWS: Final = 200
"""Executions that are looked through for agents that wait for a message; the open ones come first."""
_HISTORY_ROWS: Final = 200
_TICK_S: Final = 1.0
_EMPTY: Final = (
    "Nothing waits for you.\n\n"
    "Permissions, questions, plans, dangerous starts, spent budgets and agents that wait for a message appear here.\n\n"
    "h shows what was decided."
)
_NO_HISTORY: Final = "Nothing was decided yet.\n\nh goes back."


class InboxScreen(RequestScreen):
    """A list of what waits, and beside it the selected one, whole.

    What is shown stays until it is answered: what comes in meanwhile goes below, and what is withdrawn says so.
    """

    CSS_PATH = "screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*REQUEST, *INBOX]
    AUTO_FOCUS = "#waiting"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 - Textual types it as an instance's

    def __init__(self, services: ServicesGetter, workspace: WorkspaceGetter, *, clock: Clock | None = None) -> None:
        super().__init__(services, workspace, clock=clock or SystemClock())
        self._items: dict[str, InboxItem] = {}
        self._is_history = False
        self._is_loaded = False
        self._decided_here: set[str] = set()

    def compose(self) -> ComposeResult:
        """Yield the list, the request and the keys."""
        yield StatusBar(id="status")
        yield Static(id="summary")
        with Horizontal(id="parts"):
            yield BlockView(id="waiting")
            with Vertical(id="shown"):
                yield BlockView(has_cursor=False, id="request")
        yield Static(Content(_EMPTY), id="empty")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Start the clock of the waiting times."""
        self.query_one("#request", BlockView).can_focus = False
        self.set_interval(_TICK_S, self._tick, name="waiting")
        self._show_summary()

    async def refresh_snapshot(self) -> None:
        """Read what waits, or what was decided."""
        services = await self.services()
        workspace = await self.workspace()
        page = await services.board.page(workspace, ())
        status_bar = self.query_one(StatusBar)
        status_bar.place = page.workspace_name
        status_bar.numbers = page.status_line
        status_bar.time = self.clock.now().astimezone()
        self.is_queue_paused = page.status_line.is_paused
        is_history = self._is_history
        if is_history:
            listings = await services.approvals.history(workspace.id, limit=_HISTORY_ROWS)
            items = [InboxItem(listing=one, since=one.approval.asked_at) for one in listings]
            found = {item.key: item for item in items}
        else:
            found = await self._read_waiting(services)
        if is_history == self._is_history:
            self._items = found
            self._is_loaded = True
            self._show()

    def show_next(self) -> None:
        """Select the next one that waits, round the ends."""
        if self._is_history:
            self.action_toggle_history()
            return
        view = self._list
        if self._items:
            keys = list(self._items)
            place = keys.index(view.selected_key) if view.selected_key in keys else -1
            view.move_to((place + 1) % len(keys))
            self._show_selected(is_by_person=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer what the selected one allows."""
        if action == "answer":
            approval = self.pending_approval
            is_question = approval is not None and approval.ask_kind.is_question
            return is_question or (self._selected is not None and self._selected.waits_for_tasks)
        selected = self._selected
        if action == "send_message" and selected is not None and selected.execution is not None:
            return True if selected.execution.execution.mode.is_conversation else None
        if action in {"send_message", "attach"}:
            return True if selected is not None and not selected.waits_to_start and not selected.is_over else None
        if action in {"open_item", "open_task"}:
            return True if selected is not None else None
        return super().check_action(action, parameters)

    async def on_decided(self, listing: ApprovalListing) -> None:
        """Let it go from the list; the next one comes under the keys by itself."""
        self._decided_here.add(str(listing.approval.id))

    def action_answer(self) -> None:
        """Show the question with the keys that choose; it was seen here, so nothing has to wait."""
        selected = self._selected
        if selected is not None and selected.task_id is not None and selected.waits_for_tasks:
            self.open_dialog(decide_waiting(self, selected.task_id), name="answer")
            return
        listing = self.may_decide()
        if listing is not None:
            self.open_dialog(self._answer(listing), name="answer")

    def action_open_item(self) -> None:
        """Show the question with the keys that choose, or the task of anything else."""
        if self.check_action("answer", ()):
            self.action_answer()
        else:
            self.action_open_task()

    def action_open_task(self) -> None:
        """Show the task."""
        selected = self._selected
        if selected is None or selected.task_id is None:
            return
        from agentmon.screens.tasks.task_page import TaskPage  # noqa: PLC0415 - not needed before

        self.app.push_screen(
            TaskPage(
                task_id=selected.task_id,
                services=self.services,
                workspace=self.workspace,
                tab="conversation",
                clock=self.clock,
            )
        )

    def action_attach(self) -> None:
        """Enter the terminal of the selected one."""
        selected = self._selected
        if selected is not None and selected.execution_id is not None:
            self.post_message(AttachRequested(selected.execution_id))

    def action_send_message(self) -> None:
        """Write to the agent of the selected one."""
        selected = self._selected
        if selected is not None and selected.task_id is not None:
            self.open_dialog(send_message(self, selected.task_id), name="message")

    def action_toggle_history(self) -> None:
        """Show what was decided, or what waits."""
        self._is_history = not self._is_history
        self._is_loaded = False
        self._items = {}
        self._list.clear()
        self.request_refresh()

    def action_go_item(self, steps: int) -> None:
        """Select another one."""
        self._list.move_by(steps)
        self._show_selected(is_by_person=True)

    def action_go_end(self, direction: int) -> None:
        """Select the first or the last one."""
        self._list.go_end(direction)
        self._show_selected(is_by_person=True)

    def action_scroll_request(self, direction: int) -> None:
        """Scroll the request by half a page."""
        view = self.request_view
        view.scroll_rows(direction * max(1, view.size.height // 2))

    def on_block_view_selected(self, message: BlockView.Selected) -> None:
        """Show the selected one whole."""
        message.stop()
        if message.view is self._list:
            self._show_selected(is_by_person=message.is_by_person)

    def on_block_view_opened(self, message: BlockView.Opened) -> None:
        """Open the one that was clicked twice."""
        message.stop()
        self.action_open_item()

    def on_block_view_clicked(self, message: BlockView.Clicked) -> None:
        """Answer the question that was clicked."""
        message.stop()
        if self.check_action("answer", ()):
            self.action_answer()

    @property
    def _list(self) -> BlockView:
        return self.query_one("#waiting", BlockView)

    @property
    def _selected(self) -> InboxItem | None:
        view = self.query_one_optional("#waiting", BlockView)
        return None if view is None else self._items.get(view.selected_key or "")

    async def _answer(self, listing: ApprovalListing) -> None:
        from agentmon.screens.inbox.request_dialog import RequestDialog  # noqa: PLC0415 - not needed before

        await self.ask(RequestDialog(listing, services=self.services, workspace=self.workspace, clock=self.clock))
        services = await self.services()
        seen = await services.approvals.get(listing.approval.id)
        if seen.approval.status is not ApprovalStatus.PENDING:
            self._decided_here.add(str(listing.approval.id))
        self.request_refresh()

    async def _read_waiting(self, services: Services) -> dict[str, InboxItem]:
        """Return what waits: what is known stays in its place, what is new goes below, the selected one stays."""
        workspace = await self.workspace()
        listings = await services.approvals.inbox(workspace.id)
        items = [InboxItem(listing=one, since=one.approval.asked_at) for one in listings]
        for one in await services.executions.without_request(workspace):
            execution = one.execution
            since = execution.activity_at or execution.started_at or execution.created_at
            items.append(InboxItem(execution=one, since=since))
        items += [
            InboxItem(execution=one, since=one.execution.ended_at or one.execution.created_at)
            for one in await services.executions.ended_by_budgets(workspace)
        ]
        new = {item.key: item for item in sorted(items, key=lambda item: item.since)}
        kept = await self._kept(services, new)
        known = {key: new.get(key, kept) for key in self._items if key in new or (kept is not None and key == kept.key)}
        return {key: item for key, item in (known | new).items() if item is not None}

    async def _kept(self, services: Services, new: dict[str, InboxItem]) -> InboxItem | None:
        """Return the selected request as it is now, when it no longer waits and was not decided here."""
        selected = self._selected
        if selected is None or selected.listing is None or selected.key in new or selected.key in self._decided_here:
            return None
        try:
            listing = await services.approvals.get(selected.listing.approval.id)
        except NotFoundError:
            return None
        return replace(selected, listing=listing)

    def _show(self) -> None:
        view = self._list
        self.set_class(not self._items, "-empty")
        self.query_one("#empty", Static).update(Content(_NO_HISTORY if self._is_history else _EMPTY))
        with self.app.batch_update():
            view.blocks = inbox_blocks(tuple(self._items.values()), self.clock.now())
            self._show_selected(is_by_person=False)
            self._show_summary()
        self.refresh_bindings()

    def _show_selected(self, *, is_by_person: bool) -> None:
        selected = self._selected
        if selected is not None and selected.listing is not None:
            self.show_request(selected.listing, is_by_person=is_by_person)
            return
        self.show_request(None, is_by_person=is_by_person)
        waited = "" if selected is None else waited_text(selected.since, self.clock.now())
        execution = None if selected is None else selected.execution
        blocks = () if execution is None else (IdleBlock(execution, waited),)
        if self.request_view.blocks != blocks:
            self.request_view.blocks = blocks

    def _tick(self) -> None:
        if self._items and self.is_current and not self._is_history:
            self._list.blocks = inbox_blocks(tuple(self._items.values()), self.clock.now())
            self._show_selected(is_by_person=True)

    def _show_summary(self) -> None:
        count = len(self._items)
        pending = sum(
            item.is_pending or (item.execution is not None and not item.is_over) for item in self._items.values()
        )
        pending += sum(item.listing.more for item in self._items.values() if item.listing is not None)
        if self._is_history:
            parts = [("History", "bold"), (f"   {count:,} in all, the newest first   h goes back", "$text-muted")]
        elif not self._is_loaded:
            parts = [("Inbox", "bold")]
        else:
            words = "waits for you" if pending == 1 else "wait for you"
            colour = "$warning" if pending else "$text-muted"
            parts = [("Inbox", "bold"), (f"   ◆ {pending:,} {words}" if pending else "   nothing waits", colour)]
        self.query_one("#summary", Static).update(Content.assemble(*parts), layout=False)
