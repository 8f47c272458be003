"""Sums of costs for a command that wants nothing else: sqlite3 and the kept sums alone."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.costs import CostFilter
from agentmon.store.cost_queries import SLUGS, cost_parts, stored_cost_query
from agentmon.store.revision import HEAD_REVISION

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.domain.costs import CostGroup, CostPart

_BUSY_TIMEOUT_S: Final = 0.5
_ZONE_KEY: Final = "usage.zone"
_SETTINGS: Final = f"SELECT key, value FROM settings WHERE key = '{_ZONE_KEY}' OR key LIKE 'costs.%'"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCosts:
    """All costs by group, in the days that are stored."""

    zone_name: str
    settings: dict[str, object]
    """Those of costs that are stored, by their keys."""
    parts: tuple[CostPart, ...]


def find_costs(database_path: Path, group: CostGroup) -> StoredCosts | None:
    """Return the costs by group; None where the database is not there, of another release or busy, or has no days."""
    try:
        connection = sqlite3.connect(f"{database_path.as_uri()}?mode=ro", uri=True, timeout=_BUSY_TIMEOUT_S)
        with closing(connection):
            # One look at one time, as the long way takes it.
            connection.execute("BEGIN")
            if connection.execute("SELECT version_num FROM alembic_version").fetchone() != (HEAD_REVISION,):
                return None
            stored = {key: json.loads(value) for key, value in connection.execute(_SETTINGS)}
            zone_name = stored.pop(_ZONE_KEY, None)
            if not isinstance(zone_name, str) or not zone_name:
                return None
            rows = connection.execute(*stored_cost_query(group, CostFilter())).fetchall()
            slugs = dict(connection.execute(SLUGS).fetchall())
    except (sqlite3.Error, ValueError):
        return None
    return StoredCosts(zone_name=zone_name, settings=stored, parts=cost_parts(group, rows, slugs, None))
