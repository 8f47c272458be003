"""``agentmon worker``: the background process that runs what is queued."""

from dataclasses import fields
from datetime import datetime
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.calling import require_not_called
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.pausing import pause_note
from agentmon.domain.background_loops import LoopState
from agentmon.domain.clock import SystemClock
from agentmon.paths import find_paths
from agentmon.services.background import Trouble, WorkerHealth, loop_text
from agentmon.worker.presence import WorkerInfo


def worker(
    is_stopping: Annotated[
        bool, typer.Option("--stop", help="Stop the worker; what runs goes on, and the next worker takes it over.")
    ] = False,
    is_status: Annotated[bool, typer.Option("--status", help="Tell whether it runs, and how its loops fare.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run the background worker here, look at it, or stop it.

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
        status, health, troubles, note = with_services(_look)
        if as_json:
            say_document(_status_document(status, health))
        else:
            say(_status_text(status))
            for line in _loop_lines(health, SystemClock().now()):
                say(line)
            for trouble in troubles:
                tell(f"warning: {trouble.text}\nhint: {trouble.hint}")
            if note:
                tell(note)
    else:
        require_not_called("it runs no worker", hint="the next command starts one by itself")
        _run_in_foreground(as_json=as_json)


async def _stop(services: Services) -> tuple[bool, WorkerInfo]:
    was_running = await services.workers.stop(actor=services.actor)
    return was_running, await services.workers.status()


async def _look(services: Services) -> tuple[WorkerInfo, WorkerHealth, tuple[Trouble, ...], str]:
    background = services.background
    note = await pause_note(services)
    return await services.workers.status(), await background.worker(), await background.troubles(), note


def _status_document(status: WorkerInfo, health: WorkerHealth) -> dict[str, object]:
    now = SystemClock().now()
    loops = [_form(loop) | {"condition": loop.condition(now).value} for loop in health.loops]
    return _form(status) | {"is_halted": health.is_halted, "silent_s": health.silent_s, "loops": loops}


def _form(part: LoopState | WorkerInfo) -> dict[str, object]:
    return {field.name: json_form(getattr(part, field.name)) for field in fields(part)}


def _loop_lines(health: WorkerHealth, now: datetime) -> list[str]:
    width = max((len(loop.name) for loop in health.loops), default=0)
    return [f"  {loop.name:<{width}}  {loop_text(loop, now)}" for loop in health.loops]


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
