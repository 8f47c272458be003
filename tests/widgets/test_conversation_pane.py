from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App

from agentmon.widgets.conversation_pane import ConversationPane

if TYPE_CHECKING:
    from textual.app import ComposeResult


class Bench(App[None]):
    def compose(self) -> ComposeResult:
        yield ConversationPane(placeholder="Nothing was said yet.")


async def test_that_there_is_nothing_is_said_only_once_it_is_known() -> None:
    app = Bench()
    async with app.run_test(size=(40, 5)):
        pane = app.query_one(ConversationPane)
        assert pane.view.render_line(0).text.strip() == ""

        pane.show((), None)

        assert pane.view.render_line(0).text.strip() == "Nothing was said yet."
