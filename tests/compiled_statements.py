"""Statements that were compiled for one database serve every other of this process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.util import LRUCache

from agentmon.store.database import Database

if TYPE_CHECKING:
    from sqlalchemy import Dialect
    from sqlalchemy.ext.asyncio import AsyncEngine

_KEPT = 5000


def share_compiled_statements() -> None:
    """Give each database that is opened from now on one cache and its dialect, which is a part of the cache's keys."""
    cache = LRUCache(_KEPT)  # type: ignore[var-annotated] # its keys are SQLAlchemy's own
    dialect = asyncio.run(_dialect())
    make = Database._engine

    def engine(self: Database, **options: Any) -> AsyncEngine:
        made = make(self, **options)
        made.sync_engine._compiled_cache = cache
        made.sync_engine.dialect = dialect
        return made

    Database._engine = engine  # type: ignore[method-assign] # for all tests


async def _dialect() -> Dialect:
    engine = create_async_engine("sqlite+aiosqlite://")
    # The first connection tells a dialect what the database can do.
    async with engine.connect():
        pass
    await engine.dispose()
    return engine.dialect
