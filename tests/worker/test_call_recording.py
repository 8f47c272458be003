"""What tool calls change is recorded as they are told of, beside what the run does as a whole."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.clock import SystemClock
from agentmon.domain.conversation import AskClosedNews, AskKind, AskNews, AskOutcome, ToolFinishedNews, ToolStartedNews
from agentmon.domain.errors import StoreError
from agentmon.domain.events import EventType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.executions import ExecutionProgress, TimedNews
from agentmon.domain.ids import ExecutionId
from agentmon.domain.operations import OperationStatus, OperationType
from agentmon.runners.screens.states import ScreenState
from agentmon.store.changes import ChangeRepository
from agentmon.store.ingest import IngestRepository
from agentmon.worker import call_recording
from agentmon.worker.call_recording import CallRecorder, _OwnScreen
from agentmon.worker.watching import Watched
from agentmon.workspaces.snapshots import SnapshotStore
from tests.stored_runs import stored
from tests.waiting import until
from tests.worker.test_watching import claim
from tests.workspaces.folders import git

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from agentmon.domain.changes import FileChange
    from agentmon.domain.conversation import ConversationNews
    from agentmon.domain.operations import Operation
    from tests.stored_runs import Stored


class Calling:
    """A run whose agent is the test: what it says is recorded, and told to the recorder."""

    def __init__(self, kept: Stored, root: Path, watched: Watched) -> None:
        self.kept = kept
        self.root = root
        self.watched = watched
        self.store = SnapshotStore(kept.services.paths.snapshots_dir)
        self.rows = ChangeRepository(kept.services.database)
        self.ingest = IngestRepository(kept.services.database)
        self.recorder = self.new_recorder()
        self.offset = 0

    def new_recorder(self) -> CallRecorder:
        return CallRecorder(changes=self.rows, store=lambda: self.store, clock=SystemClock(), watch=None)

    async def begin(self, *, is_own_screen: bool = False) -> None:
        snapshot = await asyncio.to_thread(self.store.take, self.root)
        self.recorder.begin(self.watched.id, snapshot, str(self.root), is_own_screen=is_own_screen)

    async def say(self, news: ConversationNews) -> None:
        self.recorder.note(self.watched, [await self.write_down(news, time.time())])

    async def write_down(self, news: ConversationNews, at: float) -> TimedNews:
        told = TimedNews(at_ms=round(at * 1000), news=news)
        stretch = ExecutionProgress(
            execution_id=self.watched.id, from_offset=self.offset, to_offset=self.offset + 1, news=(told,)
        )
        self.offset += 1
        recorded = await self.ingest.record([stretch], at=datetime.now(UTC))
        assert not recorded.problems
        return told

    async def record(
        self,
        ref: str,
        target: str = "make",
        kind: OperationType = OperationType.EXECUTE,
        *,
        begun: float,
        ended: float,
    ) -> None:
        """Let the agent's own record tell of a call that is over."""
        started = ToolStartedNews(tool_ref=ref, tool_name=kind.value, type=kind, target=target)
        await self.write_down(started, begun)
        await self.write_down(ToolFinishedNews(tool_ref=ref, status=OperationStatus.SUCCESS), ended)

    async def record_edit(self, text: str, path: str = "made", *, ref: str = "1", told: str | None = None) -> None:
        """Write a file, and let the agent's own record tell of the call: a command, or an edit with its hunks."""
        begun = time.time()
        (self.root / path).write_text(text)
        await self.tick()
        if told is None:
            await self.record(ref, begun=begun, ended=time.time())
            return
        self.recorder._told[f"0:{ref}"] = ((path, told),)
        await self.record(ref, path, OperationType.WRITE, begun=begun, ended=time.time())

    async def until_followed(self, count: int) -> None:
        await self.until_recorded(count, look=self.recorder.follow)

    async def start(self, ref: str, target: str = "make", kind: OperationType = OperationType.EXECUTE) -> None:
        await self.say(ToolStartedNews(tool_ref=ref, tool_name=kind.value, type=kind, target=target))

    async def end(self, ref: str) -> None:
        await self.tick()
        await self.say(ToolFinishedNews(tool_ref=ref, status=OperationStatus.SUCCESS))

    async def tick(self) -> None:
        """Wait until the clock in milliseconds is past the times of all files."""
        begun, probe = time.time(), self.root.parent / "probe"

        async def is_past() -> bool:
            probe.touch()
            return probe.stat().st_ctime > begun + 0.3

        await until(is_past, "the clock of the files")

    async def until_recorded(self, count: int, *, look: Callable[[], Awaitable[object]] | None = None) -> None:
        async def are_recorded() -> bool:
            if look is not None:
                await look()
            calls = await self.kept.services.conversations.operations(execution_id=self.watched.id)
            return sum(one.changes is not None for one in calls) == count

        await until(are_recorded, "the rows of the calls")

    async def calls(self) -> tuple[tuple[Operation, tuple[FileChange, ...]], ...]:
        run = await self.kept.services.executions.get(self.watched.id)
        return await self.kept.services.changes.of_calls(run)

    async def changed(self) -> list[tuple[list[str], str]]:
        found = await self.calls()
        return [([one.path for one in files], call.changes.note if call.changes else "?") for call, files in found]


@pytest.fixture
async def calling(tmp_path: Path) -> AsyncIterator[Calling]:
    async with stored(tmp_path) as kept:
        claimed, folder = await claim(kept)
        root = tmp_path / "work"
        root.mkdir()
        (root / "kept").write_text("one\n")
        execution = replace(claimed.execution, mode=ExecutionMode.STREAM_JSON)
        watched = Watched(
            claimed=replace(claimed, execution=execution), folder=folder, journal_offset=0, start_asked_at=0.0
        )
        yield Calling(kept, root, watched)


@pytest.fixture
def quick_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_recording, "_RECORD_TAKES_S", 0.2)


async def test_what_a_command_changed_is_its_own_and_what_a_person_did_between_is_nobodys(calling: Calling) -> None:
    await calling.begin()
    await calling.start("1")
    (calling.root / "made").write_text("made\n")
    await calling.end("1")
    await calling.until_recorded(1)
    (calling.root / "mine").write_text("a person\n")
    await calling.tick()
    await calling.start("2")
    (calling.root / "made").unlink()
    await calling.end("2")
    await calling.recorder.finish(calling.watched.id)

    assert await calling.changed() == [(["made"], ""), (["made"], "")]
    diffs = await calling.kept.services.conversations.events(execution_id=calling.watched.id, types=(EventType.DIFF,))
    assert [(one.payload["tool_ref"], one.payload["path"], one.payload["change_type"]) for one in diffs] == [
        ("1", "made", "create"),
        ("2", "made", "delete"),
    ]


async def test_a_call_that_waits_for_an_answer_is_at_work_from_that_on(calling: Calling) -> None:
    await calling.begin()
    await calling.start("1")
    await calling.say(
        AskNews(request_id="ask", ask_kind=AskKind.PERMISSION, tool_ref="1", type=OperationType.EXECUTE, title="May I?")
    )
    await calling.tick()
    (calling.root / "mine").write_text("a person\n")
    await calling.tick()
    await calling.say(AskClosedNews(request_id="ask", outcome=AskOutcome.ALLOWED))
    (calling.root / "made").write_text("made\n")
    await calling.end("1")
    await calling.recorder.finish(calling.watched.id)

    assert await calling.changed() == [(["made"], "")]


async def test_commands_that_overlap_have_the_reason_in_the_place_of_changes(calling: Calling) -> None:
    await calling.begin()
    await calling.start("1")
    await calling.start("2")
    (calling.root / "made").write_text("made\n")
    await calling.end("1")
    await calling.end("2")
    await calling.recorder.finish(calling.watched.id)

    found = await calling.changed()
    assert [files for files, _ in found] == [[], []]
    assert all(note for _, note in found)


async def test_calls_that_another_worker_saw_begin_are_not_guessed_and_later_ones_are_told_apart(
    calling: Calling,
) -> None:
    before = await asyncio.to_thread(calling.store.take, calling.root)
    execution = replace(calling.watched.claimed.execution, before_snapshot=before.id)
    calling.watched.claimed = replace(calling.watched.claimed, execution=execution)
    (calling.root / "earlier").write_text("by a call that nobody saw\n")
    await calling.tick()
    await calling.start("1")

    async def is_followed() -> bool:
        place = calling.recorder._places.get(calling.watched.id)
        return place is not None and place.folder.last is not None

    await until(is_followed, "the first look")
    await calling.start("2")
    (calling.root / "made").write_text("made\n")
    await calling.end("2")
    await calling.recorder.finish(calling.watched.id)

    assert await calling.changed() == [([], "?"), (["made"], "")]


async def test_a_folder_that_cannot_be_looked_at_is_said_and_disturbs_nothing(calling: Calling) -> None:
    await calling.begin()
    await calling.start("1")
    calling.root.rename(calling.root.with_name("moved"))
    await calling.say(ToolFinishedNews(tool_ref="1", status=OperationStatus.SUCCESS))
    await calling.recorder.finish(calling.watched.id)

    ((files, note),) = await calling.changed()
    assert files == []
    assert note


@pytest.mark.usefixtures("quick_records")
async def test_calls_that_a_record_tells_when_they_are_over_have_what_was_changed_meanwhile(calling: Calling) -> None:
    await calling.begin(is_own_screen=True)
    begun = time.time()
    (calling.root / "made").write_text("made\n")
    await calling.tick()
    ended = time.time()
    await calling.tick()
    (calling.root / "mine").write_text("a person\n")
    await calling.recorder.follow()
    await calling.record("1", begun=begun, ended=ended)
    await calling.until_followed(1)

    assert await calling.changed() == [(["made"], "")]
    diffs = await calling.kept.services.conversations.events(execution_id=calling.watched.id, types=(EventType.DIFF,))
    assert [one.payload["path"] for one in diffs] == ["made"]


@pytest.mark.usefixtures("quick_records")
async def test_what_was_read_of_a_call_before_it_was_written_down_changes_nothing(calling: Calling) -> None:
    await calling.begin(is_own_screen=True)
    await calling.record_edit("made\n")
    read = await calling.rows.unsettled_calls([calling.watched.id], reads_since=datetime.now(UTC))
    await calling.until_followed(1)
    place = calling.recorder._places[calling.watched.id]

    for call in read:
        calling.recorder._take_call(place, call)

    assert len(read) == 1
    assert place.folder.calls == {}


@pytest.mark.usefixtures("quick_records")
async def test_edits_of_one_file_between_two_looks_are_told_apart_by_the_record(calling: Calling) -> None:
    await calling.begin(is_own_screen=True)
    begun = time.time()
    (calling.root / "kept").write_text("three\n")
    await calling.tick()
    ended = time.time()
    told = {"1": "@@ -1,1 +1,1 @@\n-one\n+two\n", "2": "@@ -1,1 +1,1 @@\n-two\n+three\n"}
    for place, (ref, hunks) in enumerate(told.items()):
        calling.recorder._told[f"0:{ref}"] = (("kept", hunks),)
        times = {"begun": begun + place * 0.01, "ended": ended + place * 0.01}
        await calling.record(ref, "kept", OperationType.WRITE, **times)
    await calling.until_followed(2)

    found = await calling.calls()
    assert [[(one.path, one.can_undo, one.lines_added) for one in files] for _, files in found] == [
        [("kept", True, 1)],
        [("kept", True, 1)],
    ]
    assert found[0][1][0].after_ref == found[1][1][0].before_ref


@pytest.mark.usefixtures("quick_records")
async def test_what_is_not_as_the_record_tells_cannot_be_undone_with_the_call(calling: Calling) -> None:
    await calling.begin(is_own_screen=True)
    await calling.record_edit("a person\ntwo\n", "kept", told="@@ -1,1 +1,1 @@\n-one\n+two\n")
    await calling.until_followed(1)

    ((_, (change,)),) = await calling.calls()
    assert not change.can_undo
    assert change.why_not


@pytest.mark.proof
@pytest.mark.usefixtures("quick_records")
async def test_what_a_person_changes_while_an_own_screen_asks_is_on_no_call(calling: Calling) -> None:
    await calling.begin(is_own_screen=True)
    begun = time.time()
    calling.recorder.note_state(calling.watched.id, ScreenState.PERMISSION)
    await calling.tick()
    (calling.root / "mine").write_text("a person\n")
    for _ in range(4):
        await calling.tick()
    calling.recorder.note_state(calling.watched.id, ScreenState.WORKING)
    (calling.root / "made").write_text("made\n")
    await calling.tick()
    await calling.record("1", begun=begun, ended=time.time())
    await calling.until_followed(1)

    ((files, note),) = await calling.changed()
    assert files == ["made"]
    assert note


@pytest.mark.usefixtures("quick_records")
async def test_beside_another_run_an_own_screen_leaves_nothing_certain_but_what_is_told(calling: Calling) -> None:
    await calling.begin(is_own_screen=True)
    snapshot = await asyncio.to_thread(calling.store.take, calling.root)
    calling.recorder.begin(ExecutionId("another"), snapshot, str(calling.root))
    await calling.record_edit("made\n")
    await calling.until_followed(1)

    ((files, note),) = await calling.changed()
    assert files == []
    assert note


async def test_the_end_of_an_own_screen_waits_for_its_record(calling: Calling) -> None:
    await calling.begin(is_own_screen=True)
    begun = time.time()
    (calling.root / "made").write_text("made\n")
    await calling.tick()
    ended = time.time()
    finishing = asyncio.create_task(calling.recorder.finish(calling.watched.id))

    async def is_waiting() -> bool:
        return bool(calling.recorder._places[calling.watched.id].folder.waiting)

    await until(is_waiting, "the last look")
    await calling.record("1", begun=begun, ended=ended)
    await finishing

    assert await calling.changed() == [(["made"], "")]


@pytest.mark.usefixtures("quick_records")
async def test_a_later_worker_says_of_calls_before_it_that_nobody_looked(calling: Calling) -> None:
    before = await asyncio.to_thread(calling.store.take, calling.root)
    await calling.record_edit("by a call that nobody saw\n", "earlier")
    calling.recorder.begin(calling.watched.id, before, str(calling.root), is_own_screen=True)
    folder = calling.recorder._places[calling.watched.id].folder
    folder.last, folder.seen_since = None, float("inf")
    await calling.until_followed(1)

    ((files, note),) = await calling.changed()
    assert files == []
    assert note


def test_an_own_screen_pauses_while_it_asks_or_is_free_and_what_nobody_knows_changes_nothing() -> None:
    screen = _OwnScreen(0.0)
    shown = [
        (ScreenState.WORKING, 1.0),
        (ScreenState.PERMISSION, 2.0),
        (None, 3.0),
        (ScreenState.PERMISSION, 4.0),
        (ScreenState.READY, 5.0),
        (ScreenState.WORKING, 9.0),
    ]

    assert [screen.take(state, at) for state, at in shown] == [False, True, False, False, True, True]
    assert screen.pauses == ((2.0, 5.0), (5.0, 8.5))


async def test_two_who_write_a_call_down_at_once_write_it_once(calling: Calling) -> None:
    await calling.begin()
    await calling.start("1")
    (calling.root / "made").write_text("made\n")
    await calling.end("1")
    folder = calling.recorder._places[calling.watched.id].folder
    await asyncio.gather(*(calling.recorder.finish(calling.watched.id) for _ in range(3)))

    assert folder.calls == {}
    assert await calling.changed() == [(["made"], "")]
    diffs = await calling.kept.services.conversations.events(execution_id=calling.watched.id, types=(EventType.DIFF,))
    assert len(diffs) == 1


async def test_a_run_whose_last_words_cannot_be_read_is_forgotten_all_the_same(
    calling: Calling, monkeypatch: pytest.MonkeyPatch
) -> None:
    await calling.begin(is_own_screen=True)

    async def fail(*_: object, **__: object) -> tuple[()]:
        raise StoreError("no database")

    monkeypatch.setattr(calling.rows, "unsettled_calls", fail)
    with pytest.raises(StoreError):
        await calling.recorder.finish(calling.watched.id)

    assert (calling.recorder._places, calling.recorder._folders) == ({}, {})


@pytest.mark.usefixtures("quick_records")
async def test_hunks_that_are_no_text_keep_nothing_from_being_recorded(calling: Calling) -> None:
    await calling.begin(is_own_screen=True)
    await calling.record_edit("two\n", "kept", told="@@ -1,1 +1,1 @@\n-one\n+\ud83d\n")
    await calling.until_followed(1)

    assert [files for files, _ in await calling.changed()] == [["kept"]]


@pytest.mark.usefixtures("quick_records")
async def test_an_ignored_file_that_a_record_tells_late_is_not_kept_as_it_became(calling: Calling) -> None:
    git(calling.root, "init", "-q")
    (calling.root / ".gitignore").write_text("*.env\n")
    (calling.root / "a.env").write_text("one\n")
    await calling.tick()
    await calling.begin(is_own_screen=True)
    begun = time.time()
    (calling.root / "a.env").write_text("two\n")
    await calling.tick()
    await calling.record("1", "a.env", OperationType.READ, begun=begun, ended=begun)
    await calling.record("2", "a.env", OperationType.WRITE, begun=begun, ended=time.time())
    await calling.until_followed(1)
    begun = time.time()
    (calling.root / "a.env").write_text("three\n")
    await calling.tick()
    await calling.record("3", "a.env", OperationType.WRITE, begun=begun, ended=time.time())
    await calling.recorder.finish(calling.watched.id)

    found = [change for _, changes in await calling.calls() for change in changes]
    assert [change.can_undo for change in found] == [False, True], "what was there before the first is not known"
    assert found[0].after_ref == found[1].before_ref


async def test_a_run_of_whose_calls_nobody_hears_is_beside_it_where_its_name_for_the_folder_is_in_it(
    calling: Calling, tmp_path: Path
) -> None:
    (calling.root / "sub").mkdir()
    link = tmp_path / "link"
    link.symlink_to(calling.root)
    snapshot = await asyncio.to_thread(calling.store.take, calling.root)
    watch = SimpleNamespace(ids=frozenset({calling.watched.id}), find=lambda _: calling.watched)
    calling.recorder._watch = watch  # type: ignore[assignment] # only what it is asked
    calling.recorder.begin(ExecutionId("heard"), snapshot, str(link / "sub"))
    folder = calling.recorder._places[ExecutionId("heard")].folder
    found = []
    for working_dir in (calling.root, calling.root / "sub", link, tmp_path, tmp_path / "other"):
        claimed = calling.watched.claimed
        execution = replace(claimed.execution, working_dir=str(working_dir))
        calling.watched.claimed = replace(claimed, execution=execution)
        found.append(calling.recorder._has_unheard(folder))

    assert found == [True, True, True, False, False]
