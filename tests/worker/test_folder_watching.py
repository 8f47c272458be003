from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agentmon.worker import folder_watching
from agentmon.worker.folder_watching import FolderWatch, distant_folders
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Told:
    """What a watch has told so far."""

    def __init__(self, *folders: Path) -> None:
        self.times = 0
        self.watch = FolderWatch(lambda: map(str, folders), self._count)
        self._paths: set[str] = set()
        self._is_everything = False

    def _count(self) -> None:
        self.times += 1

    def close(self) -> None:
        self.watch.close()

    def has(self, path: Path) -> bool:
        self._paths |= self.watch.take().paths
        return str(path) in self._paths

    def has_everything(self) -> bool:
        self._is_everything |= self.watch.take().is_everything
        return self._is_everything

    def forget(self) -> None:
        self._paths, self._is_everything = set(), False
        self.watch.take()


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_watching, "_FOLDERS_EVERY_S", 0.1)


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    with closing(Told(tmp_path / "one", tmp_path / "two")) as told:
        yield told


def test_a_change_in_a_watched_folder_is_told(tmp_path: Path, told: Told) -> None:
    (tmp_path / "one" / "deep" / "deeper").mkdir(parents=True)
    wait_for(lambda: told.watch.is_complete and told.has_everything())
    file = tmp_path / "one" / "deep" / "deeper" / "file.jsonl"
    wait_for(lambda: file.write_text("a line\n") and told.has(file))


def test_a_folder_that_comes_later_is_watched_too(tmp_path: Path, told: Told) -> None:
    (tmp_path / "one").mkdir()
    wait_for(lambda: told.has_everything() and told.watch.is_complete)
    told.forget()

    (tmp_path / "two").mkdir()

    wait_for(told.has_everything)
    file = tmp_path / "two" / "file.jsonl"
    wait_for(lambda: file.write_text("a line\n") and told.has(file))


def test_a_folder_that_is_made_anew_is_watched_again(tmp_path: Path, told: Told) -> None:
    (tmp_path / "one").mkdir()
    wait_for(lambda: told.has_everything() and told.watch.is_complete)
    (tmp_path / "one").rename(tmp_path / "old")
    (tmp_path / "one").mkdir()
    file = tmp_path / "one" / "file.jsonl"

    wait_for(lambda: file.write_text("a line\n") and told.has(file))


def test_many_changes_are_told_as_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_watching, "_MAX_PATHS", 3)
    (tmp_path / "one").mkdir()
    with closing(Told(tmp_path / "one")) as told:
        wait_for(lambda: told.has_everything() and told.watch.is_complete)
        told.forget()
        for number in range(9):
            (tmp_path / "one" / f"{number}.jsonl").write_text("a line\n")

        wait_for(told.has_everything)


def test_a_burst_is_told_a_few_times_a_second(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with closing(Told(tmp_path / "one")) as told:
        wait_for(lambda: told.has_everything() and told.watch.is_complete)
        files = [tmp_path / "one" / f"{number}.jsonl" for number in range(50)]
        before = told.times
        for _ in range(20):
            for file in files:
                with file.open("a") as opened:
                    opened.write("a line\n")

        wait_for(lambda: all(map(told.has, files)))
        assert told.times - before < 20


def test_watching_that_the_system_refuses_is_said_once_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries = []

    def refuse(*_folders: str, **_options: object) -> None:
        tries.append(1)
        raise OSError(28, "OS file watch limit reached.")

    monkeypatch.setattr("watchfiles.watch", refuse)
    monkeypatch.setattr(folder_watching, "_TRY_AGAIN_AFTER_S", 0.01)
    (tmp_path / "one").mkdir()
    with closing(Told(tmp_path / "one")) as told:
        wait_for(lambda: len(tries) > 2)

        assert not told.watch.is_complete
    assert caplog.text.count("OS file watch limit reached") == 1


def test_a_watch_that_ends_before_its_time_says_that_it_is_not_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(folder_watching, "_FOLDERS_EVERY_S", 0.1)
    is_broken = threading.Event()

    def list_folders() -> list[str]:
        if is_broken.is_set():
            raise LookupError("no folder of the person")
        return [str(tmp_path)]

    with closing(FolderWatch(list_folders, lambda: None)) as watch:
        wait_for(lambda: watch.is_complete)
        is_broken.set()

        wait_for(lambda: not watch.is_complete)
        wait_for(lambda: "watching them ended" in caplog.text)


def test_watching_can_be_forbidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def list_folders() -> list[str]:
        looks.append(1)
        return [str(tmp_path)]

    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "1")
    with closing(FolderWatch(list_folders, lambda: None)) as watch:
        wait_for(lambda: len(looks) > 3)

        assert not watch.is_complete


def test_no_thread_is_left_when_a_watch_is_closed(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    told = Told(tmp_path)
    wait_for(lambda: told.watch.is_complete)

    told.close()
    told.close()

    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(
    ("folder", "is_distant"),
    [
        ("/home/dev", False),
        ("/net/home", True),
        ("/net/home/dev/.claude", True),
        ("/with blank/x", True),
        ("/up", False),
    ],
)
def test_folders_on_file_systems_of_a_network_are_known(tmp_path: Path, folder: str, *, is_distant: bool) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "23 22 0:5 / /net/home rw shared:1 - nfs4 server:/home rw\n"
        "24 22 0:6 / /with\\040blank rw - fuse.sshfs server: rw\n"
        "25 22 0:7 / /up rw - cifs //server/up rw\n"
        "26 25 8:2 / /up rw - xfs /dev/sda2 rw\n"
    )

    assert bool(distant_folders([folder], mounts)) == is_distant


def test_without_a_list_of_mounts_no_folder_is_distant(tmp_path: Path) -> None:
    assert distant_folders([str(tmp_path)], tmp_path / "missing") == []
