"""Live runs that touch one path: both cards say so while it is so, whatever made the change."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from sqlalchemy import update

from agentmon.bootstrap import open_services
from agentmon.domain.board import ColumnRequest
from agentmon.domain.clock import SystemClock
from agentmon.domain.conversation import ToolFinishedNews, ToolStartedNews
from agentmon.domain.errors import SnapshotError
from agentmon.domain.events import TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import ExecutionProgress, TimedNews
from agentmon.domain.ids import ExecutionId, TaskId
from agentmon.domain.operations import OperationStatus, OperationType
from agentmon.domain.overlaps import OverlapKind
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import InputContext, TaskDraft
from agentmon.domain.worktrees import Isolation
from agentmon.paths import find_paths
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo_agent import make_demo_agent
from agentmon.store import tables
from agentmon.store.history_ids import history_id
from agentmon.store.ingest import IngestRepository
from agentmon.store.overlaps import LivePlace, OverlapRepository
from agentmon.worker.overlap_watching import OverlapWatch
from agentmon.worker.touched_paths import RunTrace, TouchedFolder
from agentmon.workspaces.files import FileState
from agentmon.workspaces.snapshots import SnapshotStore
from tests.live_home import until_started
from tests.stored_runs import stored
from tests.waiting import until
from tests.worker import acting_agent
from tests.workspaces.worktree_place import a_repository, git

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from agentmon.domain.overlaps import Overlap
    from agentmon.domain.tasks import Task, Workspace
    from tests.live_home import LiveHome

_FILES = {
    "app.py": "one\n",
    "b.py": "two\n",
    "c.py": "three\n",
    "long.py": "".join(f"line {number}\n" for number in range(30)),
}


@dataclass
class Team:
    """Acting agents in one workspace."""

    services: Services
    workspace: Workspace
    orders: Path

    async def start(self, isolation: Isolation = Isolation.FOLDER, *, also: Sequence[str] = ()) -> Actor:
        """Start an agent, and others that do the same, and wait until it has a process."""
        agent = await self.services.agents.by_slug("demo-agent")
        task = await self.services.tasks.add(
            self.workspace,
            TaskDraft(
                title="work",
                description=f"orders:{self.orders}/{len(list(self.orders.iterdir()))}",
                assignee_agent_id=agent.id,
                input_context=InputContext(isolation=isolation),
            ),
            actor=USER_ACTOR,
        )
        orders = Path((task.description or "").removeprefix("orders:"))
        orders.touch()
        execution = await self.services.queue.run(task.id, actor=USER_ACTOR, also=also)
        started = await until_started(self.services, execution)
        return Actor(self.services, task, started, orders)


@dataclass
class Actor:
    """One of them."""

    services: Services
    task: Task
    execution: Execution
    orders: Path

    @property
    def folder(self) -> Path:
        return Path(self.execution.working_dir or "")

    def order(self, **order: object) -> None:
        with self.orders.open("a") as file:
            file.write(json.dumps(order) + "\n")

    def edit(self, path: str, text: str) -> None:
        """Let it append a line by its own tool."""
        tool_input = {"file_path": str(self.folder / path), "old_string": "", "new_string": text}
        self.order(tool="Edit", input=tool_input, do=f"echo {text} >> '{path}'")

    def shell(self, command: str) -> None:
        self.order(tool="Bash", input={"command": command}, do=command)

    async def overlaps(self) -> tuple[Overlap, ...]:
        return (await self.services.executions.get(self.execution.id)).overlaps

    async def until_overlap(self, kind: OverlapKind, *paths: str) -> Overlap:
        found: list[Overlap] = []

        async def is_there() -> bool:
            found[:] = [one for one in await self.overlaps() if one.kind is kind and set(paths) <= set(one.paths)]
            return bool(found)

        await until(is_there, f"#{self.task.number} {kind} {paths}")
        return found[0]

    async def until_alone(self) -> None:
        async def is_alone() -> bool:
            return not await self.overlaps()

        await until(is_alone)

    async def until_done(self, count: int) -> None:
        """Wait until so many of its calls are known to have ended."""

        async def are_done() -> bool:
            conversation = await self.services.conversations.operations(execution_id=self.execution.id)
            return sum(one.finished_at is not None for one in conversation) >= count

        await until(are_done)

    async def until_seen(self, path: str) -> None:
        """Wait until a look at the folder has found a file as it is now."""
        store = SnapshotStore(self.services.paths.snapshots_dir)
        text = (self.folder / path).read_bytes()

        async def is_seen() -> bool:
            newest = store.newest(self.folder)
            if newest is None:
                return False
            found = store.git(newest).run("cat-file", "blob", f"{newest.tree}:{path}", fine=(0, 128))
            return found == text

        await until(is_seen, f"{path} in a snapshot")

    async def end(self) -> None:
        self.order(end=True)
        await self.services.queue.wait(self.execution.id)


@pytest.fixture
async def team(live_home: LiveHome) -> AsyncIterator[Team]:
    a_repository(live_home.project, **_FILES)
    orders = live_home.folder / "orders"
    orders.mkdir()
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        agent = make_demo_agent()
        program = ("-P", acting_agent.__file__)
        await services.agents.add(replace(agent, binary_path=sys.executable, base_args=program))
        await services.settings.set("workspace.max_per_folder", "0", actor=USER_ACTOR, workspace=workspace)
        yield Team(services, workspace, orders)


async def _told(services: Services, *actors: Actor) -> list[tuple[int, TaskEventType]]:
    return [
        (actor.task.number, event.event_type)
        for actor in actors
        for event in await services.audit.of_task(actor.task.id)
        if event.event_type in {TaskEventType.RUNS_OVERLAP, TaskEventType.EDITS_DISCARDED}
    ]


async def _card_lines(team: Team) -> Mapping[int, str]:
    requests = [ColumnRequest(status=TaskStatus.IN_PROGRESS)]
    page = await team.services.board.page(team.workspace, requests)
    return {card.number: card.overlap_line for card in page.columns[TaskStatus.IN_PROGRESS].cards}


@pytest.mark.proof
async def test_two_that_edit_one_file_are_told_of_on_both_cards_until_one_ends(team: Team) -> None:
    first, second = await team.start(), await team.start()
    first.edit("app.py", "mine")
    first.edit("b.py", "mine")
    second.edit("c.py", "yours")
    await second.until_done(1)
    assert await first.overlaps() == ()
    second.edit("app.py", "yours")
    found = await first.until_overlap(OverlapKind.FOLDER, "app.py")
    other = await second.until_overlap(OverlapKind.FOLDER, "app.py")
    lines = await _card_lines(team)
    told = await _told(team.services, first, second)
    second.edit("b.py", "yours")
    await first.until_overlap(OverlapKind.FOLDER, "app.py", "b.py")
    assert await _told(team.services, first, second) == told
    await second.end()
    await first.until_alone()
    left = await _card_lines(team)
    await first.end()

    assert (found.other_number, other.other_number) == (second.task.number, first.task.number)
    assert (found.paths, found.path_count) == (("app.py",), 1)
    assert lines == {first.task.number: f"⚠ #{second.task.number} edits app.py too",
                     second.task.number: f"⚠ #{first.task.number} edits app.py too"}  # fmt: skip
    assert told == [(second.task.number, TaskEventType.RUNS_OVERLAP)]
    assert left[first.task.number] == ""


@pytest.mark.proof
async def test_what_a_shell_command_wrote_counts_and_what_is_taken_back_no_more(team: Team) -> None:
    first, second = await team.start(), await team.start()
    first.shell("sed -i s/one/1/ app.py; echo more >> b.py")
    await first.until_done(1)
    await first.until_seen("b.py")
    second.edit("app.py", "yours")
    second.shell("rm b.py; sed -i s/three/3/ c.py")
    found = await first.until_overlap(OverlapKind.FOLDER, "app.py", "b.py")
    await second.until_done(2)
    await second.until_seen("app.py")
    first.shell("git checkout -q app.py b.py")

    async def is_no_edit() -> bool:
        return all(one.kind is not OverlapKind.FOLDER for one in await first.overlaps())

    await until(is_no_edit)
    await first.end()
    await second.end()

    assert found.paths == ("app.py", "b.py")


@pytest.mark.proof
async def test_in_two_worktrees_it_foretells_a_merge_conflict_unless_both_did_the_same(team: Team) -> None:
    first, second = await team.start(), await team.start(Isolation.WORKTREE)
    assert second.folder != first.folder
    first.shell("echo same >> b.py; echo mine >> app.py")
    second.shell("echo same >> b.py; echo yours >> app.py; git -c user.name=n -c user.email=e commit -qam done")
    found = await second.until_overlap(OverlapKind.WORKTREES, "app.py")
    card = (await _card_lines(team))[second.task.number]
    await second.end()
    await first.until_alone()
    await first.end()

    assert found.paths == ("app.py",)
    assert f"#{first.task.number}" in card
    assert card == f"⚠ conflict: #{first.task.number} edits app.py too"


@pytest.mark.proof
async def test_alternatives_are_not_told_of_each_other_since_only_one_of_them_is_merged(team: Team) -> None:
    first = await team.start(Isolation.WORKTREE, also=["demo-agent"])
    services = team.services
    _, twin = await services.queue.queued_with(first.execution)
    second = Actor(services, await services.tasks.get(twin.task_id), await until_started(services, twin), first.orders)
    apart = await team.start(Isolation.WORKTREE)
    for actor in (first, apart):
        # In each worktree another line; both alternatives read the same orders.
        actor.shell("pwd >> app.py")

    async def is_told_of_both() -> bool:
        return {one.other_number for one in await apart.overlaps()} == {first.task.number, second.task.number}

    await until(is_told_of_both)
    others = [{one.other_number for one in await actor.overlaps()} for actor in (first, second)]
    await first.end()
    await apart.end()
    await services.queue.wait(twin.id)

    assert others == [{apart.task.number}, {apart.task.number}]


@pytest.mark.proof
async def test_what_two_worktrees_changed_in_one_file_conflicts_only_where_git_cannot_merge_it(team: Team) -> None:
    first, second = await team.start(Isolation.WORKTREE), await team.start(Isolation.WORKTREE)
    first.shell("sed -i '2s/line/mine/' long.py")
    second.shell("sed -i '28s/line/yours/' long.py")
    await second.until_overlap(OverlapKind.FOLDER, "long.py")
    merging = await second.overlaps()
    second.shell("sed -i '2s/line/other/' long.py")
    await first.until_overlap(OverlapKind.WORKTREES, "long.py")
    told = await _told(team.services, first, second)
    second.shell("sed -i '2s/other/line/' long.py")

    async def is_mergeable() -> bool:
        kinds = [one.kind for one in await first.overlaps()]
        return kinds == [OverlapKind.FOLDER]

    await until(is_mergeable)
    await first.end()
    await second.end()

    assert [one.kind for one in merging] == [OverlapKind.FOLDER]
    assert told == 2 * [(second.task.number, TaskEventType.RUNS_OVERLAP)]


@pytest.mark.proof
async def test_one_that_discards_the_edits_of_another_is_named_and_they_come_back(team: Team) -> None:
    first, second = await team.start(), await team.start()
    first.edit("app.py", "precious")
    first.edit("new.py", "kept")
    await first.until_done(2)
    await first.until_seen("new.py")
    second.edit("b.py", "yours")
    await second.until_done(1)
    await second.until_seen("b.py")
    second.shell("git -c user.name=n -c user.email=e stash -q")
    of = await first.until_overlap(OverlapKind.DISCARDED, "app.py")
    by = await second.until_overlap(OverlapKind.DISCARDED, "app.py")
    head = await first.until_overlap(OverlapKind.CHECKOUT)
    await first.end()
    await second.end()
    assert (first.folder / "app.py").read_text() == "one\n"
    plan = await team.services.changes.plan_redo(first.task.id)
    await team.services.changes.undo(first.execution, plan, actor=USER_ACTOR)

    assert (of.is_own_doing, of.other_number) == (False, second.task.number)
    assert (by.is_own_doing, by.other_number) == (True, first.task.number)
    assert (head.is_own_doing, head.other_number) == (False, second.task.number)
    assert (first.task.number, TaskEventType.EDITS_DISCARDED) in await _told(team.services, first, second)
    assert (first.folder / "app.py").read_text() == "one\nprecious\n"
    assert (first.folder / "b.py").read_text() == "two\n"


@pytest.mark.proof
async def test_a_branch_that_one_switches_under_another_is_said_on_both_cards(team: Team) -> None:
    first, second = await team.start(), await team.start()
    git(first.folder, "branch", "fix")
    first.edit("app.py", "mine")
    await first.until_done(1)
    second.shell("git switch -q fix")
    of = await first.until_overlap(OverlapKind.CHECKOUT)
    by = await second.until_overlap(OverlapKind.CHECKOUT)
    await first.end()
    await second.end()

    assert (of.is_own_doing, of.detail) == (False, "main → fix")
    assert (by.is_own_doing, by.detail) == (True, "main → fix")


@pytest.mark.proof
async def test_a_worker_that_is_killed_finds_again_what_overlaps_and_tells_it_once(
    team: Team, live_home: LiveHome
) -> None:
    first, second = await team.start(), await team.start()
    first.edit("app.py", "mine")
    second.edit("app.py", "yours")
    await first.until_overlap(OverlapKind.FOLDER, "app.py")
    live_home.kill_worker()
    await team.services.queue.deliver()
    first.edit("b.py", "mine")
    await first.until_done(2)
    await first.until_seen("b.py")
    second.shell("echo yours >> b.py")
    await second.until_overlap(OverlapKind.FOLDER, "app.py", "b.py")
    told = await _told(team.services, first, second)
    await first.end()
    await second.end()

    assert told == [(second.task.number, TaskEventType.RUNS_OVERLAP)]


async def test_a_call_that_becomes_known_late_is_read_though_another_run_has_a_newer_one(tmp_path: Path) -> None:
    async with stored(tmp_path) as kept:
        runs, now = [], datetime.now(UTC)
        for _ in range(2):
            task = await kept.add_task("a task", "true")
            run = await kept.add_run(task.id, ExecutionStatus.RUNNING)
            runs.append(run)
        async with kept.services.database.writing() as connection:
            await connection.execute(update(tables.executions).values(working_dir=str(tmp_path)))
        ingest = IngestRepository(kept.services.database)
        watch = OverlapWatch(
            overlaps=OverlapRepository(kept.services.database), paths=kept.services.paths, clock=SystemClock()
        )

        async def say(run: Execution, path: str, at: datetime) -> None:
            started = ToolStartedNews(tool_ref=path, tool_name="Write", type=OperationType.WRITE, target=path)
            ended = ToolFinishedNews(tool_ref=path, status=OperationStatus.SUCCESS)
            news = tuple(TimedNews(at_ms=round(at.timestamp() * 1000), news=one) for one in (started, ended))
            stretch = ExecutionProgress(execution_id=run.id, from_offset=0, to_offset=1, news=news)
            await ingest.record([stretch], at=now)

        await watch.look()
        await say(runs[0], "of the first", now)
        await watch.look()
        await say(runs[1], "of the second", begun := now - timedelta(seconds=30))
        async with kept.services.database.writing() as connection:
            of_history = update(tables.operations).where(tables.operations.c.execution_id == runs[1].id)
            made = history_id("of the second", at_ms=round(begun.timestamp() * 1000), place=0)
            await connection.execute(of_history.values(id=made))
        for _ in range(2):
            await watch.look()

        named = {run: set(trace.named) for run, trace in watch._runs.items()}
    assert named == {runs[0].id: {"of the first"}, runs[1].id: {"of the second"}}


def test_git_is_asked_about_so_many_pairs_in_one_look_and_of_what_failed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = OverlapWatch(overlaps=None, paths=find_paths({"AGENTMON_HOME": str(tmp_path)}), clock=SystemClock())  # type: ignore[arg-type] # nothing is read
    ones = [RunTrace(place=None, root=tmp_path, changed={"a": FileState(0o100644, str(at))}) for at in range(4)]  # type: ignore[arg-type] # as above
    asked: list[object] = []

    def ask(one: object, _: object, states: object) -> tuple[object, set[str]]:
        asked.append(one)
        return ({} if one is ones[1] else states), {"a", "gone"}

    monkeypatch.setattr(watch, "_ask_for_conflicts", ask)

    def look(allowed: int) -> list[set[str]]:
        watch._merges_left = allowed
        return [set(watch._conflicts(one, ones[0], {"a"})) for one in ones[1:]]

    assert look(2) == [{"a"}, {"a"}, set()]
    assert look(0) == [{"a"}, {"a"}, set()]
    assert look(9) == 3 * [{"a"}]
    assert asked == [ones[1], ones[2], ones[1], ones[3]]


def test_a_look_that_failed_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    a_repository(project, **_FILES)
    store = SnapshotStore(tmp_path / "snapshots")
    before = store.take(project)
    place = LivePlace(ExecutionId("e"), TaskId("t"), 1, str(project), datetime.now(UTC), before.id, True, True)
    run = RunTrace(place, project)
    folder = TouchedFolder(project, since=datetime.now(UTC))
    (project / "app.py").write_text("mine\n")
    with monkeypatch.context() as failing:
        failing.setattr(store, "take", Mock(side_effect=SnapshotError("no room")))
        with pytest.raises(SnapshotError):
            folder.look(store, [run])
    had_news = run.has_news
    folder.look(store, [run])

    assert had_news
    assert not run.has_news
    assert run.touched == {"app.py"}
