from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
import tempfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import ExecutionEnding
from agentmon.domain.ids import TaskId, WorkerId
from agentmon.domain.task_status import TaskStatus
from agentmon.services.actors import USER_ACTOR
from agentmon.store.database import Database
from agentmon.store.dependencies import DependencyRepository
from agentmon.store.moments import moment_text
from tests.store.queue_place import NOON, QueuePlace, an_agent, make_queue_file, open_queue, read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.ids import WorkspaceId

AGENT = an_agent("any", max_concurrent=0)
_picks = st.integers(min_value=0, max_value=7)


class Graph(RuleBasedStateMachine):
    """Cards that wait for each other, none of which a person moves into or out of Blocked by hand."""

    def __init__(self, template: Path, workspaces: Mapping[str, WorkspaceId]) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="amg-", dir=template.parent))
        self.path = self.folder / "a.db"
        shutil.copy(template, self.path)
        self.loop = asyncio.Runner()
        self.place = QueuePlace(database=Database(self.path), agents={"any": AGENT}, workspaces=workspaces)
        self.ids: dict[int, TaskId] = {}
        self.needs: set[tuple[int, int]] = set()
        self.closed: set[int] = set()
        self.deleted: set[int] = set()
        self.failed: set[int] = set()
        for _ in range(5):
            self.add_card([])

    def teardown(self) -> None:
        self.loop.run(self.place.database.close())
        self.loop.close()
        shutil.rmtree(self.folder)

    @property
    def present(self) -> list[int]:
        return [number for number in self.ids if number not in self.deleted]

    def waits_for(self, number: int) -> set[int]:
        gone = self.closed | self.deleted
        return {needed for source, needed in self.needs if source == number and needed not in gone}

    def reaches(self, source: int, target: int) -> bool:
        seen, waiting = {source}, [source]
        for number in waiting:
            fresh = {needed for one, needed in self.needs if one == number} - seen
            seen |= fresh
            waiting += fresh
        return target in seen

    @rule(after=st.lists(_picks, max_size=3))
    def add_card(self, after: list[int]) -> None:
        numbers = [self.present[pick % len(self.present)] for pick in after] if self.present else []
        task = self.loop.run(self.place.add_task("w", after=numbers))
        self.ids[task.number] = task.id
        self.needs |= {(task.number, needed) for needed in numbers}

    @precondition(lambda self: self.present)
    @rule(source=_picks, needed=_picks)
    def add_dependency(self, source: int, needed: int) -> None:
        one, other = self.present[source % len(self.present)], self.present[needed % len(self.present)]
        add = self.place.dependencies.add(self.ids[one], other, actor=USER_ACTOR, at=NOON)
        if not self.reaches(other, one):
            self.loop.run(add)
            self.needs.add((one, other))
            return
        with pytest.raises(ConflictError, match="wait for each other") as caught:
            self.loop.run(add)
        ring = [int(number) for number in re.findall(r"#(\d+)", str(caught.value).partition("(")[2])]
        assert ring[0] == ring[-1] == one
        links = list(pairwise(ring))
        assert links[0] == (one, other)
        assert set(links[1:]) <= self.needs

    @precondition(lambda self: self.needs)
    @rule(pick=_picks)
    def remove_dependency(self, pick: int) -> None:
        source, needed = sorted(self.needs)[pick % len(self.needs)]
        remove = self.place.dependencies.remove(self.ids[source], needed, actor=USER_ACTOR, at=NOON)
        if {source, needed} & self.deleted:
            with pytest.raises(NotFoundError):
                self.loop.run(remove)
            return
        self.loop.run(remove)
        self.needs.discard((source, needed))

    @precondition(lambda self: self.present)
    @rule(pick=_picks, status=st.sampled_from([TaskStatus.DONE, TaskStatus.CANCELLED]))
    def close_card(self, pick: int, status: TaskStatus) -> None:
        number = self.present[pick % len(self.present)]
        if number not in self.closed:
            self.loop.run(self.place.tasks.move(self.ids[number], status, index=None, actor=USER_ACTOR, at=NOON))
            self.closed.add(number)

    @precondition(lambda self: self.present)
    @rule(pick=_picks)
    def delete_card(self, pick: int) -> None:
        number = self.present[pick % len(self.present)]
        self.loop.run(self.place.tasks.delete(self.ids[number], actor=USER_ACTOR, at=NOON))
        self.deleted.add(number)

    @precondition(lambda self: self.present)
    @rule(pick=_picks)
    def fail_card(self, pick: int) -> None:
        ready = [number for number in self.present if number not in self.closed and not self.waits_for(number)]
        if ready:
            number = ready[pick % len(ready)]
            self.loop.run(self._fail(self.ids[number]))
            self.failed.add(number)

    async def _fail(self, task_id: TaskId) -> None:
        await self.place.enqueue(task_id, "any")
        (claimed,) = await self.place.claims.claim(
            worker_id=WorkerId("w"), max_running=9, park_after=0, limit=9, at=NOON
        )
        assert claimed.task.id == task_id
        ending = ExecutionEnding(
            status=ExecutionStatus.FAILED, ended_at=NOON, reason=EndReason.EXITED, exit_code=1, may_retry=False
        )
        await self.place.ingest.end_without_journal(claimed.execution.id, ending, park_after=0, at=NOON)

    @invariant()
    def a_card_is_blocked_exactly_while_it_waits_or_because_it_failed(self) -> None:
        with closing(sqlite3.connect(self.path)) as connection:
            columns = dict(connection.execute("SELECT number, status FROM tasks").fetchall())
            links = connection.execute(
                "SELECT a.number, b.number FROM task_dependencies d"
                " JOIN tasks a ON a.id = d.task_id JOIN tasks b ON b.id = d.depends_on_task_id"
            ).fetchall()
        assert set(links) == self.needs
        for number in self.present:
            if number not in self.closed:
                is_blocked = bool(self.waits_for(number)) or number in self.failed
                assert columns[number] == ("blocked" if is_blocked else "todo"), f"#{number}"


def test_whatever_is_added_and_taken_away_no_ring_arises_and_exactly_those_that_wait_are_blocked(
    tmp_path: Path,
) -> None:
    workspaces = make_queue_file(tmp_path / "template.db", [AGENT], {"w": 0})

    run_state_machine_as_test(
        lambda: Graph(tmp_path / "template.db", workspaces),  # type: ignore[arg-type] # any maker of a machine will do
        settings=settings(
            max_examples=15, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


async def _write_links(path: Path, links: list[tuple[int, int]]) -> None:
    """Write tasks and what they wait for past every check."""
    place = await open_queue(path, [AGENT], {"w": 0})
    numbers = sorted({number for link in links for number in link})
    await place.database.close()
    now = moment_text(NOON)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            "INSERT INTO tasks (id, number, owner_id, workspace_id, title, status, sort_order, created_at, updated_at)"
            " SELECT ?, ?, owner_id, id, 'a task', 'blocked', 0, ?, ? FROM workspaces",
            [(f"{number:036d}", number, now, now) for number in numbers],
        )
        connection.executemany(
            "INSERT INTO task_dependencies VALUES (?, ?, ?)",
            [(f"{source:036d}", f"{needed:036d}", now) for source, needed in links],
        )


def _id(number: int) -> TaskId:
    return TaskId(f"{number:036d}")


async def test_a_chain_of_thousands_is_read_freed_and_closed_to_a_ring_in_no_time(tmp_path: Path) -> None:
    await _write_links(tmp_path / "a.db", [(number, number + 1) for number in range(1, 5000)])
    database = Database(tmp_path / "a.db")
    dependencies = DependencyRepository(database)

    graph = await dependencies.around(_id(2500))
    rings = await dependencies.rings()
    with pytest.raises(ConflictError, match="wait for each other") as caught:
        await dependencies.add(_id(5000), 1, actor=USER_ACTOR, at=NOON)

    assert (len(graph.tasks), len(graph.needs), rings) == (5000, 4999, ())
    shown = str(caught.value).partition("(")[2].rstrip(")").split(" → ")
    assert (shown[:2], shown[-2:]) == (["#5000", "#1"], ["#4999", "#5000"])
    for one, other in pairwise(shown):
        assert "…" in {one, other} or int(other[1:]) in {int(one[1:]) + 1, 1}
    await database.close()


async def test_a_ring_that_came_from_elsewhere_is_shown_whole_and_stops_nothing(tmp_path: Path) -> None:
    ring = [(number, number % 50 + 1) for number in range(1, 51)]
    await _write_links(tmp_path / "a.db", [*ring, (51, 1)])
    database = Database(tmp_path / "a.db")
    dependencies = DependencyRepository(database)

    rings = await dependencies.rings()
    graph = await dependencies.around(_id(51))
    with pytest.raises(ConflictError):
        await dependencies.add(_id(1), 51, actor=USER_ACTOR, at=NOON)
    await dependencies.remove(_id(50), 1, actor=USER_ACTOR, at=NOON)

    assert [[task.number for task in one] for one in rings] == [list(range(1, 51))]
    assert len(graph.tasks) == 51
    assert await dependencies.rings() == ()
    await database.close()


async def test_a_ring_is_found_also_when_a_larger_one_leads_through_a_deleted_task(tmp_path: Path) -> None:
    await _write_links(tmp_path / "a.db", [(1, 2), (2, 1), (2, 3), (3, 2)])
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("UPDATE tasks SET deleted_at = created_at WHERE number = 3")
    database = Database(tmp_path / "a.db")

    rings = await DependencyRepository(database).rings()

    assert [[task.number for task in one] for one in rings] == [[1, 2]]
    await database.close()


async def test_two_writers_at_once_cannot_make_a_ring_together(tmp_path: Path) -> None:
    place = await open_queue(tmp_path / "a.db", [AGENT], {"w": 0})
    other = DependencyRepository(Database(tmp_path / "a.db"))
    refused = 0
    for _ in range(10):
        first, second = await place.add_task("w"), await place.add_task("w")

        outcomes = await asyncio.gather(
            place.dependencies.add(first.id, second.number, actor=USER_ACTOR, at=NOON),
            other.add(second.id, first.number, actor=USER_ACTOR, at=NOON),
            return_exceptions=True,
        )

        refused += sum(isinstance(outcome, ConflictError) for outcome in outcomes)
        assert len([outcome for outcome in outcomes if outcome is None]) == 1

    assert refused == 10
    assert len(read_rows(tmp_path / "a.db", "SELECT * FROM task_dependencies")) == 10
    assert await place.dependencies.rings() == ()
    await other._database.close()
    await place.database.close()
