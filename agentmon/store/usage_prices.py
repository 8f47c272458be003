"""Prices of answers looked up anew: those that nobody looked up yet, or all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.store.told_conversation import in_pieces
from agentmon.store.usage_costs import billed_answer_of
from agentmon.store.usage_sums import SumChanges, write_sums

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentmon.domain.billing import BilledAnswer
    from agentmon.domain.costs import PricedAnswer
    from agentmon.store.database import Database

_PIECE: Final = 2_000
_SOME: Final = "SELECT rowid AS place, * FROM llm_interactions WHERE rowid > ? ORDER BY rowid LIMIT ?"
_UNLOOKED: Final = "SELECT rowid AS place FROM llm_interactions WHERE price_version = '' AND at_ms <= ? LIMIT ?"
_WRITE: Final = "UPDATE llm_interactions SET cost_nano = ?, cost_source = ?, price_version = ? WHERE rowid = ?"


class UsagePriceRepository:
    """Writes costs of answers that are there, with the sums that follow."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_unlooked(self, *, until_ms: int, limit: int = _PIECE) -> tuple[int, ...]:
        """Return the places of answers for which nobody looked up a price yet and that are not younger."""
        async with self._database.reading() as connection:
            rows = (await connection.exec_driver_sql(_UNLOOKED, (until_ms, limit))).all()
        return tuple(row.place for row in rows)

    async def price(self, places: Sequence[int], price: Callable[[BilledAnswer], PricedAnswer]) -> None:
        """Price the answers at these places."""
        for piece in in_pieces(places):
            marks = ", ".join("?" * len(piece))
            await self._price(
                price, f"SELECT rowid AS place, * FROM llm_interactions WHERE rowid IN ({marks})", tuple(piece)
            )

    async def price_all(self, price: Callable[[BilledAnswer], PricedAnswer]) -> tuple[int, int]:
        """Price every answer anew, in short transactions; return how many there are and how many costs changed."""
        seen = changed = last = 0
        while True:
            count, changes, last = await self._price(price, _SOME, (last, _PIECE), last=last)
            seen, changed = seen + count, changed + changes
            if count < _PIECE:
                return seen, changed

    async def _price(
        self,
        price: Callable[[BilledAnswer], PricedAnswer],
        statement: str,
        parameters: tuple[object, ...],
        *,
        last: int = 0,
    ) -> tuple[int, int, int]:
        sums = SumChanges()
        written = []
        changes = 0
        async with self._database.writing() as connection:
            rows = (await connection.exec_driver_sql(statement, parameters)).mappings().all()
            for row in rows:
                last = row["place"]
                if not row["success"]:
                    continue
                priced = price(billed_answer_of(row))
                columns = {
                    "cost_nano": priced.cost_nano,
                    "cost_source": priced.cost_source,
                    "price_version": priced.price_version,
                }
                if all(row[name] == value for name, value in columns.items()):
                    continue
                changes += row["cost_nano"] != priced.cost_nano
                written.append((*columns.values(), row["place"]))
                sums.take_away(row)
                sums.add({**row, **columns})
            if written:
                await connection.exec_driver_sql(_WRITE, written)
                await write_sums(connection, sums)
        return len(rows), changes, last
