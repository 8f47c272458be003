"""``agentmon worker``: the background process that runs what is queued."""

from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.pausing import pause_note
from agentmon.paths import find_paths
from agentmon.worker.presence import WorkerInfo


def worker(
    is_stopping: Annotated[
        bool, typer.Option("--stop", help="Stop the worker; what runs goes on, and the next worker takes it over.")
    ] = False,
    is_status: Annotated[bool, typer.Option("--status", help="Tell whether it runs.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run the background worker in the foreground, look at it, or stop it.

    The other commands start one by themselves; in the foreground it is for a service manager.

    Examples:
      agentmon worker
      agentmon worker --status --json
      agentmon worker --stop
    """
    if is_stopping and is_status:
        raise typer.BadParameter("--stop and --status exclude each other")
    if is_stopping:
        was_running, status = with_services(_stop)
        if as_json:
            say_document(json_form(status))
        else:
            say("the worker has stopped" if was_running else "no worker was running")
    elif is_status:
        status, note = with_services(_look)
        if as_json:
            say_document(json_form(status))
        else:
            say(_status_text(status))
            if note:
                tell(note)
    else:
        _run_in_foreground(as_json=as_json)


async def _stop(services: Services) -> tuple[bool, WorkerInfo]:
    was_running = await services.workers.stop()
    return was_running, await services.workers.status()


async def _look(services: Services) -> tuple[WorkerInfo, str]:
    return await services.workers.status(), await pause_note(services)


def _run_in_foreground(*, as_json: bool) -> None:
    if as_json:
        raise typer.BadParameter("--json needs --stop or --status")
    from agentmon.worker.main import run_foreground  # noqa: PLC0415 - the other commands need no worker

    note = with_services(pause_note)
    tell("worker in the foreground; ctrl+c stops it, what runs goes on")
    if note:
        tell(note)
    raise typer.Exit(run_foreground(find_paths()))


def _status_text(status: WorkerInfo) -> str:
    if not status.is_running:
        return "no worker is running; the next run starts one"
    facts = [f"pid {status.pid}" if status.pid else "starting", f"agentmon {status.version}" if status.version else ""]
    return "the worker is running: " + ", ".join(fact for fact in facts if fact)
