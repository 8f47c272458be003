"""The app's own loops, kept by a supervisor, and how those of the worker fare: for the mark in the line at the top."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.domain.errors import AgentmonError
from agentmon.logs.error_file import write_error
from agentmon.services.background import Trouble, trouble_of
from agentmon.worker.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agentmon.bootstrap import Services
    from agentmon.domain.clock import Clock
    from agentmon.domain.ids import ExecutionId
    from agentmon.domain.sightings import Sighting


class BackgroundWatch:
    """Remembers what was found last.

    Attributes:
        supervisor: Keeps the app's own loops.
    """

    def __init__(self, *, clock: Clock, logs_dir: Path) -> None:
        self.supervisor = Supervisor(clock=clock, on_failure=self._note_failure)
        self._clock = clock
        self._logs_dir = logs_dir
        self._written: dict[str, str] = {}
        self._of_worker: tuple[Trouble, ...] = ()
        self._sightings: Mapping[ExecutionId | None, Sighting] = {}

    async def look(self, services: Services) -> bool:
        """Look how the worker fares; return whether other runs than before are looked after by nobody.

        Nobody writes then, so that no screen would read anew by itself.
        """
        self._of_worker = await services.background.troubles()
        before, self._sightings = self._sightings, await services.sightings.look()
        return before != self._sightings

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """What was wrong at the last look, with the app's own loops first."""
        now = self._clock.now()
        where = str(self._logs_dir / "app.log")
        own = (trouble_of(loop, now, where=where) for loop in self.supervisor.states)
        return (*(trouble for trouble in own if trouble is not None), *self._of_worker)

    @property
    def mark(self) -> str:
        """The first trouble in a few words, and how many more there are; empty when all is well."""
        troubles = self.troubles
        if not troubles:
            return ""
        more = f" (+{len(troubles) - 1})" if len(troubles) > 1 else ""
        return f"{troubles[0].what}{more}"

    def _note_failure(self, name: str, error: Exception) -> None:
        """Keep the traceback of what was not foreseen, once for each loop and error."""
        words = repr(error)
        if not isinstance(error, AgentmonError) and self._written.get(name) != words:
            self._written[name] = words
            write_error(self._logs_dir, error)
