"""The request of one card, whole, over whatever screen it was asked for from."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agentmon.screens.bindings import REQUEST, REQUEST_DIALOG
from agentmon.screens.request_screen import RequestScreen
from agentmon.widgets.block_view import BlockView
from agentmon.widgets.cells import even_line
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.domain.approvals import ApprovalListing
    from agentmon.domain.clock import Clock
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter


class RequestDialog(RequestScreen, ModalScreen[None]):
    """Ends when the request is decided, here or elsewhere, or when the person leaves it for later."""

    CSS_PATH = "request_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*REQUEST, *REQUEST_DIALOG]
    AUTO_FOCUS = "#request"

    def __init__(
        self,
        listing: ApprovalListing,
        *,
        services: ServicesGetter,
        workspace: WorkspaceGetter,
        clock: Clock,
        more: int = 0,
    ) -> None:
        """Make the dialog.

        Args:
            listing: What is decided on.
            services: Gives the services.
            workspace: Gives the workspace.
            clock: Tells the time.
            more: How many other requests of the same task wait.
        """
        super().__init__(services, workspace, clock=clock)
        self._listing = listing
        self._more = more

    def compose(self) -> ComposeResult:
        """Yield the request and its keys."""
        listing = self._listing
        title = even_line(listing.task_title, max_characters=300)
        more = f"   and {self._more} more: 6 shows all" if self._more else ""
        with Vertical(id="dialog"):
            yield Static(
                Content.assemble(("◆ ", "$warning"), (f"#{listing.task_number} ", "$text-muted"), title, more),
                id="heading",
            )
            yield BlockView(has_cursor=False, id="request")
            yield KeyFooter()

    def on_mount(self) -> None:
        """Show the request; the key that opened the dialog decides nothing when it is pressed again at once."""
        self.show_request(self._listing, is_by_person=False)

    async def refresh_snapshot(self) -> None:
        """Show what has become of the request."""
        services = await self.services()
        self.show_request(await services.approvals.get(self._listing.approval.id), is_by_person=False)

    async def on_decided(self, listing: ApprovalListing) -> None:  # noqa: ARG002 - there is one only
        """End."""
        self.dismiss(None)

    def action_close(self) -> None:
        """Leave it undecided."""
        self.dismiss(None)

    def action_scroll_request(self, direction: int) -> None:
        """Scroll the request."""
        self.query_one(BlockView).scroll_rows(direction)
