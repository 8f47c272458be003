"""Keeps a view of a log at what a terminal shows of it, as long as its program repaints."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from agentmon.domain.errors import AgentmonError
from agentmon.logs.streams import repaints

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agentmon.domain.ids import ExecutionId
    from agentmon.screens.frame import ServiceScreen

_LOOK_EVERY_S: Final = 0.25
_LOOKS_AFTER_GROWTH: Final = 2
"""The log has what was written before the pane has drawn it."""


class ScreenFeed:
    """Reads the screen of one run whenever its log has grown, and hands it to ``show``: None stands for the log.

    The owner calls ``follow`` with what it shows, and ``poll`` up to ten times a second while that may grow.
    """

    def __init__(self, owner: ServiceScreen[Any], show: Callable[[bytes | None], None]) -> None:
        self._owner = owner
        self._show = show
        self._execution_id: ExecutionId | None = None
        self._path: Path | None = None
        self._stamp: tuple[int, int] | None = None
        self._is_screen = False
        self._is_looking = False
        self._looks_left = 0
        self._looked_at = float("-inf")

    def follow(self, execution_id: ExecutionId | None, path: Path | None) -> None:
        """Show the screen of this run from now on; of none, or of one that does not repaint, its log."""
        if (execution_id, path) != (self._execution_id, self._path):
            self._execution_id, self._path = execution_id, path
            self._stamp, self._looked_at = None, float("-inf")
            self._is_screen = False
            self._show(None)
        self.poll()

    def poll(self) -> None:
        """Look at the screen when the log has grown; cheap when it has not."""
        if self._path is None:
            return
        stamp = _stamp_of(self._path)
        if stamp != self._stamp:
            self._stamp, self._looks_left = stamp, _LOOKS_AFTER_GROWTH
            is_screen = repaints(self._path)
            if is_screen is not self._is_screen:
                self._is_screen = is_screen
                self._show(b"" if is_screen else None)
        is_due = self._is_screen and self._looks_left and monotonic() - self._looked_at >= _LOOK_EVERY_S
        if is_due and not self._is_looking:
            self._is_looking = True
            self._owner.start(self._look(), name="screen", group="screen")

    def shows_screen_of(self, execution_id: ExecutionId) -> bool:
        """Return whether it is the screen of this run that is shown now."""
        return self._is_screen and execution_id == self._execution_id

    async def _look(self) -> None:
        try:
            services = await self._owner.services()
            wanted: ExecutionId | None = None
            # Another run may be followed by the time that one was read.
            while self._is_screen and self._execution_id is not None and wanted != self._execution_id:
                wanted = self._execution_id
                self._looks_left, self._looked_at = self._looks_left - 1, monotonic()
                try:
                    text = await services.screens.text(wanted)
                except AgentmonError:
                    text = None
                if self.shows_screen_of(wanted):
                    self._show(text)
        finally:
            self._is_looking = False


def _stamp_of(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns
