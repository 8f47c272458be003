"""``agentmon attach``: the terminal handed over to the session of a run."""

import os
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.context import JsonOption, NumberArgument, WorkspaceOption, numbered_task, with_workspace
from agentmon.cli.output import flush, say_document, tell
from agentmon.domain.errors import ConflictError
from agentmon.domain.tasks import Workspace
from agentmon.runners.attach import AttachPlan
from agentmon.runners.host.signals import reset_signals


def attach(
    number: NumberArgument,
    folder: WorkspaceOption = None,
    is_read_only: Annotated[bool, typer.Option("--read-only", "-r", help="Watch without typing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Attach to the tmux session of a running task.

    ctrl+q comes back, and the run goes on.

    Examples:
      agentmon attach 12
      agentmon attach 12 --read-only
    """

    async def work(services: Services, workspace: Workspace) -> AttachPlan:
        task = await numbered_task(services, workspace, number)
        execution = await services.executions.newest(task.id)
        if execution is None:
            raise ConflictError(f"#{task.number} does not run", hint=f"agentmon run {task.number} starts it")
        return await services.attaching.plan(execution, environ=os.environ, read_only=is_read_only)

    plan = with_workspace(folder, work)
    if as_json:
        say_document(_plan_form(plan))
        return
    tell(plan.note)
    flush()
    reset_signals()
    os.execvpe(plan.argv[0], plan.argv, dict(plan.environ))


def _plan_form(plan: AttachPlan) -> dict[str, object]:
    """Return the plan; of the environment only what differs from this process's own, null for what is taken away."""
    names = sorted(plan.environ.keys() | os.environ.keys())
    return {
        "argv": list(plan.argv),
        "environ": {name: plan.environ.get(name) for name in names if plan.environ.get(name) != os.environ.get(name)},
        "note": plan.note,
    }
