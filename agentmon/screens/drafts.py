"""A task as the draft that would store it again as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.domain.tasks import TaskDraft

if TYPE_CHECKING:
    from agentmon.domain.tasks import Task


def draft_of(task: Task) -> TaskDraft:
    """Return the draft that holds all that a person can change of the task."""
    return TaskDraft(
        title=task.title,
        description=task.description,
        priority=task.priority,
        assignee_agent_id=task.assignee_agent_id,
        input_context=task.input_context,
        due_at=task.due_at,
        parent_task_id=task.parent_task_id,
        schedule=task.schedule,
    )
