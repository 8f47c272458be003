from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App

from agentmon.widgets.arguments_form import ArgumentsForm
from agentmon.widgets.form import FormField

if TYPE_CHECKING:
    from textual.app import ComposeResult

MANY = {
    "type": "object",
    "properties": {
        **{f"option_{number}": {"type": "boolean", "title": f"--option-{number}"} for number in range(300)},
        "output": {"type": "string", "title": "-o, --output FILE", "description": "Where it is written"},
        "url": {"type": "string", "title": "URL"},
    },
    "required": ["url"],
}


class FormApp(App[None]):
    def __init__(self, values: dict[str, object]) -> None:
        super().__init__()
        self.form = ArgumentsForm(MANY, values)

    def compose(self) -> ComposeResult:
        yield self.form


def labels(app: FormApp) -> list[str]:
    return [field._label for field in app.form.query(FormField) if field.display]


async def test_of_many_arguments_those_are_shown_that_are_needed_have_a_value_or_are_looked_for() -> None:
    app = FormApp({"option_7": True})
    async with app.run_test(size=(80, 50)) as pilot:
        search = app.form._search
        assert search is not None
        assert labels(app) == ["--option-7", "URL", "More options"]

        search.focus()
        await pilot.press(*"written")
        await pilot.pause()
        assert labels(app) == ["--option-7", "URL", "More options", "-o, --output FILE"]

        await pilot.press("tab", *"x.txt", "shift+tab")
        search.value = "option-29"
        await pilot.pause()
        shown = labels(app)
        url = app.form.field("url")
        assert url is not None
        url.control.focus()
        await pilot.press("u")

        assert "-o, --output FILE" in shown
        assert len(shown) == 4 + 11
        assert app.form.read() == {"option_7": True, "url": "u", "output": "x.txt"}
