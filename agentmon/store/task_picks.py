"""Finds open tasks by the beginning of their number or by letters of their title.

It looks from the newest task on and stops with enough of them, so that what is typed is answered while it is typed;
letters with others in between are looked for only where no title has the words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, func, or_, select, true

from agentmon.domain.task_picks import TaskPick
from agentmon.domain.task_status import TaskStatus
from agentmon.store import tables

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

    from agentmon.domain.ids import WorkspaceId
    from agentmon.store.database import Database

_TITLE_MAX_CHARACTERS: Final = 300
_OPEN: Final = tuple(status for status in TaskStatus if status.is_open)
_DIGITS_MAX: Final = 12
_POWERS: Final = 7
"""Numbers of up to so many further digits are told."""


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
            for is_number, condition in _conditions(typed.strip()):
                statement = (
                    select(tasks.c.number, func.substr(tasks.c.title, 1, _TITLE_MAX_CHARACTERS), tasks.c.status)
                    .where(
                        tasks.c.workspace_id == workspace_id,
                        tasks.c.deleted_at.is_(None),
                        tasks.c.archived_at.is_(None),
                        tasks.c.status.in_(_OPEN),
                        condition,
                    )
                    .order_by(tasks.c.number.desc())
                    .limit(limit)
                )
                for number, title, status in await connection.execute(statement):
                    found.setdefault(number, TaskPick(number, title, TaskStatus(status)))
                if len(found) >= limit or (found and not is_number):
                    break
        return tuple(found.values())[:limit]


def _conditions(typed: str) -> list[tuple[bool, ColumnElement[bool]]]:
    """Return what to look for, one after the other, and whether it is about numbers, beside which titles count too."""
    tasks = tables.tasks
    digits = typed.removeprefix("#")
    is_only_number = typed.startswith("#")
    conditions: list[tuple[bool, ColumnElement[bool]]] = []
    if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX:
        number = int(digits)
        conditions = [(True, tasks.c.number == number), (True, or_(*_beginning(number)))]
        if is_only_number:
            return conditions
    words = (digits if is_only_number else typed).split()
    if not words:
        return [(False, true())]
    in_order = "".join(f"%{_escaped(letter)}" for letter in "".join(words))
    return [
        *conditions,
        (False, and_(*[_holds(word) for word in words])),
        (False, tasks.c.title.like(f"{in_order}%", escape="\\")),
    ]


def _beginning(number: int) -> list[ColumnElement[bool]]:
    """Return the spans of numbers that begin with the digits, which an index finds."""
    spans = (10**power for power in range(1, _POWERS))
    return [tables.tasks.c.number.between(number * span, (number + 1) * span - 1) for span in spans]


def _holds(word: str) -> ColumnElement[bool]:
    """Return whether the title holds the word in any case; SQLite itself knows the two cases of ASCII alone."""
    title = tables.tasks.c.title
    spellings = dict.fromkeys([word, word.lower(), word.upper(), word.capitalize()])
    ways = list(spellings) if not word.isascii() else [word]
    return or_(*[title.like(f"%{_escaped(way)}%", escape="\\") for way in ways])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
