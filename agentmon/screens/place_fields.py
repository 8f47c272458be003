"""The fields of a form that say where runs work: in which worktree, made from what, and in which sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.widgets import Select

from agentmon.domain.sandboxes import Sandbox, sandbox_of
from agentmon.domain.worktrees import Isolation, is_readable_base
from agentmon.widgets.form import FormField, LineInput

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFAULT: Final = ""
_SANDBOX_LABELS: Final[Mapping[str, str]] = {
    Sandbox.OFF: "off",
    Sandbox.AGENTMON: "agentmon hidden",
    Sandbox.PROJECT: "project only",
}
_LABELS: Final[Mapping[str, str]] = {
    Isolation.WORKTREE: "always",
    Isolation.AUTO: "while another works here",
    Isolation.FOLDER: "never, in the folder",
}


class _WordField(FormField):
    """A list of words; the first entry leaves the choice to somebody else."""

    def __init__(self, name: str, labels: Mapping[str, str], chosen: str | None, *, default: str, id_: str) -> None:
        self._labels = labels
        self._first = chosen
        self._list: Select[str] = Select(
            [(Text(default), _DEFAULT), *((Text(label), word) for word, label in labels.items())],
            value=_DEFAULT if chosen is None else chosen,
            allow_blank=False,
            compact=True,
            id=id_,
        )
        super().__init__(name, self._list)

    @property
    def word(self) -> str | None:
        """What was chosen; as it was at first while it was not shown."""
        if not self._list.is_mounted:
            return self._first
        return self._list.value if isinstance(self._list.value, str) and self._list.value else None


class IsolationField(_WordField):
    """A list of ways to isolate runs; the first leaves it to somebody else."""

    def __init__(self, chosen: Isolation | None, *, default: str) -> None:
        """Make the field.

        Args:
            chosen: What it shows at first; None for the first entry.
            default: The label of the first entry: who decides then.
        """
        super().__init__("Worktree", _LABELS, chosen, default=default, id_="isolation")

    @property
    def chosen(self) -> Isolation | None:
        """What was chosen; as it was at first while it was not shown."""
        return isolation_of(self.word)

    @property
    def summary(self) -> str:
        """What was chosen, in words; empty for the first entry."""
        return "" if self.chosen is None else f"worktree {_LABELS[self.chosen]}"


class SandboxField(_WordField):
    """A list of sandboxes; the first leaves it to somebody else."""

    def __init__(self, chosen: Sandbox | None, *, default: str) -> None:
        """Make the field; as for ``IsolationField``."""
        super().__init__("Sandbox", _SANDBOX_LABELS, chosen, default=default, id_="sandbox")

    @property
    def chosen(self) -> Sandbox | None:
        """What was chosen; as it was at first while it was not shown."""
        return sandbox_of(self.word)


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
