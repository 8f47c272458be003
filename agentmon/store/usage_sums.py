"""Sums of billed answers by day, month and session: every change of an answer changes them with it."""

from __future__ import annotations

from operator import add, itemgetter, sub
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.costs import CostSource
from agentmon.store.usage_totals import EXECUTION_TOTALS, SESSION_TOTALS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Mapping

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
_NEVER_NEGATIVE: Final = itemgetter(*(SUMMED.index(name) for name in SUMMED if name.endswith("answers")))

_Key = tuple[str, ...]
_Sums = tuple[int, ...]


class _Table(NamedTuple):
    """A table of sums, and how its rows follow from those of a finer one."""

    name: str
    keys: tuple[str, ...]
    finer: str
    """The table that its rows are counted from."""
    terms: tuple[str, ...]
    """The keys in the words of the finer one."""
    key_of: Callable[[_Key], _Key]
    """Returns the key of a row from that of one of the finest."""


_FINEST: Final = ("day_local", "session_id", "execution_id", "agent_id", "model", "project")
_DAILY: Final = ("day_local", "agent_id", "model", "project")
_TABLES: Final = (
    _Table(
        "session_usage",
        _FINEST,
        "llm_interactions",
        ("day_local", "session_id", "coalesce(execution_id, '')", "coalesce(agent_id, '')", "model", "project"),
        tuple,
    ),
    _Table("daily_usage", _DAILY, "session_usage", _DAILY, itemgetter(0, 3, 4, 5)),
    _Table("daily_model_usage", _DAILY[:3], "daily_usage", _DAILY[:3], itemgetter(0, 3, 4)),
    _Table(
        "monthly_usage",
        ("month_local", *_DAILY[1:]),
        "daily_usage",
        ("substr(day_local, 1, 7)", *_DAILY[1:]),
        lambda key: (key[0][:7], *key[3:]),
    ),
)
"""The finest first: each is counted from one that stands before it."""
_ADD: Final = {
    table.name: f"INSERT INTO {table.name} ({', '.join((*table.keys, *SUMMED))}) "
    f"VALUES ({', '.join('?' * (len(table.keys) + len(SUMMED)))}) "
    f"ON CONFLICT DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in SUMMED)}"
    for table in _TABLES
}
_IS_KEY: Final = {table.name: " AND ".join(f"{name} = ?" for name in table.keys) for table in _TABLES}
_CHANGE: Final = {
    table.name: f"UPDATE {table.name} SET {', '.join(f'{name} = {name} + ?' for name in SUMMED)} "
    f"WHERE {_IS_KEY[table.name]}"
    for table in _TABLES
}
_REMOVE_EMPTY: Final = {
    table.name: f"DELETE FROM {table.name} WHERE {_IS_KEY[table.name]} AND answers = 0" for table in _TABLES
}
SUMS_OF_ANSWERS: Final = ", ".join(
    {
        "answers": "count(*)",
        "cost_nano": "coalesce(sum(u.cost_nano), 0)",
        "unpriced_answers": "sum(u.cost_nano IS NULL)",
        "reported_answers": "sum(u.cost_source = 'reported')",
    }.get(name, f"sum(u.{name})")
    + f" AS {name}"
    for name in SUMMED
)
"""Terms for ``llm_interactions u`` where ``u.success`` that count what ``SUMMED`` names."""
SUMS_OF_SUMS: Final = ", ".join(f"sum(u.{name}) AS {name}" for name in SUMMED)
"""Terms for any table ``u`` of sums."""
RECOUNT: Final = (
    *(f"DELETE FROM {table.name}" for table in _TABLES),
    *(
        f"INSERT INTO {table.name} ({', '.join((*table.keys, *SUMMED))}) SELECT {', '.join(table.terms)}, "
        f"{SUMS_OF_ANSWERS if table.finer == 'llm_interactions' else SUMS_OF_SUMS} FROM {table.finer} u "
        f"{'WHERE u.success ' if table.finer == 'llm_interactions' else ''}GROUP BY {', '.join(table.terms)}"
        for table in _TABLES
    ),
)
"""Statements that count all sums anew."""

_counted: Final = itemgetter(*_FINEST, "cost_nano", "cost_source", *_COUNTED)
_REPORTED: Final = CostSource.REPORTED.value
_NOTHING: Final = (0,) * len(SUMMED)


class SumChanges:
    """What the changes of one transaction do to the sums, and to the totals of sessions and executions."""

    __slots__ = ("_changes",)

    def __init__(self) -> None:
        self._changes: dict[_Key, _Sums] = {}

    def add(self, row: Row) -> None:
        """Count an answer that is there from now on, by the columns of its row."""
        self._count(row, add)

    def take_away(self, row: Row) -> None:
        """Count an answer that is no longer there, or no longer so."""
        self._count(row, sub)

    def statements(self) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
        """Yield what is to be executed in turn once the rows are written, each with its sets of parameters."""
        changes = {key: sums for key, sums in self._changes.items() if any(sums)}
        for table in _TABLES:
            yield from _statements(table.name, _rolled_up(changes, table.key_of))
        if changes:
            yield SESSION_TOTALS, [(session_id,) for session_id in dict.fromkeys(key[1] for key in changes)]
        executions = dict.fromkeys(key[2] for key in changes if key[2])
        if executions:
            yield EXECUTION_TOTALS, [(execution_id,) for execution_id in executions]

    def _count(self, row: Row, change: Callable[[int, int], int]) -> None:
        if not row["success"]:
            return
        day, session_id, execution_id, agent_id, model, project, cost, source, *counts = _counted(row)
        key = (day, session_id, execution_id or "", agent_id or "", model, project)
        one = (1, *counts, 0 if cost is None else cost, int(cost is None), int(source == _REPORTED))
        self._changes[key] = tuple(map(change, self._changes.get(key, _NOTHING), one))


async def write_sums(connection: AsyncConnection, changes: SumChanges) -> None:
    """Bring the sums and totals up to the changes of rows that are written."""
    for statement, parameters in changes.statements():
        await connection.exec_driver_sql(statement, parameters)


def _rolled_up(changes: Mapping[_Key, _Sums], key_of: Callable[[_Key], _Key]) -> dict[_Key, _Sums]:
    sums: dict[_Key, _Sums] = {}
    for key, change in changes.items():
        coarser = key_of(key)
        before = sums.get(coarser)
        sums[coarser] = change if before is None else tuple(map(add, before, change))
    return sums


def _statements(table: str, changes: Mapping[_Key, _Sums]) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """Yield how the rows of one table change; one with fewer answers is there already, and an insert would fail."""
    grown = [(*key, *sums) for key, sums in changes.items() if any(sums) and min(_NEVER_NEGATIVE(sums)) >= 0]
    shrunk = [(*sums, *key) for key, sums in changes.items() if min(_NEVER_NEGATIVE(sums)) < 0]
    fewer: list[tuple[object, ...]] = [key for key, sums in changes.items() if sums[0] < 0]
    if grown:
        yield _ADD[table], grown
    if shrunk:
        yield _CHANGE[table], shrunk
    if fewer:
        yield _REMOVE_EMPTY[table], fewer
