"""What an undo will do, file by file, with both sides of each conflict; nothing is done before it is confirmed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agentmon.domain.diffs import Diff
from agentmon.domain.errors import AgentmonError
from agentmon.domain.plain_text import plain_line
from agentmon.screens.bindings import UNDO_DIALOG
from agentmon.widgets.diff_text import DiffText
from agentmon.widgets.guarded import Failed, Guarded
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.row_table import Column, RowTable, TableRow
from agentmon.widgets.text_rows import Span
from agentmon.workspaces.three_way import Side, UndoAction

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import TypeAlias

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.workspaces.three_way import UndoStep
    from agentmon.workspaces.undoing import UndoPlan

    Planner: TypeAlias = Callable[..., Awaitable[UndoPlan]]
    PatchReader: TypeAlias = Callable[[UndoPlan, UndoStep], Awaitable[bytes]]

_MOST_ROWS: Final = 10
_COLUMNS: Final = (Column("WHAT", 10), Column("FILE"), Column("", 38))
_STYLES: Final = {UndoAction.CONFLICT: "warning", UndoAction.IMPOSSIBLE: "bad", UndoAction.MERGE: "primary"}
_CHOICES: Final = {None: Side.BEFORE, Side.BEFORE: Side.NOW, Side.NOW: None}
_CHOICE_TEXTS: Final = {
    None: "left alone · space chooses",
    Side.BEFORE: "restores what was before",
    Side.NOW: "keeps what is there now",
}
_LEGEND: Final = "− as it is now   + as it will be"
_CONFLICT_LEGEND: Final = "− as it is now   + as it was before"


class UndoDialog(Guarded, ModalScreen["UndoPlan | None"]):
    """Shows a plan; ends with it as a person chose its sides, or with None when they left it."""

    CSS_PATH = "undo_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*UNDO_DIALOG]
    AUTO_FOCUS = "RowTable"

    def __init__(self, plan: UndoPlan, *, heading: str, replan: Planner, patch_of: PatchReader) -> None:
        """Make the dialog.

        Args:
            plan: What would be done.
            heading: The question.
            replan: Makes the plan again with ``choices``.
            patch_of: Returns what a step does to its file.
        """
        super().__init__()
        self._plan = plan
        self._heading = plain_line(heading)
        self._replan = replan
        self._patch_of = patch_of
        self._choices: dict[str, Side] = {}
        self._conflicts = {step.path: step for step in plan.steps if step.action is UndoAction.CONFLICT}

    def compose(self) -> ComposeResult:
        """Yield the question, the files, what becomes of the chosen one, and the keys."""
        with Vertical(id="dialog"):
            yield Static(Content(self._heading), id="heading")
            yield RowTable(_COLUMNS, id="steps")
            yield Static(id="legend")
            yield DiffText(placeholder="No lines change.")
            yield Static(id="summary")
            yield KeyFooter()

    def on_mount(self) -> None:
        """Show the plan."""
        self.query_one(DiffText).can_focus = False
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer sides where there is a conflict, and the deed where there is anything to do."""
        if action == "choose_side":
            return bool(self._conflicts)
        return True

    def action_confirm(self) -> None:
        """End with the plan."""
        if any(step.is_done for step in self._plan.steps):
            self.dismiss(self._plan)
        else:
            self.notify("Nothing to do yet: choose a side of a conflict", severity="warning")

    def action_cancel(self) -> None:
        """Leave all as it is."""
        self.dismiss(None)

    def action_go_row(self, rows: int) -> None:
        """Move in the files."""
        self.query_one(RowTable).move_by(rows)

    def action_scroll(self, direction: int) -> None:
        """Move by half a page in the lines."""
        self.query_one(DiffText).move_pages(direction / 2)

    def action_choose_side(self) -> None:
        """Choose what becomes of the conflict under the cursor: left alone, as before, as now."""
        path = self.query_one(RowTable).selected_key
        if path is None or path not in self._conflicts:
            return
        choice = _CHOICES[self._choices.get(path)]
        self._choices.pop(path, None)
        if choice is not None:
            self._choices[path] = choice
        self.run_worker(self._plan_again(), group="plan", exclusive=True, exit_on_error=False)

    def on_row_table_highlighted(self, message: RowTable.Highlighted) -> None:
        """Show what becomes of the file."""
        message.stop()
        self._show_step()

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        """Choose a side of what was clicked twice."""
        message.stop()
        self.action_choose_side()

    async def _plan_again(self) -> None:
        try:
            self._plan = await self._replan(choices=dict(self._choices))
        except AgentmonError as error:
            self.post_message(Failed(error))
            return
        self._show()

    @property
    def _steps(self) -> Mapping[str, UndoStep]:
        """What is done, and the conflicts that are settled by keeping what is there."""
        planned = {step.path: step for step in self._plan.steps}
        self._conflicts |= {path: step for path, step in planned.items() if step.action is UndoAction.CONFLICT}
        return dict(sorted((self._conflicts | planned).items()))

    def _show(self) -> None:
        table = self.query_one(RowTable)
        table.rows = tuple(self._row(step) for step in self._steps.values())
        table.styles.height = min(len(table.rows), _MOST_ROWS) + 1
        done = sum(step.is_done for step in self._plan.steps)
        left = len(self._plan.left_alone)
        parts = [Content(f"{done} {'file' if done == 1 else 'files'} will change")]
        if left:
            parts.append(Content.styled(f"{left} left alone", "$warning"))
        self.query_one("#summary", Static).update(Content("   ").join(parts), layout=False)
        self.refresh_bindings()
        self._show_step()

    def _row(self, step: UndoStep) -> TableRow:
        is_conflict = step.path in self._conflicts
        action = UndoAction.CONFLICT if is_conflict else step.action
        said = step.reason
        if is_conflict:
            said = _CHOICE_TEXTS[self._choices.get(step.path)]
        style = _STYLES.get(action, "text")
        cells = (Span(action.value, style), Span(plain_line(step.path), "text"), Span(said, "muted"))
        return TableRow(step.path, cells)

    def _show_step(self) -> None:
        self.run_worker(self._read_step(), group="step", exclusive=True, exit_on_error=False)

    async def _read_step(self) -> None:
        step = self._steps.get(self.query_one(RowTable).selected_key or "")
        if step is None:
            return
        diff = await asyncio.to_thread(Diff, await self._patch_of(self._plan, step))
        self.query_one(DiffText).show(diff, columns=0)
        is_conflict = step.path in self._conflicts
        why = self._conflicts[step.path].reason if is_conflict else step.reason
        legend = _CONFLICT_LEGEND if is_conflict else _LEGEND
        self.query_one("#legend", Static).update(Content(f"{legend}   {plain_line(why)}".rstrip()), layout=False)
