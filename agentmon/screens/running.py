"""Running and stopping tasks from any screen, with the questions that belong to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.widgets.cells import even_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import TaskId
    from agentmon.screens.frame import ServiceScreen
    from agentmon.screens.run_dialog import RunChoice

_LONGEST_TITLE: Final = 60
_MOST_NAMED: Final = 8


async def ask_run_choice(screen: ServiceScreen[None], task_id: TaskId) -> RunChoice | None:
    """Ask with which program the task is run this once; None when the person left. Must run in a worker.

    Raises:
        NotFoundError: The task is gone.
    """
    from agentmon.screens.run_dialog import RunDialog  # noqa: PLC0415 - not part of the first frame

    services = await screen.services()
    task = await services.tasks.get(task_id)
    return await screen.ask(RunDialog(agents=await services.agents.list(), task=task))


async def queue_run(screen: ServiceScreen[None], task_id: TaskId, choice: RunChoice | None = None) -> Execution:
    """Queue a run of the task with its own program, or with the choice; the screen shows it soon.

    Raises:
        AgentmonError: As ``QueueService.run``.
    """
    from agentmon.services.actors import USER_ACTOR  # noqa: PLC0415 - not part of the first frame

    services = await screen.services()
    try:
        return await services.queue.run(
            task_id,
            actor=USER_ACTOR,
            agent_slug=None if choice is None else choice.agent_slug,
            capability_key=None if choice is None else choice.capability_key,
            args=None if choice is None else choice.args,
        )
    finally:
        screen.request_refresh()


async def stop_run(screen: ServiceScreen[None], task_id: TaskId, *, kill: bool = False) -> None:
    """Ask the program of the task to end, or end it by force; the screen shows it soon.

    Raises:
        ConflictError: Nothing of the task waits or runs.
    """
    from agentmon.services.actors import USER_ACTOR  # noqa: PLC0415 - not part of the first frame

    services = await screen.services()
    try:
        await services.queue.stop(task_id, actor=USER_ACTOR, kill=kill)
    finally:
        screen.request_refresh()


async def ask_kill(screen: ServiceScreen[None], tasks: Sequence[tuple[int, str]]) -> bool:
    """Ask whether the runs of these tasks, numbers and titles, are ended by force. Must run in a worker."""
    from agentmon.screens.confirm import ConfirmDialog  # noqa: PLC0415 - not part of the first frame

    names = [f"#{number} {even_line(title, max_characters=_LONGEST_TITLE)}" for number, title in tasks]
    if len(names) == 1:
        question, whose = f"Kill {names[0]}?", "Its"
    else:
        left_out = len(names) - _MOST_NAMED
        listed = [*names[:_MOST_NAMED], f"and {left_out} more"] if left_out > 0 else names
        question, whose = "\n".join([f"Kill {len(names)} runs?", *listed]), "Their"
    loss = f"{whose} processes end at once, without a chance to save; what was written so far stays in the log."
    answer: bool | None = await screen.ask(ConfirmDialog(question, loss=loss, yes="Kill"))
    return answer is True
