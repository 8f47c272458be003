"""The guard that keeps a failing handler from ending its widget.

Textual ends the message loop of whatever raises, so a guarded widget or screen hands the error on as a message and
lives. The application alone decides what a person is told.
"""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.message_pump import MessagePump


class Failed(Message):
    """An error that a handler, a paint or a worker did not expect; it bubbles to the application."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class Guarded(MessagePump):
    """Mix-in, named before the Textual class: an error in a handler becomes ``Failed`` and the widget lives."""

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            # Without these two there is nothing to live on with.
            if isinstance(message, (events.Compose, Failed)):
                raise
            self.post_message(Failed(error))
