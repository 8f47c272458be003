"""The request of one card, whole, over whatever screen it was asked for from."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agentmon.screens.bindings import QUESTION, REQUEST, REQUEST_DIALOG
from agentmon.screens.inbox.choices import Choices
from agentmon.screens.inbox.request_screen import OPENING_GUARD_S, RequestScreen
from agentmon.widgets.block_view import BlockView
from agentmon.widgets.cells import even_line
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.question_blocks import parse_choice_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.domain.approvals import Approval, ApprovalListing
    from agentmon.domain.clock import Clock
    from agentmon.domain.conversation import AskQuestion
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter
    from agentmon.widgets.block_view import Block

_QUESTION_ACTIONS = {"submit_answer", "toggle_choice", "choose", "go_choice", "go_question", "type_answer"}


class RequestDialog(RequestScreen, ModalScreen[None]):
    """Ends when the request is decided, here or elsewhere, or when the person leaves it for later."""

    CSS_PATH = "request_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*QUESTION, *REQUEST, *REQUEST_DIALOG]
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
        self._choices = Choices(())

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
        self.show_request(self._listing, is_by_person=True)
        self.guard(OPENING_GUARD_S)

    async def refresh_snapshot(self) -> None:
        """Show what has become of the request."""
        services = await self.services()
        self.show_request(await services.approvals.get(self._listing.approval.id), is_by_person=False)

    async def on_decided(self, listing: ApprovalListing) -> None:  # noqa: ARG002 - there is one only
        """End."""
        self.dismiss(None)

    def begin_answer(self, questions: Sequence[AskQuestion]) -> None:
        """Begin with nothing chosen."""
        self._choices = Choices(questions)

    def question_blocks(self, listing: ApprovalListing) -> list[Block]:
        """Return the questions with what is chosen, as long as they can be answered."""
        return super().question_blocks(listing) if self.pending_approval is None else self._choices.blocks()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the keys of a question for questions only."""
        if action in _QUESTION_ACTIONS:
            approval = self.pending_approval
            return approval is not None and approval.ask_kind.is_question
        return super().check_action(action, parameters)

    def on_block_view_clicked(self, message: BlockView.Clicked) -> None:
        """Choose what was clicked."""
        message.stop()
        numbers = parse_choice_key(message.key)
        if numbers is not None and self.check_action("choose", ()):
            self._choices.choose_in(*numbers)
            self._show_choices()

    # Keys of a question.

    def action_choose(self, number: int) -> None:
        """Choose the answer of this number, or take it back."""
        self._choices.choose(number)
        self._show_choices()

    def action_toggle_choice(self) -> None:
        """Choose the answer under the cursor, or take it back."""
        self._choices.toggle()
        self._show_choices()

    def action_go_choice(self, steps: int) -> None:
        """Go to another answer; where there is none to choose, scroll."""
        question = self._choices.question
        if question is None or not question.choices:
            self.action_scroll_request(steps)
            return
        self._choices.go(steps)
        self._show_choices()

    def action_go_question(self, steps: int) -> None:
        """Go to another question."""
        self._choices.go_question(steps)
        self._show_choices()

    def action_type_answer(self) -> None:
        """Answer in one's own words."""
        self.open_dialog(self._type_answer(), name="type answer")

    def action_submit_answer(self) -> None:
        """Go on to the next question, or send the answers to all."""
        listing = self.may_decide()
        if listing is None:
            return
        if self._choices.go_on():
            self.start_deciding(listing, self._answer(listing, self._choices.answers()))
            return
        self._show_choices()

    # Other keys.

    def action_close(self) -> None:
        """Leave it undecided."""
        self.dismiss(None)

    def action_scroll_request(self, direction: int) -> None:
        """Scroll the request."""
        self.query_one(BlockView).scroll_rows(direction)

    def _show_choices(self) -> None:
        self.draw_request()
        self.request_view.reveal(self._choices.lit_key)

    async def _type_answer(self) -> None:
        from agentmon.screens.dialogs.text_dialog import TextDialog  # noqa: PLC0415 - not part of the first frame

        choices, question = self._choices, self._choices.question
        if question is None:
            return
        text = await self.ask(
            TextDialog(question.question, note="Your own words; enter sends them afterwards.", text=choices.typed)
        )
        if text is not None:
            choices.type(text.strip())
            self._show_choices()

    async def _answer(self, listing: ApprovalListing, answers: Mapping[str, str | Sequence[str]]) -> Approval:
        services = await self.services()
        return await services.approvals.answer(
            listing.approval.id, actor=services.actor, seen_digest=listing.approval.input_digest, answers=answers
        )
