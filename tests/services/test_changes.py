"""What a run changed is read and taken back as its own, whatever else happened in its folder."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.domain.board import ColumnRequest
from agentmon.domain.clock import SystemClock
from agentmon.domain.conversation import ToolStartedNews
from agentmon.domain.diffs import Diff, DiffSide, LineSpan
from agentmon.domain.errors import ConflictError, NotFoundError, SnapshotError
from agentmon.domain.events import Actor, ActorType, EventType, TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import ExecutionProgress, TimedNews
from agentmon.domain.operations import OperationType
from agentmon.domain.standing import Standing
from agentmon.domain.task_status import TaskStatus
from agentmon.services.actors import USER_ACTOR
from agentmon.store.changes import ChangeRepository
from agentmon.store.ingest import IngestRepository
from agentmon.worker.change_recording import ChangeRecorder, note_undone
from agentmon.workspaces import undoing
from agentmon.workspaces.comparison import compare
from agentmon.workspaces.snapshots import SnapshotStore
from agentmon.workspaces.three_way import Side, UndoAction
from tests.conversing import conversing
from tests.stored_runs import Stored, stored

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agentmon.domain.executions import Execution
    from agentmon.services.changes import RunChanges
    from agentmon.workspaces.undoing import Undone, UndoPlan


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
        await self.rows.record(run.id, snapshot_id=after.id, changes=own, at=now)
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


@pytest.mark.parametrize("what", ["gone", "damaged"])
async def test_what_a_run_changed_is_still_listed_when_its_snapshots_are_lost(place: Place, what: str) -> None:
    if what == "gone":
        await asyncio.to_thread(place.store.prune, [])
    else:
        for content in place.store.folder.glob("objects-*/??/*"):
            content.chmod(0o600)
            content.write_bytes(b"")
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


async def undos(place: Place) -> list[dict[str, object]]:
    """Return what the audit trail says of undos, oldest first."""
    entries = await place.kept.services.audit.of_task(place.run.task_id)
    return [dict(entry.payload) for entry in entries if entry.event_type is TaskEventType.CHANGES_UNDONE]


@pytest.mark.parametrize("killed", ["before it is written down", "behind that", "by an earlier version"])
async def test_an_undo_whose_command_was_killed_is_written_down_once_and_can_be_taken_back(
    place: Place, monkeypatch: pytest.MonkeyPatch, killed: str
) -> None:
    plan = await place.changes.plan_undo(await place.found())

    async def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def die_too(*_: object) -> None:
        raise KeyboardInterrupt

    def nameless(plan: UndoPlan, note: dict[str, Any]) -> Undone:
        return undoing.apply(plan, {name: one for name, one in note.items() if name != "undo_id"})

    with monkeypatch.context() as broken:
        if killed == "by an earlier version":
            broken.setattr("agentmon.services.changes.apply", nameless)
        if killed == "behind that":
            broken.setattr("agentmon.services.changes.forget", die_too)
        else:
            broken.setattr("agentmon.services.changes.note_undone", die)
        with pytest.raises(KeyboardInterrupt):
            await place.changes.undo(place.run, plan, actor=USER_ACTOR)
    recorder = ChangeRecorder(changes=place.rows, paths=place.kept.services.paths, clock=SystemClock())
    await recorder.recover()
    await recorder.recover()

    (written,) = await undos(place)
    assert (written["execution_id"], written["files"]) == (place.run.id, 2)
    assert written.get("is_late", False) == (killed != "behind that")
    assert place.texts() == UNDONE
    await place.changes.undo(place.run, await place.changes.plan_redo(place.run.task_id), actor=USER_ACTOR)
    assert place.texts() == CHANGED


async def test_an_undo_that_another_start_writes_down_meanwhile_is_on_the_trail_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = await place.changes.plan_undo(await place.found())
    recorder = ChangeRecorder(changes=place.rows, paths=place.kept.services.paths, clock=SystemClock())

    async def note_late(*arguments: Any, **more: Any) -> bool:
        await recorder.recover()
        return await note_undone(*arguments, **more)

    monkeypatch.setattr("agentmon.services.changes.note_undone", note_late)
    await place.changes.undo(place.run, plan, actor=USER_ACTOR)

    assert len(await undos(place)) == 1
    assert await place.changes.recover() == ()


async def test_an_undo_that_cannot_be_finished_is_said_and_is_finished_later(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = await place.changes.plan_undo(await place.found())

    def full(*_: object, **__: object) -> list[str]:
        raise OSError(28, "No space left on device", "one")

    with monkeypatch.context() as broken:
        broken.setattr("agentmon.workspaces.undo_journal.Journal.run", full)
        with pytest.raises(SnapshotError, match="follows"):
            await place.changes.undo(place.run, plan, actor=USER_ACTOR)
        (found,) = await place.changes.recover()
        assert (found.root, found.snapshots) == (place.root, None)
        assert "No space left" in found.problem
        with pytest.raises(SnapshotError):
            await place.changes.plan_undo(await place.found())
    assert await undos(place) == []

    (found,) = await place.changes.recover()

    assert not found.problem
    assert place.texts() == UNDONE
    assert len(await undos(place)) == 1


async def test_what_became_of_the_lines_is_read_from_the_files_of_today(place: Place) -> None:
    found = await place.found()
    diff = Diff(await place.changes.patch_of_run(found))
    names = {file.path: diff.hunk_digests(file)[0] for file in diff.files}
    untouched = await place.changes.standings(found, diff)

    (place.root / "one").write_text("one\n")
    (place.root / "two").write_text("mine\n")
    (place.root / "theirs").unlink()

    assert untouched == {}
    assert await place.changes.standings(found, diff) == {
        names["one"]: Standing.TAKEN_BACK,
        names["two"]: Standing.CHANGED,
    }
    shutil.rmtree(place.root)
    with pytest.raises(SnapshotError):
        await place.changes.standings(found, diff)


async def test_a_side_is_chosen_for_each_conflict_by_itself(place: Place) -> None:
    for name in ("one", "two"):
        (place.root / name).write_text("mine\n")
    found = await place.found()
    plan = await place.changes.plan_undo(found)
    shown = [Diff(await place.changes.step_patch(plan, step)) for step in plan.steps]
    chosen = await place.changes.plan_undo(found, choices={"one": Side.BEFORE, "two": Side.NOW})
    await place.changes.undo(place.run, chosen, actor=USER_ACTOR)

    assert [step.action for step in plan.steps] == [UndoAction.CONFLICT] * 2
    assert [diff.lines(diff.files[0].hunks[0]).content(0) for diff in shown] == [b"mine", b"mine"]
    assert [diff.lines(diff.files[0].hunks[0]).content(1) for diff in shown] == [b"one", b"two"]
    assert place.texts() == {"one": "one\n", "theirs": "theirs changed\n", "two": "mine\n"}
    assert await place.changes.is_last_undone(place.run)


async def test_a_look_that_finds_nothing_new_gives_back_what_is_known(place: Place) -> None:
    place.kept.set_status(place.run.id, ExecutionStatus.RUNNING)
    run = await place.kept.services.executions.get(place.run.id)
    first = await place.changes.of_run(run)
    second = await place.changes.of_run(run, known=first)
    (place.root / "one").write_text("more\n")
    third = await place.changes.of_run(run, known=second)

    assert second is first
    assert third is not first
    assert {one.path for one in third.files} == {one.path for one in first.files}


async def call_that_wrote(place: Place, path: str, *, content: str, why_not: str = "") -> None:
    """Write down a call of the run by what it does to a file now."""
    before = await asyncio.to_thread(place.store.take, place.root)
    (place.root / path).write_text(content)
    after = await asyncio.to_thread(place.store.take, place.root)
    found = [replace(one, can_undo=not why_not, why_not=why_not) for one in compare(place.store, before, after)]
    number = len(await place.kept.services.conversations.operations(execution_id=place.run.id))
    ref, now = f"0:call{number}", datetime.now(UTC)
    place.kept.set_status(place.run.id, ExecutionStatus.RUNNING)
    news = ToolStartedNews(tool_ref=f"call{number}", tool_name="Edit", type=OperationType.WRITE, target=path)
    told = TimedNews(at_ms=round(now.timestamp() * 1000), news=news)
    stretch = ExecutionProgress(execution_id=place.run.id, from_offset=number, to_offset=number + 1, news=(told,))
    await IngestRepository(place.kept.services.database).record([stretch], at=now)
    place.kept.set_status(place.run.id, ExecutionStatus.SUCCEEDED)
    await place.rows.record_call(place.run.id, ref, [(one, "@@ -1 +1 @@\n") for one in found], note="", at=now)


async def test_one_call_is_taken_back_alone_and_sums_count_nothing_twice(place: Place) -> None:
    await call_that_wrote(place, "one", content="by the first call\n")
    await call_that_wrote(place, "two", content="by the second call\n")
    run = await place.kept.services.executions.get(place.run.id)
    counted = await place.changes.of_run(run)
    calls = await place.changes.of_calls(run)
    diffs = await place.kept.services.conversations.events(execution_id=run.id, types=(EventType.DIFF,))
    request = ColumnRequest(status=TaskStatus.TODO, limit=1)
    (card,) = (await place.kept.services.board.page(place.kept.workspace, [request])).columns[TaskStatus.TODO].cards

    plan = await place.changes.plan_undo_of_call(run, 1)
    await place.changes.undo(run, plan, call=calls[0][0].id, actor=USER_ACTOR)
    texts = place.texts()
    await place.changes.undo(run, await place.changes.plan_redo(run.task_id), actor=USER_ACTOR)

    assert [one.path for one in counted.files] == ["one", "two"]
    assert card.changes_text == "+2 −2 · 2 files"
    assert [(call.number, [one.path for one in files]) for call, files in calls] == [(1, ["one"]), (2, ["two"])]
    assert [call.changes and call.changes.paths for call, _ in calls] == [("one",), ("two",)]
    assert [one.payload["tool_ref"] for one in diffs] == ["call0", "call1"]
    assert texts == CHANGED | {"two": "by the second call\n"}
    assert place.texts() == CHANGED | {"one": "by the first call\n", "two": "by the second call\n"}


async def test_what_a_call_needs_to_be_taken_back_outlives_the_snapshots_around_it(place: Place) -> None:
    await call_that_wrote(place, "one", content="in between\n")
    await call_that_wrote(place, "one", content="at last\n")
    run = await place.kept.services.executions.get(place.run.id)
    kept, refs = await place.rows.kept_snapshots(), await place.rows.kept_contents()
    await asyncio.to_thread(partial(place.store.prune, kept, refs=refs))

    for number in (2, 1):
        plan = await place.changes.plan_undo_of_call(run, number)
        await place.changes.undo(run, plan, actor=USER_ACTOR)

    assert place.texts() == CHANGED


@pytest.mark.parametrize("number", [0, 1, 2])
async def test_a_call_that_is_not_known_exactly_is_refused_with_the_reason(place: Place, number: int) -> None:
    await call_that_wrote(place, "one", content="x\n", why_not="it was changed again")
    run = await place.kept.services.executions.get(place.run.id)

    with pytest.raises(NotFoundError, match="it was changed again" if number == 1 else f"no call {number}"):
        await place.changes.plan_undo_of_call(run, number)


async def test_a_task_is_taken_back_as_one_undo(place: Place) -> None:
    before = await asyncio.to_thread(place.store.take, place.root)
    (place.root / "one").write_text("one changed\nby the second run\n")
    (place.root / "new").write_text("new\n")
    after = await asyncio.to_thread(place.store.take, place.root)
    second, now = await place.kept.add_run(place.run.task_id), datetime.now(UTC)
    await place.rows.begin(second.id, snapshot_id=before.id, note="", at=now)
    found = await asyncio.to_thread(compare, place.store, before, after)
    await place.rows.record(second.id, snapshot_id=after.id, changes=found, at=now)
    (place.root / "two").write_text("two changed\nand a person\n")
    runs = [await place.kept.services.executions.get(one) for one in (second.id, place.run.id)]

    plan = await place.changes.plan_undo_of_task(runs)
    await place.changes.undo(runs[0], plan, actor=USER_ACTOR)
    texts = place.texts()
    await place.changes.undo(runs[0], await place.changes.plan_redo(place.run.task_id), actor=USER_ACTOR)

    assert [(step.path, step.action.value) for step in plan.steps] == [
        ("new", "remove"),
        ("one", "restore"),
        ("two", "merge" if "two" not in {one.path for one in plan.left_alone} else "conflict"),
    ]
    assert texts["one"] == "one\n"
    assert "new" not in texts
    assert place.texts()["one"] == "one changed\nby the second run\n"
    assert place.texts()["two"] == "two changed\nand a person\n"


async def test_comments_are_sent_once_with_the_lines_that_they_are_about(tmp_path: Path) -> None:
    async with conversing(tmp_path) as talk:
        changes, root = talk.services.changes, Path(talk.workspace.root_path)
        task = await talk.add_task()
        run = await talk.begin(task.id)
        before = await asyncio.to_thread(SnapshotStore(talk.services.paths.snapshots_dir).take, root)
        rows = ChangeRepository(talk.services.database)
        await rows.begin(run.id, snapshot_id=before.id, note="", at=datetime.now(UTC))
        (root / "made").write_text("one\ntwo\n")
        found = await changes.of_run(await talk.services.executions.get(run.id))
        diff = Diff(await changes.patch_of_run(found))
        names = diff.hunk_digests(diff.files[0])
        comment = await changes.comment_at(found, LineSpan("made", DiffSide.NEW, 2, 2))
        await changes.write_comment(replace(comment, text="why?"), actor=USER_ACTOR)
        (unsent,) = await changes.comments_of(task.id)
        await changes.send_comments(task, actor=USER_ACTOR)
        (sent,) = await changes.comments_of(task.id)
        told = [command.payload for command in await talk.commands(run.id)]
        with pytest.raises(NotFoundError):
            await changes.send_comments(task, actor=USER_ACTOR)

    assert comment.digest in names
    assert (unsent.sent_at, sent.sent_at is None) == (None, False)
    assert told == [{"text": "made:2\n> two\nwhy?"}]
