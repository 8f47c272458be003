"""Tells in the log what could not be read of files of agents, each thing once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import logging
    from collections.abc import Iterable

    from agentmon.worker.import_progress import FileProblem

_MAX_KNOWN: Final = 1_000


class ProblemLog:
    """Remembers the last thousand.

    Args:
        log: Where they are told.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._known: dict[FileProblem, None] = {}

    def tell(self, problems: Iterable[FileProblem]) -> None:
        """Tell those that are not known."""
        for problem in problems:
            if problem in self._known:
                continue
            self._known[problem] = None
            if len(self._known) > _MAX_KNOWN:
                del self._known[next(iter(self._known))]
            self._log.warning("%s, at byte %s: %s was passed over", problem.path, problem.offset, problem.reason)
