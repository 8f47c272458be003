"""Editing a task from any screen: the editor comes back with what was typed until it is stored or left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import AgentmonError, ConflictError, NotFoundError
from agentmon.screens.tasks.task_budget import changed_budget, find_budget, limit_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.bootstrap import Services
    from agentmon.domain.budgets import Budget
    from agentmon.domain.ids import TaskId
    from agentmon.domain.tasks import Task, TaskDraft, Workspace
    from agentmon.screens.frame import ServiceScreen
    from agentmon.screens.tasks.task_editor import EditedTask

_MERGE: Final = "merge"
_THEIRS: Final = "theirs"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEdit:
    """What became of an edit."""

    before: Task | None
    """The task as it was; None for a new one."""
    after: Task
    should_run: bool
    dependencies_before: tuple[int, ...] = ()
    """Numbers of the tasks that it waited for."""
    budget_before: Budget | None = None
    budget_nano: int | None = None
    """What all its runs together may cost since then."""

    @property
    def changed_budget(self) -> bool:
        """Whether the edit set, changed or took away the budget."""
        return self.budget_nano != limit_of(self.budget_before)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """What an edit was made on."""

    task: Task | None
    dependencies: tuple[int, ...] = ()
    parent: int | None = None
    budget: Budget | None = None
    """What all its runs together may cost."""


async def new_from_template(screen: ServiceScreen[None]) -> StoredEdit | None:
    """Let a person choose a template and make a task from it; None when they left. Must run in a worker."""
    from agentmon.domain.templates import TITLE_PLACEHOLDER  # noqa: PLC0415 - not part of the first frame
    from agentmon.screens.tasks.template_menu import TemplateMenu  # noqa: PLC0415 - not part of the first frame

    services = await screen.services()
    workspace = await screen.workspace()
    template = await screen.ask(TemplateMenu(await services.templates.list(workspace)))
    if template is None:
        return None
    filled = await services.templates.draft(workspace, template)
    # The title is typed in the editor, where its place is empty.
    title = filled.draft.title.replace(TITLE_PLACEHOLDER, "").rstrip()
    start = replace(filled.draft, title=f"{title} " if title and title != filled.draft.title else title)
    if filled.notes:
        words = "; ".join(filled.notes)
        screen.notify(f"{template.name}: {words}", severity="warning", timeout=10, markup=False)
    return await edit_task(screen, None, start=start)


async def edit_task(
    screen: ServiceScreen[None], task_id: TaskId | None, *, start: TaskDraft | None = None
) -> StoredEdit | None:
    """Let a person make a task (``task_id`` None) or change one; None when they left.

    When storing fails the person is told why and the editor opens again with everything that was typed. When somebody
    else changed the task meanwhile, the person sees what, and both changes are put together on demand. Must run in a
    worker of the screen.

    Args:
        screen: Asks the person.
        task_id: What to change.
        start: What a template fills a new task with; its places for the title are filled when it is saved.

    Raises:
        NotFoundError: The task is gone.
    """
    from agentmon.screens.tasks.editor_making import EditorMaking  # noqa: PLC0415 - not part of the first frame

    services = await screen.services()
    workspace = await (screen.workspace() if task_id is None else screen.workspace_of(task_id))
    making = await EditorMaking.read(services, workspace)
    first = base = await _read_base(services, task_id)
    edited: EditedTask | None = None
    while True:
        editor = making.editor(
            task=base.task,
            draft=None if edited is None else edited.draft,
            start=start,
            parent=base.parent if edited is None else edited.parent,
            after=base.dependencies if edited is None else edited.after,
            budget_nano=limit_of(base.budget) if edited is None else edited.budget_nano,
        )
        edited = await screen.ask(editor)
        if edited is None:
            return None
        try:
            after, base = await _store(services, workspace, base, edited, is_from_template=start is not None)
        except NotFoundError:
            if task_id is not None:
                await services.tasks.get(task_id)
            screen.notify("Not saved: the parent or a task it waits for was deleted", severity="warning")
            continue
        except AgentmonError as error:
            newest = await _read_base(services, task_id)
            if isinstance(error, ConflictError) and _is_stale(base, newest):
                base, edited = await _settle(screen, base, newest, edited)
                continue
            base = newest
            words = f"{error}\n{error.hint}" if error.hint else str(error)
            screen.notify(f"Not saved: {words}", severity="warning", timeout=8, markup=False)
            continue
        return StoredEdit(
            before=base.task,
            after=after,
            should_run=edited.should_run,
            dependencies_before=first.dependencies,
            budget_before=base.budget,
            budget_nano=edited.budget_nano,
        )


async def changed_dependencies(
    services: Services, task_id: TaskId, wanted: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return the numbers that are to be added and removed so that a task waits for these tasks and no others."""
    present = [task.number for task in await services.tasks.dependencies(task_id)]
    return (
        [number for number in wanted if number not in present],
        [number for number in present if number not in wanted],
    )


async def _read_base(services: Services, task_id: TaskId | None) -> _Base:
    if task_id is None:
        return _Base(task=None)
    task = await services.tasks.get(task_id)
    dependencies = tuple(one.number for one in await services.tasks.dependencies(task_id))
    try:
        parent = None if task.parent_task_id is None else (await services.tasks.get(task.parent_task_id)).number
    except NotFoundError:
        # It was deleted; the field is empty then, and saving takes the link away.
        parent = None
    return _Base(task=task, dependencies=dependencies, parent=parent, budget=await find_budget(services, task_id))


async def _store(
    services: Services, workspace: Workspace, base: _Base, edited: EditedTask, *, is_from_template: bool
) -> tuple[Task, _Base]:
    """Store the edit, and return the task with what the edit was written over.

    Raises:
        AgentmonError: Nothing was stored.
    """
    from agentmon.domain.tasks import draft_of  # noqa: PLC0415 - not part of the first frame
    from agentmon.domain.templates import with_title  # noqa: PLC0415 - not part of the first frame

    task = base.task
    if task is None:
        draft = with_title(edited.draft, edited.draft.title) if is_from_template else edited.draft
        budget = changed_budget(None, edited.budget_nano)
        return await services.tasks.add(workspace, draft, actor=services.actor, after=edited.after, budget=budget), base
    newest = await services.tasks.get(task.id)
    if draft_of(newest) == draft_of(task):
        # It was only moved meanwhile, such as by the start of its run.
        task = newest
    added, removed = await changed_dependencies(services, task.id, edited.after)
    stored = await services.tasks.edit(
        task.id,
        edited.draft,
        expected_version=task.version,
        added=added,
        removed=removed,
        budget=changed_budget(base.budget, edited.budget_nano),
        actor=services.actor,
    )
    return stored, replace(base, task=task)


def _is_stale(base: _Base, newest: _Base) -> bool:
    from agentmon.domain.tasks import draft_of  # noqa: PLC0415 - not part of the first frame

    return base.task is not None and newest.task is not None and draft_of(base.task) != draft_of(newest.task)


async def _settle(
    screen: ServiceScreen[None], base: _Base, newest: _Base, edited: EditedTask
) -> tuple[_Base, EditedTask | None]:
    """Show what somebody else changed, and return on what and with what the person goes on."""
    from agentmon.domain.tasks import draft_of  # noqa: PLC0415 - not part of the first frame
    from agentmon.screens.dialogs.choice import Answer, ChoiceDialog  # noqa: PLC0415 - not part of the first frame
    from agentmon.screens.tasks.merging import difference_lines, merged, merged_numbers  # noqa: PLC0415 - as above

    if base.task is None or newest.task is None:
        return newest, edited
    before, theirs = draft_of(base.task), draft_of(newest.task)
    lines = [f"· {line}" for line in difference_lines(before, theirs)]
    question = f"#{newest.task.number} was changed by somebody else while you typed"
    detail = "\n".join([*lines, "", "Nothing of yours is stored yet, and nothing of theirs is lost."])
    answers = [Answer(_MERGE, "Reload, keep what I typed"), Answer(_THEIRS, "Take theirs")]
    answer = await screen.ask(ChoiceDialog(question, detail=detail, answers=answers))
    if answer == _MERGE:
        return newest, replace(
            edited,
            draft=merged(before, edited.draft, theirs),
            parent=newest.parent if edited.parent == base.parent else edited.parent,
            after=merged_numbers(base.dependencies, edited.after, newest.dependencies),
        )
    return (newest, None) if answer == _THEIRS else (base, edited)
