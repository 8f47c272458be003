"""Keys one after the other: each goes to what has the focus once the one before it was handled.

Textual hands a key to the widget that has the focus when the key comes, and runs its binding only after the key went
through that widget and everything around it. Whoever types fast would so type into the field that was just left.
"""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Final

from textual import events
from textual.app import App
from textual.keys import _character_to_key
from textual.message import Message

from agentmon.widgets.layouts import latin_of

if TYPE_CHECKING:
    from textual.timer import Timer
    from textual.widget import Widget

_PATIENCE_S: Final = 2.0
"""How long a key waits for one whose handler takes its time; more than a busy machine makes of any honest handler."""
_LOOK_INTERVAL_S: Final = 0.05


class KeyHandled(Message):
    """Follows a key through the same queues: when it arrives, the key was handled.

    A binding runs when the key has come through, and its widget may have told its parents of that, as a field does of
    what was entered. So it goes the way once more, behind what they were told.
    """

    def __init__(self, *, is_second_time: bool = False) -> None:
        super().__init__()
        self.is_second_time = is_second_time


class OrderedKeys(App[None]):
    """An application that handles keys and pastes in the order in which they were typed."""

    def __init__(self) -> None:
        super().__init__()
        self._typed: deque[events.Key | events.Paste] = deque()
        self._follower: KeyHandled | None = None
        self._target: Widget | None = None
        self._handed_on_at = 0.0
        self._look: Timer | None = None
        self._handed: events.Key | events.Paste | None = None

    @property
    def are_keys_held(self) -> bool:
        """Whether what is typed has to wait for what it is meant for."""
        return False

    def doubt(self, key: events.Key, before: events.Event | None) -> str:  # noqa: ARG002 - for subclasses
        """Return why the key, typed after another event, is hardly meant for what it would do; empty when it is."""
        return ""

    async def on_event(self, event: events.Event) -> None:
        """Put what is typed behind what was typed before; nothing is typed into an application that is leaving."""
        if isinstance(event, events.Key | events.Paste) and not self.screen_stack:
            event.stop()
        elif isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self._typed.append(event)
            await self.hand_keys_on()
        else:
            await super().on_event(event)

    async def hand_keys_on(self) -> None:
        """Hand on what waits, as far as it can go now."""
        while self._typed and self._follower is None and not self.are_keys_held:
            target = self.focused or self.screen
            event, before = self._in_latin(self._typed.popleft()), self._handed
            self._handed = event
            if isinstance(event, events.Key) and (doubt := self.doubt(event, before)):
                self.notify(f"{event.key} ignored: {doubt}. Press it again.")
                continue
            await super().on_event(event)
            follower = KeyHandled()
            if target.post_message(follower):
                self._follower, self._target, self._handed_on_at = follower, target, monotonic()
        if self._typed and self._follower is not None and self._look is None:
            self._look = self.set_interval(_LOOK_INTERVAL_S, self._look_after_follower, name="keys")

    def _in_latin(self, event: events.Key | events.Paste) -> events.Key | events.Paste:
        """Return a key of another script as the Latin one in its place, unless it is text or has a binding."""
        latin = latin_of(event) if isinstance(event, events.Key) else ""
        if not latin or not isinstance(event, events.Key) or event.key in self.active_bindings:
            return event
        if self.focused is not None and self.focused.check_consume_key(event.key, event.character):
            return event
        return events.Key(_character_to_key(latin), latin)

    async def on_key_handled(self, message: KeyHandled) -> None:
        """Hand the next one on."""
        message.stop()
        if message is not self._follower:
            return
        target = self._target
        if not message.is_second_time and target is not None and target.is_attached:
            follower = KeyHandled(is_second_time=True)
            if target.post_message(follower):
                self._follower = follower
                return
        await self._go_on()

    async def _look_after_follower(self) -> None:
        """Go on when the follower cannot come any more, since its widget went away with the key."""
        is_lost = self._target is None or not self._target.is_attached
        if is_lost or monotonic() - self._handed_on_at > _PATIENCE_S:
            await self._go_on()

    async def _go_on(self) -> None:
        self._follower = self._target = None
        if self._look is not None:
            self._look.stop()
            self._look = None
        await self.hand_keys_on()
