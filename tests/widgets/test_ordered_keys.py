from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import events
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from agentmon.widgets import ordered_keys
from agentmon.widgets.ordered_keys import OrderedKeys
from tests.screens.boards import until

if TYPE_CHECKING:
    from typing import ClassVar

    import pytest
    from textual.app import App, ComposeResult
    from textual.binding import BindingType


class Fields(OrderedKeys):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+o", "open", "Open")]

    def __init__(self) -> None:
        super().__init__()
        self.is_held = False
        self.is_blocked = False
        self.go_on = asyncio.Event()

    @property
    def are_keys_held(self) -> bool:
        return self.is_held

    def on_mount(self) -> None:
        self.query_one("#first").focus()

    def compose(self) -> ComposeResult:
        with Vertical(), Vertical():
            yield Input(id="first")
        yield Input(id="second")

    def action_open(self) -> None:
        self.push_screen(Dialog())

    @property
    def values(self) -> list[str]:
        return [field.value for field in self.screen_stack[0].query(Input)]


class Dialog(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Leave")]

    def compose(self) -> ComposeResult:
        yield Input(id="only")


class SlowInput(Input):
    async def _on_key(self, event: events.Key) -> None:
        if event.key == "f5":
            assert isinstance(self.app, Fields)
            self.app.is_blocked = True
            await self.app.go_on.wait()
        await super()._on_key(event)


class SlowFields(Fields):
    def compose(self) -> ComposeResult:
        yield SlowInput(id="first")
        yield Input(id="second")


def type_at_once(app: App[None], *keys: str) -> None:
    """Type faster than any of it can be handled."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))


async def test_what_is_typed_behind_a_tab_goes_to_the_next_field() -> None:
    async with Fields().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Fields)
        await until(lambda: app.focused is not None)

        type_at_once(app, "a", "tab", "b", "c", "shift+tab", "d")

        await until(lambda: app.values == ["d", "bc"])


async def test_a_paste_keeps_its_place_among_the_keys() -> None:
    async with Fields().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Fields)
        await until(lambda: app.focused is not None)

        type_at_once(app, "a", "tab")
        app.post_message(events.Paste("pasted"))
        type_at_once(app, "z")

        await until(lambda: app.values == ["a", "pastedz"])


async def test_what_is_typed_behind_the_key_that_closes_a_dialog_goes_to_what_is_below() -> None:
    async with Fields().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Fields)
        await until(lambda: app.focused is not None)
        app.action_open()
        await until(lambda: isinstance(app.focused, Input) and app.focused.id == "only")

        type_at_once(app, "x", "escape", "b", "tab", "c")

        await until(lambda: app.values == ["b", "c"])


async def test_held_keys_wait_and_come_in_their_order() -> None:
    async with Fields().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Fields)
        await until(lambda: app.focused is not None)
        app.is_held = True

        type_at_once(app, "a", "tab", "b")
        await pilot.pause()
        held = app.values
        app.is_held = False
        await app.hand_keys_on()

        await until(lambda: app.values == ["a", "b"])
        assert held == ["", ""]


async def test_a_handler_that_takes_long_holds_nothing_up_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_keys, "_PATIENCE_S", 0.1)
    async with SlowFields().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Fields)
        await until(lambda: app.focused is not None)

        type_at_once(app, "f5")
        await until(lambda: app.is_blocked)
        app.set_focus(app.query_one("#second"))
        type_at_once(app, "b")

        await until(lambda: app.values == ["", "b"])
        app.go_on.set()


async def test_a_key_that_comes_when_the_application_has_left_is_dropped() -> None:
    app = Fields()
    async with app.run_test():
        await until(lambda: app.focused is not None)

    assert app.screen_stack == []
    await app.on_event(events.Key("x", "x"))
    await app.on_event(events.Paste("text"))
    assert not app._typed
