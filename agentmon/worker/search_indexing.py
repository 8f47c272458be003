"""The worker's looks at what the search does not know yet: rows and logs, in pieces, in the time that is left."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from agentmon.store.search_indexing import SearchIndexing
from agentmon.threads import to_its_end

if TYPE_CHECKING:
    from agentmon.paths import Paths
    from agentmon.settings import SearchSettings

_FIRST_LOOK_AFTER_S: Final = 2.0
_LOOK_EVERY_S: Final = 3.0
_LONGEST_LOOK_S: Final = 0.2
_REST_PER_LOOK: Final = 4
"""It takes at most a fifth of a core."""
_MEGABYTE: Final = 1_000_000


class SearchFollowing:
    """Looks, takes up a little, and rests in between; for one task of the worker."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._indexing: SearchIndexing | None = None
        self._rest_s = _FIRST_LOOK_AFTER_S

    async def look(self, settings: SearchSettings) -> None:
        """Take up some of what is new; when the caller is cancelled this returns behind the piece that is taken up.

        Raises:
            StoreError: The rest is taken up by a later look.
        """
        self._rest_s = _LOOK_EVERY_S
        await to_its_end(asyncio.to_thread(self._take_up, settings.log_mb * _MEGABYTE))

    async def rest(self) -> None:
        """Wait until the next look is due."""
        await asyncio.sleep(self._rest_s)

    def close(self) -> None:
        """Close the connection to the database; no look is going on."""
        if self._indexing is not None:
            self._indexing.close()
            self._indexing = None

    def _take_up(self, log_bytes: int) -> None:
        if self._indexing is None:
            self._indexing = SearchIndexing(self._paths.database_path)
        begun_at = time.monotonic()
        if self._indexing.take_up_some(most_s=_LONGEST_LOOK_S, log_bytes=log_bytes):
            self._rest_s = (time.monotonic() - begun_at) * _REST_PER_LOOK
