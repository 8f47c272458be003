"""The page of one conversation: all that was said and done in it, live."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from agentmon.domain.amounts import DOLLARS, calls_text, count_text
from agentmon.domain.approvals import ApprovalStatus
from agentmon.screens.bindings import CONVERSATION
from agentmon.screens.changes.undoing import undo_call
from agentmon.screens.frame import AttachRequested, ServiceScreen
from agentmon.screens.sessions.conversation_source import DRAFT_POLL_INTERVAL_S, Conversation, ConversationSource
from agentmon.screens.sessions.session_actions import fork, go_on, session_title
from agentmon.screens.sessions.talking import change_agent, interrupt, show_request
from agentmon.widgets.conversation_blocks import AskBlock
from agentmon.widgets.conversation_pane import ConversationPane
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.session_rows import session_words

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.timer import Timer

    from agentmon.domain.clock import Clock
    from agentmon.domain.ids import TaskId
    from agentmon.domain.sessions import SessionListing
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter
    from agentmon.widgets.block_view import BlockView

_COLOURS = {
    "muted": "$text-muted",
    "running": "$secondary",
    "warning": "$warning",
    "good": "$success",
    "bad": "$error",
}
_LIVE_ACTIONS = {"interrupt", "change_agent", "attach"}
_ON_RUNS = {"send_message", "fork"}
"""What goes on from a run of agentmon."""


class ConversationPage(ServiceScreen[None]):
    """One conversation, followed at its end while it goes on."""

    CSS_PATH = "conversation_page.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*CONVERSATION]
    AUTO_FOCUS = "#blocks"

    def __init__(
        self,
        listing: SessionListing,
        *,
        services: ServicesGetter,
        workspace: WorkspaceGetter,
        clock: Clock,
        at: str | None = None,
    ) -> None:
        """Make the page.

        Args:
            listing: The conversation.
            services: Gives the services once they are there.
            workspace: Gives the workspace.
            clock: Tells the time.
            at: The message or tool call on which the cursor stands at first; None for the newest.
        """
        super().__init__(services, workspace)
        self._wanted_key = at
        self._listing = listing
        self._clock = clock
        self._money = DOLLARS
        self._source = ConversationSource(listing.session.id)
        self._has_request = self._has_changes = False
        self._draft_poll: Timer | None = None
        self.is_loaded = False
        """Whether the conversation was read."""

    def compose(self) -> ComposeResult:
        """Yield heading, conversation and keys."""
        with Vertical(id="heading"):
            yield Static(id="title")
            yield Static(id="state")
        yield ConversationPane(placeholder="Nothing was said yet.", id="conversation")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Show what is known already, and start the clock, which stands still while nothing runs."""
        self._show_heading()
        self._draft_poll = self.set_interval(DRAFT_POLL_INTERVAL_S, self._poll_drafts, name="drafts", pause=True)

    async def refresh_snapshot(self) -> None:
        """Read what is new."""
        services = await self.services()
        workspace = await self.workspace()
        self._money = await services.settings.money()
        self._listing = await services.sessions.get_listing(self._listing.session.id)
        shown = await self._source.read(
            services, workspace.id, agent_name=self._listing.agent_slug, now=self._clock.now()
        )
        self._has_request = any(
            isinstance(block, AskBlock) and block.approval.status is ApprovalStatus.PENDING for block in shown.blocks
        )
        self._has_changes = any(one.changes is not None for one in shown.operations)
        with self.app.batch_update():
            self._show_heading()
            self._show(shown)
            wanted, self._wanted_key = self._wanted_key, None
            if wanted is not None:
                self._view.select(wanted)
        self.is_loaded = True
        if self._draft_poll is not None:
            (self._draft_poll.resume if self._source.is_live else self._draft_poll.pause)()
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer what the conversation allows."""
        listing = self._listing
        if action in _LIVE_ACTIONS:
            return True if listing.is_live else None
        if action == "show_request":
            return True if self._has_request and listing.session.task_id is not None else None
        if action in _ON_RUNS and listing.newest_execution_id is None:
            return None
        if action == "undo_call":
            return self._has_changes
        if action == "fork":
            return None if listing.session.cannot_fork else True
        if action == "open_task":
            return True if listing.session.task_id is not None else None
        return True

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)

    def action_unfold(self) -> None:
        """Unfold what the cursor stands on, or fold it; a request that waits is shown with the keys to decide."""
        if self.query_one(ConversationPane).is_at_request:
            self.action_show_request()
        else:
            self._view.toggle()

    def action_unfold_all(self) -> None:
        """Unfold all that was said and done, or fold it again."""
        self._view.toggle_all()

    def action_show_request(self) -> None:
        """Show what its agent asks, with the keys to decide."""
        task_id = self._task_id
        if task_id is not None:
            self.open_dialog(show_request(self, task_id, self._clock), name="request")

    def action_send_message(self) -> None:
        """Write to its agent."""
        self.open_dialog(go_on(self, self._listing), name="message")

    def action_interrupt(self) -> None:
        """Let its agent stop and listen."""
        task_id = self._task_id
        if task_id is not None:
            self.start(interrupt(self, task_id), name="interrupt")

    def action_change_agent(self) -> None:
        """Change model or permission mode."""
        task_id = self._task_id
        if task_id is not None:
            self.open_dialog(change_agent(self, task_id), name="model")

    def action_fork(self) -> None:
        """Go on with a copy of it."""
        self.open_dialog(fork(self, self._listing), name="fork")

    def action_undo_call(self) -> None:
        """Undo what the tool call under the cursor changed, after showing what that does."""
        self.open_dialog(undo_call(self, self.query_one(ConversationPane).selected_call), name="undo")

    def action_open_task(self) -> None:
        """Show its task."""
        task_id = self._task_id
        if task_id is not None:
            from agentmon.screens.tasks.task_page import TaskPage  # noqa: PLC0415 - the task page shows conversations too

            self.app.push_screen(
                TaskPage(task_id=task_id, services=self.services, workspace=self.workspace, clock=self._clock)
            )

    def action_attach(self) -> None:
        """Enter its terminal."""
        if self._listing.newest_execution_id is not None:
            self.post_message(AttachRequested(self._listing.newest_execution_id))

    def action_go_row(self, rows: int) -> None:
        """Go up or down."""
        self._view.move_by(rows)

    def action_go_end(self, direction: int) -> None:
        """Go to the beginning, or to the end and follow it."""
        self._view.go_end(direction)

    def action_go_page(self, direction: int) -> None:
        """Go up or down a page."""
        self._view.go_page(direction)

    def on_block_view_selected(self, message: BlockView.Selected) -> None:
        """Nothing follows the cursor."""
        message.stop()

    def on_block_view_opened(self, message: BlockView.Opened) -> None:
        """Fold what was clicked twice."""
        message.stop()
        message.view.toggle()

    @property
    def _view(self) -> BlockView:
        return self.query_one(ConversationPane).view

    @property
    def _task_id(self) -> TaskId | None:
        return self._listing.session.task_id

    def _poll_drafts(self) -> None:
        shown = self._source.poll() if self.is_current else None
        if shown is not None:
            self._show(shown)

    def _show(self, shown: Conversation) -> None:
        self.query_one(ConversationPane).show(shown.blocks, shown.plan, is_own_screen=shown.is_own_screen)

    def _show_heading(self) -> None:
        listing, session = self._listing, self._listing.session
        number = "" if listing.task_number is None else f"#{listing.task_number} "
        title = Content.assemble((number, "$text-muted"), (session_title(listing), "bold"))
        self.query_one("#title", Static).update(title, layout=False)
        told = session_words(listing)
        tokens = f"{count_text(session.total_tokens)} tokens" if session.total_tokens else ""
        calls = calls_text(session.operation_count)
        cost = self._money.text(session.total_cost_nano or None)
        parts = [(told.text, _COLOURS[told.style]), (listing.agent_slug, "")]
        facts = (session.model or "", session.permission_mode or "", calls, tokens, cost, session.workspace)
        parts += [(text, "$text-muted") for text in facts]
        line = Content("   ").join([Content.styled(text, colour) for text, colour in parts if text])
        self.query_one("#state", Static).update(line, layout=False)
