"""What the real agents wrote down is what their conversations told, each answer once."""

from __future__ import annotations

import pytest

from agentmon.domain.costs import CostFilter, CostGroup
from agentmon.services.actors import USER_ACTOR
from tests.agents.drive import Drive
from tests.agents.test_states import start_own_screen


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
    await drive.services.costs.reprice(actor=drive.services.actor)

    priced = await drive.services.costs.report(CostGroup.EXECUTION, CostFilter())
    assert {bucket.group: bucket.sums.known_cost_nano for bucket in priced.buckets} == {
        one.id: (await drive.services.executions.get(one.id)).cost_nano for one in ended
    }
    assert all(bucket.sums.known_cost_nano for bucket in priced.buckets)
    session = await drive.services.sessions.find(rows[0]["session_id"])
    assert session.total_cost_nano == priced.totals.cost_nano


@pytest.mark.parametrize("capability_key", ["work", "screen"])
async def test_a_failed_call_is_a_row_that_costs_nothing_and_is_no_answer(drive: Drive, capability_key: str) -> None:
    if (drive.agent.slug, capability_key) == ("gemini", "screen"):
        # Gemini CLI writes no error down, and an own screen tells none.
        return
    begin = start_own_screen if capability_key == "screen" else Drive.start
    started = await begin(drive, "go #mock:e400")

    async def is_told() -> bool:
        await drive.services.costs.import_history()
        return any(not row["success"] for row in drive.rows("llm_interactions", started))

    await drive.until(is_told, "the failed call to be told")
    failed = [row for row in drive.rows("llm_interactions", started) if not row["success"]]
    (session,) = {row["session_id"] for row in failed}
    report = await drive.services.costs.explain(session)

    assert [(row["cost_nano"], row["prompt_tokens"], row["response_tokens"]) for row in failed] == [(0, 0, 0)]
    assert "mock bad request" in failed[0]["error_message"]
    assert failed[0]["error_status"] == (None if drive.agent.slug == "codex" else 400)
    assert [one.source.error for one in report] == [row["error_message"] for row in failed]
    assert drive._select("SELECT * FROM session_usage WHERE session_id = ?", (session,)) == []
    if capability_key == "screen":
        await drive.services.queue.stop(started.task_id, actor=USER_ACTOR)
    await drive.until_over(started)
