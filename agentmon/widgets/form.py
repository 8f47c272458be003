"""Parts of a form: a one-line input that takes any paste whole, and a field that shows its help and its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.css.query import NoMatches
from textual.message import Message
from textual.widgets import Input, Static, TextArea

from agentmon.domain.plain_text import plain_line, plain_lines
from agentmon.widgets.guarded import Guarded

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult
    from textual.widget import Widget

LINE_MAX_CHARACTERS: Final = 20_000
"""More than this is not taken into a one-line input: each key would then cost more than a frame."""


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


class FormField(Vertical):
    """A label, a control, and below them a help line and an error that are there only when they have a text."""

    DEFAULT_CSS = """
    FormField {
        height: auto;
        & > Horizontal { height: auto; }
        & .form-field--label {
            width: 16;
            height: auto;
            padding-right: 1;
            color: $text-muted;
        }
        & > .form-field--below { height: auto; margin-left: 17; display: none; }
        & > .form-field--help { color: $text-muted; }
        & > .form-field--error { color: $error; }
        & > .form-field--note { color: $warning; }
        &.-with-help > .form-field--help { display: block; }
        &.-with-note > .form-field--note { display: block; }
        &.-wrong > .form-field--error { display: block; }
        &.-wrong .form-field--label { color: $error; }
        &:focus-within .form-field--label { color: $primary; text-style: bold; }
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
        self._label = plain_line(label, max_characters=60)
        self._help_text = plain_line(help_text, max_characters=400)
        self._is_required = is_required
        self.error = ""
        """What is wrong with the field; empty when nothing is known to be."""
        self._wrong_value: object = None

    def compose(self) -> ComposeResult:
        """Yield label, control and the lines below."""
        star = (" *", "$warning") if self._is_required else ""
        with Horizontal():
            yield Static(Content.assemble(self._label, star), classes="form-field--label")
            yield self.control
        yield Static(classes="form-field--below form-field--note")
        yield Static(classes="form-field--below form-field--error")
        yield Static(Content(self._help_text), classes="form-field--below form-field--help")

    def on_mount(self) -> None:
        """Show the help when there is some."""
        self.set_class(bool(self._help_text), "-with-help")

    def show_help(self, text: str) -> None:
        """Show another help line; an empty one takes no room."""
        self._help_text = plain_line(text, max_characters=400)
        self._update(".form-field--help", Content(self._help_text))
        self.set_class(bool(self._help_text), "-with-help")

    def show_error(self, message: str, *, hint: str = "") -> None:
        """Say what is wrong, and below it what helps."""
        self.error = message
        self._wrong_value = _value(self.control)
        self._update(
            ".form-field--error",
            Content.assemble("✗ ", plain_lines(message), (f"\n{plain_lines(hint)}" if hint else "", "$text-muted")),
        )
        self.set_class(True, "-wrong")

    def show_note(self, text: str) -> None:
        """Tell something that is no error; an empty text takes it away."""
        self._update(".form-field--note", Content(plain_line(text)))
        self.set_class(bool(text), "-with-note")

    def clear(self) -> None:
        """Take away error and note."""
        self.error = ""
        self.remove_class("-wrong", "-with-note")

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

    def _update(self, selector: str, content: Content) -> None:
        try:
            self.query_one(selector, Static).update(content)
        except NoMatches:
            # Before the field is composed there is nothing to update; the parent shows errors after that only.
            return


class TextBox(Guarded, TextArea):
    """A text of several lines; nothing that cannot be drawn safely gets in, tabs and line breaks stay."""

    def __init__(self, text: str = "", *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(plain_paragraphs(text), compact=True, tab_behavior="focus", id=id)

    def on_resize(self) -> None:
        """Draw the lines as they are wrapped now; Textual wraps them anew without drawing them."""
        self.refresh()

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
