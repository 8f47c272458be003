from __future__ import annotations

from textual.app import App

from agentmon.widgets.form import TextBox


async def test_the_application_does_not_hold_a_box_that_was_removed() -> None:
    app: App[None] = App()
    async with app.run_test() as pilot:
        kept, gone = TextBox("kept"), TextBox("gone")
        await app.screen.mount(kept, gone)
        await gone.remove()
        await pilot.pause()

        watching = [watcher[0] for watcher in getattr(app, "__watchers")["theme"]]
        assert [box for box in watching if isinstance(box, TextBox)] == [kept]
