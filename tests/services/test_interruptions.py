"""Whatever is interrupted, at whichever of its awaits: all of it is stored, or nothing."""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.bootstrap import Services, open_services
from agentmon.domain.agent_changes import AgentChanges
from agentmon.domain.approvals import ApprovalScope, RuleDecision
from agentmon.domain.budgets import BudgetPeriod, BudgetScope, TaskBudget
from agentmon.domain.idempotency import IdempotencyKey
from agentmon.domain.task_status import Priority, TaskStatus
from agentmon.domain.tasks import InputContext, TaskDraft, draft_of
from agentmon.paths import find_paths
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo_agent import DEMO_AGENT_SLUG
from agentmon.store import tables
from tests.conversing import a_wish, conversing
from tests.idle_worker import idle_worker
from tests.interrupting import Moment, interrupt

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from agentmon.domain.tasks import Task, Workspace

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?")
_KEY = IdempotencyKey("key", "any", "digest")


@dataclass
class Place:
    """A copy of the home that all begin with."""

    services: Services
    workspace: Workspace
    connection: sqlite3.Connection
    """Writes nothing, so that each change is one by somebody else."""
    _seen: tuple[int, dict[str, list[str]]] | None = None

    async def task(self, number: int) -> Task:
        return await self.services.tasks.by_number(self.workspace, number)

    @property
    def folders(self) -> dict[str, bool]:
        """The folders of executions, each with whether its environment is there."""
        folders = self.services.paths.executions_dir.iterdir()
        return {path.name: (path / "environment.json").exists() for path in folders}

    def rows(self) -> dict[str, list[str]]:
        """All rows of all tables, with ids and times that differ from one try to the next called alike."""
        (version,) = self.connection.execute("PRAGMA data_version").fetchone()
        if self._seen is None or self._seen[0] != version:
            self._seen = version, self._read_rows()
        return self._seen[1]

    def _read_rows(self) -> dict[str, list[str]]:
        ids: dict[str, str] = {}

        def alike(value: object) -> str:
            text = str(value).replace(str(self.services.paths.data_dir), "HOME")
            return _TIME.sub("TIME", _ID.sub(lambda found: ids.setdefault(found[0], f"id{len(ids)}"), text))

        return {
            name: [alike(row) for row in sorted(self.connection.execute(f"SELECT * FROM {name}"), key=str)]
            for name in sorted(tables.metadata.tables)
        }


@asynccontextmanager
async def copy_of(home: Path, folder: Path) -> AsyncIterator[Place]:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(home, folder / "agentmon")
    paths = find_paths({"AGENTMON_HOME": str(folder / "agentmon")})
    with closing(sqlite3.connect(paths.database_path)) as connection, connection:
        connection.execute(
            "UPDATE executions SET log_file_path = replace(log_file_path, ?, ?)", (str(home), str(paths.data_dir))
        )
    with idle_worker(paths):
        async with open_services(paths) as services:
            workspace = await services.workspaces.open(home.parent / "project")
            with closing(sqlite3.connect(paths.database_path)) as connection:
                yield Place(services, workspace, connection)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a home in which #2 and #5 wait for others, #3 is done, #4 is queued, and #6 runs and asks."""
    folder = tmp_path_factory.mktemp("home")
    asyncio.run(_fill(folder))
    return folder / "agentmon"


async def _fill(folder: Path) -> None:
    async with conversing(folder) as place:
        services, workspace = place.services, place.workspace
        agent = await services.agents.by_slug("command")
        draft = TaskDraft(
            title="a task", assignee_agent_id=agent.id, input_context=InputContext(args={"argv": ["true"]})
        )
        tasks = [
            await services.tasks.add(workspace, draft, actor=USER_ACTOR, after=after)
            for after in ((), (1,), (), (), (4,))
        ]
        await services.tasks.move(tasks[2].id, TaskStatus.DONE, actor=USER_ACTOR)
        talking = await place.add_task()
        execution = await place.begin(talking.id)
        await place.ask(execution.id, a_wish())
        await services.queue.run(tasks[3].id, actor=USER_ACTOR)
        await services.agents.duplicate(DEMO_AGENT_SLUG, "other", actor=USER_ACTOR)
        text = (await services.agent_files.export(["other"])).text
        third = text.replace('slug = "other"', 'slug = "third"')
        changed = text.replace('name = "', 'name = "Changed ')
        (folder / "project" / "agents.toml").write_text(third + changed)


async def allow_always(place: Place) -> None:
    (one,) = await place.services.approvals.inbox(None)
    await place.services.approvals.allow(
        one.approval.id,
        actor=USER_ACTOR,
        seen_digest=one.approval.input_digest,
        scope=ApprovalScope.ALWAYS,
        key=_KEY,
    )


async def edit(place: Place) -> None:
    task = await place.task(2)
    await place.services.tasks.edit(
        task.id,
        replace(draft_of(task), title="other", labels=("new",), priority=Priority.URGENT),
        expected_version=task.version,
        added=[4],
        removed=[1],
        budget=TaskBudget(limit=10),
        actor=USER_ACTOR,
    )


async def add(place: Place) -> None:
    draft = TaskDraft(title="one more", labels=("a", "b"))
    await place.services.tasks.add(place.workspace, draft, actor=USER_ACTOR, after=[1, 3], budget=TaskBudget(limit=10))


async def quick_add(place: Place) -> None:
    await place.services.quick_add.add(place.workspace, ["one #a", "two after:1 #b", "three !1"], actor=USER_ACTOR)


async def run(place: Place) -> None:
    await place.services.queue.run((await place.task(1)).id, actor=USER_ACTOR, key=_KEY)


async def run_again(place: Place) -> None:
    await place.services.queue.run((await place.task(3)).id, actor=USER_ACTOR)


async def stop_queued(place: Place) -> None:
    await place.services.queue.stop((await place.task(4)).id, actor=USER_ACTOR, key=_KEY)


async def stop_running(place: Place) -> None:
    await place.services.queue.stop((await place.task(6)).id, actor=USER_ACTOR, key=_KEY)


async def message(place: Place) -> None:
    await place.services.conversations.send((await place.task(6)).id, "more", actor=USER_ACTOR, key=_KEY)


async def switch(place: Place) -> None:
    task = await place.task(6)
    await place.services.conversations.switch(task.id, model="m", permission_mode="plan", actor=USER_ACTOR)


async def close(place: Place) -> None:
    await place.services.tasks.move((await place.task(4)).id, TaskStatus.DONE, actor=USER_ACTOR)


async def cancel_running(place: Place) -> None:
    await place.services.tasks.move((await place.task(6)).id, TaskStatus.CANCELLED, actor=USER_ACTOR)


async def reopen(place: Place) -> None:
    await place.services.tasks.move((await place.task(3)).id, TaskStatus.TODO, actor=USER_ACTOR)


async def delete(place: Place) -> None:
    await place.services.tasks.delete((await place.task(2)).id, actor=USER_ACTOR)


async def archive(place: Place) -> None:
    await place.services.archive.archive_closed_before(
        datetime.now(UTC) + timedelta(hours=1), place.workspace, cause="asked for", actor=USER_ACTOR
    )


async def set_budget(place: Place) -> None:
    await place.services.budgets.set(scope=BudgetScope.ALL, period=BudgetPeriod.DAY, limit=10, actor=USER_ACTOR)


async def pause(place: Place) -> None:
    await place.services.queue.pause(actor=USER_ACTOR, halts_running=True)


async def add_rule(place: Place) -> None:
    await place.services.approvals.add_rule(decision=RuleDecision.DENY, tool="Bash", actor=USER_ACTOR)


async def edit_agent(place: Place) -> None:
    changes = AgentChanges(role="careful", max_concurrent=3)
    await place.services.agents.edit("other", changes, actor=USER_ACTOR)


async def import_agents(place: Place) -> None:
    text = (Path(place.workspace.root_path) / "agents.toml").read_text()
    await place.services.agent_files.import_text(text, replaces=True, actor=USER_ACTOR)


_WORKS: tuple[Callable[[Place], Coroutine[Any, Any, None]], ...] = (
    allow_always,
    edit,
    add,
    quick_add,
    run,
    run_again,
    stop_queued,
    stop_running,
    message,
    switch,
    close,
    cancel_running,
    reopen,
    delete,
    archive,
    set_budget,
    pause,
    add_rule,
    edit_agent,
    import_agents,
)

_QUICK = (run,)


@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize(
    "work",
    [work if work in _QUICK else pytest.param(work, marks=pytest.mark.proof) for work in _WORKS],
    ids=[work.__name__ for work in _WORKS],
)
async def test_a_service_that_is_interrupted_stores_all_of_it_or_nothing(
    home: Path, tmp_path: Path, work: Callable[[Place], Coroutine[Any, Any, None]], moment: Moment
) -> None:
    async with copy_of(home, tmp_path / "whole") as place:
        nothing = place.rows()
        await work(place)
        everything = place.rows()
    at, is_over = 0, False
    outcomes: list[bool] = []
    while not is_over:
        # Where nothing was stored, the next try begins in the same home.
        async with copy_of(home, tmp_path / "cut") as place:
            assert place.rows() == nothing
            while not is_over and place.rows() == nothing:
                is_over = await interrupt(work(place), at, moment)
                stored = place.rows()
                assert stored in (nothing, everything), f"at await {at}: {_difference(nothing, stored)}"
                outcomes.append(stored == everything)
                _check_folders(place)
                at += 1

    assert everything != nothing
    assert outcomes[0] is False
    assert outcomes[-1] is True


def _check_folders(place: Place) -> None:
    """Every queued execution has its environment, also one whose client was interrupted behind the commit."""
    queued = place.connection.execute("SELECT id FROM executions WHERE status = 'queued'").fetchall()
    assert {execution_id for (execution_id,) in queued} <= {
        name for name, is_whole in place.folders.items() if is_whole
    }


def _difference(nothing: dict[str, list[str]], stored: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: [row for row in rows if row not in nothing[name]] for name, rows in stored.items()}
