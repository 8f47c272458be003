"""How the board is sorted and how many cards a column may have, read with the standard library alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.board import BoardSort
from agentmon.domain.task_status import TaskStatus
from agentmon.store.card_states import NO_RANK
from agentmon.store.money_setting import words_of_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LIMITED: Final = (TaskStatus.TODO, TaskStatus.IN_PROGRESS, TaskStatus.BLOCKED, TaskStatus.REVIEW)
"""The columns that can have a limit."""


def limit_name(status: TaskStatus) -> str:
    """Return the name of the limit of a column, in the settings of all and in those of a workspace."""
    return f"limit_{status.value}"


_NAMES: Final = ("sort", "review", *map(limit_name, LIMITED))
_OFF: Final = frozenset({"false", "0", "no", "off", "f", "n"})
"""As pydantic reads them. Source: its documentation, booleans."""
BOARD_ROWS: Final = "SELECT key, value FROM settings WHERE key >= 'board.' AND key < 'board/'"
ORDERS: Final = {
    BoardSort.ORDER: "t.sort_order, t.id",
    BoardSort.PRIORITY: "t.priority, t.sort_order, t.id",
    BoardSort.DUE: "t.due_at NULLS LAST, t.sort_order, t.id",
    BoardSort.CHANGED: "t.updated_at DESC, t.id DESC",
    BoardSort.STATE: f"coalesce(r.place, {NO_RANK}), t.sort_order, t.id",
}
"""How each order is written in SQL, for ``tasks t`` and its rank ``r``; see ``card_states.RANKS``."""
BEFORE: Final = {
    BoardSort.ORDER: "(t.sort_order, t.id) < (p.sort_order, p.id)",
    BoardSort.PRIORITY: "(t.priority, t.sort_order, t.id) < (p.priority, p.sort_order, p.id)",
    BoardSort.DUE: """(t.due_at IS NULL, coalesce(t.due_at, ''), t.sort_order, t.id)
        < (p.due_at IS NULL, coalesce(p.due_at, ''), p.sort_order, p.id)""",
    BoardSort.CHANGED: "(t.updated_at, t.id) > (p.updated_at, p.id)",
    BoardSort.STATE: f"""(coalesce(r.place, {NO_RANK}), t.sort_order, t.id) < (
        coalesce((SELECT place FROM ranks WHERE task_id = p.id), {NO_RANK}), p.sort_order, p.id)""",
}
"""The condition that ``tasks t`` with its rank ``r`` stands before ``tasks p`` in each order."""


class BoardSetting(NamedTuple):
    """What holds for the board of every workspace."""

    sort: BoardSort = BoardSort.ORDER
    limits: Mapping[TaskStatus, int] = {}
    has_review: bool = True
    """Whether what agents changed goes to Review before it is done."""


def find_board_words(settings_file: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the settings file and over it the environment say; what cannot be read is left out."""
    words = words_of_file(settings_file, "board", _NAMES)
    for name in _NAMES:
        value = environ.get(f"AGENTMON_BOARD_{name.upper()}")
        if value is not None:
            words[name] = value
    return words


def board_setting(words: Mapping[str, str], rows: Iterable[Sequence[object]]) -> BoardSetting:
    """Return what the rows of ``BOARD_ROWS`` say, over the words of file and environment.

    What makes no sense counts as absent: settings are complained of where they are loaded in earnest.
    """
    stored = {str(key).removeprefix("board."): str(value).strip('"') for key, value in rows}
    told = {**words, **{name: stored[name] for name in _NAMES if name in stored}}
    limits = _limits(told)
    sort = told.get("sort", "").strip().lower()
    order = BoardSort(sort) if sort in set(BoardSort) else BoardSort.ORDER
    return BoardSetting(order, limits, has_review=told.get("review", "").strip().lower() not in _OFF)


def own_limits(workspace_settings: object) -> dict[TaskStatus, int]:
    """Return the limits of a workspace's own, of the text of its settings; those of all hold for the other columns."""
    if isinstance(workspace_settings, str | bytes):
        try:
            workspace_settings = json.loads(workspace_settings)
        except ValueError:
            return {}
    if not isinstance(workspace_settings, dict):
        return {}
    return _limits({str(name): str(value) for name, value in workspace_settings.items()})


def _limits(words: Mapping[str, str]) -> dict[TaskStatus, int]:
    limits = {}
    for status in LIMITED:
        digits = words.get(limit_name(status), "").strip()
        if digits.isdecimal() and int(digits):
            limits[status] = int(digits)
    return limits
