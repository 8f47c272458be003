"""The billed answers of a conversation, each with how its cost comes about."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agentmon.domain.amounts import DOLLARS
from agentmon.domain.plain_text import plain_lines
from agentmon.screens.bindings import ANSWERS
from agentmon.screens.costs.cost_rows import ANSWER_COLUMNS, answer_rows, explanation_text
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.row_table import RowTable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.domain.amounts import MoneyFormat
    from agentmon.services.costs import ExplainedAnswer


class AnswersDialog(Guarded, ModalScreen[None]):
    """A table of answers, and below it the explanation of the one under the cursor."""

    CSS_PATH = "answers_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*ANSWERS]
    AUTO_FOCUS = "#answers"

    def __init__(self, answers: Sequence[ExplainedAnswer], *, now: datetime, money: MoneyFormat = DOLLARS) -> None:
        super().__init__()
        self._money = money
        self._answers = {one.source.id: one for one in answers}
        self._now = now

    def compose(self) -> ComposeResult:
        """Yield the table, the explanation and the keys."""
        with Vertical(id="dialog"):
            yield Static(self._heading(), id="heading")
            yield RowTable(ANSWER_COLUMNS, id="answers")
            yield Static(id="explanation")
            yield KeyFooter()

    def on_mount(self) -> None:
        """Show the answers."""
        self.query_one(RowTable).rows = answer_rows(list(self._answers.values()), self._now, self._money)

    def on_row_table_highlighted(self, message: RowTable.Highlighted) -> None:
        """Explain the answer under the cursor."""
        message.stop()
        one = self._answers.get(message.key or "")
        text = "" if one is None else plain_lines(explanation_text(one, self._money))
        self.query_one("#explanation", Static).update(Content(text))

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)

    def action_go_row(self, rows: int) -> None:
        """Move the cursor by rows."""
        self.query_one(RowTable).move_by(rows)

    def action_go_end(self, direction: int) -> None:
        """Move the cursor to the first or the last row."""
        self.query_one(RowTable).go_end(direction)

    def action_go_page(self, direction: int) -> None:
        """Move the cursor by half a screenful."""
        self.query_one(RowTable).go_page(direction)

    def _heading(self) -> Content:
        count = len(self._answers)
        cost = sum(one.source.cost_nano or 0 for one in self._answers.values())
        unpriced = sum(one.source.cost_nano is None for one in self._answers.values())
        parts = [(f"{count:,} billed answer{'' if count == 1 else 's'}", "bold"), (f"   {self._money.text(cost)}", "")]
        if unpriced:
            parts.append((f"   {unpriced:,} unpriced", "$warning"))
        return Content.assemble(*parts)
