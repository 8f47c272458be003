"""The worker reads conversations of history in the time that is left."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.clock import SystemClock
from agentmon.settings import CostSettings, HistorySettings, load_settings
from agentmon.worker import history_following
from agentmon.worker.history_following import HistoryFollowing
from agentmon.worker.import_progress import ImportProgress, clear_progress, write_progress
from tests.usage.histories import SAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.live_home import LiveHome

COSTS = load_settings(CostSettings, None, {})
HISTORY = load_settings(HistorySettings, None, {})


@pytest.fixture
def history(live_home: LiveHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of a person with captured files, which nobody has looked at yet."""
    del live_home
    monkeypatch.setattr(history_following, "_LONGEST_LOOK_S", 60.0)
    home = tmp_path / "person"
    for name in ("claude", "codex", "gemini"):
        shutil.copytree(SAMPLES / "captured" / name, home / f".{name}")
    monkeypatch.setenv("HOME", str(home))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


def counted(live_home: LiveHome) -> Any:
    with closing(sqlite3.connect(live_home.paths.database_path)) as connection:
        return connection.execute("SELECT count(*) FROM messages").fetchone()[0]


async def look(live_home: LiveHome, costs: Any = COSTS) -> None:
    paths = live_home.paths
    following = HistoryFollowing(paths=paths, clock=SystemClock())
    try:
        await following.look(costs, HISTORY)
    finally:
        following.close()


async def test_conversations_come_in_when_their_answers_are_there(live_home: LiveHome, history: Path) -> None:
    del history
    async with open_services(live_home.paths) as services:
        await look(live_home)
        assert counted(live_home) == 0

        await services.costs.import_history()
        await look(live_home)

        assert counted(live_home) == 46
        listings = await services.sessions.list(None, search="subagent")
        assert [one.match for one in listings] == ["Starting a subagent."]


async def test_an_import_of_answers_is_not_disturbed(live_home: LiveHome, history: Path) -> None:
    del history
    async with open_services(live_home.paths) as services:
        await services.costs.import_history()
        progress = ImportProgress(files=0, all_files=9, read_bytes=0, all_bytes=9, elapsed_s=1.0)
        write_progress(live_home.paths.import_progress, progress)
        await look(live_home)
        assert counted(live_home) == 0

        clear_progress(live_home.paths.import_progress)
        await look(live_home)
        assert counted(live_home) == 46


async def test_who_wants_no_history_gets_no_conversations(live_home: LiveHome, history: Path) -> None:
    del history
    async with open_services(live_home.paths) as services:
        await services.costs.import_history()

        await look(live_home, load_settings(CostSettings, None, {"costs.import_history": False}))

    assert counted(live_home) == 0


@pytest.mark.proof
async def test_long_conversations_are_read_by_a_process_of_its_own(
    live_home: LiveHome, history: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    del history
    monkeypatch.setattr(history_following, "_APART_FROM_BYTES", 1_000)
    caplog.set_level("INFO")
    async with open_services(live_home.paths) as services:
        await services.costs.import_history()

        await look(live_home)

    assert counted(live_home) == 46
    assert "which ended with 0" in caplog.text
