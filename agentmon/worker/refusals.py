"""Files that could not be read or kept as they are, so that they are left alone for some time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agentmon.usage.sources import SourceFile

TRY_AGAIN_AFTER_S: Final = 300.0


class Refusals:
    """Knows of each path how it was when it was refused last."""

    def __init__(self) -> None:
        self._by_path: dict[str, tuple[SourceFile, float]] = {}

    def add(self, source: SourceFile) -> None:
        """Note that the file, as it is, was refused now."""
        self._by_path[source.path] = source, time.monotonic()

    def has(self, source: SourceFile) -> bool:
        """Return whether the file was refused as it is, less than ``TRY_AGAIN_AFTER_S`` ago."""
        refused, at = self._by_path.get(source.path, (None, 0.0))
        return refused == source and time.monotonic() - at < TRY_AGAIN_AFTER_S
