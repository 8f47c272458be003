from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.task_status import TaskStatus
from agentmon.services.actors import USER_ACTOR
from tests.stored_runs import stored

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("runs", "freed"),
    [
        ([], TaskStatus.TODO),
        ([ExecutionStatus.SUCCEEDED, ExecutionStatus.FAILED], TaskStatus.BLOCKED),
        ([ExecutionStatus.FAILED, ExecutionStatus.SUCCEEDED], TaskStatus.TODO),
        ([ExecutionStatus.TIMED_OUT, ExecutionStatus.CANCELLED], TaskStatus.TODO),
    ],
)
@pytest.mark.parametrize("way", ["the other is done", "the other is deleted", "the dependency is taken away"])
async def test_a_blocked_card_is_freed_unless_its_newest_run_failed(
    tmp_path: Path, way: str, runs: list[ExecutionStatus], freed: TaskStatus
) -> None:
    async with stored(tmp_path) as place:
        tasks = place.services.tasks
        other, waiting = await place.add_task("the other"), await place.add_task("the one that waits")
        for age, status in zip((timedelta(hours=2), timedelta(hours=1)), runs, strict=False):
            await place.add_run(waiting.id, status, age=age)
        await tasks.add_dependency(waiting.id, other.number, actor=USER_ACTOR)
        before = (await tasks.get(waiting.id)).status

        match way:
            case "the other is done":
                await tasks.move(other.id, TaskStatus.DONE, actor=USER_ACTOR)
            case "the other is deleted":
                await tasks.delete(other.id, actor=USER_ACTOR)
            case _:
                await tasks.remove_dependency(waiting.id, other.number, actor=USER_ACTOR)

        assert before is TaskStatus.BLOCKED
        assert (await tasks.get(waiting.id)).status is freed
