"""A long import in a process of its own, which must not outlast the worker that started it."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest

from agentmon.worker.separate_import import SeparateImport

if TYPE_CHECKING:
    from pathlib import Path

    from tests.live_home import LiveHome


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")


async def test_one_that_is_ended_while_it_is_started_ends_at_once(
    live_home: LiveHome, caplog: pytest.LogCaptureFixture
) -> None:
    separate = SeparateImport("costs", "import", "--json", paths=live_home.paths, niceness=1)
    running = asyncio.create_task(separate.run())
    await asyncio.sleep(0)

    separate.end()
    await running

    assert f"which ended with {-signal.SIGTERM}" in caplog.text


async def test_nothing_is_started_after_the_end(live_home: LiveHome, caplog: pytest.LogCaptureFixture) -> None:
    separate = SeparateImport("costs", "import", "--json", paths=live_home.paths, niceness=1)

    separate.end()
    await separate.run()

    assert not caplog.records


async def test_one_that_cannot_be_started_is_told_and_passed_over(
    live_home: LiveHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "nothing"))

    await SeparateImport("costs", "import", paths=live_home.paths, niceness=1).run()

    assert "no process for `agentmon costs import` could be started" in caplog.text
