"""Agents in their own screens that send their usage while they work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.domain.costs import CostFilter, CostGroup
from tests.agents.test_states import start_own_screen

if TYPE_CHECKING:
    from tests.agents.drive import Drive, Row

pytestmark = pytest.mark.agents


@pytest.mark.only("claude", "codex", "gemini")
async def test_what_telemetry_told_gives_way_to_what_the_file_tells(drive: Drive) -> None:
    await drive.services.settings.set("costs.import_history", "false", actor=drive.services.actor)
    await drive.services.settings.set("costs.live_telemetry", "true", actor=drive.services.actor)
    started = await start_own_screen(drive, "go #mock:plain")

    async def answers() -> list[Row]:
        return [row for row in drive.rows("llm_interactions", started) if row["response_tokens"]]

    told = await drive.until(answers, "an answer by telemetry")
    assert all(row["is_provisional"] and row["key"].startswith("otel:") for row in told)
    assert "127.0.0.1" not in "".join(drive.texts(started, "assistant"))

    await drive.services.costs.import_history()

    rows = drive.rows("llm_interactions", started)
    assert rows
    assert not any(row["is_provisional"] for row in rows)
    (session,) = {row["session_id"] for row in rows}
    sums = await drive.services.costs.report(CostGroup.SESSION, CostFilter())
    assert [bucket.group for bucket in sums.buckets] == [session]
    assert sums.totals.answers == len(rows)
