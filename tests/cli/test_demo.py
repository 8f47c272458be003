from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.cli.demo_place import end_everything, remove_leftovers
from tests.cli.command_lines import CommandLine
from tests.terminals import words_of
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.forks import Forks

pytestmark = pytest.mark.proof
_CARD = b"Publish the pack"
"""What a column has room for."""


@pytest.fixture
def demo_line(forks: Forks) -> Iterator[CommandLine]:
    """A command line whose demos lie in a folder of their own."""
    with CommandLine(Path(tempfile.mkdtemp(prefix="am-")), forks) as command_line:
        place = command_line.folder / "t"
        place.mkdir()
        command_line.environ["TMPDIR"] = str(place)
        yield command_line


def test_the_demo_runs_real_programs_and_leaves_nothing_behind(demo_line: CommandLine) -> None:
    ended = demo_line.run_alone("demo", "--json")

    columns = {column["status"]: column["cards"] for column in ended.document()["columns"]}
    states = {card["title"]: card["state"] for cards in columns.values() for card in cards}
    assert len(states) >= 10
    assert states["Import the products"] == "done"
    assert states["Count the lines of code"] == "done"
    assert states["Watch the queue for a minute"] == "cancelled"
    assert states["Switch to the new queue"] is None
    assert states["Name the products in French"] == "timed out"
    assert states["Count the stock"] == "lost"
    assert states["Check the links of the shop"] == states["Describe every product"] == "cancelled"
    assert states["Collect the reviews"] == states["Close the old shop"] == "cancelled"
    assert [card["waits_for"] for card in columns["blocked"] if card["title"] == "Switch to the new queue"] != [[]]
    _assert_nothing_is_left(demo_line)
    assert not demo_line.home.exists()


def test_a_demo_that_is_told_to_end_leaves_nothing_behind(demo_line: CommandLine) -> None:
    demo = demo_line.start_alone("demo")
    wait_for(lambda: _has_running_program(demo_line))

    demo.send_signal(signal.SIGTERM)
    demo.communicate(timeout=60)

    assert demo.returncode == 128 + signal.SIGTERM
    _assert_nothing_is_left(demo_line)


def test_what_a_killed_demo_left_is_removed_by_the_next_one(demo_line: CommandLine) -> None:
    demo = demo_line.start_alone("demo")
    wait_for(lambda: _has_running_program(demo_line))
    demo.kill()
    demo.communicate(timeout=60)
    left = _processes_in(demo_line)

    removed = subprocess.run(
        [sys.executable, "-P", "-c", "from agentmon.cli.demo_place import remove_leftovers as r; print(len(r()))"],
        env=demo_line.environ,
        capture_output=True,
        check=True,
        timeout=60,
    )

    assert left
    assert removed.stdout == b"1\n"
    _assert_nothing_is_left(demo_line)


def test_a_demo_in_use_is_left_alone_by_another(demo_line: CommandLine) -> None:
    script = (
        "from agentmon.cli.demo_place import DemoPlace, remove_leftovers as remove\n"
        "place = DemoPlace.make()\n"
        "import subprocess, sys\n"
        "other = 'from agentmon.cli.demo_place import remove_leftovers as r; print(len(r()))'\n"
        "subprocess.run([sys.executable, '-P', '-c', other], check=True)\n"
        "print(place.folder.exists(), flush=True)\n"
        "place.remove()\n"
        "print(place.folder.exists())\n"
    )

    ended = subprocess.run(
        [sys.executable, "-P", "-c", script], env=demo_line.environ, capture_output=True, check=True, timeout=60
    )

    assert ended.stdout.split() == [b"0", b"True", b"False"]


def test_a_folder_that_is_only_called_like_a_demo_is_never_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = tmp_path / "agentmon-demo-notes"
    own.mkdir()

    assert remove_leftovers() == []
    assert own.exists()


def test_the_demo_in_a_terminal_shows_the_app_and_is_gone_when_the_terminal_is(demo_line: CommandLine) -> None:
    controller, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (50, 180))
    demo = subprocess.Popen(
        [sys.executable, "-P", "-m", "agentmon", "demo"],
        cwd=demo_line.workspace,
        env=demo_line.environ,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    shown = _read_until(controller, _CARD)

    demo.send_signal(signal.SIGHUP)
    _read_until(controller, b"\x00never")
    demo.wait(60)
    os.close(controller)

    assert _CARD in words_of(shown)
    assert demo.returncode == 128 + signal.SIGHUP
    _assert_nothing_is_left(demo_line)


def test_a_worker_that_is_only_starting_does_not_outlive_its_place(demo_line: CommandLine) -> None:
    script = (
        "import signal, sys\n"
        "from pathlib import Path\n"
        "from agentmon.worker.presence import WorkerLock\n"
        "lock = WorkerLock.take(Path(sys.argv[1]))\n"
        "print('locked', flush=True)\n"
        "sys.stdin.readline()\n"
        "lock.announce(version='1', started_at='')\n"
        "signal.pause()\n"
    )
    starting = subprocess.Popen(
        [sys.executable, "-P", "-c", script, str(demo_line.paths.worker_lock)],
        env=demo_line.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert starting.stdin is not None
    assert starting.stdout is not None
    starting.stdout.readline()
    ending = threading.Thread(target=end_everything, args=(demo_line.paths,))

    ending.start()
    starting.stdin.write(b"\n")
    starting.stdin.flush()
    ending.join(60)

    assert starting.wait(60) == -signal.SIGTERM
    starting.stdin.close()
    starting.stdout.close()


def test_a_worker_on_its_way_brings_no_removed_home_back(demo_line: CommandLine) -> None:
    assert not demo_line.home.exists()

    started = subprocess.run(
        [sys.executable, "-P", "-m", "agentmon.worker", "--background"],
        env=demo_line.environ,
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert started.stderr.decode() == f"error: the folder {demo_line.home} was removed while the worker started\n"
    assert not demo_line.home.exists()


def _read_until(controller: int, wanted: bytes) -> bytes:
    """Return what the terminal was sent until the wanted bytes came or nobody has it open any more."""
    shown = b""
    deadline = time.monotonic() + 60
    while wanted not in words_of(shown) and time.monotonic() < deadline:
        if not select.select([controller], [], [], 0.2)[0]:
            continue
        try:
            shown += os.read(controller, 65536)
        except OSError:
            break
    return shown


def _has_running_program(demo_line: CommandLine) -> bool:
    return any(b"AGENTMON_EXECUTION_ID=" in environ for environ in _processes_in(demo_line).values())


def _processes_in(demo_line: CommandLine) -> dict[int, bytes]:
    """Return the environment of every process that belongs to a demo of this test."""
    place = os.fsencode(demo_line.folder / "t" / "agentmon-demo-")
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environ = (folder / "environ").read_bytes()
        except OSError:
            continue
        if place in environ:
            found[int(folder.name)] = environ
    return found


def _assert_nothing_is_left(demo_line: CommandLine) -> None:
    wait_for(lambda: not _processes_in(demo_line))
    assert list((demo_line.folder / "t").iterdir()) == []


if not Path("/proc/self/environ").exists():
    pytest.skip("needs /proc to see what is left", allow_module_level=True)
