"""Counts of sessions and tool calls by day: triggers keep them, whoever writes a row; the days come from the code.

A session counts on the day on which it began, a tool call on its own, under the user, agent and project of its session.
There is no count for a day without any. ``INSERT OR REPLACE`` would pass them by, since it fires no trigger for what it
removes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SESSION_KEYS: Final = ("day_local", "user_id", "agent_id", "project")
_CALL_KEYS: Final = (*_SESSION_KEYS, "type")
_COUNTS: Final = ("operations", "successes", "failures", "blocked")
_ENDS: Final = ("success", "failed", "blocked")


def _is_session_of(row: str) -> str:
    return " AND ".join(f"{name} = {row}.{name}" for name in _SESSION_KEYS)


def _add_session() -> str:
    return (
        f"INSERT INTO daily_sessions ({', '.join(_SESSION_KEYS)}, sessions) "
        f"VALUES ({', '.join(f'NEW.{name}' for name in _SESSION_KEYS)}, 1) "
        f"ON CONFLICT ({', '.join(_SESSION_KEYS)}) DO UPDATE SET sessions = sessions + 1;"
    )


def _take_session_away() -> str:
    is_its = _is_session_of("OLD")
    return (
        f"UPDATE daily_sessions SET sessions = sessions - 1 WHERE {is_its}; "
        f"DELETE FROM daily_sessions WHERE {is_its} AND sessions = 0;"
    )


def _upsert_calls(counted: str) -> str:
    return (
        f"INSERT INTO daily_operations ({', '.join((*_CALL_KEYS, *_COUNTS))}) {counted} "
        f"ON CONFLICT ({', '.join(_CALL_KEYS)}) DO UPDATE SET "
        f"{', '.join(f'{name} = {name} + excluded.{name}' for name in _COUNTS)};"
    )


def _add_call() -> str:
    ends = ", ".join(f"NEW.status = '{end}'" for end in _ENDS)
    return _upsert_calls(
        f"SELECT NEW.day_local, user_id, agent_id, project, NEW.type, 1, {ends} FROM sessions WHERE id = NEW.session_id"
    )


def _take_call_away() -> str:
    changes = ", ".join(
        f"{name} = {name} - (OLD.status = '{end}')" for name, end in zip(_COUNTS[1:], _ENDS, strict=True)
    )
    is_its = (
        "day_local = OLD.day_local AND type = OLD.type AND (user_id, agent_id, project) = "
        "(SELECT user_id, agent_id, project FROM sessions WHERE id = OLD.session_id)"
    )
    return (
        f"UPDATE daily_operations SET operations = operations - 1, {changes} WHERE {is_its}; "
        f"DELETE FROM daily_operations WHERE {is_its} AND operations = 0;"
    )


def _end_call() -> str:
    changes = ", ".join(
        f"{name} = {name} + (NEW.status = '{end}') - (OLD.status = '{end}')"
        for name, end in zip(_COUNTS[1:], _ENDS, strict=True)
    )
    return (
        f"UPDATE daily_operations SET {changes} WHERE day_local = NEW.day_local AND type = NEW.type "
        "AND (user_id, agent_id, project) = "
        "(SELECT user_id, agent_id, project FROM sessions WHERE id = NEW.session_id);"
    )


def _move_calls() -> str:
    ends = ", ".join(f"sum(status = '{end}')" for end in _ENDS)
    added = _upsert_calls(
        f"SELECT day_local, NEW.user_id, NEW.agent_id, NEW.project, type, count(*), {ends} "
        "FROM operations WHERE session_id = NEW.id GROUP BY day_local, type"
    )
    named = ", ".join(f"sum(status = '{end}') AS {name}" for name, end in zip(_COUNTS[1:], _ENDS, strict=True))
    is_its = "user_id = OLD.user_id AND agent_id = OLD.agent_id AND project = OLD.project"
    return (
        f"{added} UPDATE daily_operations SET "
        f"{', '.join(f'{name} = daily_operations.{name} - moved.{name}' for name in _COUNTS)} "
        f"FROM (SELECT day_local, type, count(*) AS operations, {named} "
        "FROM operations WHERE session_id = NEW.id GROUP BY day_local, type) AS moved "
        f"WHERE daily_operations.day_local = moved.day_local AND daily_operations.type = moved.type AND {is_its}; "
        f"DELETE FROM daily_operations WHERE {is_its} AND operations = 0 AND (day_local, type) IN "
        "(SELECT day_local, type FROM operations WHERE session_id = NEW.id);"
    )


def _is_other(*names: str) -> str:
    return " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in names)


_PLACE: Final = ("session_id", "type", "day_local")
_WHOSE: Final = ("user_id", "agent_id", "project")

TRIGGERS: Final[Mapping[str, Sequence[str]]] = {
    "sessions": (
        f"CREATE TRIGGER tr_sessions_added AFTER INSERT ON sessions BEGIN {_add_session()} END",
        (
            f"CREATE TRIGGER tr_sessions_changed AFTER UPDATE OF {', '.join(_SESSION_KEYS)} ON sessions "
            f"WHEN {_is_other(*_SESSION_KEYS)} BEGIN {_add_session()} {_take_session_away()} END"
        ),
        (
            f"CREATE TRIGGER tr_sessions_moved AFTER UPDATE OF {', '.join(_WHOSE)} ON sessions "
            f"WHEN {_is_other(*_WHOSE)} BEGIN {_move_calls()} END"
        ),
        # Its calls would go with it, but after it, when nothing says any more whose they were.
        (
            "CREATE TRIGGER tr_sessions_going BEFORE DELETE ON sessions "
            "BEGIN DELETE FROM operations WHERE session_id = OLD.id; END"
        ),
        f"CREATE TRIGGER tr_sessions_removed AFTER DELETE ON sessions BEGIN {_take_session_away()} END",
    ),
    "operations": (
        f"CREATE TRIGGER tr_operations_added AFTER INSERT ON operations BEGIN {_add_call()} END",
        (
            f"CREATE TRIGGER tr_operations_ended AFTER UPDATE OF status ON operations "
            f"WHEN NEW.status IS NOT OLD.status AND NOT ({_is_other(*_PLACE)}) BEGIN {_end_call()} END"
        ),
        (
            f"CREATE TRIGGER tr_operations_moved AFTER UPDATE OF {', '.join(_PLACE)} ON operations "
            f"WHEN {_is_other(*_PLACE)} BEGIN {_add_call()} {_take_call_away()} END"
        ),
        f"CREATE TRIGGER tr_operations_removed AFTER DELETE ON operations BEGIN {_take_call_away()} END",
    ),
}
"""The triggers of each table, which a fresh database gets with it."""

COUNT_SESSIONS: Final = (
    f"SELECT {', '.join(_SESSION_KEYS)}, count(*) AS sessions FROM sessions GROUP BY {', '.join(_SESSION_KEYS)}"
)
"""Counts all sessions anew, as the rows of ``daily_sessions`` have to be."""
COUNT_OPERATIONS: Final = (
    "SELECT o.day_local, s.user_id, s.agent_id, s.project, o.type, count(*) AS operations, "
    f"{', '.join(f'sum(o.status = {end!r}) AS {name}' for name, end in zip(_COUNTS[1:], _ENDS, strict=True))} "
    "FROM operations o JOIN sessions s ON s.id = o.session_id GROUP BY 1, 2, 3, 4, 5"
)
"""Counts all tool calls anew, as the rows of ``daily_operations`` have to be."""
