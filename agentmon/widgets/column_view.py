"""Where a column's selection and view are: arithmetic over the known window of its cards, without drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.domain.board import Card, ColumnPage
    from agentmon.domain.ids import TaskId

WINDOW_MARGIN: Final = 40
"""Cards read above and below those in view."""


class ColumnView:
    """The selection, which follows its task, and the first line in view of a column.

    Attributes:
        page: The window of the column that is known; None until the first was read.
        cursor: The index of the selection in the column.
        selected_id: The selected task; None while it is not known.
        seen_card: The selected card as it was seen last.
        top_index: The index of the first card in view.
        top_line: How many lines of that card are above the view.
        is_chosen: Whether a person has been here; until then the column shows its first card.
    """

    def __init__(self, *, height_of: Callable[[int], int], view_height: Callable[[], int]) -> None:
        """Begin at the first card.

        Args:
            height_of: Returns the rows that the card of an index takes with the blank row below it.
            view_height: Returns the rows there are for cards at this moment.
        """
        self.page: ColumnPage | None = None
        self.cursor = 0
        self.selected_id: TaskId | None = None
        self.seen_card: Card | None = None
        self.top_index = 0
        self.top_line = 0
        self.is_chosen = False
        self._height_of = height_of
        self._view_height = view_height

    @property
    def total(self) -> int:
        """How many cards the column has."""
        return self.page.total if self.page is not None else 0

    @property
    def selected(self) -> Card | None:
        """The selected card as it was seen last; None in an empty column or before its part was read."""
        card = self.card(self.cursor)
        if card is not None:
            return card
        seen = self.seen_card
        return seen if seen is not None and seen.task_id == self.selected_id else None

    def card(self, index: int) -> Card | None:
        """Return the card of an index; None where it is not known."""
        if self.page is None:
            return None
        at = index - self.page.offset
        return self.page.cards[at] if 0 <= at < len(self.page.cards) else None

    # The selection.

    def select(self, index: int) -> bool:
        """Select the card of the index, cut to what the column has; return whether that is another selection."""
        index = max(0, min(index, self.total - 1))
        card = self.card(index)
        self.is_chosen = True
        is_same = index == self.cursor and card is not None and card.task_id == self.selected_id
        self.cursor = index
        self._take(card)
        self.show_cursor()
        return not is_same

    def follow(self, task_id: TaskId, index: int) -> None:
        """Make the task the selection before it is known where it is; the index is a first guess."""
        self.is_chosen = True
        self.selected_id = task_id
        self.cursor = max(0, index)
        self.show_cursor()

    def restart(self) -> None:
        """Go to the first card, for a column whose contents changed altogether."""
        self.cursor = self.top_index = self.top_line = 0
        self._take(None)

    def take_page(self, page: ColumnPage) -> None:
        """Take a newer window; the selection stays on its task, and the view where it was beside it."""
        self.page = page
        if not self.is_chosen:
            self.cursor = self.top_index = self.top_line = 0
            self._take(self.card(0))
            return
        place = next((page.offset + at for at, card in enumerate(page.cards) if card.task_id == self.selected_id), None)
        if place is not None:
            self.top_index = max(0, self.top_index + place - self.cursor)
            self.cursor = place
        else:
            self.cursor = max(0, min(self.cursor, page.total - 1))
        card = self.card(self.cursor)
        if card is not None or not page.total:
            self._take(card)

    def _take(self, card: Card | None) -> None:
        """Make the card the selection; None while it is not known yet."""
        self.selected_id = card.task_id if card is not None else None
        self.seen_card = card

    # The view.

    def show_cursor(self) -> None:
        """Move the view by as little as brings the whole selected card into it, with a whole card on top."""
        view_height = self._view_height()
        if view_height == 0:
            return
        if self.cursor < self.top_index or (self.cursor == self.top_index and self.top_line):
            self.top_index, self.top_line = self.cursor, 0
        elif self.cursor > self.top_index:
            needed = self._height_of(self.cursor) - 1
            first = self.cursor
            while first > 0 and needed + self._height_of(first - 1) <= view_height:
                first -= 1
                needed += self._height_of(first)
            self.top_index, self.top_line = max((self.top_index, self.top_line), (first, 0))
        self.keep_bottom()

    def keep_bottom(self) -> None:
        """Scroll back when there would be room below the last card."""
        self.top_index, self.top_line = min((self.top_index, self.top_line), self._last_top())

    def scroll(self, lines: int) -> None:
        """Move the view down by the lines, or up when negative; the selection stays."""
        self.is_chosen = True
        index, line = self.top_index, self.top_line + lines
        while line < 0 and index > 0:
            index -= 1
            line += self._height_of(index)
        while index < self.total - 1 and line >= self._height_of(index):
            line -= self._height_of(index)
            index += 1
        self.top_index, self.top_line = index, max(0, line)
        self.keep_bottom()

    def is_window_short(self, first: int, last: int) -> bool:
        """Whether the view, from the first to the last index, is near an edge of the window that has more beyond."""
        page = self.page
        if page is None:
            return False
        reach = WINDOW_MARGIN // 4
        has_above = page.offset == 0 or first - page.offset >= reach
        end = page.offset + len(page.cards)
        has_below = end >= page.total or end - last > reach
        return not (has_above and has_below)

    def _last_top(self) -> tuple[int, int]:
        """Return the lowest place of the view: the last card is in it, and a whole card on top where one fits."""
        view_height = self._view_height()
        needed = -1
        for index in range(self.total - 1, -1, -1):
            needed += self._height_of(index)
            if needed > view_height:
                return (index + 1, 0) if index + 1 < self.total else (index, needed - view_height)
            if needed == view_height:
                return index, 0
        return 0, 0
