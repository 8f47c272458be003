"""Editing a task from any screen: the editor comes back with what was typed until it is stored or left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmon.domain.errors import AgentmonError, NotFoundError

if TYPE_CHECKING:
    from agentmon.domain.ids import TaskId
    from agentmon.domain.tasks import Task, TaskDraft
    from agentmon.screens.frame import ServiceScreen


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEdit:
    """What became of an edit."""

    before: Task | None
    """The task as it was; None for a new one."""
    after: Task
    should_run: bool


async def edit_task(screen: ServiceScreen[None], task_id: TaskId | None) -> StoredEdit | None:
    """Let a person make a task (``task_id`` None) or change one; None when they left.

    When storing fails, also because somebody else changed the task meanwhile, the person is told why and the editor
    opens again over the task as it is then, with everything that was typed. Must run in a worker of the screen.

    Raises:
        NotFoundError: The task is gone.
    """
    from agentmon.screens.task_editor import TaskEditor  # noqa: PLC0415 - not part of the first frame
    from agentmon.services.actors import USER_ACTOR  # noqa: PLC0415 - after the first frame

    services = await screen.services()
    workspace = await screen.workspace()
    agents = await services.agents.list()
    draft: TaskDraft | None = None
    while True:
        task = None if task_id is None else await services.tasks.get(task_id)
        edited = await screen.ask(
            TaskEditor(agents=agents, task=task, workspace_root=workspace.root_path, draft=draft),
        )
        if edited is None:
            return None
        draft = edited.draft
        try:
            if task is None:
                stored = await services.tasks.add(workspace, draft, actor=USER_ACTOR)
            else:
                stored = await services.tasks.edit(task.id, draft, expected_version=task.version, actor=USER_ACTOR)
        except NotFoundError:
            raise
        except AgentmonError as error:
            words = f"{error}\n{error.hint}" if error.hint else str(error)
            screen.notify(f"Not saved: {words}", severity="warning", timeout=8, markup=False)
            continue
        return StoredEdit(before=task, after=stored, should_run=edited.should_run)
