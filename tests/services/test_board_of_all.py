from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.board import ALL_WORKSPACES, BoardSort, ColumnRequest
from agentmon.domain.errors import UsageError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.task_status import Priority, TaskStatus
from agentmon.domain.tasks import TaskDraft
from agentmon.domain.workspace_names import short_names
from agentmon.services.actors import USER_ACTOR
from tests.stored_runs import Stored, stored

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agentmon.domain.board import BoardPage
    from agentmon.domain.tasks import Workspace

TODO = TaskStatus.TODO


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Stored]:
    async with stored(tmp_path) as opened:
        yield opened


async def _page(place: Stored, workspace: Workspace | None, sort: BoardSort, text: str = "") -> BoardPage:
    """Read the board, and see that each card is found where it stands."""
    page = await place.services.board.page(workspace, [ColumnRequest(status=TODO, sort=sort, text_filter=text)])
    for index, card in enumerate(page.columns[TODO].cards):
        assert await place.services.board.locate(workspace, card.task_id, text, sort=sort) == (TODO, index)
    return page


async def _add(place: Stored, workspace: Workspace, title: str, priority: int = 3) -> None:
    draft = TaskDraft(title=title, priority=Priority(priority))
    await place.services.tasks.add(workspace, draft, actor=USER_ACTOR)


async def test_cards_are_sorted_by_what_needs_a_person_runs_waits_and_failed(place: Stored) -> None:
    tasks = {title: await place.add_task(title) for title in ("never", "mended", "failed", "queued", "runs", "asks")}
    await place.add_run(tasks["mended"].id, ExecutionStatus.FAILED, age=timedelta(hours=2))
    await place.add_run(tasks["mended"].id, ExecutionStatus.SUCCEEDED)
    await place.add_run(tasks["failed"].id, ExecutionStatus.SUCCEEDED, age=timedelta(hours=2))
    await place.add_run(tasks["failed"].id, ExecutionStatus.TIMED_OUT)
    await place.add_run(tasks["queued"].id, ExecutionStatus.QUEUED)
    await place.add_run(tasks["runs"].id, ExecutionStatus.RUNNING)
    asking = await place.add_run(tasks["asks"].id, ExecutionStatus.RUNNING)
    place.set_columns(asking.id, activity="waiting")

    page = await _page(place, place.workspace, BoardSort.STATE)

    titles = [card.title for card in page.columns[TODO].cards]
    assert titles == ["asks", "runs", "queued", "failed", "never", "mended"]
    request = ColumnRequest(status=TODO, sort=BoardSort.STATE, offset=3, limit=2)
    part = (await place.services.board.page(place.workspace, [request])).columns[TODO]
    assert ([card.title for card in part.cards], part.total) == (["failed", "never"], 6)
    failed = await _page(place, place.workspace, BoardSort.STATE, "is:failed")
    assert [card.title for card in failed.columns[TODO].cards] == ["failed"]


async def test_the_board_of_all_names_the_workspace_of_each_card(place: Stored, tmp_path: Path) -> None:
    other_root = tmp_path / "other" / "project"
    other_root.mkdir(parents=True)
    other = await place.services.workspaces.open(other_root)
    for workspace, title, priority in (
        (place.workspace, "a", 3),
        (other, "b", 1),
        (place.workspace, "c", 5),
        (other, "d", 4),
    ):
        await _add(place, workspace, title, priority)

    pages = {sort: await _page(place, None, sort) for sort in BoardSort}

    own, here = f"{tmp_path.name}/project", "other/project"
    page = pages[BoardSort.ORDER]
    assert page.workspace_name == ALL_WORKSPACES
    assert page.workspaces == {own: place.workspace.root_path, here: other.root_path}
    assert [card.name for card in page.columns[TODO].cards] == [f"{own}#1", f"{own}#2", f"{here}#1", f"{here}#2"]
    assert [card.title for card in pages[BoardSort.PRIORITY].columns[TODO].cards] == ["b", "a", "d", "c"]
    assert [card.title for card in pages[BoardSort.CHANGED].columns[TODO].cards] == ["d", "c", "b", "a"]
    one = await _page(place, other, BoardSort.ORDER)
    assert [card.name for card in one.columns[TODO].cards] == ["#1", "#2"]
    assert await place.services.board.locate(place.workspace, one.columns[TODO].cards[0].task_id) is None


async def test_a_workspace_has_limits_of_its_own_and_the_board_of_all_says_which_is_over(
    place: Stored, tmp_path: Path
) -> None:
    (tmp_path / "web").mkdir()
    web = await place.services.workspaces.open(tmp_path / "web")
    settings = place.services.settings
    for workspace in (place.workspace, web):
        await _add(place, workspace, "one")
        await _add(place, workspace, "two")
    await settings.set("board.limit_todo", "5", actor=USER_ACTOR)

    await settings.set("workspace.limit_todo", "1", workspace=web, actor=USER_ACTOR)

    columns = [(await _page(place, one, BoardSort.ORDER)).columns[TODO] for one in (place.workspace, web, None)]
    assert [column.card_limit for column in columns] == [5, 1, None]
    assert [column.is_over_limit for column in columns] == [False, True, True]
    assert columns[2].workspaces_over == ("web",)
    assert (await settings.get("workspace.limit_todo", web)).value == 1
    with pytest.raises(UsageError, match="from 0 to 100000"):
        await settings.set("workspace.limit_todo", "-1", workspace=web, actor=USER_ACTOR)
    assert (await settings.reset("workspace.limit_todo", workspace=web, actor=USER_ACTOR)).value == 0


def test_short_names_are_as_long_as_it_takes_to_tell_them_apart() -> None:
    names = {"1": ("api", "/src/api"), "2": ("web", "/a/x/web"), "3": ("web", "/b/x/web")}

    assert short_names(names) == {"1": "api", "2": "a/x/web", "3": "b/x/web"}
