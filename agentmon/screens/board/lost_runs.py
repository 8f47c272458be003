"""Runs that were lost with their host or the machine: told once, and run again on demand."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from agentmon.screens.tasks.running import named_tasks, run_tasks
from agentmon.widgets.cells import even_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agentmon.bootstrap import Services
    from agentmon.domain.ids import ExecutionId
    from agentmon.domain.tasks import Task, Workspace
    from agentmon.screens.frame import ServiceScreen

LOST_SINCE: Final = timedelta(days=1)
"""How far back lost runs are told at the start and run again; older ones stay on the board."""
_OVERLAP: Final = timedelta(minutes=2)
"""The end of a run is written a little after the time that stands in it."""
_MOST_TOLD: Final = 3
_LONGEST_TITLE: Final = 40
_RUN: Final = "run"


class LostRunWatch:
    """Finds the lost runs that were not told yet."""

    def __init__(self) -> None:
        self._told: set[ExecutionId] = set()
        self._looked_at: datetime | None = None

    async def find_news(self, services: Services, workspace: Workspace, now: datetime) -> str:
        """Return one line that names what was lost since the last look, and what helps; empty when nothing was."""
        is_first, since = self._looked_at is None, now - LOST_SINCE
        if self._looked_at is not None:
            since = self._looked_at - _OVERLAP
        self._looked_at = now
        fresh = []
        for task in await services.queue.lost_tasks(workspace, since=since):
            newest = await services.executions.newest(task.id)
            if newest is not None and newest.id not in self._told:
                self._told.add(newest.id)
                fresh.append(task)
        told = [_told_words(fresh), _stray_words(len(await services.sightings.strays())) if is_first else ""]
        return "\n".join(filter(None, told))


async def run_lost_again(screen: ServiceScreen[None], now: datetime) -> None:
    """Ask, naming them, and run the tasks again whose runs were lost. Must run in a worker of the screen."""
    from agentmon.screens.dialogs.choice import Answer, ChoiceDialog  # noqa: PLC0415 - not part of the first frame

    services = await screen.services()
    tasks = await services.queue.lost_tasks(await screen.workspace(), since=now - LOST_SINCE)
    if not tasks:
        screen.notify("No run was lost within the last day")
        return
    names = named_tasks([(task.number, task.title) for task in tasks])
    is_one = len(tasks) == 1
    question = f"Run {names[0]} again?" if is_one else "\n".join([f"Run {len(tasks)} lost tasks again?", *names])
    detail = (
        f"{'Its run' if is_one else 'Their runs'} ended without a word: killed, or the machine went down. "
        "Look first whether running twice does harm."
    )
    answers = [Answer(_RUN, "Run again" if is_one else "Run all again")]
    if await screen.ask(ChoiceDialog(question, detail=detail, answers=answers)) == _RUN:
        await run_tasks(screen, [task.id for task in tasks], now=now)


def _stray_words(count: int) -> str:
    if not count:
        return ""
    runs = "1 run goes" if count == 1 else f"{count} runs go"
    return f"{runs} on that this database does not have: another one took its place · `agentmon doctor` says more"


def _told_words(tasks: Sequence[Task]) -> str:
    if not tasks:
        return ""
    names = [f"#{task.number} {even_line(task.title, max_characters=_LONGEST_TITLE)}" for task in tasks[:_MOST_TOLD]]
    if len(tasks) > _MOST_TOLD:
        names.append(f"{len(tasks) - _MOST_TOLD} more")
    if len(tasks) == 1:
        return f"The run of {names[0]} was lost · r on the card runs it again"
    return f"{len(tasks)} runs were lost: {', '.join(names)} · r on a card runs it again, ctrl+l all of them"
