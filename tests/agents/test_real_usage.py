"""What the real agents wrote down is what their conversations told, each answer once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.domain.costs import CostFilter, CostGroup
from agentmon.services.actors import USER_ACTOR

if TYPE_CHECKING:
    from tests.agents.drive import Drive


@pytest.mark.only("claude", "codex", "gemini", "opencode")
async def test_answers_count_once_whoever_tells_them_first(drive: Drive) -> None:
    ended = [await drive.allow_all_until_over(await drive.start("go #mock:tools"))]
    if drive.agent.slug != "gemini":
        # It keeps no conversation that it could go on with here.
        sent = await drive.services.conversations.send(ended[0].task_id, "again #mock:plain", actor=USER_ACTOR)
        ended.append(await drive.until_over(sent.execution))

    await drive.services.costs.import_history()

    rows = [row for one in ended for row in drive.rows("llm_interactions", one)]
    assert not any(row["is_provisional"] for row in rows)
    assert all(row["source_file_id"] is not None for row in rows)
    assert [len(drive.rows("llm_interactions", one)) for one in ended] == [3, 1][: len(ended)]
    assert len({row["session_id"] for row in rows}) == 1
    sums = (await drive.services.costs.report(CostGroup.AGENT, CostFilter())).totals
    assert sums.answers == len(rows)
    by_execution = await drive.services.costs.report(CostGroup.EXECUTION, CostFilter())
    assert {bucket.group for bucket in by_execution.buckets} == {one.id for one in ended}
    for one in ended:
        found = await drive.services.executions.get(one.id)
        bucket = next(bucket for bucket in by_execution.buckets if bucket.group == one.id)
        assert found.tokens_used == bucket.sums.total_tokens > 0

    drive.services.paths.prices_file.write_text(
        '[[price]]\nmodel = "*"\ninput = 1\noutput = 2\ncache_read = 1\ncache_write = 1\ncache_write_1h = 1\n'
    )
    await drive.services.costs.reprice()

    priced = await drive.services.costs.report(CostGroup.EXECUTION, CostFilter())
    assert {bucket.group: bucket.sums.known_cost_nano for bucket in priced.buckets} == {
        one.id: (await drive.services.executions.get(one.id)).cost_nano for one in ended
    }
    assert all(bucket.sums.known_cost_nano for bucket in priced.buckets)
    session = await drive.services.sessions.find(rows[0]["session_id"])
    assert session.total_cost_nano == priced.totals.cost_nano
