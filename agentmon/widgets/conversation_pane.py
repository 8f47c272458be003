"""A conversation with its plan on top: a checklist, and below it what was said and done, live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from agentmon.domain.approvals import ApprovalStatus
from agentmon.widgets.block_view import BlockView
from agentmon.widgets.call_blocks import OperationBlock
from agentmon.widgets.conversation_blocks import AskBlock
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.plan_blocks import plan_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult

    from agentmon.domain.conversation import PlanNews
    from agentmon.domain.operations import Operation
    from agentmon.widgets.block_view import Block

_COLOURS: Final = {
    "heading": "$primary bold",
    "running": "$secondary",
    "good": "$success",
    "muted": "$text-muted",
    "text": "",
}
_OWN_SCREEN: Final = Content.assemble(
    "Own screen: messages appear here when complete. Press ", ("a", "$primary bold"), " to watch it live."
)
_MOST_PLAN_ROWS: Final = 8
_LEAST_HEIGHT: Final = 16
"""Height below which the plan is its first row and the step that is worked on."""


class ConversationPane(Guarded, Vertical):
    """Shows a conversation; the parent calls ``show`` and moves ``view``."""

    DEFAULT_CSS = """
    ConversationPane {
        & > #plan {
            display: none;
            height: auto;
            padding: 0 1;
            margin-bottom: 1;
            background: $surface;
            text-wrap: nowrap;
        }
        &.-planned > #plan { display: block; }
        & > #own-screen { display: none; height: auto; padding: 0 1; color: $text-muted; }
        &.-own-screen > #own-screen { display: block; }
    }
    """

    def __init__(self, *, placeholder: str, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.view = BlockView(follows=True, unfolds_by_click=True, placeholder="", id="blocks")
        """What was said and done."""
        self._placeholder = placeholder
        """What is said once it is known that there is nothing."""
        self._plan: PlanNews | None = None

    def compose(self) -> ComposeResult:
        """Yield plan and conversation."""
        yield Static(id="plan")
        yield self.view
        yield Static(_OWN_SCREEN, id="own-screen")

    def show(self, blocks: Sequence[Block], plan: PlanNews | None, *, is_own_screen: bool = False) -> None:
        """Show what was said and done, and the plan as it is now; None when there is none.

        Args:
            blocks: What was said and done.
            plan: The plan.
            is_own_screen: Whether the agent writes in its own screen, of which only whole messages are known.
        """
        self.set_class(is_own_screen, "-own-screen")
        if plan != self._plan:
            self._plan = plan
            self._show_plan()
        if self._placeholder:
            self.view.say(self._placeholder)
            self._placeholder = ""
        if self.view.blocks is not blocks:
            self.view.blocks = tuple(blocks)

    @property
    def is_at_request(self) -> bool:
        """Whether the cursor stands on a request that waits for a decision."""
        block = self._selected
        return isinstance(block, AskBlock) and block.approval.status is ApprovalStatus.PENDING

    @property
    def selected_call(self) -> Operation | None:
        """The tool call on which the cursor stands; None on anything else."""
        block = self._selected
        return block.operation if isinstance(block, OperationBlock) else None

    @property
    def _selected(self) -> Block | None:
        key = self.view.selected_key
        return next((one for one in reversed(self.view.blocks) if one.key == key), None)

    def on_resize(self, event: events.Resize) -> None:
        """Cut the plan to the room."""
        event.stop()
        self._show_plan()

    def _show_plan(self) -> None:
        plan = self._plan
        self.set_class(plan is not None and bool(plan.steps), "-planned")
        if plan is None or not self.is_mounted:
            return
        most = _MOST_PLAN_ROWS if self.size.height >= _LEAST_HEIGHT else 2
        rows = plan_rows(plan, max(1, self.size.width - 2), most=most)
        lines = [Content.assemble(*((span.text, _COLOURS[span.style]) for span in row)) for row in rows]
        self.query_one("#plan", Static).update(Content("\n").join(lines))
