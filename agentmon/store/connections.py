"""Connections of the driver whose end cannot hang."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, Final, TypeVar

import aiosqlite

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable

_ResultT = TypeVar("_ResultT")
_ROWS_AT_ONCE: Final = 64


class EndableConnection(aiosqlite.Connection):
    """A connection that may be told several times to end, and before it is there.

    A cancelled task has its connection ended by force while it is being closed. aiosqlite 0.22 would then wait for a
    second answer of a thread that is gone, and with it the end of the event loop. Cancelled while it is being opened,
    it would leave it open.

    Args:
        open_one: Opens it, on its thread.
    """

    _is_ending = False
    _end: Future[Any] | None = None

    def __init__(self, open_one: Callable[[], sqlite3.Connection]) -> None:
        self._opened = ExitStack()
        super().__init__(lambda: self._opened.enter_context(closing(open_one())), _ROWS_AT_ONCE)

    async def run(self, work: Callable[[sqlite3.Connection], _ResultT]) -> _ResultT:
        """Return what the work makes of the connection, on its thread: many statements for one change of threads."""
        result: _ResultT = await self._execute(work, self._conn)  # type: ignore[no-untyped-call]
        return result

    def stop(self) -> Future[Any] | None:
        """Let the thread end, once; whoever asks again waits for the same end."""
        if not self._is_ending:
            self._is_ending = True
            self._tx.put_nowait((None, self._opened.close))
            self._end = super().stop()
        return self._end

    async def close(self) -> None:
        """Close the connection and wait for the end of its thread; also when somebody else has told it to end."""
        if not self._is_ending:
            await super().close()
        elif self._end is not None:
            await asyncio.wait([self._end])

    @property
    def is_alive(self) -> bool:
        """Whether its thread still works."""
        return self._thread.is_alive()

    def wait(self, *, at_most_s: float) -> None:
        """Block until its thread is gone."""
        self._thread.join(at_most_s)


def connect(database: str, **options: Any) -> EndableConnection:  # noqa: ANN401 - those of sqlite3.connect
    """Return a connection that opens when it is awaited; its thread does not keep the process alive."""
    connection = EndableConnection(lambda: sqlite3.connect(database, **options))
    connection._thread.daemon = True  # noqa: SLF001 - as SQLAlchemy does with those that it makes
    return connection
