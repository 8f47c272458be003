"""The dialog that merges a task's branch: how, into what, with which message, and what would come of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Select, Static, TextArea

from agentmon.domain.errors import AgentmonError
from agentmon.domain.merges import MergeHow, forecast_lines
from agentmon.domain.plain_text import plain_line
from agentmon.screens.bindings import MERGE_DIALOG
from agentmon.widgets.cells import even_line
from agentmon.widgets.form import FormField, LineInput, TextBox
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.worker import Worker

    from agentmon.domain.merges import Forecast
    from agentmon.domain.tasks import Task
    from agentmon.services.merges import MergePlan

_SAYS: Final = {
    MergeHow.SQUASH: "squash: one commit",
    MergeHow.MERGE: "merge: a merge commit",
    MergeHow.REBASE: "rebase: each commit, with its own message",
}
_MOST_LINES: Final = 12
_LONGEST_LINE: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeChoice:
    """What a person wants done."""

    how: MergeHow
    into: str
    """Empty for the branch from which it was made."""
    message: str
    solved: Forecast | None = None
    """Its conflicts go to the agent, and nothing is merged; None to merge."""


class MergeDialog(Guarded, ModalScreen["MergeChoice | None"]):
    """A form over a merge; ends with the choice, or with None when the person left."""

    CSS_PATH = "merge_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*MERGE_DIALOG]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (28, "-tall")]  # noqa: RUF012 - Textual types it as an instance's
    AUTO_FOCUS = "#message"

    def __init__(
        self,
        task: Task,
        *,
        how: MergeHow,
        into: str,
        message: str,
        plan: Callable[[MergeHow, str], Awaitable[MergePlan]],
    ) -> None:
        """Make the dialog.

        Args:
            task: Whose branch.
            how: What is chosen at first.
            into: The branch that gets it; empty where there is none yet.
            message: The proposed commit message.
            plan: Returns what would come of it.
        """
        super().__init__()
        self._merged_task = task
        self._how = how
        self._into = into
        self._message = message
        self._plan = plan
        self._forecast: Forecast | None = None
        self._foretold: tuple[MergeHow, str] | None = None
        self._is_over = False

    def compose(self) -> ComposeResult:
        """Yield what can be chosen, and what would come of it."""
        ways = [(Content(_SAYS[how]), how) for how in MergeHow]
        title = even_line(f"Merge #{self._merged_task.number} {self._merged_task.title}", max_characters=_LONGEST_LINE)
        with Vertical(id="dialog"):
            yield Static(Content(title), id="heading")
            with VerticalScroll(id="fields", can_focus=False):
                yield FormField("How", Select(ways, value=self._how, allow_blank=False, compact=True, id="how"))
                yield FormField("Into", LineInput(self._into, id="into"), help_text="a branch of your repository")
                yield FormField("Message", TextBox(self._message, id="message"))
            yield Static(id="foretold")
            yield KeyFooter()

    def on_mount(self) -> None:
        """Look what would come of it."""
        self._foretell()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer to merge what can be merged, and to have conflicts solved where there are any."""
        if action == "save":
            return self._forecast is not None and self._forecast.is_possible
        if action == "solve":
            return self._forecast is not None and bool(self._forecast.conflicts)
        return True

    def on_select_changed(self, event: Select.Changed) -> None:
        """Look again."""
        event.stop()
        self._foretell()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Look again."""
        event.stop()
        self._foretell()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go on to the next field."""
        event.stop()
        self.focus_next()

    def action_save(self) -> None:
        """End with the choice, unless something is in the way or the message is empty."""
        if not self._choice.message.strip() and self._choice.how is not MergeHow.REBASE:
            self._say([("The message is empty.", "$error")])
            return
        self._end(self._choice)

    def action_solve(self) -> None:
        """End with the conflicts for the agent."""
        choice = self._choice
        self._end(MergeChoice(how=choice.how, into=choice.into, message=choice.message, solved=self._forecast))

    def action_cancel(self) -> None:
        """Merge nothing."""
        self._end(None)

    @property
    def _choice(self) -> MergeChoice:
        how = self.query_one("#how", Select).value
        return MergeChoice(
            how=how if isinstance(how, MergeHow) else self._how,
            into=self.query_one("#into", Input).value.strip(),
            message=self.query_one("#message", TextArea).text,
        )

    def _end(self, choice: MergeChoice | None) -> None:
        if not self._is_over:
            self._is_over = True
            self.dismiss(choice)

    def _foretell(self) -> None:
        # A choice tells of a change when it is mounted, too.
        chosen = self._choice.how, self._choice.into
        if chosen == self._foretold:
            return
        self._forecast, self._foretold = None, chosen
        self.refresh_bindings()
        _looking: Worker[None] = self.run_worker(
            self._look, name="merge", group="merge", exclusive=True, exit_on_error=False
        )

    async def _look(self) -> None:
        choice = self._choice
        self._say([("Looking …", "$text-muted")])
        try:
            plan = await self._plan(choice.how, choice.into)
        except AgentmonError as error:
            self._say([(str(error), "$error"), (error.hint, "$text-muted")])
            return
        self._forecast = plan.forecast
        self.refresh_bindings()
        obstacles = len(plan.forecast.conflicts) + len(plan.forecast.blocked)
        first, *lines = forecast_lines(plan.forecast, plan.worktree.branch)
        shown = lines[:_MOST_LINES] + ([f"and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else [])
        calm = len(lines) - obstacles if obstacles else 0
        styles = ["$text-muted"] * calm + ["$error" if obstacles else "$success"] * len(shown)
        self._say([(first, "$text-muted"), *zip(shown, styles, strict=False)])

    def _say(self, lines: list[tuple[str, str]]) -> None:
        told = [Content.styled(plain_line(line, max_characters=_LONGEST_LINE), style) for line, style in lines if line]
        self.query_one("#foretold", Static).update(Content("\n").join(told))
