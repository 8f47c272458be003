"""``agentmon demo``: a board of tasks that really run, in a place of its own that is gone afterwards."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

import typer

from agentmon.bootstrap import Services
from agentmon.cli.board import board_lines, read_page
from agentmon.cli.calling import require_not_called
from agentmon.cli.columns import terminal_width
from agentmon.cli.context import JsonOption, with_services
from agentmon.cli.demo_place import DemoPlace, remove_leftovers
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.task_text import state_text
from agentmon.domain.board import BoardPage
from agentmon.domain.budgets import BudgetPeriod, BudgetScope
from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import AgentmonError, ConflictError
from agentmon.domain.executions import Execution
from agentmon.domain.tasks import Workspace
from agentmon.paths import DEMO_NAME, find_paths
from agentmon.services.demo import AddedDemoTask, add_demo_tasks, write_prices, write_project

_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_APP_ENDS_WITHIN_S = 10.0
_IMPORT_VARIABLE = "AGENTMON_COSTS_IMPORT_HISTORY"
"""The person's own history is none of the demo's business."""
_ALL_CARDS = 100
_MAX_RUNNING = 12
_ONE_AT_A_TIME = "make"


def demo(as_json: JsonOption = False) -> None:
    """Try everything in a scratch place that is removed after.

    Two dozen tasks run real programs found on this machine. Without a terminal, or with --json, it runs the tasks
    and prints the board when they are over.

    Examples:
      agentmon demo
      agentmon demo --json
    """
    require_not_called("it shows no demo", hint="a person starts it: `agentmon demo`")
    is_shown = not as_json and sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") not in {"", "dumb"}
    for folder in remove_leftovers():
        tell(f"note: removed what a killed demo left in {folder}")
    with _ending_by_exception(), _demo_place() as place:
        tell("setting the demo up …")
        write_project(place.project)
        write_prices(find_paths().prices_file)
        if is_shown:
            exit_code = _show(place)
        else:
            exit_code = 0
            page = with_services(lambda services: _run_all(services, place))
            if as_json:
                say_document(json_form(page))
            else:
                say("\n".join(board_lines(page, SystemClock().now(), terminal_width())))
    if is_shown:
        tell("the demo is over: its runs were ended and its folder is removed")
    raise typer.Exit(exit_code)


@contextmanager
def _demo_place() -> Iterator[DemoPlace]:
    """Give a place and its environment; afterwards everything in it is ended and removed, whatever happened."""
    kept = {name: os.environ.get(name) for name in ("AGENTMON_HOME", "AGENTMON_DATABASE_URL", _IMPORT_VARIABLE)}
    place = DemoPlace.make()
    os.environ["AGENTMON_HOME"] = str(place.home)
    os.environ.pop("AGENTMON_DATABASE_URL", None)
    os.environ[_IMPORT_VARIABLE] = "false"
    try:
        yield place
    finally:
        # Whoever is impatient now would leave processes behind.
        for number in (*_ENDING_SIGNALS, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        place.remove()
        for name, text in kept.items():
            if text is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = text


@contextmanager
def _ending_by_exception() -> Iterator[None]:
    """Turn the signals that end a process into an exception, so that the place is removed on the way out."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - the signature of handlers
        raise SystemExit(128 + number)

    earlier = {number: signal.signal(number, leave) for number in _ENDING_SIGNALS}
    earlier[signal.SIGINT] = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _show(place: DemoPlace) -> int:
    """Open the app on the demo and return its exit code.

    The app is a process of its own, so that neither its crash nor its end by force keeps the place from being removed.
    """
    app: subprocess.Popen[bytes] | None = None
    problems: tuple[str, ...] = ()

    async def open_board(services: Services) -> tuple[str, ...]:
        nonlocal app
        _workspace, added = await _filled(services, place)
        app = _start_app(place)
        # The cards begin to move under the eyes of the person.
        return await _start_runs(services, added)

    # Not ignored but handled, since what the app and the worker start would inherit the former.
    interrupt = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        problems = with_services(open_board)
        if app is None:
            return 1
        code = app.wait()
        return 128 - code if code < 0 else code
    finally:
        if app is not None:
            _end(app)
        signal.signal(signal.SIGINT, interrupt)
        for problem in problems:
            tell(f"note: {problem}")


def _start_app(place: DemoPlace) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "agentmon", str(place.project)],
        cwd=place.project,
        env={**os.environ, DEMO_NAME: "1"},
        pass_fds=(place.lock_file,),
    )


def _end(app: subprocess.Popen[bytes]) -> None:
    """End the app and let it restore the terminal; by force when it does not end."""
    if app.poll() is not None:
        return
    app.terminate()
    try:
        app.wait(_APP_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        app.kill()
        app.wait()


async def _run_all(services: Services, place: DemoPlace) -> BoardPage:
    """Run everything, stop what goes on for long once the rest is over, and return the board."""
    workspace, added = await _filled(services, place)
    for problem in await _start_runs(services, added):
        tell(f"note: {problem}")
    begun = [(entry, run) for entry in added if (run := await services.executions.newest(entry.task.id)) is not None]
    for entry, run in begun:
        if not entry.demo.is_long:
            await _tell_end(services, entry, run)
    # The last first: what waits for another would start when that one is stopped.
    long = [(entry, run) for entry, run in begun if entry.demo.is_long]
    for entry, _ in reversed(long):
        # One whose budget is spent has ended by itself.
        with suppress(ConflictError):
            await services.queue.stop(entry.task.id, actor=services.actor)
    for entry, run in long:
        await _tell_end(services, entry, run)
    return await read_page(services, workspace, _ALL_CARDS)


async def _tell_end(services: Services, entry: AddedDemoTask, run: Execution) -> None:
    ended = await services.queue.wait(run.id)
    tell(f"#{entry.task.number} {state_text(ended, SystemClock().now())}")


async def _filled(services: Services, place: DemoPlace) -> tuple[Workspace, tuple[AddedDemoTask, ...]]:
    workspace = await services.workspaces.open(place.project)
    # Those that wait for a person would take the places of all others.
    await services.settings.set("worker.max_running", str(_MAX_RUNNING), actor=services.actor)
    await services.settings.set("workspace.max_per_folder", "0", actor=services.actor, workspace=workspace)
    added = await add_demo_tasks(services.tasks, services.agents, workspace)
    if any(entry.demo.slug == _ONE_AT_A_TIME for entry in added):
        await services.agents.limit(_ONE_AT_A_TIME, 1, actor=services.actor)
    for entry in added:
        if entry.demo.budget_nano is not None:
            await services.budgets.set(
                scope=BudgetScope.TASK,
                scope_id=entry.task.id,
                period=BudgetPeriod.TOTAL,
                limit=entry.demo.budget_nano,
                actor=services.actor,
            )
    return workspace, added


async def _start_runs(services: Services, added: tuple[AddedDemoTask, ...]) -> tuple[str, ...]:
    """Queue every task that the demo starts and return what could not be, each problem once."""
    problems: dict[str, None] = {}
    for entry in added:
        if not entry.demo.is_started:
            continue
        starts_in = entry.demo.starts_in
        not_before = None if starts_in is None else SystemClock().now() + starts_in
        try:
            await services.queue.run(entry.task.id, actor=services.actor, environ=os.environ, not_before=not_before)
            if entry.demo.is_taken_back:
                await services.queue.stop(entry.task.id, actor=services.actor)
        except AgentmonError as error:
            problems[f"{error}; {error.hint}" if error.hint else str(error)] = None
    return tuple(problems)
