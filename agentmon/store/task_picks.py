"""Finds open tasks by the beginning of their number or by letters of their title.

It looks from the newest task on and stops with enough of them, so that what is typed is answered while it is typed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import Text, and_, cast, func, or_, select, true

from agentmon.domain.task_picks import TaskPick
from agentmon.domain.task_status import TaskStatus
from agentmon.store import tables

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

    from agentmon.domain.ids import WorkspaceId
    from agentmon.store.database import Database

_TITLE_MAX_CHARACTERS: Final = 300
_OPEN: Final = tuple(status for status in TaskStatus if status.is_open)
_DIGITS_MAX: Final = 18


class TaskPickRepository:
    """Reads what can be chosen."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, workspace_id: WorkspaceId, typed: str, *, limit: int) -> tuple[TaskPick, ...]:
        """Return open tasks, the best first: the number, its beginning, the words of the title, its letters in order.

        Args:
            workspace_id: Where.
            typed: A number, with or without ``#``, or letters; empty finds the newest.
            limit: Most tasks.
        """
        tasks = tables.tasks
        found: dict[int, TaskPick] = {}
        async with self._database.reading() as connection:
            for condition in _conditions(typed.strip()):
                statement = (
                    select(tasks.c.number, func.substr(tasks.c.title, 1, _TITLE_MAX_CHARACTERS), tasks.c.status)
                    .where(
                        tasks.c.workspace_id == workspace_id,
                        tasks.c.deleted_at.is_(None),
                        tasks.c.status.in_(_OPEN),
                        condition,
                    )
                    .order_by(tasks.c.number.desc())
                    .limit(limit)
                )
                for number, title, status in await connection.execute(statement):
                    found.setdefault(number, TaskPick(number, title, TaskStatus(status)))
                if len(found) >= limit:
                    break
        return tuple(found.values())[:limit]


def _conditions(typed: str) -> list[ColumnElement[bool]]:
    tasks = tables.tasks
    digits = typed.removeprefix("#")
    if typed.startswith("#") and not digits:
        typed = ""
    conditions: list[ColumnElement[bool]] = []
    if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX:
        conditions += [tasks.c.number == int(digits), cast(tasks.c.number, Text).startswith(digits, autoescape=True)]
    if typed.startswith("#") and conditions:
        return conditions
    words = typed.split()
    every_word = [_holds(word) for word in words]
    if not every_word:
        return [true()]
    conditions.append(and_(*every_word))
    in_order = "".join(f"%{_escaped(letter)}" for letter in "".join(words))
    conditions.append(tasks.c.title.like(f"{in_order}%", escape="\\"))
    return conditions


def _holds(word: str) -> ColumnElement[bool]:
    """Return whether the title holds the word in any case; SQLite itself knows the two cases of ASCII alone."""
    title = tables.tasks.c.title
    spellings = dict.fromkeys([word, word.lower(), word.upper(), word.capitalize()])
    ways = list(spellings) if not word.isascii() else [word]
    return or_(*[title.like(f"%{_escaped(way)}%", escape="\\") for way in ways])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
