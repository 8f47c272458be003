"""``agentmon pause`` and ``resume``: the whole queue halted and let go, and the line that says that it is halted."""

import asyncio
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.json_form import json_form
from agentmon.cli.local_time import local_words
from agentmon.cli.output import say, say_document, tell
from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import ConflictError
from agentmon.domain.live_state import elapsed_text
from agentmon.domain.pause import QueuePause
from agentmon.store.status_counts import find_status_counts


def pause(
    halts_running: Annotated[bool, typer.Option("--running", help="Also halt what runs, where it is.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Pause the queue everywhere, until `agentmon resume`.

    What runs may finish; with --running it is halted where it is. The pause outlives every restart.

    Examples:
      agentmon pause
      agentmon pause --running
    """

    async def work(services: Services) -> tuple[QueuePause, int, int]:
        present = await services.queue.find_pause()
        try:
            made = await services.queue.pause(actor=services.actor, halts_running=halts_running)
        except ConflictError as error:
            since = f" since {local_words(present.since)}" if present is not None else ""
            raise ConflictError(f"{error}{since}", hint=error.hint) from error
        return made, *await _open_counts(services)

    made, running, queued = with_services(work)
    if as_json:
        say_document(_document(made, running, queued))
        return
    if running == 1:
        fate = "1 running is halted where it is" if halts_running else "1 running goes on to its end"
    else:
        fate = f"{running} running " + ("are halted where they are" if halts_running else "go on to their end")
    say(f"the queue is paused: {queued} queued, {fate if running else 'nothing runs'}")
    tell("agentmon resume lets it go on")


def resume(as_json: JsonOption = False) -> None:
    """Resume the queue, and whatever was halted.

    Examples:
      agentmon resume
    """

    async def work(services: Services) -> tuple[QueuePause, int, int]:
        return await services.queue.resume(actor=services.actor), *await _open_counts(services)

    ended, running, queued = with_services(work)
    if as_json:
        say_document(_document(ended, running, queued))
    else:
        say(f"the queue goes on: {queued} queued, {running} running")


async def pause_note(services: Services) -> str:
    """Return the line that tells of a pause in force; empty when there is none."""
    present = await services.queue.find_pause()
    if present is None:
        return ""
    return f"note: the queue is paused since {local_words(present.since)}; agentmon resume lets it go on"


async def silence_note(services: Services) -> str:
    """Return the line that says what no worker looks after; empty while one is at work, or none is needed."""
    running, queued = await _open_counts(services)
    seen_at = await services.sightings.worker_missed_since(is_running=running > 0) if running or queued else None
    if seen_at is None:
        return ""
    ago = elapsed_text(seen_at, None, SystemClock().now())
    what = "runs are shown as they were then" if running else "queued runs start once `agentmon` has started a worker"
    return f"note: the worker was last seen {ago} ago; {what}"


async def _open_counts(services: Services) -> tuple[int, int]:
    """Return how many executions have or may have a process, and how many wait, over all workspaces."""
    counts = await asyncio.to_thread(find_status_counts, str(services.paths.database_path))
    return (counts.running, counts.queued) if counts is not None else (0, 0)


def _document(made: QueuePause, running: int, queued: int) -> dict[str, object]:
    return {"since": json_form(made.since), "halts_running": made.halts_running, "running": running, "queued": queued}
