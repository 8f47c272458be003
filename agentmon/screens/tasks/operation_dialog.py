"""One tool call with all that is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical
from textual.screen import ModalScreen

from agentmon.screens.bindings import DETAIL
from agentmon.widgets.block_view import BlockView
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.operation_rows import OperationDetail

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.domain.operations import Operation


class OperationDialog(Guarded, ModalScreen[None]):
    """What went into a tool and what came out of it."""

    CSS_PATH = "operation_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*DETAIL]
    AUTO_FOCUS = "BlockView"

    def __init__(self, operation: Operation, folder: str = "") -> None:
        """Make the dialog; paths below the folder are told from there."""
        super().__init__()
        self._operation = operation
        self._folder = folder

    def compose(self) -> ComposeResult:
        """Yield the call and the keys."""
        with Vertical(id="dialog"):
            yield BlockView(has_cursor=False, id="call")
            yield KeyFooter()

    def on_mount(self) -> None:
        """Show the call."""
        self.query_one(BlockView).blocks = (OperationDetail(self._operation, self._folder),)

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)

    def action_scroll(self, rows: int) -> None:
        """Scroll by rows."""
        self.query_one(BlockView).scroll_rows(rows)

    def action_scroll_page(self, direction: int) -> None:
        """Scroll by a page."""
        self.query_one(BlockView).go_page(direction)
