"""Runs in an agent's own screen get the conversations that earlier releases took for history of the agent alone.

Revision ID: 0009
Revises: 0008
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from alembic import op

if TYPE_CHECKING:
    from sqlalchemy import Row

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_RUNS = """
SELECT s.id AS session_id, s.agent_id, e.id AS execution_id, e.started_at, e.ended_at, e.prompt, e.parent_execution_id,
    coalesce(e.working_dir, s.workspace) AS folder
FROM sessions s JOIN executions e ON e.session_id = s.id
WHERE s.session_ref IS NULL AND e.mode = 'tmux' AND e.started_at IS NOT NULL
    AND json_extract(s.metadata, '$.origin') IS NOT 'history'
"""
_OF_HISTORY = """
SELECT session_ref, workspace, started_at, initial_prompt FROM sessions
WHERE (agent_id = ? AND session_ref = ? OR agent_id = ? AND started_at BETWEEN ? AND ?) AND session_ref IS NOT NULL
    AND json_extract(metadata, '$.origin') = 'history' AND json_extract(metadata, '$.parent_ref') IS NULL
"""
_ADDED = """CREATE INDEX ix_sessions_former_refs ON sessions (agent_id) WHERE metadata LIKE '%"former_refs"%'"""
_CLOCKS = timedelta(seconds=2)
_COMPARED_CHARACTERS = 1_000


def upgrade() -> None:
    """Add the index of former ids, and name the conversations of runs that have none.

    The next import gives them what stands in their doubles. A run's conversation is the one with the id that the agent
    was told to use, else the only one that began in the folder of the run, in its time and with its prompt. Of several,
    and of one that fits several runs, none is taken.
    """
    connection = op.get_bind()
    connection.exec_driver_sql(_ADDED)
    fitting = {run: _fitting(run) for run in connection.exec_driver_sql(_RUNS).fetchall()}
    claims = Counter((run.agent_id, ref) for run, refs in fitting.items() for ref in refs)
    for run, refs in fitting.items():
        if len(refs) == 1 and claims[run.agent_id, refs[0]] == 1:
            for table, row_id in (("sessions", run.session_id), ("executions", run.execution_id)):
                connection.exec_driver_sql(f"UPDATE {table} SET session_ref = ? WHERE id = ?", (refs[0], row_id))


def _fitting(run: Row[Any]) -> list[str]:
    since = _text(_moment(run.started_at) - _CLOCKS)
    until = run.ended_at or _text(datetime.now(UTC))
    searched = (run.agent_id, run.session_id, run.agent_id, since, until)
    rows = op.get_bind().exec_driver_sql(_OF_HISTORY, searched).fetchall()
    if any(row.session_ref == run.session_id for row in rows):
        return [run.session_id]
    given = _compared(run.prompt) if run.parent_execution_id is None else ""
    return [
        row.session_ref
        for row in rows
        if given and row.workspace == run.folder and _compared(row.initial_prompt) == given
    ]


def _compared(text: str | None) -> str:
    return "".join((text or "").split())[:_COMPARED_CHARACTERS]


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
