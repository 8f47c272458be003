from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import Services, open_services
from agentmon.domain.board import ColumnRequest
from agentmon.domain.budgets import TaskBudget
from agentmon.domain.errors import ConflictError, IllegalMoveError, NotFoundError, UsageError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.ids import new_id
from agentmon.domain.task_status import Priority, TaskStatus
from agentmon.domain.tasks import TaskDraft, draft_of
from agentmon.services.actors import USER_ACTOR

if TYPE_CHECKING:
    from agentmon.domain.tasks import Task, Workspace
    from tests.live_home import LiveHome


async def _add(services: Services, workspace: Workspace, *titles: str) -> list[Task]:
    return [await services.tasks.add(workspace, TaskDraft(title=title), actor=USER_ACTOR) for title in titles]


async def _titles(services: Services, workspace: Workspace, status: TaskStatus = TaskStatus.TODO) -> list[str]:
    return [task.title for task in await services.tasks.list(workspace, statuses=[status])]


async def test_tasks_are_numbered_per_workspace_and_numbers_are_never_used_again(
    services: Services, workspace: Workspace, live_home: LiveHome
) -> None:
    first, second = await _add(services, workspace, "one", "two")
    await services.tasks.delete(second.id, actor=USER_ACTOR)
    other_root = live_home.folder / "other"
    other_root.mkdir()
    other = await services.workspaces.open(other_root)

    (third,) = await _add(services, workspace, "three")
    (elsewhere,) = await _add(services, other, "elsewhere")

    assert (first.number, third.number, elsewhere.number) == (1, 3, 1)
    with pytest.raises(NotFoundError, match="no task #2"):
        await services.tasks.by_number(workspace, 2)


@pytest.mark.parametrize(
    "title",
    ["fix [/] bug", "see [b + x", "regex [a-z]+ [/foo]", "🙂 漢字", "שלום", "#{pane_pid}", "a" * 10_000, "'; DROP--"],
)
async def test_a_title_is_kept_letter_for_letter(services: Services, workspace: Workspace, title: str) -> None:
    (task,) = await _add(services, workspace, title)

    assert (await services.tasks.get(task.id)).title == title
    page = await services.board.page(workspace, [ColumnRequest(status=TaskStatus.TODO)])
    assert page.columns[TaskStatus.TODO].cards[0].title == title


async def test_a_blank_that_does_not_break_stays_in_a_title(services: Services, workspace: Workspace) -> None:
    (task,) = await _add(services, workspace, " 5\u00a0km\u202f? ")

    assert task.title == "5\u00a0km\u202f?"


async def test_a_title_with_line_breaks_becomes_one_line(services: Services, workspace: Workspace) -> None:
    (task,) = await _add(services, workspace, " two\n lines\t and\r\nmore ")

    assert task.title == "two lines and more"


@pytest.mark.parametrize(
    ("title", "words"), [("", "needs a title"), (" \n ", "needs a title"), ("a" * 10_001, "10,001")]
)
async def test_a_title_that_cannot_be_used_is_refused_with_the_reason(
    services: Services, workspace: Workspace, title: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        await _add(services, workspace, title)


async def test_an_edit_of_an_older_version_is_refused_and_changes_nothing(
    services: Services, workspace: Workspace
) -> None:
    (task,) = await _add(services, workspace, "first")
    draft = TaskDraft(title="second", priority=Priority.HIGH)
    await services.tasks.edit(task.id, draft, expected_version=task.version, actor=USER_ACTOR)

    with pytest.raises(ConflictError, match="changed by somebody else"):
        await services.tasks.edit(
            task.id, replace(draft, title="third"), expected_version=task.version, actor=USER_ACTOR
        )

    assert (await services.tasks.get(task.id)).title == "second"
    history = await services.audit.of_task(task.id)
    assert [entry.event_type.value for entry in history] == ["task_created", "task_edited"]
    assert history[-1].payload["changed"] == ["priority", "title"]


async def test_cards_move_between_and_inside_columns(services: Services, workspace: Workspace) -> None:
    one, two, three = await _add(services, workspace, "one", "two", "three")

    await services.tasks.shift(three.id, -1, actor=USER_ACTOR)
    after_shift = await _titles(services, workspace)
    await services.tasks.shift(one.id, -1, actor=USER_ACTOR)
    at_the_top = await _titles(services, workspace)
    await services.tasks.move(two.id, TaskStatus.TODO, index=0, actor=USER_ACTOR)
    after_index = await _titles(services, workspace)
    await services.tasks.move(one.id, TaskStatus.DONE, actor=USER_ACTOR)

    assert after_shift == ["one", "three", "two"]
    assert at_the_top == ["one", "three", "two"]
    assert after_index == ["two", "one", "three"]
    assert await _titles(services, workspace, TaskStatus.DONE) == ["one"]
    assert await services.board.locate(workspace, three.id) == (TaskStatus.TODO, 1)


async def test_a_card_finds_room_between_two_neighbours_again_and_again(
    services: Services, workspace: Workspace
) -> None:
    first, *others = await _add(services, workspace, "first", *(str(number) for number in range(20)))
    for task in others:
        await services.tasks.move(task.id, TaskStatus.TODO, index=1, actor=USER_ACTOR)

    titles = await _titles(services, workspace)

    assert titles == ["first", *(str(number) for number in reversed(range(20)))]
    assert (await services.tasks.get(first.id)).title == "first"


async def test_a_deleted_card_comes_back_where_it_was(services: Services, workspace: Workspace) -> None:
    _, two, _ = await _add(services, workspace, "one", "two", "three")
    await services.tasks.delete(two.id, actor=USER_ACTOR)
    without = await _titles(services, workspace)

    await services.tasks.restore(two.id, actor=USER_ACTOR)

    assert without == ["one", "three"]
    assert await _titles(services, workspace) == ["one", "two", "three"]


async def test_done_does_not_become_cancelled(services: Services, workspace: Workspace) -> None:
    (task,) = await _add(services, workspace, "one")
    await services.tasks.move(task.id, TaskStatus.DONE, actor=USER_ACTOR)

    with pytest.raises(IllegalMoveError, match="from done to cancelled"):
        await services.tasks.move(task.id, TaskStatus.CANCELLED, actor=USER_ACTOR)


async def test_a_ring_of_dependencies_is_refused_and_shown(services: Services, workspace: Workspace) -> None:
    tasks = await _add(services, workspace, *(f"task {number}" for number in range(50)))
    for waiting, prerequisite in itertools.pairwise(tasks):
        await services.tasks.add_dependency(waiting.id, prerequisite.number, actor=USER_ACTOR)

    with pytest.raises(ConflictError, match="#50 → #1 → #2") as caught:
        await services.tasks.add_dependency(tasks[-1].id, tasks[0].number, actor=USER_ACTOR)
    with pytest.raises(ConflictError, match="#1 cannot wait for #1"):
        await services.tasks.add_dependency(tasks[0].id, 1, actor=USER_ACTOR)

    assert str(caught.value).endswith("#49 → #50)")
    assert await services.tasks.dependencies(tasks[-1].id) == ()


async def test_two_writers_cannot_make_a_ring_between_them(services: Services, workspace: Workspace) -> None:
    one, two = await _add(services, workspace, "one", "two")

    outcomes = await asyncio.gather(
        services.tasks.add_dependency(one.id, two.number, actor=USER_ACTOR),
        services.tasks.add_dependency(two.id, one.number, actor=USER_ACTOR),
        return_exceptions=True,
    )

    assert len([outcome for outcome in outcomes if isinstance(outcome, ConflictError)]) == 1


async def test_a_card_that_waits_is_blocked_and_says_for_what(services: Services, workspace: Workspace) -> None:
    one, two = await _add(services, workspace, "one", "two")
    three = await services.tasks.add(
        workspace, TaskDraft(title="three"), after=[one.number, two.number], actor=USER_ACTOR
    )
    page = await services.board.page(workspace, [ColumnRequest(status=TaskStatus.BLOCKED)])

    await services.tasks.move(one.id, TaskStatus.DONE, actor=USER_ACTOR)
    half_way = (await services.tasks.get(three.id)).status
    await services.tasks.move(two.id, TaskStatus.DONE, actor=USER_ACTOR)

    assert page.columns[TaskStatus.BLOCKED].cards[0].waits_for == (1, 2)
    assert half_way is TaskStatus.BLOCKED
    assert (await services.tasks.get(three.id)).status is TaskStatus.TODO


async def test_taking_the_dependency_away_frees_the_card(services: Services, workspace: Workspace) -> None:
    (one,) = await _add(services, workspace, "one")
    two = await services.tasks.add(workspace, TaskDraft(title="two"), after=[1], actor=USER_ACTOR)

    await services.tasks.remove_dependency(two.id, one.number, actor=USER_ACTOR)

    assert (await services.tasks.get(two.id)).status is TaskStatus.TODO
    with pytest.raises(NotFoundError, match="does not wait"):
        await services.tasks.remove_dependency(two.id, one.number, actor=USER_ACTOR)


async def test_the_filter_finds_titles_and_numbers_and_takes_signs_for_what_they_are(
    services: Services, workspace: Workspace
) -> None:
    await _add(services, workspace, "100% done", "snake_case", "Login fails", "other")

    async def found(text: str) -> list[str]:
        page = await services.board.page(workspace, [ColumnRequest(status=TaskStatus.TODO, text_filter=text)])
        return [card.title for card in page.columns[TaskStatus.TODO].cards]

    assert await found("%") == ["100% done"]
    assert await found("e_c") == ["snake_case"]
    assert await found("login") == ["Login fails"]
    assert await found("#4") == ["other"]
    assert await found("nothing") == []


async def test_two_open_clients_see_and_keep_each_others_changes(services: Services, live_home: LiveHome) -> None:
    workspace = await services.workspaces.open(live_home.project)
    (mine,) = await _add(services, workspace, "mine")
    seen = services.data_version()

    async with open_services(live_home.paths) as others:
        await _add(others, workspace, "theirs")
        await others.tasks.move(mine.id, TaskStatus.DONE, actor=USER_ACTOR)

    assert services.data_version() != seen
    await _add(services, workspace, "mine again")
    assert await _titles(services, workspace) == ["theirs", "mine again"]
    assert await _titles(services, workspace, TaskStatus.DONE) == ["mine"]


async def test_a_folder_belongs_to_its_nearest_workspace_unless_a_repository_is_nearer(
    services: Services, live_home: LiveHome
) -> None:
    root = live_home.project
    workspace = await services.workspaces.open(root)
    (root / "src").mkdir()
    (root / "vendored" / ".git").mkdir(parents=True)
    (root / "vendored" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    inside = await services.workspaces.find_for(root / "src")
    nested = await services.workspaces.find_for(root / "vendored")

    assert inside == workspace
    assert nested.root_path == str(root / "vendored")
    with pytest.raises(NotFoundError, match="no folder"):
        await services.workspaces.open(root / "missing")


async def test_a_card_at_the_end_of_its_column_stays_as_it_is(services: Services, workspace: Workspace) -> None:
    first, last = await _add(services, workspace, "first", "last")

    moved = [
        await services.tasks.shift(first.id, -1, actor=USER_ACTOR),
        await services.tasks.shift(last.id, 1, actor=USER_ACTOR),
    ]

    assert moved == [first, last]


async def test_an_edit_stores_text_dependencies_and_budget_or_nothing_of_them(
    services: Services, workspace: Workspace
) -> None:
    one, two, three = await _add(services, workspace, "one", "two", "three")
    await services.tasks.add_dependency(one.id, two.number, actor=USER_ACTOR)
    draft = replace(draft_of(two), title="other", labels=("new",))

    with pytest.raises(ConflictError, match="wait for each other"):
        await services.tasks.edit(
            two.id,
            draft,
            expected_version=two.version,
            added=[three.number, one.number],
            budget=TaskBudget(limit=10),
            actor=USER_ACTOR,
        )
    with pytest.raises(UsageError, match="above nothing"):
        await services.tasks.edit(
            two.id, draft, expected_version=two.version, budget=TaskBudget(limit=0), actor=USER_ACTOR
        )
    untouched = await services.tasks.get(two.id), await services.tasks.dependencies(two.id)
    edited = await services.tasks.edit(
        two.id,
        draft,
        expected_version=two.version,
        added=[three.number],
        budget=TaskBudget(limit=10),
        actor=USER_ACTOR,
    )
    (state,) = await services.budgets.states()

    assert untouched == (two, ())
    assert (edited.title, edited.labels, edited.status) == ("other", ("new",), TaskStatus.BLOCKED)
    assert [task.number for task in await services.tasks.dependencies(two.id)] == [three.number]
    assert (state.budget.scope_id, state.budget.limit) == (two.id, 10)


async def test_an_agent_says_not_what_a_task_may_cost(services: Services, workspace: Workspace) -> None:
    (task,) = await _add(services, workspace, "one")
    an_agent = Actor(type=ActorType.AGENT, id=new_id())

    with pytest.raises(ConflictError):
        await services.tasks.edit(
            task.id, draft_of(task), expected_version=task.version, budget=TaskBudget(limit=10), actor=an_agent
        )
    with pytest.raises(ConflictError):
        await services.tasks.add(workspace, TaskDraft(title="two"), budget=TaskBudget(limit=10), actor=an_agent)

    assert await services.budgets.states() == ()
    assert await _titles(services, workspace) == ["one"]
