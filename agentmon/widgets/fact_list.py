"""Named facts, one below the other; those without a text take no room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.app import ComposeResult


class FactList(Vertical):
    """A fixed row for each name; ``show`` fills them."""

    DEFAULT_CSS = """
    FactList {
        height: auto;
        & > Horizontal {
            height: auto;
            display: none;
            & > .fact-list--name { width: 14; color: $text-muted; }
            & > .fact-list--fact { width: 1fr; height: auto; }
        }
        & > .-shown { display: block; }
    }
    """

    def __init__(self, names: Sequence[str], *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._values = {name: Static(classes="fact-list--fact") for name in names}
        self._shown: dict[str, Content] = {}

    def compose(self) -> ComposeResult:
        """Yield the rows, hidden until they are filled."""
        for name, value in self._values.items():
            yield Horizontal(Static(Content(name), classes="fact-list--name"), value)

    def show(self, facts: Mapping[str, Content]) -> None:
        """Show these facts; names that are missing or have an empty text vanish."""
        for name, value in self._values.items():
            fact = facts.get(name, Content(""))
            if self._shown.get(name) == fact:
                continue
            self._shown[name] = fact
            value.update(fact)
            if value.parent is not None:
                value.parent.set_class(bool(fact.plain), "-shown")
