from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.board import ColumnRequest
from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import NotFoundError, UsageError
from agentmon.domain.task_status import Priority, TaskStatus
from agentmon.domain.tasks import InputContext, TaskDraft
from agentmon.services.actors import USER_ACTOR

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Workspace


async def _found(services: Services, workspace: Workspace, text: str) -> list[str]:
    page = await services.board.page(workspace, [ColumnRequest(status=TaskStatus.TODO, text_filter=text)])
    column = page.columns[TaskStatus.TODO]
    assert column.total == len(column.cards)
    for index, card in enumerate(column.cards):
        assert await services.board.locate(workspace, card.task_id, text) == (TaskStatus.TODO, index)
    return [card.title for card in column.cards]


async def test_a_filter_finds_letters_in_order_labels_programs_and_priorities(
    services: Services, workspace: Workspace
) -> None:
    command, git = await services.agents.by_slug("command"), await services.agents.by_slug("git")
    pytest_run = InputContext(capability_key="run", args={"argv": ["/usr/bin/pytest", "-q"]})
    for draft in (
        TaskDraft(title="Fix the login page", labels=("auth", "web"), priority=Priority.URGENT),
        TaskDraft(title="Run the tests", assignee_agent_id=command.id, input_context=pytest_run),
        TaskDraft(title="Log out", assignee_agent_id=git.id, labels=("authors",)),
        TaskDraft(title="Übung für Größe [x] 50%*", due_at=SystemClock().now() + timedelta(days=2)),
    ):
        await services.tasks.add(workspace, draft, actor=USER_ACTOR)
    fix, tests, log, practice = "Fix the login page", "Run the tests", "Log out", "Übung für Größe [x] 50%*"

    for text, titles in {
        "fxlgn": [fix],
        "LOG": [fix, log],
        "web": [fix],
        "git": [log],
        "#auth": [fix, log],
        "#auth lgn": [fix],
        "#": [fix, log],
        "@git": [log],
        "@py": [tests],
        "@comm": [tests],
        "@": [tests, log],
        "!1": [fix],
        "!1-3 @git": [log],
        "#3": [log],
        "3": [log],
        "üBU": [practice],
        "GRÖSSE": [],
        "GRÖẞE": [practice],
        "größe": [practice],
        "[x]": [practice],
        "ü[": [practice],
        "ü*": [practice],
        "50%": [practice],
        "is:due": [practice],
        "is:overdue": [],
        "is:failed": [],
        "is:needs-you is:due": [practice],
        "!1 ' OR 1=1 --": [],
    }.items():
        assert await _found(services, workspace, text) == titles, text


async def test_saved_filters_are_kept_found_and_forgotten(services: Services) -> None:
    await services.board.save_filter(" mine ", "login  #auth")
    await services.board.save_filter("other", "!1")
    await services.board.save_filter("mine", "#auth")

    assert dict(await services.board.filters()) == {"mine": "#auth", "other": "!1"}
    assert await services.board.find_filter("mine") == "#auth"
    await services.board.forget_filter("mine")
    with pytest.raises(NotFoundError, match="no saved filter") as refused:
        await services.board.find_filter("mine")
    assert refused.value.hint == "saved are: other"
    with pytest.raises(UsageError, match="needs a name"):
        await services.board.save_filter("empty", " ")
