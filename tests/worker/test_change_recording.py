"""What runs change in their folders is recorded, whatever made the change and whoever dies meanwhile."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import threading
import time
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from agentmon.bootstrap import open_services
from agentmon.domain.changes import ChangeType
from agentmon.domain.clock import SystemClock
from agentmon.domain.conversation import ToolFinishedNews, ToolStartedNews
from agentmon.domain.errors import NoRoomError, NotFoundError
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import ExecutionEnding, ExecutionProgress, TimedNews
from agentmon.domain.operations import ArtifactKind, OperationStatus, OperationType
from agentmon.services.actors import USER_ACTOR
from agentmon.store import tables
from agentmon.store.changes import ChangeRepository
from agentmon.store.ingest import IngestRepository
from agentmon.worker.change_recording import ChangeRecorder, first_began_at
from agentmon.worker.watching import Watched
from agentmon.workspaces.snapshots import SnapshotStore, taken_at
from tests.live_home import add_command, run_to_end, until_started
from tests.stored_runs import stored
from tests.waiting import DEADLINE_S, until
from tests.worker.test_watching import claim

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Workspace
    from agentmon.workspaces.snapshots import Snapshot
    from tests.live_home import LiveHome


@pytest.fixture
async def services(live_home: LiveHome) -> AsyncIterator[Services]:
    async with open_services(live_home.paths) as services:
        yield services


@pytest.fixture
async def repository(services: Services, live_home: LiveHome) -> Workspace:
    """A workspace in git, with two files and a commit."""
    project = live_home.project
    (project / "a.txt").write_text("one\n")
    (project / "b.txt").write_text("two\n")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "first"]):
        await git(project, *words)
    return await services.workspaces.open(project)


async def git(folder: Path, *words: str, data: bytes = b"") -> None:
    await asyncio.to_thread(partial(subprocess.run, ["git", "-C", str(folder), *words], input=data, check=True))


async def changed(services: Services, execution: Execution) -> dict[str, ChangeType]:
    found = await services.changes.of_run(await services.executions.get(execution.id))
    return {one.path: one.change_type for one in found.files}


async def test_what_a_shell_command_did_is_recorded_with_its_end(services: Services, repository: Workspace) -> None:
    task = await add_command(services, repository, "sh", "-c", "rm a.txt; echo more >>b.txt; echo new >c.txt")

    ended = await run_to_end(services, task)

    assert await changed(services, ended) == {
        "a.txt": ChangeType.DELETE,
        "b.txt": ChangeType.MODIFY,
        "c.txt": ChangeType.CREATE,
    }
    assert (ended.changed_files, ended.lines_added, ended.lines_removed) == (3, 2, 1)


async def test_the_changes_of_a_run_are_a_patch_that_git_takes_back(
    services: Services, repository: Workspace, live_home: LiveHome
) -> None:
    task = await add_command(services, repository, "sh", "-c", "rm a.txt; printf 'a\\0b' >c.bin; chmod +x b.txt")
    ended = await run_to_end(services, task)

    patch = await services.changes.patch_of_run(await services.changes.of_run(ended))
    await git(live_home.project, "apply", "--reverse", data=patch)

    assert sorted(path.name for path in live_home.project.iterdir()) == [".git", "a.txt", "b.txt"]
    assert (live_home.project / "b.txt").stat().st_mode & 0o111 == 0


async def test_a_run_that_works_is_looked_at_now(services: Services, repository: Workspace, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    waiting = f"echo new >c.txt; while ! [ -e {gate} ]; do sleep 0.02; done; rm c.txt"
    task = await add_command(services, repository, "sh", "-c", waiting)
    execution = await until_started(services, await services.queue.run(task.id, actor=USER_ACTOR))

    async def is_seen() -> bool:
        return await changed(services, execution) == {"c.txt": ChangeType.CREATE}

    await until(is_seen, "the new file")
    gate.touch()
    await services.queue.wait(execution.id)

    assert await changed(services, execution) == {}


async def test_a_worker_that_dies_keeps_no_run_from_its_changes(
    services: Services, repository: Workspace, live_home: LiveHome, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    task = await add_command(
        services, repository, "sh", "-c", f"rm a.txt; while ! [ -e {gate} ]; do sleep 0.02; done; rm b.txt"
    )
    execution = await until_started(services, await services.queue.run(task.id, actor=USER_ACTOR))
    live_home.kill_worker()
    gate.touch()

    await services.queue.wait(execution.id)

    assert await changed(services, execution) == {"a.txt": ChangeType.DELETE, "b.txt": ChangeType.DELETE}


async def test_what_was_changed_before_a_run_is_none_of_its(
    services: Services, repository: Workspace, live_home: LiveHome
) -> None:
    (live_home.project / "a.txt").write_text("a person was here\n")
    (live_home.project / "mine.txt").write_text("not added\n")
    index = (live_home.project / ".git" / "index").read_bytes()

    ended = await run_to_end(services, await add_command(services, repository, "sh", "-c", "echo more >>a.txt"))

    assert await changed(services, ended) == {"a.txt": ChangeType.MODIFY}
    assert ended.lines_added == 1
    assert (live_home.project / ".git" / "index").read_bytes() == index


async def test_a_plain_program_outside_of_git_is_not_looked_at(services: Services, live_home: LiveHome) -> None:
    workspace = await services.workspaces.open(live_home.project)
    ended = await run_to_end(services, await add_command(services, workspace, "touch", "x"))

    with pytest.raises(NotFoundError):
        await services.changes.of_run(ended)
    assert ended.changed_files is None


async def test_a_folder_that_cannot_be_looked_at_keeps_no_run_from_starting(
    services: Services, repository: Workspace
) -> None:
    services.paths.snapshots_dir.parent.mkdir(parents=True, exist_ok=True)
    services.paths.snapshots_dir.write_text("in the way")

    ended = await run_to_end(services, await add_command(services, repository, "touch", "x"))

    assert ended.status is ExecutionStatus.SUCCEEDED
    assert ended.snapshot_note
    with pytest.raises(NotFoundError):
        await services.changes.of_run(ended)


async def test_a_disk_that_is_full_for_a_moment_costs_no_run_its_changes(
    services: Services, repository: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await asyncio.to_thread(SnapshotStore(services.paths.snapshots_dir).take, Path(repository.root_path))
    (Path(repository.root_path) / "new").touch()
    recorder = ChangeRecorder(changes=None, paths=services.paths, clock=SystemClock())  # type: ignore[arg-type] # not used
    take, tries = SnapshotStore.take, []

    def full_at_first(store: SnapshotStore, root: Path) -> Snapshot:
        tries.append(root)
        if len(tries) == 1:
            raise NoRoomError("the disk is full")
        return take(store, root)

    monkeypatch.setattr(SnapshotStore, "take", full_at_first)
    _, changes = await recorder._compared(before.id)

    assert [change.path for change in changes] == ["new"]


async def test_a_run_that_is_told_to_stop_waits_for_no_look_at_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over, is_looked_at = threading.Event(), threading.Event()

    def look(*_: object, **__: object) -> None:
        is_looked_at.set()
        is_over.wait()

    monkeypatch.setattr(ChangeRecorder, "_look", look)
    async with stored(tmp_path) as place:
        claimed, folder = await claim(place)
        rows = ChangeRepository(place.services.database)
        recorder = ChangeRecorder(changes=rows, paths=place.services.paths, clock=SystemClock())
        beginning = asyncio.create_task(recorder.begin(claimed))
        try:
            await asyncio.to_thread(is_looked_at.wait)
            folder.append_command({"id": "s", "type": "stop"})
            async with asyncio.timeout(DEADLINE_S):
                await beginning
        finally:
            is_over.set()

        assert await rows.began(claimed.execution.id) == (None, claimed.execution.started_at)


async def test_what_calls_wrote_outside_of_git_is_listed_with_size_and_hash(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        claimed, folder = await claim(place)
        root = tmp_path / "work"
        root.mkdir()
        await git(root, "init", "-q")
        (root / ".gitignore").write_text("dist/\n")
        working = replace(claimed.execution, working_dir=str(root))
        claimed = replace(claimed, execution=working)
        watched = Watched(claimed=claimed, folder=folder, journal_offset=0, start_asked_at=0.0)
        recorder = ChangeRecorder(
            changes=ChangeRepository(place.services.database), paths=place.services.paths, clock=SystemClock()
        )
        await recorder.begin(claimed)
        async with place.services.database.writing() as connection:
            await connection.execute(update(tables.executions).values(started_at=SystemClock().now()))
        (root / "dist").mkdir()
        for number, path in enumerate((root / "dist" / "report.md", root / "kept.md", tmp_path / "run.log")):
            path.write_text("made\n")
            started = ToolStartedNews(
                tool_ref=str(number), tool_name="Write", type=OperationType.WRITE, target=str(path)
            )
            ended = ToolFinishedNews(tool_ref=str(number), status=OperationStatus.SUCCESS)
            news = tuple(TimedNews(at_ms=time.time_ns() // 1_000_000, news=one) for one in (started, ended))
            stretch = ExecutionProgress(execution_id=watched.id, from_offset=number, to_offset=number + 1, news=news)
            await IngestRepository(place.services.database).record([stretch], at=SystemClock().now())
        ending = ExecutionEnding(
            status=ExecutionStatus.SUCCEEDED, ended_at=SystemClock().now(), reason=EndReason.EXITED
        )
        for _ in range(2):
            await recorder.record(watched, ending)
        (root / "dist" / "report.md").unlink()

        run = replace(await place.services.executions.get(watched.id), status=ExecutionStatus.SUCCEEDED)
        found = await place.services.changes.of_run(run)
        hashes = await place.services.changes.hashes_of(found.artifacts)
    assert [(one.path, one.kind, one.size_bytes) for one in found.artifacts] == [
        (str(tmp_path / "run.log"), ArtifactKind.LOG, 5),
        (str(root / "dist" / "report.md"), ArtifactKind.NOTE, None),
    ]
    assert list(hashes.values()) == [hashlib.sha256(b"made\n").hexdigest(), None]
    assert [one.path for one in found.files] == ["kept.md"]


async def test_a_later_try_counts_what_others_wrote_since_the_first(tmp_path: Path) -> None:
    async with stored(tmp_path) as kept:
        claimed, _ = await claim(kept)
    first = claimed.execution
    started = first.created_at + timedelta(hours=2)
    taken = f"0123456789abcdef-{round((first.created_at + timedelta(minutes=1)).timestamp() * 1e9)}"

    assert first_began_at(first, taken, started) == started
    later = replace(first, attempt=1)
    assert first_began_at(later, taken, started) == taken_at(taken) < started
    of_long_ago = f"0123456789abcdef-{10**9}"
    assert first_began_at(later, of_long_ago, started) == first.created_at
