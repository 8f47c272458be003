"""The scan of this machine as screens show it: how far it is, and what came, changed and went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.content import Content
from textual.widgets import Static

from agentmon.domain.scan_words import news_line, outcome_line
from agentmon.screens.costs.import_line import part_bar
from agentmon.widgets.cells import even_line

if TYPE_CHECKING:
    from textual.worker import Worker

    from agentmon.bootstrap import Services
    from agentmon.domain.programs import ScanOutcome, ScanProgress
    from agentmon.screens.frame import ServiceScreen

_HEADING: Final = "Looking at this machine "
_LEAST_BAR: Final = 6
_LONGEST_BAR: Final = 40
LOOK_INTERVAL_S: Final = 0.2
"""How often a running scan is shown anew."""


class Scanning:
    """The scan of one application, which the list of agents and that of programs show and stop."""

    def __init__(self, host: ServiceScreen[None]) -> None:
        """Begin without a scan.

        Args:
            host: The screen in whose background it runs, whatever is shown above.
        """
        self._host = host
        self._services: Services | None = None
        self._worker: Worker[object] | None = None

    def take(self, services: Services) -> None:
        """Look at the scans of these services, those that began without a key too."""
        self._services = services

    @property
    def progress(self) -> ScanProgress | None:
        """How far the running scan is; None when none runs."""
        return None if self._services is None else self._services.discovery.progress

    @property
    def outcome(self) -> ScanOutcome | None:
        """What the newest scan of this process found."""
        return None if self._services is None else self._services.discovery.outcome

    @property
    def can_stop(self) -> bool:
        """Whether a scan that a person asked for is running."""
        return self._worker is not None and not self._worker.is_finished

    def begin(self) -> None:
        """Scan; nothing happens while one does already."""
        if not self.can_stop:
            self._worker = self._host.start(self._scan(), name="scan", group="scan")

    def stop(self) -> None:
        """Stop the scan; what is known stays as it was."""
        if self._worker is not None:
            self._worker.cancel()

    async def _scan(self) -> None:
        services = await self._host.services()
        self.take(services)
        await services.discovery.scan()


class ScanLine(Static):
    """How far a scan is, or what the newest one found; takes no room while there is neither."""

    DEFAULT_CSS = """
    ScanLine {
        display: none;
        height: 1;
        padding: 0 1;
        text-wrap: nowrap;
        text-overflow: ellipsis;
        &.-shown { display: block; }
    }
    """
    _told = Content("")

    def show(self, scanning: Scanning) -> None:
        """Show how it is now."""
        progress, outcome = scanning.progress, scanning.outcome
        told = Content("")
        if progress is not None:
            width = self.screen.size.width - self.styles.padding.width
            told = progress_content(progress, width, can_stop=scanning.can_stop)
        elif outcome is not None:
            told = outcome_content(outcome)
        if told != self._told:
            self._told = told
            self.update(told, layout=False)
            self.set_class(bool(told), "-shown")


def progress_content(progress: ScanProgress, width: int, *, can_stop: bool) -> Content:
    """Return a bar with what is done now.

    Args:
        progress: How far the scan is.
        width: Cells of the line; the bar takes what the words leave.
        can_stop: Whether a key ends it.
    """
    count = f" {progress.done:,}/{progress.total:,}" if progress.total else ""
    words = f" {even_line(progress.step)}{count}{' · x stops it' if can_stop else ''}"
    room = width - len(_HEADING) - len(words)
    bar = part_bar(progress.done / progress.total if progress.total else 0.0, max(_LEAST_BAR, min(room, _LONGEST_BAR)))
    return Content.assemble((_HEADING, "bold"), (bar, "$secondary"), (words, "$text-muted"))


def outcome_content(outcome: ScanOutcome) -> Content:
    """Return what the scan found in one line, and the first of what went wrong."""
    is_unchanged = not outcome.is_first and not news_line(outcome)
    parts: list[tuple[str, str]] = [
        (f"{outcome_line(outcome)}{'; nothing has changed' if is_unchanged else ''}", ""),
        (f" · {outcome.elapsed_s:.1f}s", "$text-muted"),
    ]
    if outcome.problems:
        more = f" (+{len(outcome.problems) - 1})" if len(outcome.problems) > 1 else ""
        parts.append((f"   ! {even_line(outcome.problems[0])}{more}", "$warning"))
    return Content.assemble(*parts)
