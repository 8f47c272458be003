"""Typing, going and deleting by visible letters."""

from __future__ import annotations

import pytest
from textual import events
from textual.app import App, ComposeResult

from agentmon.domain.letters import letter_before, letter_behind
from agentmon.widgets.form import LineInput, TextBox
from agentmon.widgets.whole_keys import WholeKeyParser

LETTERS = ("a", "e\u0301", "🇩🇪", "👩\u200d👩\u200d👧", "👍🏽", "❤\ufe0f", "कि", "漢")
PERSIAN = "می\u200cخواهم"


class Fields(App[None]):
    def compose(self) -> ComposeResult:
        yield LineInput(id="line")
        yield TextBox(id="box")


def shown_in(app: App[None], name: str) -> str:
    return app.query_one("#line", LineInput).value if name == "line" else app.query_one("#box", TextBox).text


@pytest.mark.parametrize("letter", LETTERS)
def test_a_letter_is_stepped_over_as_a_whole(letter: str) -> None:
    text = f"x{letter}y"

    assert letter_before(text, 1 + len(letter)) == 1
    assert letter_behind(text, 1) == 1 + len(letter)


@pytest.mark.parametrize("name", ["line", "box"])
@pytest.mark.parametrize("letter", LETTERS)
async def test_keys_go_and_delete_by_letters(name: str, letter: str) -> None:
    async with Fields().run_test() as pilot:
        pilot.app.query_one(f"#{name}").focus()
        pilot.app.post_message(events.Paste(f"x{letter}y"))
        await pilot.pause()

        def shown() -> str:
            return shown_in(pilot.app, name)

        await pilot.press("left", "backspace")
        assert shown() == "xy"
        await pilot.press(*"ab", "left", "left")
        assert shown() == "xaby"
        await pilot.press("delete")
        assert shown() == "xby"
        await pilot.press("home", "shift+right", "backspace")
        assert shown() == "by"


@pytest.mark.parametrize("name", ["line", "box"])
@pytest.mark.parametrize(("typed", "text"), [(PERSIAN, PERSIAN), ("\x1b[1092::97;1;1092u\x1b[8205;1;8205u", "ф\u200d")])
async def test_what_is_typed_stays(name: str, typed: str, text: str) -> None:
    async with Fields().run_test() as pilot:
        pilot.app.query_one(f"#{name}").focus()
        for key in WholeKeyParser().feed(typed):
            assert isinstance(key, events.Key)
            pilot.app.post_message(key)
        await pilot.pause()

        assert shown_in(pilot.app, name) == text


def test_a_joiner_of_the_protocol_of_kitty_is_one_too() -> None:
    (key,) = WholeKeyParser().feed("\x1b[8204;1;8204u")

    assert isinstance(key, events.Key)
    assert key.is_printable
