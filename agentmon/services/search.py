"""The search over everything: tasks, conversations, tool calls, logs and documents; the newest question wins."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from agentmon.domain.search import parse_query
from agentmon.services.log_moments import LogMoments
from agentmon.store.search_reading import SearchInterruptedError, SearchReader
from agentmon.threads import to_its_end

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import TypeVar

    from agentmon.domain.search import FoundOfKind, SearchQuery
    from agentmon.domain.tasks import Workspace

    _Answer = TypeVar("_Answer")

MOST_HITS: Final = 50
"""Of each kind."""
MOST_S: Final = 0.09
"""How long a search may take while somebody types."""
PATIENT_S: Final = 6.0
"""How long it may take for somebody who waits."""


class SearchService:
    """Finds what has the words that somebody types; belongs to one event loop.

    Args:
        database_path: The database, which has to be there.
    """

    def __init__(self, database_path: Path) -> None:
        self._database_path = database_path
        self._reader: SearchReader | None = None
        self._moments = LogMoments()
        self._is_free = asyncio.Lock()
        self._asked = 0

    async def search(
        self, text: str, *, workspace: Workspace | None, limit: int = MOST_HITS, most_s: float = MOST_S
    ) -> tuple[FoundOfKind, ...] | None:
        """Return what was found of each kind that was asked for; None when a later question took its place.

        Args:
            text: See ``domain.search.parse_query``; any text can be searched for.
            workspace: Whose tasks, and what belongs to no task; None means all.
            limit: Most hits of each kind.
            most_s: How long it may take; what was not looked through by then says so.

        Raises:
            StoreError: The database cannot be read.
        """
        query: SearchQuery = parse_query(text)
        workspace_id = None if workspace is None else workspace.id
        self._asked += 1
        asked = self._asked
        self._interrupt()
        async with self._is_free:
            if asked != self._asked:
                return None
            reader = await self._opened()
            reader.begin()
            try:
                return await self._in_thread(
                    lambda: self._moments.date(
                        reader.search(query, workspace_id=workspace_id, limit=limit, most_s=most_s)
                    )
                )
            except SearchInterruptedError:
                return None

    async def document(self, key: str) -> tuple[str, str] | None:
        """Return title and text of a document; None when there is none.

        Raises:
            StoreError: The database cannot be read.
        """
        async with self._is_free:
            reader = await self._opened()
            reader.begin()
            return await self._in_thread(lambda: reader.document(key))

    async def close(self) -> None:
        """Break off what runs, and close the connection."""
        self._asked += 1
        self._interrupt()
        async with self._is_free:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    async def _opened(self) -> SearchReader:
        if self._reader is None:
            await to_its_end(asyncio.to_thread(self._open))
        assert self._reader is not None, "_open sets it"
        return self._reader

    def _open(self) -> None:
        self._reader = SearchReader(self._database_path)

    async def _in_thread(self, work: Callable[[], _Answer]) -> _Answer:
        """Run the work in a thread; when nobody waits for it any more, break it off and wait for its end."""
        return await to_its_end(asyncio.to_thread(work), stop=self._interrupt)

    def _interrupt(self) -> None:
        if self._reader is not None:
            self._reader.interrupt()
