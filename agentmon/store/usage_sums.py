"""Sums of billed answers by day, agent, model and project: every change of an answer changes them with it."""

from __future__ import annotations

from operator import add, itemgetter
from typing import TYPE_CHECKING, Final

from agentmon.domain.costs import CostSource

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    Row = Mapping[str, object] | RowMapping | sqlite3.Row

_COUNTED: Final = (
    "prompt_tokens",
    "cache_read_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
    "response_tokens",
    "reasoning_tokens",
    "web_searches",
)
SUMMED: Final = ("answers", *_COUNTED, "cost_nano", "unpriced_answers", "reported_answers")
"""The columns of a sum, in the order in which they are counted."""
_KEYS: Final = ("day_local", "agent_id", "model", "project")
_IS_KEY: Final = " AND ".join(f"{name} = ?" for name in _KEYS)
_ADD: Final = (
    f"INSERT INTO daily_usage ({', '.join((*_KEYS, *SUMMED))}) "
    f"VALUES ({', '.join('?' * (len(_KEYS) + len(SUMMED)))}) "
    f"ON CONFLICT DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in SUMMED)}"
)
_TAKE_AWAY: Final = f"UPDATE daily_usage SET {', '.join(f'{name} = {name} - ?' for name in SUMMED)} WHERE {_IS_KEY}"
_REMOVE_EMPTY: Final = f"DELETE FROM daily_usage WHERE {_IS_KEY} AND answers = 0"
_COUNT_ALL: Final = (
    f"INSERT INTO daily_usage ({', '.join((*_KEYS, *SUMMED))}) "
    "SELECT day_local, coalesce(agent_id, ''), model, project, count(*), "
    f"{', '.join(f'sum({name})' for name in _COUNTED)}, "
    "coalesce(sum(cost_nano), 0), sum(cost_nano IS NULL), sum(cost_source = 'reported') "
    "FROM llm_interactions GROUP BY day_local, coalesce(agent_id, ''), model, project"
)
RECOUNT: Final = ("DELETE FROM daily_usage", _COUNT_ALL)
"""Statements that count all sums anew."""

_counted: Final = itemgetter(*_KEYS, "cost_nano", "cost_source", *_COUNTED)
_REPORTED: Final = CostSource.REPORTED.value

_Key = tuple[str, str, str, str]
_Sums = tuple[int, ...]


class SumChanges:
    """What the changes of one transaction do to the sums."""

    __slots__ = ("_added", "_taken")

    def __init__(self) -> None:
        self._added: dict[_Key, _Sums] = {}
        self._taken: dict[_Key, _Sums] = {}

    def add(self, row: Row) -> None:
        """Count an answer that is there from now on, by the columns of its row."""
        _count(self._added, row)

    def take_away(self, row: Row) -> None:
        """Count an answer that is no longer there, or no longer so."""
        _count(self._taken, row)

    def statements(self) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
        """Yield what is to be executed in turn, each with its sets of parameters."""
        # Added first: no sum may be less than nothing in between.
        if self._added:
            yield _ADD, [key + sums for key, sums in self._added.items()]
        if self._taken:
            yield _TAKE_AWAY, [sums + key for key, sums in self._taken.items()]
            yield _REMOVE_EMPTY, list(self._taken)


async def write_sums(connection: AsyncConnection, changes: SumChanges) -> None:
    """Bring the sums up to the changes."""
    for statement, parameters in changes.statements():
        await connection.exec_driver_sql(statement, parameters)


def _count(sums: dict[_Key, _Sums], row: Row) -> None:
    day, agent_id, model, project, cost, source, *counts = _counted(row)
    key = (day, agent_id or "", model, project)
    one = (1, *counts, 0 if cost is None else cost, int(cost is None), int(source == _REPORTED))
    before = sums.get(key)
    sums[key] = one if before is None else tuple(map(add, before, one))
