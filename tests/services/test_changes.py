"""What a run changed is read and taken back as its own, whatever else happened in its folder."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.domain.errors import ConflictError, NotFoundError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.services.actors import USER_ACTOR
from agentmon.store.changes import ChangeRepository
from agentmon.workspaces import undoing
from agentmon.workspaces.comparison import compare
from agentmon.workspaces.snapshots import SnapshotStore
from tests.stored_runs import Stored, stored

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agentmon.domain.executions import Execution
    from agentmon.services.changes import RunChanges


class Place:
    """A folder in which a run wrote two files while somebody else wrote a third."""

    def __init__(self, kept: Stored, root: Path) -> None:
        self.kept = kept
        self.root = root
        self.changes = kept.services.changes
        self.rows = ChangeRepository(kept.services.database)
        self.store = SnapshotStore(kept.services.paths.snapshots_dir)
        self.run: Execution

    async def fill(self) -> None:
        for name in ("one", "two", "theirs"):
            (self.root / name).write_text(f"{name}\n")
        before = await asyncio.to_thread(self.store.take, self.root)
        for name in ("one", "two", "theirs"):
            (self.root / name).write_text(f"{name} changed\n")
        after = await asyncio.to_thread(self.store.take, self.root)
        found = await asyncio.to_thread(compare, self.store, before, after)
        task = await self.kept.add_task()
        run, now = await self.kept.add_run(task.id), datetime.now(UTC)
        await self.rows.begin(run.id, snapshot_id=before.id, note="", at=now)
        own = [one for one in found if one.path != "theirs"]
        await self.rows.record(run.id, snapshot_id=after.id, root=str(self.root), changes=own, at=now)
        self.run = await self.kept.services.executions.get(run.id)

    async def found(self) -> RunChanges:
        return await self.changes.of_run(self.run)

    def texts(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted(self.root.iterdir())}


CHANGED = {"one": "one changed\n", "theirs": "theirs changed\n", "two": "two changed\n"}
UNDONE = {"one": "one\n", "theirs": "theirs changed\n", "two": "two\n"}


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with stored(tmp_path) as kept:
        root = tmp_path / "work"
        root.mkdir()
        made = Place(kept, root)
        await made.fill()
        yield made


async def test_an_undo_leaves_alone_what_another_run_wrote_meanwhile_and_so_does_the_way_back(place: Place) -> None:
    plan = await place.changes.plan_undo(await place.found())
    await place.changes.undo(place.run, plan, actor=USER_ACTOR)
    undone = place.texts()
    again = await place.changes.plan_redo(place.run.task_id)
    await place.changes.undo(place.run, again, actor=USER_ACTOR)

    assert [step.path for step in plan.steps] == ["one", "two"]
    assert (undone, place.texts()) == (UNDONE, CHANGED)
    assert b"theirs" not in await place.changes.patch_of_run(await place.found())


async def test_only_files_of_the_run_are_named(place: Place) -> None:
    for path in ("theirs", "nowhere"):
        with pytest.raises(NotFoundError):
            await place.changes.plan_undo(await place.found(), paths=[path])

    plan = await place.changes.plan_undo(await place.found(), paths=["two"])

    assert [step.path for step in plan.steps] == ["two"]


async def test_what_a_run_changed_is_still_listed_when_its_snapshots_are_gone(place: Place) -> None:
    await asyncio.to_thread(place.store.prune, [])
    found = await place.found()

    assert [one.path for one in found.files] == ["one", "two"]
    assert found.note
    for work in (place.changes.patch_of_run, place.changes.plan_undo):
        with pytest.raises(NotFoundError):
            await work(found)


@pytest.mark.parametrize("status", [ExecutionStatus.RUNNING, ExecutionStatus.QUEUED])
async def test_a_later_try_of_a_run_is_looked_at_now_and_not_undone_before_it_is_over(
    place: Place, status: ExecutionStatus
) -> None:
    (place.root / "two").write_text("two once more\nand more\n")
    place.kept.set_status(place.run.id, status)
    place.run = await place.kept.services.executions.get(place.run.id)
    found = await place.found()

    assert found.is_live == (status is ExecutionStatus.RUNNING)
    assert {one.path: one.lines_added for one in found.files}["two"] == (2 if found.is_live else 1)
    with pytest.raises(ConflictError):
        await place.changes.plan_undo(found)


async def test_what_could_not_be_looked_at_in_the_end_is_not_taken_for_work_that_goes_on(place: Place) -> None:
    place.kept.set_columns(place.run.id, after_snapshot=None, snapshot_note="the disk was full")
    place.run = await place.kept.services.executions.get(place.run.id)

    with pytest.raises(NotFoundError, match="the disk was full"):
        await place.found()


@pytest.mark.parametrize(("status", "is_refused"), [(ExecutionStatus.RUNNING, True), (ExecutionStatus.QUEUED, False)])
@pytest.mark.parametrize("where", ["", "sub"])
async def test_nothing_is_undone_under_a_run_that_works_there_or_around(
    place: Place, tmp_path: Path, status: ExecutionStatus, is_refused: bool, where: str
) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    other = await place.kept.add_run((await place.kept.add_task("other")).id, status)
    place.kept.set_columns(other.id, working_dir=str(link / "work" / where if where else link))
    plan = await place.changes.plan_undo(await place.found())

    if is_refused:
        with pytest.raises(ConflictError):
            await place.changes.undo(place.run, plan, actor=USER_ACTOR)
    else:
        await place.changes.undo(place.run, plan, actor=USER_ACTOR)

    assert place.texts() == (CHANGED if is_refused else UNDONE)


async def test_no_agent_takes_changes_back(place: Place) -> None:
    agent = Actor(type=ActorType.AGENT, id="some run")
    plan = await place.changes.plan_undo(await place.found())

    with pytest.raises(ConflictError):
        await place.changes.undo(place.run, plan, actor=agent)
    with pytest.raises(ConflictError):
        await place.changes.take_back_hunk(await place.found(), "one", b"", actor=agent)
    assert place.texts() == CHANGED


async def test_lines_that_were_taken_back_come_back_too(place: Place) -> None:
    found = await place.found()
    hunk = await place.changes.patch_of_run(found, ["one"])
    await place.changes.take_back_hunk(found, "one", hunk, actor=USER_ACTOR)
    taken = place.texts()
    with pytest.raises(ConflictError):
        await place.changes.take_back_hunk(found, "one", hunk, actor=USER_ACTOR)
    await place.changes.undo(place.run, await place.changes.plan_redo(place.run.task_id), actor=USER_ACTOR)

    assert (taken, place.texts()) == (CHANGED | {"one": "one\n"}, CHANGED)


async def test_an_undo_that_was_broken_off_is_finished_before_the_next_is_planned(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = await place.changes.plan_undo(await place.found())

    def killed(_: Any) -> list[str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("agentmon.workspaces.undo_journal.Journal.run", killed)
        with pytest.raises(KeyboardInterrupt):
            undoing.apply(plan)
    next_plan = await place.changes.plan_undo(await place.found())

    assert (next_plan.steps, place.texts()) == ((), UNDONE)
