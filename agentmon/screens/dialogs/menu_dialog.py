"""A short list to choose from, with a field for what is not in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from agentmon.domain.plain_text import plain_line
from agentmon.screens.bindings import MENU
from agentmon.widgets.form import LineInput
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

_LONGEST_NAME = 160
_KIND_CELLS = 17
_KIND_CELLS_WIDE = 11


class MenuEntry(NamedTuple):
    """One thing that can be chosen."""

    kind: str
    """What it changes, such as ``model``."""
    word: str
    is_present: bool = False
    """Whether it is so now."""
    meaning: str = ""
    """What it stands for where that is not its word."""


class MenuDialog(Guarded, ModalScreen[MenuEntry | None]):
    """Ends with the entry, or with None; what is typed becomes an entry of the kind that is free to type."""

    CSS_PATH = "menu_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*MENU]
    AUTO_FOCUS = "OptionList"

    def __init__(
        self,
        heading: str,
        entries: Sequence[MenuEntry],
        *,
        free_kind: str,
        free_words: str = "",
        is_wide: bool = False,
        is_typed_first: bool = False,
    ) -> None:
        """Make the dialog.

        Args:
            heading: What is changed.
            entries: In their order; those of one kind stand together.
            free_kind: What a typed word is.
            free_words: What the field says while it is empty; empty names the kind.
            is_wide: Whether the entries are long lines.
            is_typed_first: Whether one begins in the field, where an entry is not what people mostly come for.
        """
        super().__init__(classes="-wide" if is_wide else None)
        self._heading = plain_line(heading)
        self._entries = tuple(entries)
        self._free_kind = free_kind
        self._free_words = free_words or f"another {free_kind}"
        self._is_typed_first = is_typed_first or not entries

    def compose(self) -> ComposeResult:
        """Yield heading, list, field and keys."""
        with Vertical(id="dialog"):
            yield Static(Content(self._heading), id="heading")
            entries = OptionList(*self._options(), id="entries", compact=True)
            # Before it can get the focus, with which a list without any begins at its top.
            entries.set_reactive(OptionList.highlighted, self._begin())
            yield entries
            yield LineInput(placeholder=self._free_words, id="free")
            yield KeyFooter()

    def on_mount(self) -> None:
        """Begin at what is so now, or in the field."""
        if self._is_typed_first:
            self.set_focus(self.query_one("#free", Input))
        self.query_one(OptionList).scroll_to_highlight()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """End with the entry."""
        event.stop()
        self.dismiss(self._entries[int(str(event.option.id))])

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """End with what was typed."""
        event.stop()
        if event.value.strip():
            self.dismiss(MenuEntry(self._free_kind, event.value.strip()))

    def action_go_row(self, rows: int) -> None:
        """Move in the list."""
        entries = self.query_one(OptionList)
        entries.action_cursor_down() if rows > 0 else entries.action_cursor_up()

    def action_cancel(self) -> None:
        """Leave all as it is."""
        self.dismiss(None)

    def _begin(self) -> int | None:
        present = (at for at, entry in enumerate(self._entries) if entry.is_present)
        return next(present, 0 if self._entries else None)

    def _options(self) -> list[Option]:
        options = []
        kind_cells = _KIND_CELLS_WIDE if self.has_class("-wide") else _KIND_CELLS
        for at, entry in enumerate(self._entries):
            is_first = not at or self._entries[at - 1].kind != entry.kind
            mark = "● " if entry.is_present else "  "
            kind = f"{entry.kind if is_first else '':<{kind_cells}}"
            word = plain_line(entry.word, max_characters=_LONGEST_NAME)
            options.append(
                Option(Content.assemble((kind, "$text-muted"), (mark, "$success"), word), id=str(at)),
            )
        return options
