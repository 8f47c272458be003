"""The kept counts of cards are those of the tasks, whatever is done to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from agentmon.domain.task_status import TaskStatus
from agentmon.store import tables
from agentmon.store.board_counts import BOARD_COUNTS, COUNT_CARDS

if TYPE_CHECKING:
    from sqlalchemy import Connection

_TASK = (
    "INSERT INTO tasks (id, number, owner_id, workspace_id, title, status, sort_order, created_at, updated_at)"
    " VALUES (:id, :number, 'u', :workspace, 't', :status, 0, '', '')"
)
_places = st.tuples(st.sampled_from(["a", "b"]), st.sampled_from([status.value for status in TaskStatus]))
_changes = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 5), _places),
    st.tuples(st.just("move"), st.integers(0, 5), _places),
    st.tuples(st.sampled_from(["deleted_at", "archived_at"]), st.integers(0, 5), st.sampled_from([None, "now"])),
    st.tuples(st.just("remove"), st.integers(0, 5), st.none()),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_changes, max_size=25))
def test_the_counts_follow_every_change_of_a_task(changes: list[tuple[str, int, object]]) -> None:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        for name in ("users", "workspaces", "tasks", "board_counts"):
            tables.metadata.tables[name].create(connection, checkfirst=False)

        for number, (kind, task, value) in enumerate(changes, 1):
            _change(connection, kind, f"t{task}", value, number)

            kept = sorted(tuple(row) for row in connection.execute(text(BOARD_COUNTS.format(scope=""))))
            assert kept == sorted(tuple(row) for row in connection.execute(text(COUNT_CARDS)))
    engine.dispose()


def _change(connection: Connection, kind: str, task: str, value: object, number: int) -> None:
    match kind, value:
        case "add", (workspace, status):
            is_there = connection.execute(text("SELECT 1 FROM tasks WHERE id = :id"), {"id": task}).first()
            if is_there is None:
                values = {"id": task, "number": number, "workspace": workspace, "status": status}
                connection.execute(text(_TASK), values)
        case "move", (workspace, status):
            values = {"id": task, "workspace": workspace, "status": status}
            connection.execute(
                text("UPDATE tasks SET workspace_id = :workspace, status = :status WHERE id = :id"), values
            )
        case "remove", _:
            connection.execute(text("DELETE FROM tasks WHERE id = :id"), {"id": task})
        case _:
            connection.execute(text(f"UPDATE tasks SET {kind} = :value WHERE id = :id"), {"id": task, "value": value})
