"""Which call changed what: its own alone, whatever two runs and a person do, and told apart where calls overlap."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agentmon.domain.errors import NotFoundError
from agentmon.workspaces.attribution import Call, applied_hunks, attribute, changes_between, taken_back
from agentmon.workspaces.comparison import compare_sides, content, renames
from agentmon.workspaces.git import Git
from agentmon.workspaces.snapshots import SnapshotStore
from agentmon.workspaces.three_way import UndoAction
from agentmon.workspaces.undoing import Stretch, apply, plan_all, stretch_between
from tests.workspaces.folders import files_of, make_repository
from tests.workspaces.random_histories import Hand, untouched

if TYPE_CHECKING:
    from agentmon.workspaces.files import FileState
    from agentmon.workspaces.snapshots import Snapshot
    from tests.workspaces.folders import Files

_SEEDS = st.integers(min_value=0, max_value=2**32)
_WHO = st.lists(st.sampled_from(["one", "two", "person"]), min_size=1, max_size=6)
_WORD_LATE_S = 0.2
"""How much later than a call begins its agent's word of it is dated."""


class Done(NamedTuple):
    """A call, and the reference: all files before it, and after."""

    call: Call
    before: Files
    after: Files


class History:
    """A folder in which calls and a person change files, looked at as each call begins and ends."""

    def __init__(self, folder: Path) -> None:
        self.root = make_repository(folder / "root", {"a": b"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "sub/b": b"1\n2\n"})
        self.store = SnapshotStore(folder / "store")
        self.probe = folder / "probe"
        self.since = time.time()
        self.first = self.last = self.store.take(self.root)
        self.calls: list[Call] = []

    def look(self) -> None:
        since, snapshot = time.time(), self.store.take(self.root)
        attribute(self.store, changes_between(self.store, self.last, snapshot, since=self.since), self.calls)
        self.last, self.since = snapshot, since

    def tick(self) -> None:
        """Wait until the times of files have gone on by more than they lag behind the clock."""
        begun = time.time()
        while True:
            self.probe.touch()
            if self.probe.stat().st_ctime > begun + 0.05:
                return

    def begin(self, **values: object) -> Call:
        self.tick()
        call = Call(paths=None, began_at=time.time() + _WORD_LATE_S)
        for name, value in values.items():
            setattr(call, name, value)
        self.calls.append(call)
        return call

    def end(self, call: Call) -> None:
        call.ended_at = time.time()
        self.tick()

    def act(self, seed: int) -> Done:
        self.look()
        before, call = files_of(self.root), self.begin()
        Hand(self.root, seed).act(3)
        self.end(call)
        self.look()
        return Done(call, before, files_of(self.root))

    def files(self, states: dict[str, FileState | None]) -> Files:
        found = {}
        for path, state in states.items():
            if state is not None:
                found[path] = state.mode, self.content(state.ref)
        return found

    def content(self, ref: str) -> bytes:
        """Return a content; one of which nothing but the mode was changed is where git has it."""
        try:
            return content(self.store, ref)
        except NotFoundError:
            return Git(git_dir=self.root / ".git").run("cat-file", "blob", ref)


def _stretch(store: SnapshotStore, call: Call) -> Stretch:
    sides = {path: (one.before, one.after) for path, one in call.found.items() if one.before != one.after}
    return Stretch(sides=sides, renamed=renames(change for change, _ in compare_sides(store, sides)))


def _differing(before: Files, after: Files) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def _each_call_is_taken_back_alone(who: list[str], seed: int) -> None:
    with TemporaryDirectory(prefix="calls-") as folder:
        history = History(Path(folder).resolve())
        done = []
        for turn, name in enumerate(who):
            if name == "person":
                history.tick()
                Hand(history.root, seed + turn).act(2)
            else:
                done.append(history.act(seed + turn))
        today = files_of(history.root)
        for one in reversed(done):
            found = {path: found for path, found in one.call.found.items() if found.before != found.after}
            assert found.keys() == _differing(one.before, one.after)
            assert not any(item.why_not for item in found.values())
            befores = history.files({path: item.before for path, item in found.items()})
            assert befores == {path: one.before[path] for path in found if path in one.before}

            made = plan_all(history.store, history.root, history.first, [_stretch(history.store, one.call)])
            undone = apply(made)
            now, steps = files_of(history.root), {step.path: step for step in made.steps}
            expected = untouched(one.before, one.after, today)
            for path in now.keys() | expected.keys() | today.keys():
                step = steps.get(path)
                if step is not None and not step.is_done:
                    assert now.get(path) == today.get(path), path
                elif step is None or step.action is UndoAction.RESTORE:
                    assert now.get(path) == expected.get(path), path
            apply(plan_all(history.store, history.root, undone.before, [_back(history, undone.before, undone.after)]))
            assert files_of(history.root) == today


def _back(history: History, before: Snapshot, after: Snapshot) -> Stretch:
    return stretch_between(history.store, history.root, before, after)


def _a_task_is_taken_back_whole(who: list[str], seed: int) -> None:
    with TemporaryDirectory(prefix="task-") as folder:
        history = History(Path(folder).resolve())
        store, root = history.store, history.root
        taken, files, runs = [store.take(root)], [files_of(root)], []
        for turn, name in enumerate(who):
            Hand(root, seed + turn).act(4)
            taken.append(store.take(root))
            files.append(files_of(root))
            runs += [turn] if name != "person" else []
        stretches = [stretch_between(store, root, taken[turn], taken[turn + 1]) for turn in reversed(runs)]
        expected = today = files[-1]
        for turn in reversed(runs):
            expected = untouched(files[turn], files[turn + 1], expected)

        made = plan_all(store, root, taken[0], stretches)
        undone = apply(made)

        now, steps = files_of(root), {step.path: step for step in made.steps}
        if "person" not in who:
            assert (now, made.left_alone) == (files[0], ())
        for path in now.keys() | today.keys():
            step = steps.get(path)
            if step is not None and not step.is_done:
                assert now.get(path) == today.get(path), path
        if all(step.is_done and step.action is not UndoAction.MERGE for step in made.steps):
            assert now == expected
        apply(plan_all(store, root, undone.before, [_back(history, undone.before, undone.after)]))
        assert files_of(root) == today


_PROPERTIES = {"call": _each_call_is_taken_back_alone, "task": _a_task_is_taken_back_whole}


@pytest.mark.proof
@pytest.mark.parametrize("name", _PROPERTIES)
@settings(max_examples=3, suppress_health_check=list(HealthCheck), derandomize=True, deadline=None)
@given(who=_WHO, seed=_SEEDS)
@example(who=["one", "person", "one"], seed=4693)
@example(who=["one"], seed=575323)
def test_any_history_of_calls(name: str, who: list[str], seed: int) -> None:
    _PROPERTIES[name](who, seed)


@pytest.mark.proof
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("name", _PROPERTIES)
@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
@given(who=_WHO, seed=_SEEDS)
def test_many_histories_of_calls(name: str, who: list[str], seed: int) -> None:
    _PROPERTIES[name](who, seed)


def test_edits_that_no_look_came_between_are_told_apart_by_their_agents_words(tmp_path: Path) -> None:
    history = History(tmp_path)
    one = history.begin(paths={"a"}, told={"a": ["@@ -1,2 +1,2 @@\n-1\n+one\n 2\n"]})
    command = history.begin()
    (history.root / "a").write_bytes(b"one\n2\n3\n4\n5\n6\n7\n8\n9\n")
    history.end(one)
    two = history.begin(paths={"a"}, told={"a": ["@@ -1,1 +1,1 @@\n-one\n+uno\n", "@@ -9,1 +9,1 @@\n-9\n+nine\n"]})
    (history.root / "a").write_bytes(b"uno\n2\n3\n4\n5\n6\n7\n8\nnine\n")
    (history.root / "made").write_bytes(b"by the command\n")
    history.end(two)
    history.end(command)
    history.look()

    assert [call.found["a"].why_not for call in (one, two)] == ["", ""]
    assert history.files({"a": one.found["a"].after}) == history.files({"a": two.found["a"].before})
    assert command.found.keys() == {"made"}
    made = plan_all(history.store, history.root, history.first, [_stretch(history.store, two)])
    apply(made)
    assert (history.root / "a").read_bytes() == b"one\n2\n3\n4\n5\n6\n7\n8\n9\n"


@pytest.mark.parametrize("rest_s", [0, 2 * _WORD_LATE_S])
def test_a_file_that_is_gone_is_on_the_call_that_named_it_and_not_on_a_later_one(tmp_path: Path, rest_s: float) -> None:
    history = History(tmp_path)
    lines = "".join(f"-{number}\n" for number in range(1, 10))
    told = history.begin(paths={"a"}, told={"a": [f"@@ -1,9 +0,0 @@\n{lines}"]})
    (history.root / "a").unlink()
    history.end(told)
    command = history.begin()
    (history.root / "made").touch()
    history.end(command)
    history.look()
    assert (told.found["a"].after, told.found["a"].why_not) == (None, "")

    named = history.begin(paths={"made"})
    (history.root / "made").unlink()
    history.end(named)
    # The word of it comes before what touches the folder next, or after.
    time.sleep(rest_s)
    later = history.begin()
    (history.root / "more").touch()
    history.end(later)
    history.look()
    assert named.found["made"].why_not
    assert [call.found.keys() for call in (command, later)] == [{"made"}, {"more"}]


def test_what_a_link_took_the_place_of_is_gone_though_the_link_leads_to_such_a_path(tmp_path: Path) -> None:
    history = History(tmp_path)
    (history.root / "other").mkdir()
    for folder in ("sub", "other"):
        (history.root / folder / "b").write_bytes(b"1\n2\n")
    history.look()
    call = history.begin()
    shutil.rmtree(history.root / "sub")
    (history.root / "sub").symlink_to("other")
    history.end(call)
    history.look()

    assert {path: found.why_not for path, found in call.found.items()} == {"sub": "", "sub/b": ""}


def test_hunks_tell_whether_the_last_line_ends() -> None:
    no_end = "\\ No newline at end of file\n"
    assert applied_hunks(b"", f"@@ -0,0 +1,1 @@\n+one\n{no_end}") == b"one"
    assert applied_hunks(b"one", f"@@ -1,1 +1,1 @@\n-one\n{no_end}+two\n") == b"two\n"
    assert applied_hunks(b"one\n", f"@@ -1,1 +1,1 @@\n-one\n+two\n{no_end}") == b"two"
    assert applied_hunks(b"one\ntwo", "@@ -1,1 +1,1 @@\n-one\n+1\n") == b"1\ntwo"


def test_what_two_commands_may_have_made_at_once_is_on_neither(tmp_path: Path) -> None:
    history = History(tmp_path)
    calls = [history.begin(), history.begin()]
    (history.root / "made").touch()
    for call in calls:
        history.end(call)
    history.look()

    assert [(call.found, bool(call.unclear)) for call in calls] == [({}, True), ({}, True)]


def test_what_was_changed_again_before_it_could_be_looked_at_is_said(tmp_path: Path) -> None:
    history = History(tmp_path)
    call = history.begin(paths={"a"}, told={"a": ["@@ -1,1 +1,1 @@\n-1\n+one\n"]})
    (history.root / "a").write_bytes(b"one\n2\n3\n4\n5\n6\n7\n8\n9\n")
    history.end(call)
    (history.root / "a").write_bytes(b"a person\n")
    (history.root / "mine").touch()
    history.look()

    assert {path: bool(found.why_not) for path, found in call.found.items()} == {"a": True}


@pytest.mark.parametrize(
    ("hunks", "after"),
    [
        ("@@ -1,2 +1,3 @@\n a\n+x\n b\n", b"a\nx\nb\nc\n"),
        ("@@ -0,0 +1,1 @@\n+x\n", b"x\na\nb\nc\n"),
        ("@@ -3,1 +3,0 @@\n-c\n", b"a\nb\n"),
        ("@@ -1,1 +1,1 @@\n-a\n+x\n@@ -3,1 +3,1 @@\n-c\n+y\n", b"x\nb\ny\n"),
        ("@@ -1,1 +1,1 @@\n-b\n+x\n", None),
        ("@@ -9,1 +9,1 @@\n-a\n+x\n", None),
        ("no hunk", None),
        ("@@ -1,1 +1,1 @@\n-a\n+\ud83d\n", None),
        (f"@@ -{'9' * 5_000},1 +1,1 @@\n-a\n+x\n", None),
    ],
)
def test_hunks_fit_exactly_or_not_at_all(hunks: str, after: bytes | None) -> None:
    assert applied_hunks(b"a\nb\nc\n", hunks) == after


@pytest.mark.parametrize(
    ("hunks", "before"),
    [
        ("@@ -1,2 +1,2 @@\n-1\n+a\n b\n", b"1\nb\nc\nb\n"),
        ("@@ -7,1 +7,1 @@\n-2\n+c\n", b"a\nb\n2\nb\n"),
        ("@@ -1,1 +1,1 @@\n-x\n+a\n@@ -2,1 +2,1 @@\n-y\n+c\n", b"x\nb\ny\nb\n"),
        ("@@ -1,1 +1,1 @@\n-x\n+b\n", None),
        ("@@ -1,1 +1,0 @@\n-x\n", None),
        ("@@ -1,1 +1,1 @@\n-x\n+\ud83d\n", None),
    ],
)
def test_hunks_are_taken_back_wherever_they_are_but_not_where_that_is_twice(hunks: str, before: bytes | None) -> None:
    assert taken_back(b"a\nb\nc\nb\n", hunks) == before


def test_what_a_person_wrote_before_a_quick_call_could_be_looked_at_is_not_taken_for_certain(tmp_path: Path) -> None:
    history = History(tmp_path)
    (history.root / "a").write_bytes(b"a person\n2\n3\n4\n5\n6\n7\n8\n9\n")
    call = history.begin(paths={"a"}, told={"a": ["@@ -9,1 +9,1 @@\n-9\n+nine\n"]})
    (history.root / "a").write_bytes(b"a person\n2\n3\n4\n5\n6\n7\n8\nnine\n")
    history.end(call)
    history.look()

    assert call.found["a"].why_not


def test_hunks_without_the_right_numbers_of_lines_are_as_told_where_they_give_what_was_there(tmp_path: Path) -> None:
    history = History(tmp_path)
    call = history.begin(paths={"a"}, told={"a": ["@@ -1,1 +1,1 @@\n-9\n+nine\n"]})
    (history.root / "a").write_bytes(b"1\n2\n3\n4\n5\n6\n7\n8\nnine\n")
    history.end(call)
    history.look()

    assert (call.found["a"].why_not, call.unclear) == ("", "")


def test_hunks_that_show_tabs_as_blanks_are_as_told(tmp_path: Path) -> None:
    history = History(tmp_path)
    (history.root / "a").write_bytes(b"all:\r\n\tone\r\n")
    history.look()
    told = {"a": ["@@ -1,2 +1,2 @@\n all:\n-  one\n+  two\n"]}
    call = history.begin(paths={"a"}, told=told, is_told_late=True)
    (history.root / "a").write_bytes(b"all:\r\n\ttwo\r\n")
    history.end(call)
    history.look()

    assert call.found["a"].why_not == ""
    assert history.files({"a": call.found["a"].before})["a"][1] == b"all:\r\n\tone\r\n"


def test_beside_a_run_of_whose_calls_nobody_hears_only_what_is_told_is_certain(tmp_path: Path) -> None:
    history = History(tmp_path)
    told = history.begin(paths={"a"}, told={"a": ["@@ -1,1 +1,1 @@\n-1\n+one\n"]})
    (history.root / "a").write_bytes(b"one\n2\n3\n4\n5\n6\n7\n8\n9\n")
    history.end(told)
    command = history.begin()
    (history.root / "made").touch()
    history.end(command)
    changes = changes_between(history.store, history.first, history.store.take(history.root), since=history.since)
    attribute(history.store, changes, history.calls, is_beside=True)

    assert told.found["a"].why_not == ""
    assert command.found["made"].why_not


def test_what_is_changed_while_its_agent_is_free_is_not_on_a_command_whose_end_nobody_knows(tmp_path: Path) -> None:
    history = History(tmp_path)
    command = history.begin(is_told_late=True)
    history.tick()
    command.pauses = ((command.began_at + 0.01, float("inf")),)
    history.tick()
    while time.time() < command.began_at + 0.1:
        history.tick()
    (history.root / "mine").touch()
    history.look()

    assert command.found == {}
    assert command.unclear
