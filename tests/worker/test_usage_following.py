from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.clock import SystemClock
from agentmon.domain.costs import CostFilter, CostGroup
from agentmon.settings import load_cost_settings
from agentmon.worker import usage_following
from agentmon.worker.launch import ensure_worker
from agentmon.worker.repositories import Repositories
from tests.usage.histories import SAMPLES
from tests.waiting import until

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.costs import CostSums
    from tests.live_home import LiveHome

SHOP = ".claude/projects/-home-dev-webshop/aaaaaaaa-1111-4111-8111-000000000001.jsonl"


@pytest.fixture
def history() -> Path:
    """The home of a person that has used Claude Code."""
    home = Path(os.environ["HOME"])
    shutil.copytree(SAMPLES / "claude", home / ".claude")
    shutil.copytree(SAMPLES / "claude-xdg", home / ".config" / "claude")
    return home


async def test_a_worker_imports_what_is_there_and_what_comes(live_home: LiveHome, history: Path) -> None:
    async with open_services(live_home.paths) as services:
        ensure_worker(live_home.paths)

        async def has_answers(count: int) -> bool:
            return (await _totals(services)).answers == count

        await until(lambda: has_answers(26))
        with (history / SHOP).open("a") as transcript:
            transcript.write((SAMPLES / "claude_c07_rest.txt").read_text())
        await until(lambda: has_answers(27))

        agents = {agent.slug: agent.is_active for agent in await services.agents.list(active_only=False)}
        assert "claude" in agents
        assert (await services.sessions.list(None))[0].session.metadata["origin"] == "history"


async def test_a_worker_that_may_not_import_leaves_the_files_alone(
    live_home: LiveHome, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del history
    monkeypatch.setenv("AGENTMON_COSTS_IMPORT_HISTORY", "false")
    async with open_services(live_home.paths) as services:
        await services.settings.set("costs.timezone", "Asia/Kolkata")
        await services.costs.import_history()
        with closing(sqlite3.connect(live_home.paths.database_path)) as connection, connection:
            connection.execute("UPDATE llm_interactions SET price_version = ''")
            connection.execute("DELETE FROM usage_files WHERE path LIKE '%eeeeeeee%'")
        assert _rows(live_home, "SELECT * FROM llm_interactions WHERE price_version = ''")
        ensure_worker(live_home.paths)

        # The look that prices these is one that would have read the file anew.
        async def is_priced() -> bool:
            unlooked = "SELECT * FROM llm_interactions WHERE price_version = '' AND day_local < '2026-01-01'"
            return not _rows(live_home, unlooked)

        await until(is_priced)

    assert not _rows(live_home, "SELECT * FROM usage_files WHERE path LIKE '%eeeeeeee%'")


async def test_a_long_history_is_read_by_a_process_of_its_own(
    live_home: LiveHome, history: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    del history
    monkeypatch.setattr(usage_following, "_APART_FROM_BYTES", 1_000)
    caplog.set_level("INFO")
    async with open_services(live_home.paths) as services:
        repositories = Repositories.over(services.database)
        following = usage_following.UsageFollowing(
            agents=repositories.agents,
            days=repositories.usage_days,
            prices=repositories.usage_prices,
            paths=live_home.paths,
            clock=SystemClock(),
        )
        await following.look(load_cost_settings(None, {}))
        await following.look(load_cost_settings(None, {}))

        assert (await _totals(services)).answers == 26
    assert "which ended with 0" in caplog.text
    assert "answers read of" not in caplog.text


async def test_days_follow_the_setting_of_the_zone(live_home: LiveHome, history: Path) -> None:
    del history
    async with open_services(live_home.paths) as services:
        await services.costs.import_history()
        before = await services.costs.report(CostGroup.DAY, CostFilter())
        await services.settings.set("costs.timezone", "asia/kolkata")
        after = await services.costs.report(CostGroup.DAY, CostFilter())
        asked = await services.costs.report(CostGroup.DAY, CostFilter(), zone_name="UTC")

    assert (before.zone_name, after.zone_name) == ("UTC", "Asia/Kolkata")
    assert before.totals == after.totals == asked.totals
    assert before.buckets == asked.buckets != after.buckets


async def test_an_agent_of_which_only_files_are_there_can_be_used_once_its_program_is(
    live_home: LiveHome, history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del history
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", "/nowhere")
    async with open_services(live_home.paths) as services:
        await services.costs.import_history()
        assert "claude" not in {agent.slug for agent in await services.agents.list()}
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{path}")

    async with open_services(live_home.paths) as services:
        agent = await services.agents.by_slug("claude")

    assert agent.is_active
    assert agent.capabilities


async def _totals(services: Services) -> CostSums:
    return (await services.costs.report(CostGroup.AGENT, CostFilter())).totals


def _rows(home: LiveHome, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(home.paths.database_path)) as connection:
        return connection.execute(query).fetchall()
