"""Whether commands have a cause and came to their hosts, ends were settled, and workers met no error of their own."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.chaos.evidence import Evidence

_CAUSES: Final = {"user": {"person"}, "agent": {"agent"}, "system": {"budget", "rule", "system"}}
"""By who wrote it: why it may have been written."""
_ERRORS: Final = ("an error of the worker's own", "an error at its end", "Traceback (most recent call last)")
_MOST_SHOWN: Final = 400


def command_faults(evidence: Evidence) -> Iterator[str]:
    """Yield each command without a cause that fits, that no host got, or with which a budget ended one try twice."""
    statement = (
        "SELECT id, execution_id, actor_type, cause, type, delivered_at FROM execution_commands "
        "WHERE cause IS NULL OR delivered_at IS NULL OR actor_type <> 'user' OR cause <> 'person' ORDER BY id"
    )
    twice = (
        "SELECT execution_id, attempt, type, count(*) FROM execution_commands "
        "WHERE cause = 'budget' AND type = 'stop' GROUP BY execution_id, attempt, type HAVING count(*) > 1"
    )
    with closing(sqlite3.connect(evidence.place.database, timeout=10)) as connection:
        for command_id, execution_id, actor, cause, command_type, delivered_at in connection.execute(statement):
            if cause not in _CAUSES.get(actor, set()):
                yield f"{execution_id}: the {command_type} {command_id} of {actor} has the cause {cause}"
            if delivered_at is None:
                yield f"{execution_id}: the {command_type} {command_id} is not delivered"
        for execution_id, attempt, command_type, count in connection.execute(twice):
            yield f"{execution_id} attempt {attempt}: {count} commands {command_type} of budgets"


def half_done_faults(evidence: Evidence) -> Iterator[str]:
    """Yield each end that was noted and does not count, each card that is in progress without a run, or never ran."""
    ends = "SELECT id, status FROM executions WHERE status = 'finalizing' OR ending IS NOT NULL"
    cards = (
        "SELECT number FROM tasks t WHERE status = 'in_progress' AND NOT EXISTS (SELECT 1 FROM executions e "
        "WHERE e.task_id = t.id AND e.status IN ('queued', 'running', 'cancelling', 'finalizing'))"
    )
    never = (
        "SELECT number FROM tasks t WHERE NOT EXISTS (SELECT 1 FROM executions e WHERE e.task_id = t.id) "
        "AND NOT EXISTS (SELECT 1 FROM task_dependencies d JOIN tasks p ON p.id = d.depends_on_task_id "
        "WHERE d.task_id = t.id AND p.status <> 'done')"
    )
    with closing(sqlite3.connect(evidence.place.database, timeout=10)) as connection:
        for (number,) in connection.execute(never):
            yield f"#{number} could be run, and nobody managed to"
        for execution_id, status in connection.execute(ends):
            yield f"{execution_id} is {status}, and its end is noted and does not count"
        for (number,) in connection.execute(cards):
            yield f"#{number} is in progress, and nothing of it runs"


def worker_faults(evidence: Evidence) -> Iterator[str]:
    """Yield what workers said in their logs of errors that nobody had thought of."""
    told: set[str] = set()
    for path in sorted(evidence.place.worker_log.parent.glob(f"{evidence.place.worker_log.name}*")):
        lines = path.read_text("utf-8", "replace").splitlines()
        for number, line in enumerate(lines):
            if any(words in line for words in _ERRORS):
                following = (after for after in lines[number + 1 :] if after[:1] not in {" ", ""})
                cause = next((after for after in following if "Traceback" not in after), "")[:_MOST_SHOWN]
                if cause not in told:
                    told.add(cause)
                    yield f"{path.name}: {line[:_MOST_SHOWN]} … {cause}"
