"""The fields of a form that say whether runs get a git worktree of their own, and what it is made from."""

from __future__ import annotations

from typing import Final

from rich.text import Text
from textual.widgets import Select

from agentmon.domain.worktrees import Isolation, is_readable_base
from agentmon.widgets.form import FormField, LineInput

_DEFAULT: Final = ""
_LABELS: Final = {
    Isolation.WORKTREE: "always",
    Isolation.AUTO: "while another works here",
    Isolation.FOLDER: "never, in the folder",
}


class IsolationField(FormField):
    """A list of ways to isolate runs; the first leaves it to somebody else."""

    def __init__(self, chosen: Isolation | None, *, default: str) -> None:
        """Make the field.

        Args:
            chosen: What it shows at first; None for the first entry.
            default: The label of the first entry: who decides then.
        """
        self._first = chosen
        self._list: Select[str] = Select(
            [(Text(default), _DEFAULT), *((Text(label), way.value) for way, label in _LABELS.items())],
            value=_DEFAULT if chosen is None else chosen.value,
            allow_blank=False,
            compact=True,
            id="isolation",
        )
        super().__init__("Worktree", self._list)

    @property
    def chosen(self) -> Isolation | None:
        """What was chosen; as it was at first while it was not shown."""
        return isolation_of(self._list.value) if self._list.is_mounted else self._first

    @property
    def summary(self) -> str:
        """What was chosen, in words; empty for the first entry."""
        return "" if self.chosen is None else f"worktree {_LABELS[self.chosen]}"


class BaseField(FormField):
    """A line for the commit, branch or tag from which worktrees are made."""

    def __init__(self, base: str | None, *, default: str = "what is checked out") -> None:
        self._line = LineInput(base or "", placeholder=default, id="base")
        super().__init__("Base", self._line)

    @property
    def typed(self) -> str:
        """What stands there."""
        return self._line.value.strip()

    def read(self) -> str | None:
        """Return what was typed, or show what is wrong: ``error`` is set then."""
        self.clear()
        if self.typed and not is_readable_base(self.typed):
            self.show_error(f"{self.typed} is no branch, tag or commit", hint="such as main or v1.2")
            return None
        return self.typed or None


def isolation_of(value: object) -> Isolation | None:
    """Return what an entry of the list stands for."""
    return Isolation(value) if isinstance(value, str) and value else None
