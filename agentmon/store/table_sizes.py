"""How much of the file each table takes."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

from agentmon.domain.storage import DatabaseUse, TableUse

if TYPE_CHECKING:
    from agentmon.store.database import Database

_PAGES: Final = "SELECT name, sum(pgsize) FROM dbstat WHERE aggregate = 1 GROUP BY name"
_SAMPLE: Final = 200
"""Rows from which the size of the others is estimated where SQLite cannot tell."""
_INDEXES_TOO: Final = 1.5


class TableSizeRepository:
    """Measures tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def use(self) -> DatabaseUse:
        """Return what the database takes; reads every page of it, so that a large one takes seconds."""
        path = self._database.path
        sizes, is_estimate, rows, free = await self._database.read(_measure)
        tables = [TableUse(name=name, rows=rows.get(name, 0), size_bytes=size) for name, size in sizes.items()]
        log = path.with_name(f"{path.name}-wal")
        return DatabaseUse(
            path=path,
            size_bytes=sum(file.stat().st_size for file in (path, log) if file.exists()),
            free_bytes=free,
            is_estimate=is_estimate,
            tables=tuple(sorted(tables, key=lambda table: (-table.size_bytes, table.name))),
        )


def _measure(driver: sqlite3.Connection) -> tuple[dict[str, int], bool, dict[str, int], int]:
    owners = dict(
        driver.execute("SELECT name, tbl_name FROM sqlite_master WHERE type IN ('table', 'index')").fetchall()
    )
    virtual = [
        name for (name,) in driver.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'")
    ]
    rows: dict[str, int] = {}
    for name in {_owner(table, virtual) for table in owners.values()} - set(virtual):
        rows[name] = driver.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
    free = driver.execute("PRAGMA freelist_count").fetchone()[0] * driver.execute("PRAGMA page_size").fetchone()[0]
    try:
        pages = driver.execute(_PAGES).fetchall()
    except sqlite3.OperationalError:
        return {name: _estimate(driver, name, count) for name, count in rows.items()}, True, rows, free
    sizes: dict[str, int] = {}
    for name, size in pages:
        owner = _owner(owners.get(name, name), virtual)
        sizes[owner] = sizes.get(owner, 0) + size
    return sizes, False, rows, free


def _owner(table: str, virtual: list[str]) -> str:
    """Return the table of the search of which this one is a part, or the table itself."""
    return next((name for name in virtual if table.startswith(f"{name}_")), table)


def _estimate(driver: sqlite3.Connection, table: str, rows: int) -> int:
    columns = [row[1] for row in driver.execute(f'PRAGMA table_info("{table}")')]
    length = " + ".join(f'coalesce(length("{name}"), 0) + 1' for name in columns) or "0"
    average = driver.execute(f'SELECT avg({length}) FROM (SELECT * FROM "{table}" LIMIT {_SAMPLE})').fetchone()[0]
    return round((average or 0) * rows * _INDEXES_TOO)
