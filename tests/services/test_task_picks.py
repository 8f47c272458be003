from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import TaskDraft
from agentmon.services.actors import USER_ACTOR

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Workspace


async def test_open_tasks_are_found_by_number_by_words_and_by_letters(services: Services, workspace: Workspace) -> None:
    titles = ("Fix the login", "log 100% of it", "Über die Lage", "done already", "fox in it", *["more"] * 8)
    drafts = [(TaskDraft(title=title), ()) for title in titles]
    tasks = await services.tasks.add_all(workspace, drafts, actor=USER_ACTOR)
    await services.tasks.move(tasks[3].id, TaskStatus.DONE, actor=USER_ACTOR)

    async def found(typed: str, limit: int = 8) -> list[int]:
        return [one.number for one in await services.tasks.picks(workspace, typed, limit=limit)]

    assert await found("1") == [1, 13, 12, 11, 10, 2]
    assert await found("#1") == [1, 13, 12, 11, 10]
    assert await found("log") == [2, 1]
    assert await found("login THE") == [1]
    assert await found("fxt") == [5, 1]
    assert await found("0%") == [2]
    assert await found("über") == await found("ÜBER") == [3]
    assert await found("already") == []
    assert await found("", limit=2) == await found("#", limit=2) == [13, 12]
    assert await found("'; --") == []
