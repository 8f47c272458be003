from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.board import BoardSort, ColumnRequest
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


async def test_any_text_can_be_typed_as_a_filter(services: Services, workspace: Workspace) -> None:
    await services.tasks.add(workspace, TaskDraft(title="a task"), actor=USER_ACTOR)

    for text in ("\ud800", "a\0b", "a " * 3_000, "é" * 60_000, "#a @b is:failed !1 " * 500, "*?[^]-ü" * 99):
        assert await _found(services, workspace, text) in (["a task"], [])


async def test_saved_filters_are_kept_found_and_forgotten(services: Services) -> None:
    await services.board.save_filter(" mine ", "login  #auth", actor=services.actor)
    await services.board.save_filter("other", "!1", actor=services.actor)
    await services.board.save_filter("mine", "#auth", actor=services.actor)

    assert dict(await services.board.filters()) == {"mine": "#auth", "other": "!1"}
    assert await services.board.find_filter("mine") == "#auth"
    await services.board.forget_filter("mine", actor=services.actor)
    with pytest.raises(NotFoundError, match="no saved filter") as refused:
        await services.board.find_filter("mine")
    assert refused.value.hint == "saved are: other"
    with pytest.raises(UsageError, match="needs a name"):
        await services.board.save_filter("empty", " ", actor=services.actor)


async def test_filters_that_are_saved_at_the_same_time_are_all_kept(services: Services) -> None:
    names = [f"filter {number}" for number in range(8)]

    await asyncio.gather(*[services.board.save_filter(name, "login", actor=services.actor) for name in names])
    await asyncio.gather(*[services.board.forget_filter(name, actor=services.actor) for name in names[1:]])

    assert list(await services.board.filters()) == names[:1]


async def test_columns_are_sorted_as_it_is_set_or_asked(services: Services, workspace: Workspace) -> None:
    now = SystemClock().now()
    for title, priority, days in (("low", 5, 1), ("urgent", 1, None), ("later", 3, 2), ("again", 3, 2)):
        due_at = None if days is None else now + timedelta(days=days)
        await services.tasks.add(
            workspace, TaskDraft(title=title, priority=Priority(priority), due_at=due_at), actor=USER_ACTOR
        )
    urgent = await services.tasks.by_number(workspace, 2)
    await services.tasks.edit(
        urgent.id, TaskDraft(title="edited", priority=Priority.URGENT), expected_version=1, actor=USER_ACTOR
    )

    async def titles(sort: BoardSort | None) -> list[str]:
        page = await services.board.page(workspace, [ColumnRequest(status=TaskStatus.TODO, sort=sort)])
        cards = page.columns[TaskStatus.TODO].cards
        for index, card in enumerate(cards):
            assert await services.board.locate(workspace, card.task_id, sort=sort) == (TaskStatus.TODO, index)
        return [card.title for card in cards]

    assert await titles(BoardSort.ORDER) == ["low", "edited", "later", "again"]
    assert await titles(BoardSort.PRIORITY) == ["edited", "later", "again", "low"]
    assert await titles(BoardSort.DUE) == ["low", "later", "again", "edited"]
    assert (await titles(BoardSort.CHANGED))[0] == "edited"
    assert await titles(None) == ["low", "edited", "later", "again"]
    await services.settings.set("board.sort", "Priority", actor=services.actor)
    assert await titles(None) == ["edited", "later", "again", "low"]
    with pytest.raises(UsageError, match="one of order, priority, due, changed"):
        await services.settings.set("board.sort", "size", actor=services.actor)


async def test_a_column_has_a_limit_that_only_warns(services: Services, workspace: Workspace) -> None:
    for title in ("one", "two", "three"):
        await services.tasks.add(workspace, TaskDraft(title=title), actor=USER_ACTOR)
    await services.settings.set("board.limit_todo", "2", actor=services.actor)

    whole, filtered = [
        (await services.board.page(workspace, [ColumnRequest(status=TaskStatus.TODO, text_filter=text)])).columns[
            TaskStatus.TODO
        ]
        for text in ("", "one")
    ]

    assert (whole.total, whole.card_limit, whole.is_over_limit) == (3, 2, True)
    assert filtered.card_limit is None
