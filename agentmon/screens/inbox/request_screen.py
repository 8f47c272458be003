"""What the inbox and the dialog of a card share: one request, shown whole, with the keys that decide on it."""

from __future__ import annotations

import json
from time import monotonic
from typing import TYPE_CHECKING, Final

from agentmon.domain.approvals import ApprovalScope, ApprovalStatus
from agentmon.domain.conversation import AskDecision, AskKind
from agentmon.domain.errors import UndeliveredError
from agentmon.domain.near_paths import near_text
from agentmon.domain.start_danger import danger_text
from agentmon.screens.frame import WRITES, AttachRequested, ServiceScreen
from agentmon.widgets.block_view import BlockView
from agentmon.widgets.cells import even_line
from agentmon.widgets.guarded import Failed
from agentmon.widgets.question_blocks import unanswered_blocks
from agentmon.widgets.request_blocks import request_blocks
from agentmon.widgets.request_words import decision_words

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from agentmon.domain.approvals import Approval, ApprovalListing, ApprovalRule
    from agentmon.domain.clock import Clock
    from agentmon.domain.conversation import AskQuestion
    from agentmon.domain.ids import ApprovalId
    from agentmon.screens.frame import ServicesGetter, WorkspaceGetter
    from agentmon.widgets.block_view import Block

GUARD_S: Final = 1.0
"""How long keys decide nothing after another request came under them by itself, and after each key that came too early.

So a key that is held or pressed in a rhythm stops at what nobody has looked at yet.
"""
OPENING_GUARD_S: Final = 0.4
"""How long keys decide nothing in a dialog that a person has opened just now."""
_TOO_EARLY: Final = "This came just now: look at it, then press the key again"
_WARNING_S: Final = 3.0
_LONGEST_TITLE: Final = 120
_REQUEST_ACTIONS: Final = {
    "allow",
    "allow_session",
    "allow_always",
    "deny",
    "deny_and_interrupt",
    "edit_input",
}


class RequestScreen(ServiceScreen[None]):
    """A screen that shows one request in the view ``#request``.

    Whatever a key decides is decided on the request that was shown when the key was pressed, with its digest.
    """

    def __init__(self, services: ServicesGetter, workspace: WorkspaceGetter, *, clock: Clock) -> None:
        super().__init__(services, workspace)
        self.clock = clock
        self.request: ApprovalListing | None = None
        """What is shown."""
        self._guarded_until = 0.0
        self._has_warned = False
        self._deciding: set[ApprovalId] = set()

    @property
    def is_guarded(self) -> bool:
        """Whether keys decide nothing yet, since what is shown came by itself just now."""
        return monotonic() < self._guarded_until

    def guard(self, seconds: float) -> None:
        """Let keys decide nothing for so long."""
        self._guarded_until = monotonic() + seconds
        self._has_warned = False

    def show_request(self, listing: ApprovalListing | None, *, is_by_person: bool) -> None:
        """Show a request, or the newest state of the one that is shown."""
        before = self.request
        self.request = listing
        is_other = (None if before is None else before.approval.id) != (
            None if listing is None else listing.approval.id
        )
        has_changed = (
            before is not None
            and listing is not None
            and (before.approval.status, before.approval.input_digest)
            != (listing.approval.status, listing.approval.input_digest)
        )
        if is_other:
            self.begin_answer(() if listing is None or listing.approval.is_in_screen else listing.approval.questions)
            self.request_view.clear()
        if (is_other or has_changed) and not is_by_person:
            self.guard(GUARD_S)
        elif is_other:
            self.guard(0)
        self.draw_request()
        self.refresh_bindings()

    def draw_request(self) -> None:
        """Draw the request with the present time and what is chosen."""
        listing = self.request
        if listing is None:
            return
        blocks = request_blocks(listing, self.question_blocks(listing), self.clock.now())
        view = self.request_view
        if view.blocks != tuple(blocks):
            view.blocks = tuple(blocks)

    def begin_answer(self, questions: Sequence[AskQuestion]) -> None:
        """Hear that a request with these questions is shown from now on."""

    def question_blocks(self, listing: ApprovalListing) -> list[Block]:
        """Return the questions of the request as they are shown."""
        return [] if listing.approval.is_in_screen else unanswered_blocks(listing.approval.questions)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer what the request allows; the other keys go to whatever else has them."""
        if action not in _REQUEST_ACTIONS:
            return True
        approval = self.pending_approval
        if approval is None:
            return False
        kind = approval.ask_kind
        is_agents = kind not in {AskKind.DIALOG, AskKind.START, AskKind.BUDGET}
        is_let_go = not kind.is_question and approval.takes(AskDecision.ALLOW)
        return {
            "allow": is_let_go,
            "allow_session": approval.can_allow_for_session and is_let_go and not approval.name_to_type,
            "allow_always": kind is AskKind.PERMISSION and is_let_go and not approval.name_to_type,
            "deny": kind is AskKind.QUESTION or (kind is not AskKind.BUDGET and approval.takes(AskDecision.DENY)),
            "deny_and_interrupt": is_agents and not approval.is_in_screen,
            "edit_input": approval.can_edit_input and kind is AskKind.PERMISSION,
        }[action]

    async def on_decided(self, listing: ApprovalListing) -> None:
        """Hear that the request was decided here."""

    # Keys.

    def action_allow(self) -> None:
        """Allow it once."""
        self._allow(ApprovalScope.ONCE)

    def action_allow_session(self) -> None:
        """Allow it for this conversation."""
        self._allow(ApprovalScope.SESSION)

    def action_allow_always(self) -> None:
        """Show the rule that would allow it always, then allow it by that."""
        listing = self.may_decide()
        if listing is not None:
            self.open_dialog(self._allow_always(listing), name="rule")

    def action_deny(self) -> None:
        """Ask why, then deny it."""
        self._deny(interrupts=False)

    def action_deny_and_interrupt(self) -> None:
        """Ask why, then deny it and let the agent stop."""
        self._deny(interrupts=True)

    def action_edit_input(self) -> None:
        """Change what the tool gets, then allow it once."""
        listing = self.may_decide()
        if listing is not None:
            self.open_dialog(self._edit_input(listing), name="edit input")

    def action_attach(self) -> None:
        """Enter the terminal of what asks."""
        if self.request is not None:
            self.post_message(AttachRequested(self.request.approval.execution_id))

    # Inside.

    @property
    def request_view(self) -> BlockView:
        """The view that shows the request."""
        return self.query_one("#request", BlockView)

    @property
    def pending_approval(self) -> Approval | None:
        """What is shown, while it waits for a decision."""
        listing = self.request
        return None if listing is None or listing.approval.status is not ApprovalStatus.PENDING else listing.approval

    def may_decide(self) -> ApprovalListing | None:
        """Return the request that a key may decide on now; a key that came too early is told so, once."""
        listing = self.request
        if listing is None or self.pending_approval is None or listing.approval.id in self._deciding:
            return None
        if self.is_guarded:
            self._guarded_until = max(self._guarded_until, monotonic() + GUARD_S)
            if not self._has_warned:
                self._has_warned = True
                self.notify(_TOO_EARLY, severity="warning", timeout=_WARNING_S)
            return None
        return listing

    def _allow(self, scope: ApprovalScope) -> None:
        listing = self.may_decide()
        if listing is not None and listing.approval.name_to_type:
            self.open_dialog(self._allow_by_name(listing), name="name")
        elif listing is not None:
            self.start_deciding(listing, self._let_go(listing, scope))

    def _deny(self, *, interrupts: bool) -> None:
        listing = self.may_decide()
        if listing is not None:
            self.open_dialog(self._ask_and_deny(listing, interrupts=interrupts), name="deny")

    def start_deciding(self, listing: ApprovalListing, work: Coroutine[None, None, Approval]) -> None:
        """Decide on the request by that work, and tell what became of it."""
        self.start(self._decide(listing, work), name="decide", group=WRITES)

    async def _decide(self, listing: ApprovalListing, work: Coroutine[None, None, Approval]) -> None:
        """Wait for the decision and tell it; whatever becomes of it, the screen is read anew."""
        approval_id = listing.approval.id
        self._deciding.add(approval_id)
        try:
            try:
                decided = await work
            except UndeliveredError as error:
                self.app.post_message(Failed(error))
            else:
                self.notify(f"#{listing.task_number} {decision_words(decided)}")
            await self.on_decided(listing)
        finally:
            self._deciding.discard(approval_id)
            self.request_refresh()

    async def _let_go(
        self,
        listing: ApprovalListing,
        scope: ApprovalScope,
        *,
        tool_input: Mapping[str, object] | None = None,
        rule: ApprovalRule | None = None,
        typed_name: str | None = None,
    ) -> Approval:
        services = await self.services()
        return await services.approvals.allow(
            listing.approval.id,
            actor=services.actor,
            seen_digest=listing.approval.input_digest,
            scope=scope,
            tool_input=tool_input,
            rule=rule,
            typed_name=typed_name,
        )

    async def _allow_by_name(self, listing: ApprovalListing) -> None:
        from agentmon.screens.dialogs.name_dialog import NameDialog  # noqa: PLC0415 - not part of the first frame

        approval = listing.approval
        danger = danger_text(approval.danger_level, approval.danger_reason)
        typed = await self.ask(
            NameDialog(approval.name_to_type, command=approval.detail or approval.target, danger=danger)
        )
        if typed is not None:
            await self._decide(listing, self._let_go(listing, ApprovalScope.ONCE, typed_name=typed))

    async def _allow_always(self, listing: ApprovalListing) -> None:
        from agentmon.screens.inbox.rule_dialog import RuleDialog  # noqa: PLC0415 - not part of the first frame

        services = await self.services()
        proposed = await services.approvals.proposed_rule(listing.approval.id)
        rule = await self.ask(RuleDialog(proposed, listing))
        if rule is not None:
            await self._decide(listing, self._let_go(listing, ApprovalScope.ALWAYS, rule=rule))

    async def _ask_and_deny(self, listing: ApprovalListing, *, interrupts: bool) -> None:
        from agentmon.screens.dialogs.text_dialog import TextDialog  # noqa: PLC0415 - not part of the first frame

        title = even_line(near_text(listing.approval.title, listing.working_dir), max_characters=_LONGEST_TITLE)
        what = "Deny and stop the agent" if interrupts else "Deny"
        note = _reason_note(listing.approval, interrupts=interrupts)
        reason = await self.ask(TextDialog(f"{what}: {title}", note=note, allows_empty=True))
        if reason is not None:
            await self._decide(listing, self._refuse(listing, reason.strip(), interrupts=interrupts))

    async def _refuse(self, listing: ApprovalListing, reason: str, *, interrupts: bool) -> Approval:
        services = await self.services()
        return await services.approvals.deny(
            listing.approval.id,
            actor=services.actor,
            seen_digest=listing.approval.input_digest,
            reason=reason,
            interrupts=interrupts,
        )

    async def _edit_input(self, listing: ApprovalListing) -> None:
        from agentmon.screens.dialogs.text_dialog import TextDialog  # noqa: PLC0415 - not part of the first frame

        approval = listing.approval
        before = json.dumps(dict(approval.tool_input), indent=2, ensure_ascii=False)
        tool = even_line(approval.tool_name or approval.title, max_characters=_LONGEST_TITLE)
        note = "JSON, as the tool gets it. ctrl+s allows it once in this form."
        text = await self.ask(TextDialog(f"Input of {tool}", note=note, text=before, complaint=_json_complaint))
        if text is not None:
            tool_input = json.loads(text)
            await self._decide(listing, self._let_go(listing, ApprovalScope.ONCE, tool_input=tool_input))


def _reason_note(approval: Approval, *, interrupts: bool) -> str:
    """Return what becomes of the reason of a denial."""
    typed = approval.typed.get(AskDecision.DENY)
    if approval.ask_kind is AskKind.START:
        rest = "For the record."
    elif typed is not None:
        told = (
            "then the agent gets the reason as a message" if approval.hears_reason else "and the agent is not told why"
        )
        rest = f"It {typed.description} into its terminal ({typed.label}), {told}."
    else:
        rest = "The agent gets it with your next message." if interrupts else "The agent gets it."
    return f"Reason (optional). {rest} ctrl+s denies."


def _json_complaint(text: str) -> str:
    """Return what keeps the text from being a tool's input; empty when nothing does."""
    try:
        given = json.loads(text)
    except ValueError as error:
        return f"This is no JSON: {error}."
    return "" if isinstance(given, dict) else "The input of a tool is an object: { … }."
