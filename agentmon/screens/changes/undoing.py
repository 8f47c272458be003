"""Undoing what runs, tasks and tool calls changed, from a screen: what that does is shown before it is done."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import NotFoundError
from agentmon.domain.executions import MOST_RUNS
from agentmon.widgets.cells import even_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import OperationId
    from agentmon.domain.operations import Operation
    from agentmon.screens.changes.undo_dialog import Planner
    from agentmon.screens.frame import ServiceScreen
    from agentmon.services.changes import RunChanges
    from agentmon.workspaces.undoing import UndoPlan

_LONGEST_NAME: Final = 200
_NOTHING: Final = "Nothing to undo: the files are as they were before"


async def undo_run(screen: ServiceScreen[None], found: RunChanges) -> bool:
    """Undo a run, all runs of its task, or redo what was undone last; the person chooses where there is a choice.

    Returns:
        Whether anything was done. Must run in a worker.

    Raises:
        AgentmonError: It cannot be undone; nothing was changed.
    """
    from agentmon.screens.dialogs.choice import Answer, ChoiceDialog  # noqa: PLC0415 - not part of the first frame

    services, execution = await screen.services(), found.execution
    await services.merges.require_unmerged(execution)
    runs = await services.executions.of_task(execution.task_id, limit=MOST_RUNS)
    run = _run_name(runs, execution)
    is_redo = await services.changes.is_last_undone(execution)
    plan = await services.changes.plan_undo(found)
    answers = {}
    if is_redo:
        answers["redo"] = "Redo", "brings back what the last undo of this run took."
    if plan.steps:
        answers["run"] = (f"Rest of {run}" if is_redo else run.capitalize()), "only what this run changed."
    changed = sum(bool(one.changed_files) for one in runs)
    if changed > 1:
        answers["task"] = f"All {changed} runs", "everything that this task changed, as one undo."
    if not answers:
        screen.notify(_NOTHING, markup=False)
        return False
    answer: str | None = next(iter(answers))
    if len(answers) > 1:
        detail = "\n".join(f"{label}: {what}" for label, what in answers.values())
        buttons = [Answer(name, label) for name, (label, _) in answers.items()]
        answer = await screen.ask(ChoiceDialog("Undo what?", detail=detail, answers=buttons))
    match answer:
        case "redo":
            planner: Planner = partial(services.changes.plan_redo, execution.task_id)
            heading = f"Redo what was undone of {run}?"
            return await carry_out(screen, execution, await planner(), planner, heading=heading, is_redo=True)
        case "run":
            planner = partial(services.changes.plan_undo, found)
            return await carry_out(screen, execution, plan, planner, heading=f"Undo {run} of {len(runs)}?")
        case "task":
            planner = partial(services.changes.plan_undo_of_task, runs)
            return await carry_out(screen, runs[0], await planner(), planner, heading=f"Undo all {changed} runs?")
        case _:
            return False


async def undo_call(screen: ServiceScreen[None], operation: Operation | None) -> bool:
    """Undo what a tool call changed, or redo that when it was undone last; as ``undo_run``.

    Args:
        screen: Where it is asked.
        operation: The call; None when the cursor is on none.
    """
    services = await screen.services()
    if operation is None or operation.execution_id is None or operation.number is None:
        raise NotFoundError("no tool call of a run is selected", hint="go to the row of a tool call")
    execution = await services.executions.get(operation.execution_id)
    await services.merges.require_unmerged(execution)
    is_redo = await services.changes.is_last_undone(execution, call=operation.id)
    planner: Planner = partial(services.changes.plan_undo_of_call, execution, operation.number)
    if is_redo:
        planner = partial(services.changes.plan_redo, execution.task_id)
    run = _run_name(await services.executions.of_task(execution.task_id, limit=MOST_RUNS), execution)
    name = even_line(f"{operation.tool_name} {operation.target}", max_characters=_LONGEST_NAME)
    what = f"tool call {operation.number} of {run}, {name}"
    heading = f"Redo what was undone of {what}?" if is_redo else f"Undo {what}?"
    return await carry_out(
        screen, execution, await planner(), planner, heading=heading, call=operation.id, is_redo=is_redo
    )


async def carry_out(
    screen: ServiceScreen[None],
    execution: Execution,
    plan: UndoPlan,
    planner: Planner,
    *,
    heading: str,
    call: OperationId | None = None,
    is_redo: bool = False,
) -> bool:
    """Show what a plan does, let sides of conflicts be chosen, and do it; return whether it was done.

    Args:
        screen: Where it is shown.
        execution: Whose changes are taken back; of several the newest.
        plan: What would be done.
        planner: Makes the plan again with ``choices``.
        heading: The question.
        call: The tool call, when it is the changes of one.
        is_redo: Whether an undo is taken back.
    """
    from agentmon.screens.changes.undo_dialog import UndoDialog  # noqa: PLC0415 - not part of the first frame

    if not plan.steps:
        screen.notify(_NOTHING, markup=False)
        return False
    services = await screen.services()
    chosen = await screen.ask(UndoDialog(plan, heading=heading, replan=planner, patch_of=services.changes.step_patch))
    if chosen is None:
        return False
    left = await services.changes.undo(execution, chosen, call=call, is_redo=is_redo, actor=services.actor)
    count = sum(step.is_done for step in chosen.steps) - len(left)
    files = f"{count} {'file' if count == 1 else 'files'}"
    again = "undoes it" if is_redo else "redoes it"
    key = "U" if call is None else "u"
    screen.notify(f"{'Redid' if is_redo else 'Undid'} {files} · {key} {again}", markup=False)
    for path in left:
        shown = even_line(path, max_characters=_LONGEST_NAME)
        screen.notify(f"{shown} was changed meanwhile and left alone", severity="warning", markup=False)
    return True


def _run_name(runs: Sequence[Execution], execution: Execution) -> str:
    """Return which of a task's runs it is; they come newest first."""
    return f"run {len(runs) - [one.id for one in runs].index(execution.id)}"
