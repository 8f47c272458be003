from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App

from agentmon.widgets.key_footer import FooterKey, KeyFooter

if TYPE_CHECKING:
    from textual.app import ComposeResult

KEYS = (FooterKey("y", "y", "Allow"), FooterKey("n", "n", "Deny"), FooterKey("escape", "esc", "Later"))


class Bench(App[None]):
    def compose(self) -> ComposeResult:
        yield KeyFooter()


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
