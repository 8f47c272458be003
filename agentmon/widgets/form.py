"""Parts of a form: a one-line input that takes any paste whole, and a field that shows its help and its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from textual.content import Content
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea
from textual.widgets.input import Selection

from agentmon.domain.letters import letter_before, letter_behind
from agentmon.domain.plain_text import plain_line, plain_lines
from agentmon.widgets.cells import even_line, even_lines
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.text_rows import wrapped
from agentmon.widgets.theme_style import theme_style

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult
    from textual.geometry import Size

LINE_MAX_CHARACTERS: Final = 20_000
"""More than this is not taken into a one-line input: each key would then cost more than a frame."""

_LABEL_CELLS: Final = 15
_BELOW: Final = "form-field--below"


class LineInput(Guarded, Input):
    """An input of one line; pasted lines become one, and what cannot be drawn safely never gets in."""

    @dataclass
    class Noted(Message):
        """Something about a paste that the person should know."""

        input: LineInput
        text: str

    def __init__(
        self,
        text: str = "",
        *,
        placeholder: str = "",
        id: str | None = None,  # noqa: A002 - Textual's own name
    ) -> None:
        super().__init__(
            plain_line(text),
            placeholder=plain_line(placeholder),
            compact=True,
            select_on_focus=False,
            id=id,
        )

    def action_cursor_left(self, select: bool = False) -> None:
        """Go to the visible letter on the left."""
        start, end = self.selection
        if select:
            self.selection = Selection(start, letter_before(self.value, end))
        else:
            self.cursor_position = letter_before(self.value, end) if start == end else min(start, end)

    def action_cursor_right(self, select: bool = False) -> None:
        """Go to the visible letter on the right, or take what is proposed."""
        start, end = self.selection
        if select:
            self.selection = Selection(start, letter_behind(self.value, end))
        elif start == end and end < len(self.value):
            self.cursor_position = letter_behind(self.value, end)
        else:
            super().action_cursor_right()

    def action_delete_left(self) -> None:
        """Delete what is selected, or the visible letter on the left."""
        start, end = self.selection
        self.replace("", *sorted((start, letter_before(self.value, end) if start == end else end)))

    def action_delete_right(self) -> None:
        """Delete what is selected, or the visible letter on the right."""
        start, end = self.selection
        self.replace("", *sorted((start, letter_behind(self.value, end) if start == end else end)))

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        pasted = event.text.strip("\r\n")
        if len(self.value) + len(pasted) > LINE_MAX_CHARACTERS:
            self.post_message(
                self.Noted(
                    self,
                    f"not pasted: {len(pasted):,} characters, but one line takes {LINE_MAX_CHARACTERS:,} at most",
                ),
            )
            return
        line = plain_line(pasted)
        start, end = sorted(self.selection)
        self.replace(line, start, end)
        line_count = len(plain_lines(pasted).split("\n"))
        if line_count > 1:
            self.post_message(self.Noted(self, f"{line_count:,} pasted lines became one"))


class FormField(Guarded, Widget):
    """A label, a control, and below them note, error and help, each only when it has a text.

    It draws the label itself, and has a widget for the lines below from the first of them on: a form has many fields,
    and every widget costs time when it opens.
    """

    DEFAULT_CSS = """
    FormField {
        width: 1fr;
        height: auto;
        layout: vertical;
        & > * { margin-left: 16; }
        & > .form-field--below { height: auto; margin-left: 17; }
    }
    """

    def __init__(
        self,
        label: str,
        control: Widget,
        *,
        help_text: str = "",
        is_required: bool = False,
        id: str | None = None,  # noqa: A002 - Textual's own name
    ) -> None:
        super().__init__(id=id)
        self.control = control
        self._label = even_line(label, max_characters=60)
        self._label_rows = wrapped(self._label, _LABEL_CELLS)
        self._is_required = is_required
        self._help = Content(even_line(help_text, max_characters=400))
        self._note = Content()
        self._complaint = Content()
        self._below: Static | None = None
        self._is_composed = False
        self.error = ""
        """What is wrong with the field; empty when nothing is known to be."""
        self._wrong_value: object = None

    def compose(self) -> ComposeResult:
        """Yield the control, and the lines below when there are some."""
        self._is_composed = True
        yield self.control
        if self._below_text:
            self._below = Static(self._below_text, classes=_BELOW)
            yield self._below

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the rows of the control and the lines below, or those of the label when they are more."""
        return max(len(self._label_rows), super().get_content_height(container, viewport, width))

    def render_line(self, y: int) -> Strip:
        """Return a row of the label; the control and the lines below are drawn over the rest."""
        base = self.rich_style
        if y >= len(self._label_rows):
            return Strip.blank(self.size.width, base)
        has_focus = self.has_focus_within
        colour = "primary" if has_focus else "error" if self.error else "text-muted"
        segments = [Segment(self._label_rows[y], theme_style(self, colour, is_bold=has_focus))]
        if self._is_required and y == len(self._label_rows) - 1:
            segments.append(Segment(" *", theme_style(self, "warning", is_bold=has_focus)))
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def on_descendant_focus(self) -> None:
        """Light the label."""
        self.refresh()

    def on_descendant_blur(self) -> None:
        """Put the light out."""
        self.refresh()

    def show_help(self, text: str) -> None:
        """Show another help line; an empty one takes no room."""
        self._help = Content(even_line(text, max_characters=400))
        self._show_below()

    def show_error(self, message: str, *, hint: str = "") -> None:
        """Say what is wrong, and below it what helps."""
        self.error = message
        self._wrong_value = _value(self.control)
        self._complaint = Content.assemble(
            (f"✗ {even_lines(message)}", "$error"), (f"\n{even_lines(hint)}" if hint else "", "$text-muted")
        )
        self._show_below()

    def show_note(self, text: str) -> None:
        """Tell something that is no error; an empty text takes it away."""
        self._note = Content(even_line(text))
        self._show_below()

    def clear(self) -> None:
        """Take away error and note."""
        self.error = ""
        self._complaint = self._note = Content()
        self._show_below()

    def clear_when_changed(self) -> bool:
        """Take the error away when the control holds something else than the error was about.

        News of a change may come after the error that is about it, so the news alone does not say so.
        """
        if not self.error or _value(self.control) == self._wrong_value:
            return False
        self.clear()
        return True

    def focus_control(self) -> None:
        """Put the focus on the control and bring it into view."""
        self.control.focus()

    def on_line_input_noted(self, message: LineInput.Noted) -> None:
        """Show the note of the own input."""
        message.stop()
        self.show_note(message.text)

    @property
    def _below_text(self) -> Content:
        parts = (self._note.stylize("$warning"), self._complaint, self._help.stylize("$text-muted"))
        return Content("\n").join([part for part in parts if part])

    def _show_below(self) -> None:
        self.refresh()
        text = self._below_text
        if self._below is not None:
            self._below.display = bool(text)
            self._below.update(text)
        elif text and self._is_composed and self.is_attached:
            self._below = Static(text, classes=_BELOW)
            self.mount(self._below)


class TextBox(Guarded, TextArea):
    """A text of several lines; nothing that cannot be drawn safely gets in, tabs and line breaks stay."""

    def __init__(self, text: str = "", *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(plain_paragraphs(text), compact=True, tab_behavior="focus", id=id)

    def get_cursor_left_location(self) -> tuple[int, int]:
        """Return the place of the visible letter on the left."""
        row, column = self.cursor_location
        return (row, letter_before(self.document[row], column)) if column else super().get_cursor_left_location()

    def get_cursor_right_location(self) -> tuple[int, int]:
        """Return the place behind the visible letter on the right."""
        row, column = self.cursor_location
        line = self.document[row]
        return (row, letter_behind(line, column)) if column < len(line) else super().get_cursor_right_location()

    def on_resize(self) -> None:
        """Draw the lines as they are wrapped now; Textual wraps them anew without drawing them."""
        self.refresh()

    def on_unmount(self) -> None:
        """Let go of the application, whose theme Textual has every such box watch for as long as that lives."""
        watchers = getattr(self.app, "__watchers", {}).get("theme", [])
        watchers[:] = [watcher for watcher in watchers if watcher[0] is not self]

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        replaced = self.replace(plain_paragraphs(event.text), *self.selection, maintain_selection_offset=False)
        self.move_cursor(replaced.end_location)


def _value(control: Widget) -> object:
    return getattr(control, "value", None)


def plain_paragraphs(text: str) -> str:
    """Return the text as ``plain_lines`` does, with its tabs kept."""
    return "\t".join(plain_lines(part) for part in text.split("\t"))
