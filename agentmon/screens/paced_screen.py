"""A screen whose reading costs more than a frame, so that it answers the changes of others with pauses."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from agentmon.screens.frame import ServiceScreen

if TYPE_CHECKING:
    from agentmon.screens.frame import ServicesGetter, StoreChanged, WorkspaceGetter

_ResultT = TypeVar("_ResultT")

_LEAST_PAUSE_S: Final = 1.0
"""A hundred runs would have it read ten times a second."""
_PAUSES: Final = 5
"""A pause takes so many times as long as the reading before it."""


class PacedScreen(ServiceScreen[_ResultT]):
    """What a person does is shown at once, what happens elsewhere within a second or two."""

    def __init__(self, services: ServicesGetter, workspace: WorkspaceGetter) -> None:
        super().__init__(services, workspace)
        self._rests_until = 0.0
        self._is_reading_planned = False

    def on_store_changed(self, message: StoreChanged) -> None:
        """Refresh, once the pause after the last reading is over."""
        message.stop()
        message.prevent_default()
        wait_s = self._rests_until - monotonic()
        if wait_s <= 0:
            self.request_refresh()
        elif not self._is_reading_planned:
            self._is_reading_planned = True
            self.set_timer(wait_s, self._read_planned, name="read")

    def _read_planned(self) -> None:
        self._is_reading_planned = False
        self.request_refresh()

    async def _refresh(self) -> None:
        begun_at = monotonic()
        try:
            await super()._refresh()
        finally:
            now = monotonic()
            self._rests_until = now + max(_LEAST_PAUSE_S, _PAUSES * (now - begun_at))
