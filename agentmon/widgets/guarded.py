"""The guard that keeps a failing handler from ending its widget, and an error of a worker from getting lost.

Textual ends the message loop of whatever raises, so a guarded widget or screen hands the error on as a message and
lives. The application alone decides what a person is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.message import Message
from textual.message_pump import MessagePump
from textual.worker import WorkerState

if TYPE_CHECKING:
    from textual.worker import Worker


class Failed(Message):
    """An error that a handler, a paint or a worker did not expect; it bubbles to the application."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class Guarded(MessagePump):
    """Mix-in, named before the Textual class: an error in a handler or worker becomes ``Failed``; the widget lives."""

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            # Without these two there is nothing to live on with.
            if isinstance(message, (events.Compose, Failed)):
                raise
            self.post_message(Failed(error))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Hand the error of a worker to the application; worker states do not bubble by themselves."""
        event.stop()
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.post_message(Failed(event.worker.error))
