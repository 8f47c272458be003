from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from agentmon import __version__
from agentmon.domain.background_loops import LoopState
from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import StoreError
from agentmon.screens.background_dialog import BackgroundDialog, BackgroundPicture
from agentmon.store.revision import HEAD_REVISION
from agentmon.widgets.status_line import StatusBar
from agentmon.worker.loop_report import write_loop_report
from tests.idle_worker import idle_worker
from tests.screen_stage import screen_text
from tests.screens.boards import make_place, open_board

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.screens.boards import Place

WORKER = """
import pathlib, signal, sys
from agentmon.worker.presence import WorkerLock
lock = WorkerLock.take(pathlib.Path(sys.argv[1]))
lock.announce(version=sys.argv[2], revision=sys.argv[3], started_at="")
print("ready", flush=True)
signal.pause()
"""


@contextmanager
def worker_process(place: Place) -> Iterator[int]:
    """Give the process number of a worker that does nothing."""
    place.paths.run_dir.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-P", "-c", WORKER, str(place.paths.worker_lock), __version__, HEAD_REVISION]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        try:
            yield worker.pid
        finally:
            worker.kill()


@pytest.mark.proof
async def test_a_halted_worker_and_a_loop_that_fails_are_marked_until_they_go_on(tmp_path: Path) -> None:
    place = make_place(tmp_path)

    def refuse() -> int:
        raise StoreError("the disk fell off", hint="Put it back.")

    with worker_process(place) as pid:
        async with open_board(place) as board:
            bar = board.app.screen.query_one(StatusBar)
            os.kill(pid, signal.SIGSTOP)
            await board.until(lambda: "the worker is halted" in bar.trouble, "the mark")
            await board.press("B")
            await board.until(lambda: f"kill -CONT {pid}" in screen_text(board.app), "what to do")
            await board.press("escape")
            os.kill(pid, signal.SIGCONT)
            await board.until(lambda: not bar.trouble, "no mark any more")

            database = (await board.app.services()).database
            works = database.data_version
            database.data_version = refuse  # type: ignore[method-assign] # a fault
            await board.until(lambda: bar.trouble == "reading changes fails: the disk fell off", "the loop's mark")
            database.data_version = works  # type: ignore[method-assign] # as before
            await board.until(lambda: not bar.trouble, "no mark of the loop")
            toasts = board.toasts

    assert toasts == []


async def test_what_an_earlier_worker_said_of_its_loops_counts_for_nothing(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    loops = (LoopState(name="queue", failures=3, problem="it was full"),)
    with idle_worker(place.paths):
        async with place.services() as (services, _workspace):
            write_loop_report(place.paths.worker_loops, loops, at=SystemClock().now())
            of_this = await services.background.troubles()
            written = place.paths.worker_loops.read_text().replace(f'"pid": {os.getpid()}', '"pid": 1')
            place.paths.worker_loops.write_text(written)
            of_another = await services.background.troubles()

    assert [trouble.what for trouble in of_this] == ["queue fails: it was full"]
    assert of_another == ()


async def test_what_it_cannot_read_is_told(tmp_path: Path) -> None:
    async def refuse() -> BackgroundPicture:
        raise StoreError("the disk fell off", hint="Put it back.")

    async with open_board(make_place(tmp_path)) as board:
        await board.app.push_screen(BackgroundDialog(refuse))
        await board.until(lambda: board.toasts == ["the disk fell off\nPut it back."], "told once")
