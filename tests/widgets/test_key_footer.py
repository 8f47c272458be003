from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App
from textual.binding import Binding
from textual.screen import Screen

from agentmon.widgets.key_footer import FooterKey, KeyFooter

if TYPE_CHECKING:
    from textual.app import ComposeResult

KEYS = (FooterKey("y", "y", "Allow"), FooterKey("n", "n", "Deny"), FooterKey("escape", "esc", "Later"))


class Bench(App[None]):
    def compose(self) -> ComposeResult:
        yield KeyFooter()


class Keys(Screen[None]):
    BINDINGS = [  # noqa: RUF012 - Textual types it as an instance's
        Binding("enter", "open", "Open", id="keys.open"),
        Binding("tab", "go", "Go", id="keys.go"),
    ]

    def compose(self) -> ComposeResult:
        yield KeyFooter()

    def action_open(self) -> None: ...
    def action_go(self) -> None: ...


async def shown(width: int) -> str:
    app = Bench()
    async with app.run_test(size=(width, 3)):
        footer = app.query_one(KeyFooter)
        footer.keys = KEYS
        return footer.render_line(0).text


async def test_keys_that_fit_to_the_cell_are_shown_whole() -> None:
    assert await shown(27) == " y Allow  n Deny  esc Later"


async def test_the_last_key_stays_when_others_have_no_room() -> None:
    assert (await shown(20)).split() == ["y", "Allow", "esc", "Later"]


async def test_keys_stand_in_the_order_of_the_table_whatever_keys_other_screens_have() -> None:
    app = Bench()
    async with app.run_test(size=(40, 3)) as pilot:
        await app.push_screen(Keys())
        await pilot.pause()

        assert app.screen.query_one(KeyFooter).render_line(0).text.split()[:4] == ["⏎", "Open", "tab", "Go"]
