"""A field that offers ways to go on below its input, while something is typed there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from agentmon.domain.plain_text import plain_line
from agentmon.widgets.form import FormField

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.widgets.form import LineInput

_LONGEST: Final = 200


class Way(NamedTuple):
    """One way to go on."""

    text: str
    """What the input holds when it is taken."""
    words: str
    """What is shown for it."""
    mark: str = ""
    """What stands before the words, such as the number of a task."""


class CompletedField(FormField):
    """A form field with a list below; the focus stays in the input, and the keys are the screen's."""

    DEFAULT_CSS = """
    CompletedField > OptionList {
        height: auto;
        max-height: 6;
        border: none;
        padding: 0;
        background: $panel;
        scrollbar-size-vertical: 1;
        & > .option-list--option { padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    @dataclass
    class Taken(Message):
        """A way was chosen with the mouse."""

        field: CompletedField
        way: Way

    def __init__(self, label: str, box: LineInput) -> None:
        super().__init__(label, box)
        self.box = box
        self.ways: tuple[Way, ...] = ()
        """What is offered now."""
        self._list: OptionList | None = None

    @property
    def is_open(self) -> bool:
        """Whether something is offered."""
        return bool(self.ways)

    @property
    def marked(self) -> Way | None:
        """The way that would be taken; None when none is marked."""
        at = None if self._list is None or not self.ways else self._list.highlighted
        return None if at is None else self.ways[at]

    def offer(self, ways: Sequence[Way], *, marks_first: bool) -> None:
        """Offer these ways instead of those before; without any the list goes away."""
        self.ways = tuple(ways)
        if self._list is None:
            if not ways:
                return
            self._list = OptionList(compact=True, markup=False)
            self._list.can_focus = False
            self.mount(self._list, after=self.box)
        self._list.display = bool(ways)
        self._list.clear_options()
        self._list.add_options([Option(_line(way)) for way in ways])
        self._list.highlighted = 0 if ways and marks_first else None

    def go_row(self, rows: int) -> None:
        """Mark another way; it goes round the ends."""
        if self._list is None or not self.ways:
            return
        at = self._list.highlighted
        first = 0 if rows > 0 else len(self.ways) - 1
        self._list.highlighted = first if at is None else (at + rows) % len(self.ways)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Tell which way was chosen."""
        event.stop()
        if event.option_index < len(self.ways):
            self.post_message(self.Taken(self, self.ways[event.option_index]))

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Keep the news to the field."""
        event.stop()


def _line(way: Way) -> Content:
    words = plain_line(way.words, max_characters=_LONGEST)
    return Content.assemble((f"{plain_line(way.mark)} ", "$text-muted"), words) if way.mark else Content(words)
