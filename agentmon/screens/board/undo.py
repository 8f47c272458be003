"""What can be taken back: each change leaves the calls that undo it, the newest first."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import TypeAlias

    from agentmon.bootstrap import Services
    from agentmon.domain.ids import TaskId

    Inverse: TypeAlias = Callable[[Services], Awaitable[object]]

_ChangeT = TypeVar("_ChangeT")

_MOST_CHANGES: Final = 100


class Change(NamedTuple):
    """One change of a person's, of one or more cards."""

    words: str
    """What was changed, such as ``the move of #12``."""
    inverses: Sequence[Inverse]
    """Undo it, in this order."""
    task_id: TaskId
    """The card to select afterwards."""


class UndoStack(Generic[_ChangeT]):
    """The newest hundred changes of this screen."""

    def __init__(self) -> None:
        self._changes: deque[_ChangeT] = deque(maxlen=_MOST_CHANGES)

    def push(self, change: _ChangeT) -> None:
        """Remember a change that was made."""
        self._changes.append(change)

    def pop(self) -> _ChangeT | None:
        """Return the newest change and forget it; None when there is none."""
        return self._changes.pop() if self._changes else None

    def clear(self) -> None:
        """Forget all changes."""
        self._changes.clear()
