from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.clock import SystemClock
from agentmon.domain.costs import CostFilter, CostGroup
from agentmon.settings import CostSettings, load_settings
from agentmon.worker import usage_following
from agentmon.worker.launch import ensure_worker
from agentmon.worker.repositories import Repositories
from tests.usage.histories import SAMPLES
from tests.waiting import until

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.costs import CostSums
    from tests.live_home import LiveHome

NEW_ANSWER = (
    json.dumps(
        {
            "type": "assistant",
            "sessionId": "cccccccc-1111-4111-8111-000000000009",
            "timestamp": "2026-11-20T10:00:00.000Z",
            "message": {
                "id": "msg_new",
                "model": "claude-opus-4-8",
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 5, "output_tokens": 50},
            },
        }
    )
    + "\n"
)
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


@pytest.mark.proof
async def test_what_is_written_is_found_without_a_look_at_all_files(
    live_home: LiveHome, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_following, "_LOOK_BESIDE_WATCH_EVERY_S", 3_600.0)
    before = set(threading.enumerate())
    async with open_services(live_home.paths) as services:
        following = _following(live_home, services)
        settings = load_settings(CostSettings, None, {})

        async def has_answers(count: int) -> bool:
            await following.look(settings)
            return (await _totals(services)).answers == count and following.is_watching

        try:
            await until(lambda: has_answers(26))
            with (history / SHOP).open("a") as transcript:
                transcript.write((SAMPLES / "claude_c07_rest.txt").read_text())
            await following.rest()
            await until(lambda: has_answers(27))
            new = history / ".claude/projects/-new/cccccccc-1111-4111-8111-000000000009.jsonl"
            new.parent.mkdir()
            new.write_text(NEW_ANSWER)
            await until(lambda: has_answers(28))
            with new.open("a") as transcript:
                transcript.write(NEW_ANSWER.replace("msg_new", "msg_newer"))
            await until(lambda: has_answers(29))
        finally:
            await following.close()
    assert "watch folders of agents" not in {thread.name for thread in set(threading.enumerate()) - before}


@pytest.mark.proof
async def test_a_burst_of_writes_is_imported_twice_a_second_at_most(live_home: LiveHome, history: Path) -> None:
    async with open_services(live_home.paths) as services:
        following = _following(live_home, services)
        settings = load_settings(CostSettings, None, {})
        begun = time.monotonic()
        looks = 0
        try:
            async with asyncio.timeout(60):
                while not following.is_watching or (await _totals(services)).answers < 31:
                    await following.rest()
                    await following.look(settings)
                    looks += 1
                    number = min(looks, 5)
                    new = history / ".claude/projects/-home-dev-webshop" / f"{number}.jsonl"
                    new.write_text(NEW_ANSWER.replace("msg_new", f"msg_{number}"))
        finally:
            await following.close()
    assert looks <= 2 * (time.monotonic() - begun) + 2


async def test_a_worker_that_may_not_import_leaves_the_files_alone(
    live_home: LiveHome, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del history
    monkeypatch.setenv("AGENTMON_COSTS_IMPORT_HISTORY", "false")
    async with open_services(live_home.paths) as services:
        await services.settings.set("costs.timezone", "Asia/Kolkata", actor=services.actor)
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


@pytest.mark.proof
async def test_a_long_history_is_read_by_a_process_of_its_own(
    live_home: LiveHome, history: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    del history
    monkeypatch.setattr(usage_following, "_APART_FROM_BYTES", 1_000)
    caplog.set_level("INFO")
    async with open_services(live_home.paths) as services:
        following = _following(live_home, services)
        await following.look(load_settings(CostSettings, None, {}))
        await following.look(load_settings(CostSettings, None, {}))
        await following.close()

        assert (await _totals(services)).answers == 26
    assert "which ended with 0" in caplog.text
    assert "answers read of" not in caplog.text


async def test_a_look_that_is_given_up_before_the_process_has_begun_does_not_wait_for_a_long_history(
    live_home: LiveHome, history: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    del history
    monkeypatch.setattr(usage_following, "_APART_FROM_BYTES", 1_000)
    caplog.set_level("INFO")

    async def is_importing() -> bool:
        return any(task.get_name() == "import usage" for task in asyncio.all_tasks())

    async with open_services(live_home.paths) as services:
        following = _following(live_home, services)
        looking = asyncio.create_task(following.look(load_settings(CostSettings, None, {})))
        await until(is_importing)
        looking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await looking
        await following.close()

    assert "which ended with 0" not in caplog.text
    assert "answers read of" not in caplog.text


async def test_days_follow_the_setting_of_the_zone(live_home: LiveHome, history: Path) -> None:
    del history
    async with open_services(live_home.paths) as services:
        await services.costs.import_history()
        before = await services.costs.report(CostGroup.DAY, CostFilter())
        await services.settings.set("costs.timezone", "asia/kolkata", actor=services.actor)
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


def _following(home: LiveHome, services: Services) -> usage_following.UsageFollowing:
    repositories = Repositories.over(services.database)
    return usage_following.UsageFollowing(
        agents=repositories.agents,
        days=repositories.usage_days,
        prices=repositories.usage_prices,
        paths=home.paths,
        clock=SystemClock(),
    )


async def _totals(services: Services) -> CostSums:
    return (await services.costs.report(CostGroup.AGENT, CostFilter())).totals


def _rows(home: LiveHome, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(home.paths.database_path)) as connection:
        return connection.execute(query).fetchall()
