"""The files of a run, which the run's own program may replace, remove or let grow."""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.runners.execution_folder import ExecutionFolder, open_at_once, read_whole
from agentmon.runners.screens.rules import NO_RULES
from agentmon.worker.prompt_delivery import Delivery, DeliveryStep, DeliverySteps
from agentmon.worker.screen_files import ScreenFiles
from tests.waiting import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TITLES: Any = SimpleNamespace(rules=[SimpleNamespace(is_for_title=True)])
_HUGE_BYTES = 300_000_000
_KIB_PER_UNIT = 1 if sys.platform == "linux" else 1024


@pytest.fixture
def folder(tmp_path: Path) -> ExecutionFolder:
    folder = ExecutionFolder(tmp_path / "e1")
    folder.make()
    return folder


def ends(work: Callable[[], object]) -> bool:
    """Return whether the work comes to an end, good or bad."""
    has_ended = threading.Event()

    def run() -> None:
        try:
            work()
        except OSError:
            pass
        finally:
            has_ended.set()

    threading.Thread(target=run, daemon=True).start()
    return has_ended.wait(DEADLINE_S / 10)


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("environment.json", ExecutionFolder.read_environment),
        ("environment.json.partial", lambda folder: folder.write_environment({})),
        ("launch-environment.json.partial", lambda folder: folder.write_launch_environment({})),
        ("spec.json.partial", lambda folder: folder.write_spec({})),
        ("control.jsonl", lambda folder: folder.has_command("c1")),
        ("control.jsonl", lambda folder: folder.append_command({"id": "c1"})),
        ("finalizing.jsonl", lambda folder: folder.append_end_step({})),
        ("journal.jsonl", lambda folder: ScreenFiles(folder, NO_RULES, {}).read()),
        ("output.log", lambda folder: ScreenFiles(folder, _TITLES, {})._read_titles(0, 100)),
        ("deliveries.json", lambda folder: DeliverySteps(folder, 0).read()),
        ("deliveries.json", lambda folder: DeliverySteps(folder, 0).write(Delivery(key="prompt", text=""))),
        ("deliveries.json.partial", lambda folder: DeliverySteps(folder, 0).write(Delivery(key="prompt", text=""))),
    ],
)
def test_a_pipe_in_the_place_of_a_file_holds_no_thread(
    folder: ExecutionFolder, name: str, work: Callable[[ExecutionFolder], object]
) -> None:
    os.mkfifo(folder.path / name)

    assert ends(lambda: work(folder))


def test_only_a_regular_file_is_opened(folder: ExecutionFolder) -> None:
    os.mkfifo(folder.journal)
    # With somebody at its other end a pipe would be read as the file that it pretends to be.
    writer = os.open(folder.journal, os.O_RDWR)
    os.write(writer, b'{"id": "forged"}\n')

    with pytest.raises(OSError, match="not a file"):
        open_at_once(folder.journal)

    os.close(writer)


def test_a_pipe_where_a_file_is_being_written_is_no_hindrance(folder: ExecutionFolder) -> None:
    for name in ("spec.json.partial", "deliveries.json.partial"):
        os.mkfifo(folder.path / name)

    folder.write_spec({"attempt": 0})
    steps = DeliverySteps(folder, 0)
    steps.write(Delivery(key="prompt", text="x", step=DeliveryStep.PASTED))

    assert json.loads(folder.spec.read_bytes()) == {"attempt": 0}
    assert steps.read() == {"prompt": (DeliveryStep.PASTED, 0)}
    assert {path.stat().st_mode & 0o777 for path in folder.path.iterdir()} == {0o600}


@pytest.mark.parametrize("has_crashed", [False, True])
def test_what_a_program_made_in_the_place_of_an_earlier_try_is_none(
    folder: ExecutionFolder, monkeypatch: pytest.MonkeyPatch, *, has_crashed: bool
) -> None:
    folder.write_spec({"attempt": 0})
    folder.journal.write_text("of the first try\n")
    (folder.path / "try-1").mkdir()
    (folder.path / "try-1" / "notes").touch()
    was_set_aside = folder.is_of_try(1)
    if has_crashed:
        with monkeypatch.context() as patched:
            patched.setattr("agentmon.runners.execution_folder.new_id", _raise_interrupt)
            with pytest.raises(KeyboardInterrupt):
                folder.set_tries_aside(1)

    folder.set_tries_aside(1)

    assert (was_set_aside, folder.is_of_try(1)) == (False, True)
    assert (folder.path / "try-1" / "journal.jsonl").read_text() == "of the first try\n"
    assert len(list(folder.path.glob("try-1.*/notes"))) == 1
    folder.write_spec({"attempt": 1})
    folder.journal.write_text("of the second try\n")
    folder.set_tries_aside(1)
    assert (folder.is_of_try(1), folder.is_of_try(2)) == (True, False)
    assert folder.journal.read_text() == "of the second try\n"


def _raise_interrupt() -> str:
    raise KeyboardInterrupt


def test_a_huge_file_takes_no_memory_and_its_newest_command_is_found(folder: ExecutionFolder) -> None:
    for path in (folder.environment, folder.control):
        path.touch()
        os.truncate(path, _HUGE_BYTES)
    folder.append_command({"id": "newest", "type": "stop"})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    environment, is_there = folder.read_environment(), folder.has_command("newest")

    grown_kib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // _KIB_PER_UNIT
    assert (environment, is_there, folder.has_command("another")) == (None, True, False)
    assert grown_kib < _HUGE_BYTES // 1024 // 2
    with pytest.raises(OSError, match="large"):
        read_whole(folder.control)
