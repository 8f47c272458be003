"""Merging the branch of a task from a screen."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from agentmon.domain.merges import solve_text
from agentmon.screens.sessions.talking import send_message
from agentmon.screens.tasks.running import let_go
from agentmon.widgets.cells import even_line

if TYPE_CHECKING:
    from agentmon.domain.ids import TaskId
    from agentmon.domain.merges import MergeHow
    from agentmon.screens.frame import ServiceScreen
    from agentmon.services.merges import MergePlan, MergeResult

_LONGEST_NOTE: Final = 300


async def merge(screen: ServiceScreen[None], task_id: TaskId) -> None:
    """Let the person choose how the task's branch is merged, and merge it. Must run in a worker.

    Raises:
        AgentmonError: It cannot be merged; nothing was changed.
    """
    from agentmon.screens.changes.merge_dialog import MergeDialog  # noqa: PLC0415 - not part of the first frame

    services = await screen.services()
    merges = services.merges
    task = await services.tasks.get(task_id)
    worktree = await merges.worktree_of(task)

    async def plan(how: MergeHow, into: str) -> MergePlan:
        return await merges.plan(task, how=how, into=into or None)

    choice = await screen.ask(
        MergeDialog(
            task,
            how=await merges.default_how(),
            into=worktree.base_branch or "",
            message=await merges.message(task, worktree.branch),
            plan=plan,
        )
    )
    if choice is None:
        return
    if choice.solved is not None:
        await send_message(screen, task_id, text=solve_text(choice.solved))
        return
    screen.notify(f"Merging #{task.number} …", markup=False)
    merging = partial(merges.merge, task, how=choice.how, into=choice.into or None, message=choice.message)
    _tell(screen, task.number, await merging(actor=services.actor))
    screen.request_refresh(at_once=True)
    await let_go(screen, task_id)


def _tell(screen: ServiceScreen[None], number: int, result: MergeResult) -> None:
    words = f"Merged #{number} into {result.forecast.into}: {result.commit[:10]}"
    for path in result.left_alone:
        words += f"\n{path} was changed meanwhile and left alone"
    losses = "; ".join(loss.words for loss in result.cleaned_up.losses)
    if losses:
        words += f"\nIts worktree stays: {losses}"
    elif result.cleaned_up.is_in_use:
        words += "\nIts worktree is in use and stays"
    lines = [even_line(line, max_characters=_LONGEST_NOTE) for line in words.split("\n")]
    screen.notify("\n".join(lines), severity="warning" if losses or result.left_alone else "information", markup=False)
