from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.bootstrap import open_services
from agentmon.domain.clock import SystemClock
from agentmon.store.limit_snapshots import LimitSnapshotRepository
from agentmon.usage.claude_status import ClaudeStatus
from agentmon.usage.status_reports import leave_report, reports_folder
from agentmon.worker.launch import ensure_worker
from agentmon.worker.status_intake import StatusIntake
from tests.waiting import until

if TYPE_CHECKING:
    from tests.live_home import LiveHome

SESSION = "dddddddd-1111-4111-8111-000000000001"


def add_history(home: Path) -> None:
    """Let Claude Code have written one answer, by which it becomes known."""
    folder = home / ".claude" / "projects" / "-w"
    folder.mkdir(parents=True)
    message = {
        "id": "msg_1",
        "model": "claude-opus-5-5",
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": 50},
    }
    record = {"type": "assistant", "sessionId": SESSION, "timestamp": "2026-11-20T10:00:00.000Z", "message": message}
    (folder / f"{SESSION}.jsonl").write_text(json.dumps(record) + "\n")


async def test_a_worker_takes_in_what_a_status_line_left(live_home: LiveHome) -> None:
    add_history(Path(os.environ["HOME"]))
    async with open_services(live_home.paths) as services:
        await asyncio.to_thread(ensure_worker, live_home.paths)
        limits = LimitSnapshotRepository(services.database)
        status = ClaudeStatus(
            {
                "session_id": SESSION,
                "context_window": {"context_window_size": 1_000_000, "current_usage": {"input_tokens": 77}},
                "rate_limits": {"seven_day": {"used_percentage": 40, "resets_at": time.time() + 3600}},
            }
        )

        async def is_taken_in() -> bool:
            # The first report may come before the worker knows the agent.
            leave_report(str(live_home.paths.database_path), SESSION, status.report(time.time_ns() // 1_000_000))
            return bool(await limits.latest())

        await until(is_taken_in)

        (snapshot,) = await limits.latest()
        assert (snapshot.agent_slug, snapshot.window, snapshot.window_minutes) == ("claude", "seven_day", 10_080)

        async def context() -> int | None:
            return (await services.sessions.find(SESSION)).context_tokens

        async def has_context() -> bool:
            return await context() == 77

        await until(has_context)


async def test_damaged_reports_are_dropped(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        limits = LimitSnapshotRepository(services.database)
        intake = StatusIntake(limits=limits, paths=live_home.paths, clock=SystemClock())
        path = str(live_home.paths.database_path)
        leave_report(path, "a", {"at_ms": None})
        leave_report(path, "b", {"at_ms": "now", "rate_limits": 5})
        (Path(reports_folder(path)) / "cc.json").write_bytes(b"{")

        assert await intake.take_in() == 3
        assert await intake.take_in() == 0
        assert await limits.latest() == ()
