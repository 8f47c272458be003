"""In which order a table's rows stand, and which order a key or a click on a heading asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from agentmon.widgets.row_table import Sorting

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

_ItemT = TypeVar("_ItemT")


class RowSorter(Generic[_ItemT]):
    """Knows by which columns the rows of one table can be sorted."""

    def __init__(
        self,
        keys: Mapping[int, Callable[[_ItemT], float | str]],
        *,
        rising: Collection[int],
        usual: Callable[[_ItemT], tuple[object, ...]],
    ) -> None:
        """Make a sorter.

        Args:
            keys: What is compared, by the numbers of the columns; a column without one cannot be sorted by.
            rising: Columns whose least comes first, such as names; of all others the most comes first.
            usual: What is compared where no column is chosen, and between rows that are the same in it.
        """
        self._keys = keys
        self._rising = frozenset(rising)
        self._usual = usual

    def ordered(self, things: Iterable[_ItemT], sorting: Sorting | None) -> list[_ItemT]:
        """Return the things in the order of the table."""
        usual = sorted(things, key=self._usual)
        if sorting is None:
            return usual
        return sorted(usual, key=self._keys[sorting.column], reverse=sorting.is_descending)

    def after(self, present: Sorting | None, shown: Sequence[int]) -> Sorting | None:
        """Return the order by the next column that is shown; behind the last one there is none."""
        later = [at for at in shown if at in self._keys and (present is None or at > present.column)]
        return self._first_way(later[0]) if later else None

    def clicked(self, present: Sorting | None, column: int) -> Sorting | None:
        """Return the order after a click on a heading; a second click turns it round, a third one takes it back."""
        if column not in self._keys:
            return present
        first = self._first_way(column)
        if present is None or present.column != column:
            return first
        return first._replace(is_descending=not first.is_descending) if present == first else None

    def reversed(self, present: Sorting | None, shown: Sequence[int]) -> Sorting | None:
        """Return the order turned round; without one it is that of the first column."""
        if present is None:
            return self.after(None, shown)
        return present._replace(is_descending=not present.is_descending)

    def _first_way(self, column: int) -> Sorting:
        return Sorting(column, is_descending=column not in self._rising)
