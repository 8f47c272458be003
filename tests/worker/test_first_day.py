"""Who opens the app for the first time finds what agents did before."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.app import AgentmonApp
from tests.usage.histories import SAMPLES
from tests.waiting import until

if TYPE_CHECKING:
    from tests.live_home import LiveHome


def counted(live_home: LiveHome, table: str) -> int:
    if not live_home.paths.database_path.exists():
        return 0
    with closing(sqlite3.connect(live_home.paths.database_path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


@pytest.mark.proof
async def test_the_app_lets_a_worker_read_costs_and_conversations(live_home: LiveHome) -> None:
    shutil.copytree(SAMPLES / "captured" / "claude", Path(os.environ["HOME"]) / ".claude")
    app = AgentmonApp(live_home.paths, live_home.project)

    async with app.run_test(size=(80, 24)):

        async def has_all() -> bool:
            return counted(live_home, "llm_interactions") > 0 and counted(live_home, "messages") == 30

        await until(has_all)


async def test_who_wants_no_history_gets_no_worker(live_home: LiveHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTMON_COSTS_IMPORT_HISTORY", "false")
    shutil.copytree(SAMPLES / "captured" / "claude", Path(os.environ["HOME"]) / ".claude")
    app = AgentmonApp(live_home.paths, live_home.project)

    async with app.run_test(size=(80, 24)):

        async def has_asked() -> bool:
            return app._has_asked_for_history and not any(one.name == "queue" for one in app.workers)

        await until(has_asked)

    assert not live_home.paths.worker_lock.exists()
