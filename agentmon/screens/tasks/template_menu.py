"""A list of templates that is narrowed by typing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Vertical
from textual.content import Content
from textual.fuzzy import Matcher
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from agentmon.domain.plain_text import plain_line
from agentmon.screens.bindings import TEMPLATE_MENU
from agentmon.widgets.form import LineInput
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from agentmon.domain.templates import TaskTemplate
    from agentmon.services.templates import TemplateShelf

_LONGEST: Final = 60
_MOST_PROBLEMS: Final = 4
_EMPTY: Final = "No templates yet.\n\nctrl+n in the editor saves a task as one."
_NOTHING: Final = "Nothing fits."


class TemplateMenu(Guarded, ModalScreen["TaskTemplate | None"]):
    """Ends with the template that was chosen, or with None."""

    CSS_PATH = "template_menu.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*TEMPLATE_MENU]
    AUTO_FOCUS = "#filter"

    def __init__(self, shelf: TemplateShelf) -> None:
        super().__init__()
        self._shelf = shelf
        self._shown: list[TaskTemplate] = []
        self._list = OptionList(id="templates", compact=True, markup=False)
        self._list.can_focus = False

    def compose(self) -> ComposeResult:
        """Yield heading, filter, list, broken files and keys."""
        with Vertical(id="dialog"):
            yield Static(Content("New task from a template"), id="heading")
            yield LineInput(placeholder="letters of its name or title", id="filter")
            yield self._list
            yield Static(id="hint")
            yield Static(self._problem_lines(), id="problems")
            yield KeyFooter()

    def on_mount(self) -> None:
        """Show all."""
        self._narrow("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show those that fit."""
        event.stop()
        self._narrow(event.value.strip())

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """End with the template that was clicked."""
        event.stop()
        self.dismiss(self._shown[event.option_index])

    def action_choose(self) -> None:
        """End with the marked template."""
        at = self._list.highlighted
        if at is not None and at < len(self._shown):
            self.dismiss(self._shown[at])

    def action_go_row(self, rows: int) -> None:
        """Mark another one."""
        self._list.action_cursor_down() if rows > 0 else self._list.action_cursor_up()

    def action_cancel(self) -> None:
        """Make no task."""
        self.dismiss(None)

    def _narrow(self, typed: str) -> None:
        templates = list(self._shelf.templates)
        if typed:
            matcher = Matcher(typed)
            scores = {one.name: max(matcher.match(one.name), matcher.match(one.title)) for one in templates}
            templates = sorted((one for one in templates if scores[one.name] > 0), key=lambda one: -scores[one.name])
        self._shown = templates
        self._list.clear_options()
        self._list.add_options([Option(_line(one)) for one in templates])
        self._list.highlighted = 0 if templates else None
        self._list.display = bool(templates)
        hint = self.query_one("#hint", Static)
        hint.display = not templates
        hint.update(Content(_NOTHING if self._shelf.templates else _EMPTY))

    def _problem_lines(self) -> Content:
        lines = [
            Content.styled(f"✗ {plain_line(one.file)}\n  {plain_line(one.reason, max_characters=200)}", "$error")
            for one in self._shelf.problems[:_MOST_PROBLEMS]
        ]
        left = len(self._shelf.problems) - _MOST_PROBLEMS
        if left > 0:
            lines.append(Content.styled(f"  and {left} more: agentmon template list", "$text-muted"))
        return Content("\n").join(lines)


def _line(template: TaskTemplate) -> Content:
    program = template.program or " ".join(template.command)
    notes = " · ".join(part for part in (program, "of the project" if template.is_shared else "") if part)
    return Content.assemble(
        plain_line(template.name, max_characters=_LONGEST),
        (f"  {plain_line(template.title, max_characters=_LONGEST)}", "$text-muted"),
        (f"  {plain_line(notes, max_characters=_LONGEST)}" if notes else "", "$secondary"),
    )
