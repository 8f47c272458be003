"""What a key does, written down: keys that lead up to it, and what holds afterwards and did not before."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from textual.widgets import Input

from agentmon.widgets.cursor_table import CursorTable
from tests.screen_stage import screen_text
from tests.screens.boards import until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import TypeAlias

    from textual.binding import Binding

    from tests.screens.boards import Board

    Holds: TypeAlias = Callable[[Board], bool]
    Way: TypeAlias = Callable[[Board], Awaitable[None]]

MOST_STEPS = 8


class Effect(NamedTuple):
    """What one key does."""

    holds: Holds
    first: tuple[str, ...] = ()
    """Keys that are pressed before, on the screen of the key."""


class Place(NamedTuple):
    """A screen whose keys are pressed."""

    kind: type[object]
    way: Way
    """Leads there from the board."""
    table: Sequence[Binding]
    effects: Mapping[str, Effect]
    base: Holds = lambda _board: True
    """Whether a screen of the kind is as the keys expect it; else it is left and opened anew."""


def opens(kind: type[object], *first: str) -> Effect:
    return Effect(lambda board: isinstance(board.app.screen, kind), first)


def leaves(kind: type[object], *first: str) -> Effect:
    return Effect(lambda board: not isinstance(board.app.screen, kind), first)


def says(words: str, *first: str) -> Effect:
    return Effect(lambda board: any(words in toast for toast in board.toasts), first)


def shows(words: str, *first: str) -> Effect:
    return Effect(lambda board: words in screen_text(board.app), first)


def hides(words: str, *first: str) -> Effect:
    return Effect(lambda board: words not in screen_text(board.app), first)


def selects(title: str, *first: str) -> Effect:
    return Effect(lambda board: board.selected == title, first)


def types_into(name: str, *first: str) -> Effect:
    return Effect(lambda board: isinstance(board.app.focused, Input) and board.app.focused.id == name, first)


def table_of(board: Board) -> CursorTable:
    return next(table for table in board.app.screen.query(CursorTable) if table.display and table.is_on_screen)


def goes_to(row: int, *first: str) -> Effect:
    """A row of the table; counted from the end when it is negative."""

    def holds(board: Board) -> bool:
        table = table_of(board)
        return table.cursor_row == (row if row >= 0 else table.row_count + row)

    return Effect(holds, first)


def pages_to(direction: int, *first: str) -> Effect:
    """Half a screenful from one end of the table."""

    def holds(board: Board) -> bool:
        table = table_of(board)
        half = max(1, table.size.height // 2)
        last = table.row_count - 1
        return table.cursor_row == (min(half, last) if direction > 0 else max(0, last - half))

    return Effect(holds, first)


def row_effects(place: str) -> dict[str, Effect]:
    """What the keys of every table do."""
    return {
        f"{place}.next": goes_to(1, "g"),
        f"{place}.previous": goes_to(0, "g", "j"),
        f"{place}.first": goes_to(0, "G"),
        f"{place}.last": goes_to(-1, "g"),
        f"{place}.page-down": pages_to(1, "g"),
        f"{place}.page-up": pages_to(-1, "G"),
    }


async def press_all(board: Board, place: Place) -> None:
    """Press every key of the place and see what it does; fail at the end with all that did something else."""
    wrong = []
    await leave(board)
    for binding in place.table:
        effect = place.effects.get(str(binding.id))
        if effect is None:
            continue
        for key in binding.key.split(","):
            await go_to(board, place)
            complaint = await press_one(board, effect, key.strip())
            if complaint:
                wrong.append(f"{binding.id} ({key}): {complaint}; shown is:\n{screen_text(board.app)}\n{board.toasts}")
    assert not wrong, "\n".join(wrong)


async def press_one(board: Board, effect: Effect, key: str) -> str:
    """Press one key; return what is wrong with what it did."""
    if effect.first:
        await board.press(*effect.first)
    board.app.clear_notifications()
    try:
        # What the keys before it did may show later.
        await until(lambda: not effect.holds(board))
    except AssertionError:
        return "it holds before the key is pressed"
    await board.press(key)
    try:
        await until(lambda: effect.holds(board))
    except AssertionError:
        return "it did something else"
    return ""


async def go_to(board: Board, place: Place) -> None:
    """Show the place as its keys expect it."""
    app = board.app
    is_there = isinstance(app.screen, place.kind) and not isinstance(app.focused, Input) and place.base(board)
    if is_there:
        return
    await leave(board)
    if app.current_mode != "board":
        await board.press("1")
    await board.settled()
    await place.way(board)
    await board.until(lambda: isinstance(app.screen, place.kind), place.kind.__name__)
    await board.until(lambda: place.base(board), f"the base of {place.kind.__name__}")


async def leave(board: Board) -> None:
    """Leave whatever stands above the place."""
    for _ in range(MOST_STEPS):
        if len(board.app.screen_stack) == 1 and not isinstance(board.app.focused, Input):
            break
        await board.press("escape")
