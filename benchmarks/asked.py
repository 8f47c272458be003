"""From an agent's request to the inbox, and from the answer back to it: the demo's agent through the real host."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.bootstrap import open_services
from agentmon.domain.tasks import InputContext, TaskDraft
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo import write_project
from agentmon.services.demo_agent import make_demo_agent
from benchmarks.scratch_home import scratch_home

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.approvals import ApprovalListing
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Workspace

RUNS = 15
GOAL_MS = 300
_LOOK_EVERY_S = 0.002


def measure() -> list[tuple[str, str, str]]:
    """Return rows of name, what was measured, and the goal."""
    with scratch_home():
        seen_ms, answered_ms = asyncio.run(_measure())
    return [
        _row("an agent asks until its card needs you and the inbox has it", seen_ms),
        _row("an answer until the agent has it", answered_ms),
    ]


def _row(name: str, times_ms: list[float]) -> tuple[str, str, str]:
    p95 = statistics.quantiles(times_ms, n=20)[-1]
    median = statistics.median(times_ms)
    return f"{name}, {len(times_ms)} times", f"median {median:.0f} ms, p95 {p95:.0f} ms", f"median ≤ {GOAL_MS} ms"


async def _measure() -> tuple[list[float], list[float]]:
    seen_ms: list[float] = []
    answered_ms: list[float] = []
    async with open_services() as services:
        agent = await services.agents.add(make_demo_agent(pace_s=0.02))
        for number in range(RUNS):
            project = services.paths.data_dir.parent / f"shop-{number}"
            write_project(project)
            workspace = await services.workspaces.open(project)
            draft = TaskDraft(
                title="Round half a cent up",
                assignee_agent_id=agent.id,
                input_context=InputContext(capability_key="work"),
            )
            task = await services.tasks.add(workspace, draft, actor=USER_ACTOR)
            execution = await services.queue.run(task.id, actor=USER_ACTOR)
            for _ in range(2):
                asked = await _next_request(services, workspace, execution)
                seen_at = time.time()
                approval = asked.approval
                asked_at = _entry_time(execution, "ask", approval.request_id)
                seen_ms.append(seen_at * 1000 - asked_at)
                decided_at = time.time()
                await services.approvals.allow(approval.id, actor=USER_ACTOR, seen_digest=approval.input_digest)
                answered_ms.append(await _answered(execution, approval.request_id) - decided_at * 1000)
            await services.queue.wait(execution.id)
    return seen_ms, answered_ms


async def _next_request(services: Services, workspace: Workspace, execution: Execution) -> ApprovalListing:
    """Return the request once the inbox has it and the card says so."""
    version = None
    while True:
        if services.data_version() != version:
            version = services.data_version()
            pending = await services.approvals.inbox(workspace.id)
            found = await services.executions.get(execution.id)
            if pending and found.live_state.value == "needs you":
                return pending[0]
        await asyncio.sleep(_LOOK_EVERY_S)


async def _answered(execution: Execution, request_id: str) -> float:
    while True:
        try:
            return _entry_time(execution, "ask_closed", request_id)
        except LookupError:
            await asyncio.sleep(_LOOK_EVERY_S)


def _entry_time(execution: Execution, kind: str, request_id: str) -> float:
    """Return when the host wrote this news of the request, in milliseconds since 1970."""
    assert execution.log_file_path is not None
    journal = Path(execution.log_file_path).with_name("journal.jsonl")
    for line in journal.read_text().splitlines():
        entry = json.loads(line)
        event = entry.get("event", {})
        if event.get("kind") == kind and event.get("request_id") == request_id:
            return float(entry["at_ms"])
    raise LookupError(request_id)


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
