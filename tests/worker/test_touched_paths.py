"""Who changed a file in a folder that several runs share: told by calls and times, and by nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.ids import ExecutionId, TaskId, new_id
from agentmon.domain.operations import OperationStatus, OperationType
from agentmon.store.overlaps import Call, LivePlace
from agentmon.worker import touched_paths
from agentmon.worker.touched_paths import RunTrace, TouchedFolder
from agentmon.workspaces.snapshots import SnapshotStore
from tests.workspaces.worktree_place import a_repository, commit, git, write

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.worker.touched_paths import Discard, HeadMove

_LONG_AGO = timedelta(minutes=10)


@dataclass
class Stage:
    """Runs in one folder, whose calls a test makes up."""

    root: Path
    store: SnapshotStore
    runs: list[RunTrace] = field(default_factory=list)

    def add(self, *, reports_calls: bool = True, folder: str = "") -> RunTrace:
        place = LivePlace(
            execution_id=ExecutionId(new_id()),
            task_id=TaskId(new_id()),
            number=len(self.runs) + 1,
            folder=str(self.root / folder),
            started_at=datetime.now(UTC) - _LONG_AGO,
            before_snapshot=self.store.take(self.root).id,
            is_isolated=False,
            reports_calls=reports_calls,
        )
        self.runs.append(RunTrace(place, self.root))
        return self.runs[-1]

    def look(self, folder: TouchedFolder) -> tuple[list[HeadMove], list[Discard]]:
        folder.look(self.store, self.runs)
        return folder.settle(self.runs)


def call(
    run: RunTrace,
    target: str,
    *,
    of: OperationType = OperationType.WRITE,
    ago: timedelta = timedelta(),
    status: OperationStatus = OperationStatus.SUCCESS,
) -> Call:
    """Let a run make a call that began so long ago, and that goes on while it is pending."""
    began_at = datetime.now(UTC) - ago
    ended_at = None if status is OperationStatus.PENDING else began_at
    made = Call(new_id(), run.place.execution_id, of, target, status, began_at, ended_at)
    run.take_in([made])
    return made


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(touched_paths, "_CALLS_ARE_KNOWN_AFTER_S", 0.0)
    root = a_repository(tmp_path / "r", a="1\n", b="2\n", c="3\n")
    return Stage(root.resolve(), SnapshotStore(tmp_path / "store"))


def test_a_file_is_of_the_only_run_that_could_have_written_it(stage: Stage) -> None:
    one, two = stage.add(), stage.add()
    folder = TouchedFolder(stage.root, since=datetime.now(UTC))
    stage.look(folder)
    call(one, "make", of=OperationType.EXECUTE, status=OperationStatus.PENDING)
    call(two, "ls", of=OperationType.EXECUTE, ago=_LONG_AGO)
    write(stage.root, a="new\n")
    stage.look(folder)

    assert (set(one.touched), set(two.touched)) == ({"a"}, set())


def test_of_two_that_could_have_it_is_of_the_one_that_names_the_file_and_else_of_nobody(stage: Stage) -> None:
    one, two = stage.add(), stage.add()
    folder = TouchedFolder(stage.root, since=datetime.now(UTC))
    stage.look(folder)
    call(one, "sed -i s/1/x/ a", of=OperationType.EXECUTE, status=OperationStatus.PENDING)
    call(two, "make", of=OperationType.EXECUTE, status=OperationStatus.PENDING)
    write(stage.root, a="x\n", b="y\n")
    stage.look(folder)

    assert (set(one.touched), set(two.touched)) == ({"a"}, set())


def test_what_a_person_writes_while_no_run_does_anything_is_of_no_run(stage: Stage) -> None:
    one, two = stage.add(), stage.add()
    folder = TouchedFolder(stage.root, since=datetime.now(UTC))
    stage.look(folder)
    write(stage.root, a="mine\n")
    stage.look(folder)

    assert not one.touched | two.touched


def test_a_program_of_which_no_call_is_known_may_have_written_at_any_time(stage: Stage) -> None:
    one, two = stage.add(reports_calls=False), stage.add()
    folder = TouchedFolder(stage.root, since=datetime.now(UTC))
    stage.look(folder)
    write(stage.root, a="x\n")
    stage.look(folder)

    assert (set(one.touched), set(two.touched)) == ({"a"}, set())


@pytest.mark.parametrize("status", [OperationStatus.FAILED, OperationStatus.BLOCKED, OperationStatus.CANCELLED])
def test_a_call_that_came_to_nothing_touches_nothing(stage: Stage, status: OperationStatus) -> None:
    one = stage.add()
    made = call(one, "a", status=OperationStatus.PENDING)
    assert one.touched == {"a"}
    one.take_in([made._replace(status=status, finished_at=datetime.now(UTC))])

    assert one.touched == frozenset()


def test_what_is_as_before_again_is_touched_no_more_until_it_is_named_again(stage: Stage) -> None:
    one = stage.add()
    folder = TouchedFolder(stage.root, since=datetime.now(UTC))
    call(one, "a")
    write(stage.root, a="new\n")
    stage.look(folder)
    assert one.touched == {"a"}
    write(stage.root, a="1\n")
    stage.look(folder)
    assert one.touched == frozenset()
    call(one, "a")

    assert one.touched == {"a"}


@pytest.mark.parametrize(
    ("target", "paths"),
    [
        ("a", {"a"}),
        ("{root}/deep/x y", {"deep/x y"}),
        ("../r/a", {"a"}),
        ("a, deep/b", {"a", "deep/b"}),
        ("-dash", {"-dash"}),
        ("ü-漢", {"ü-漢"}),
        ("new\nline", {"new\nline"}),
        ("n" * 200, {"n" * 200}),
        ("/etc/passwd", {"/etc/passwd"}),
        ("", set()),
        (".", set()),
        ("a\0b", set()),
    ],
)
def test_a_call_names_paths_as_agents_write_them(stage: Stage, target: str, paths: set[str]) -> None:
    one = stage.add()
    call(one, target.format(root=stage.root) if "{root}" in target else target)

    assert one.touched == paths


def test_a_name_with_a_comma_is_one_path_where_there_is_such_a_file(stage: Stage) -> None:
    write(stage.root, **{"a, b": "1"})
    one = stage.add()
    call(one, "a, b")

    assert one.touched == {"a, b"}


def test_a_link_to_the_folder_is_the_folder(stage: Stage) -> None:
    link = stage.root.parent / "link"
    link.symlink_to(stage.root)
    one = stage.add()
    call(one, f"{link}/a")

    assert one.touched == {"a"}


def test_a_call_that_comes_late_counts_for_what_was_found_before(stage: Stage) -> None:
    one, two = stage.add(), stage.add()
    folder = TouchedFolder(stage.root, since=datetime.now(UTC))
    stage.look(folder)
    wrote_at = datetime.now(UTC)
    write(stage.root, a="new\n")
    stage.look(folder)
    call(two, "make", of=OperationType.EXECUTE, ago=datetime.now(UTC) - wrote_at)
    stage.look(folder)

    assert (set(one.touched), set(two.touched)) == (set(), {"a"})


def test_who_takes_edits_of_another_back_is_known_with_the_snapshot_that_has_them(stage: Stage) -> None:
    one, two = stage.add(), stage.add()
    folder = TouchedFolder(stage.root, since=datetime.now(UTC))
    stage.look(folder)
    call(one, "a", ago=timedelta(seconds=1))
    write(stage.root, a="precious\n")
    stage.look(folder)
    call(two, "git checkout a", of=OperationType.EXECUTE, status=OperationStatus.PENDING)
    write(stage.root, a="1\n")
    _, discards = stage.look(folder)

    assert [(found.of, found.by, found.paths) for found in discards] == [(one, two, ("a",))]
    kept = stage.store.git(discards[0].snapshots[0]).run("cat-file", "blob", f"{discards[0].snapshots[0].tree}:a")
    assert kept == b"precious\n"
    assert one.touched == frozenset()


def test_who_takes_its_own_edits_back_discards_nothing(stage: Stage) -> None:
    one, two = stage.add(), stage.add()
    folder = TouchedFolder(stage.root, since=datetime.now(UTC))
    stage.look(folder)
    call(one, "a")
    write(stage.root, a="x\n")
    stage.look(folder)
    call(one, "git checkout a", of=OperationType.EXECUTE, status=OperationStatus.PENDING)
    write(stage.root, a="1\n")
    _, discards = stage.look(folder)

    assert discards == []
    assert not one.touched | two.touched


@pytest.mark.parametrize(
    ("words", "detail"),
    [
        (("switch", "--quiet", "--create", "fix"), "main → fix"),
        (("reset", "--quiet", "--hard", "HEAD~1"), "reset to HEAD~1"),
        (("checkout", "--quiet", "HEAD~1"), "main → HEAD~1"),
    ],
)
def test_head_is_followed(stage: Stage, words: tuple[str, ...], detail: str) -> None:
    one, two = stage.add(), stage.add()
    write(stage.root, a="2\n")
    commit(stage.root, "second")
    folder = TouchedFolder(stage.root, since=datetime.now(UTC))
    stage.look(folder)
    call(two, f"git {' '.join(words)}", of=OperationType.EXECUTE, status=OperationStatus.PENDING)
    git(stage.root, *words)
    moves, _ = stage.look(folder)

    assert [(move.by, move.detail) for move in moves] == [(two, detail)]
    assert one.touched == frozenset()
