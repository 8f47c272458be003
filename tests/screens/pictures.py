"""Pictures of screens in every form: narrow and usual, dark and light, all taken in one run of the application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_textual_snapshot import SVGImageExtension  # type: ignore[import-untyped] # it has no types
from textual._compositor import LayoutUpdate
from textual.screen import ModalScreen
from textual.widgets import Input

from agentmon.screens.failure import FailureScreen
from agentmon.screens.frame import ServiceScreen
from agentmon.screens.settings.themes import DARK, LIGHT
from tests.screen_stage import screen_text
from tests.screens.scenes import picture

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import TypeAlias

    from syrupy.assertion import SnapshotAssertion
    from textual.app import App
    from textual.screen import Screen
    from textual.strip import Strip

    from tests.screens.boards import Board

    Way: TypeAlias = Callable[[Board], Awaitable[None]]
    Ready: TypeAlias = Callable[[Board], bool]

SMALL, MIDDLE, LARGE = (80, 24), (120, 40), (200, 60)
FORMS = (
    (SMALL, DARK.name, "80x24-dark"),
    (SMALL, LIGHT.name, "80x24-light"),
    (MIDDLE, LIGHT.name, "120x40-light"),
    (MIDDLE, DARK.name, "120x40-dark"),
)
"""In this order, since it changes one thing at a time."""


def always(_board: Board) -> bool:
    return True


class Picture(NamedTuple):
    """What is looked at, and how one gets there from the board."""

    name: str
    shows: type[Screen[Any]]
    way: Way
    ready: Ready = always
    """Whether what comes later than the frame is there, such as a log; asked again in every form."""
    has_large: bool = False
    keeps_toasts: bool = False


async def compare_pictures(board: Board, pictures: Sequence[Picture], snapshot: SnapshotAssertion) -> None:
    """Take every picture in every form; fail at the end with the names of those that look otherwise."""
    different = []
    for one in pictures:
        board.app.clear_notifications()
        await one.way(board)
        forms = (*FORMS, (LARGE, DARK.name, "200x60-dark")) if one.has_large else FORMS
        for size, theme, form in forms:
            await take_form(board, one, size, theme)
            kept = snapshot(name=f"{one.name}-{form}", extension_class=SVGImageExtension)
            if await picture(board) != kept:
                different.append(f"{one.name}-{form}")
        await go_back(board)
    assert not different, f"these look otherwise: {different}"


async def take_form(board: Board, one: Picture, size: tuple[int, int], theme: str) -> None:
    """Bring the screen into this size and theme, and wait until nothing of it changes any more."""
    app = board.app
    app.theme = theme
    if tuple(app.size) != size:
        await board.pilot.resize_terminal(*size)
    try:
        await board.until(lambda: is_there(board, one, size))
    except AssertionError as error:
        raise AssertionError(f"{one.name} never came in {size}; shown is:\n{screen_text(app)}") from error
    if not one.keeps_toasts:
        app.clear_notifications()
    # Whoever drew a dialog alone has left it with nothing below.
    app.screen.refresh()
    before = None
    while before != (before := drawn(app)):
        await board.pilot.pause()


def drawn(app: App[None]) -> list[list[Strip]]:
    """Return what a frame shows, with its styles; what is below a dialog is that of this frame too."""
    frame = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    assert isinstance(frame, LayoutUpdate), "a full one"
    return [list(strip) for strip in frame.strips]


def is_there(board: Board, one: Picture, size: tuple[int, int]) -> bool:
    """Return whether the screen has this size and nothing of it is being read any more."""
    shown = board.app.screen
    # Around a dialog one sees what is below it.
    is_reading = any(
        isinstance(screen, ServiceScreen) and (screen._is_refreshing or screen._is_refresh_wanted)
        for screen in board.app.screen_stack
    )
    is_focused = board.app.focused is not None or not (isinstance(shown, ModalScreen) and shown.AUTO_FOCUS)
    is_settled = is_focused and not is_reading
    return tuple(shown.size) == size and isinstance(shown, one.shows) and is_settled and one.ready(board)


async def go_back(board: Board) -> None:
    """Leave whatever is open, and show the board in its first form."""
    app = board.app
    for _ in range(9):
        if len(app.screen_stack) == 1 and not isinstance(app.focused, Input):
            break
        if isinstance(app.screen, FailureScreen):
            # Its keys end the application.
            await app.pop_screen()
        else:
            await board.press("escape")
        await board.pilot.pause()
    assert len(app.screen_stack) == 1, app.screen_stack
    app.theme = DARK.name
    await board.pilot.resize_terminal(*SMALL)
    if app.current_mode != "board":
        await board.press("1")
    await board.until(lambda: app.screen is board.screen, "the board")
    await board.settled()
