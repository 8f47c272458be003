"""A board at work whose every letter is fixed, for pictures of screens."""

from __future__ import annotations

import re
import sqlite3
import time
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from textual.widgets import Input, TextArea

from agentmon.app import AgentmonApp
from agentmon.bootstrap import open_services
from agentmon.domain.clock import FakeClock
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import ExecutionRequest
from agentmon.domain.ids import ExecutionId, new_id
from agentmon.domain.task_status import Priority, TaskStatus
from agentmon.domain.tasks import InputContext, Schedule, TaskDraft
from agentmon.paths import find_paths
from agentmon.services.actors import USER_ACTOR
from agentmon.store.executions import ExecutionRepository
from agentmon.store.look_setting import USUAL_LOOK
from agentmon.store.moments import moment_text
from tests.idle_worker import idle_worker
from tests.screens.boards import Board, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    import pytest
    from textual.app import App

    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Task
    from agentmon.paths import Paths
    from agentmon.store.look_setting import Look

START = datetime(2026, 3, 4, 13, 30, tzinfo=UTC)
NOW = datetime(2026, 3, 4, 14, 2, tzinfo=UTC)
ROOT = Path("/home/ada/acme-api")
_FONT_FACE = re.compile(r"@font-face \{.*?\}", re.DOTALL)
_UNIQUE = re.compile(r"terminal-\d+-")
_TEST_LOG = b"".join(
    b"\x1b[32mPASSED\x1b[0m tests/test_login.py::test_case_%02d \x1b[2m[%3d%%]\x1b[0m\n" % (number, number * 2)
    for number in range(1, 49)
)


class Run(NamedTuple):
    """A run of a card, in minutes and seconds before now."""

    status: ExecutionStatus
    ago: timedelta = timedelta(minutes=5)
    took: timedelta = timedelta(seconds=41)
    output: bytes = b""
    exit_code: int | None = None
    columns: Mapping[str, object] = {}
    """What the row of the execution holds beside that."""


class Deed(NamedTuple):
    """A card of the board."""

    title: str
    argv: Sequence[str] = ()
    status: TaskStatus = TaskStatus.TODO
    priority: Priority = Priority.NORMAL
    run: Run | None = None
    waits_for: Sequence[int] = ()
    description: str = ""
    parent: int | None = None
    schedule: Schedule | None = None


_IN_AN_HOUR = NOW + timedelta(hours=1, minutes=2)
WAITING_DEEDS = (
    Deed(
        "Summarise the night's errors",
        ("claude", "-p", "…"),
        run=Run(
            ExecutionStatus.QUEUED,
            columns={
                "wait_reason": "usage_limit",
                "not_before": _IN_AN_HOUR,
                "error": "Claude usage limit reached, resets 3pm",
                "max_retries": 3,
                "retry_count": 1,
            },
        ),
        schedule=Schedule(cron="0 7 * * 1", zone="Europe/Berlin"),
    ),
    Deed("Rebuild the docs", ("make", "docs"), schedule=Schedule(cron="30 7 * * 1-5", zone="Europe/Berlin")),
    Deed(
        "Sync the mirror",
        ("rsync", "-a", "up:", "."),
        run=Run(ExecutionStatus.QUEUED, columns={"wait_reason": "scheduled", "not_before": _IN_AN_HOUR}),
    ),
    Deed("Release 2.0", ("make", "release")),
    Deed("Write the notes", ("make", "notes"), TaskStatus.DONE, parent=4),
    Deed("Tag the commit", ("git", "tag", "v2.0"), waits_for=(1, 2), parent=4),
    Deed(
        "Flaky upload",
        ("make", "upload"),
        TaskStatus.IN_PROGRESS,
        run=Run(
            ExecutionStatus.QUEUED,
            columns={"wait_reason": "retry", "not_before": NOW + timedelta(minutes=4), "max_retries": 3},
        ),
    ),
    Deed(
        "Train the model",
        ("python", "train.py"),
        TaskStatus.IN_PROGRESS,
        run=Run(ExecutionStatus.RUNNING, timedelta(minutes=20), output=b"epoch 4\n", columns={"paused_at": NOW}),
    ),
    Deed(
        "Watch the mail",
        ("sudo", "tail", "-f", "mail.log"),
        TaskStatus.IN_PROGRESS,
        run=Run(
            ExecutionStatus.CANCELLING,
            timedelta(minutes=9),
            columns={"error": "could not stop pid 4711 (tail)"},
        ),
    ),
    Deed(
        "Compact the database",
        ("make", "compact"),
        TaskStatus.BLOCKED,
        run=Run(
            ExecutionStatus.FAILED,
            timedelta(hours=1),
            columns={"end_reason": "lost", "error": "its host ended without a word"},
        ),
    ),
    Deed(
        "Index the archive",
        ("make", "index"),
        TaskStatus.DONE,
        run=Run(ExecutionStatus.SUCCEEDED, timedelta(minutes=20), output=b"done\n", exit_code=0),
    ),
)
"""Everything that keeps a run from starting or from going on."""


DEEDS = (
    Deed(
        "Fix the flaky login test",
        ("pytest", "-k", "login"),
        TaskStatus.IN_PROGRESS,
        Priority.HIGH,
        Run(ExecutionStatus.RUNNING, timedelta(minutes=4, seconds=12), output=_TEST_LOG),
        description="It fails about once in thirty runs.\n\nThe clock of the session is the likely cause.",
    ),
    Deed(
        "Index the queue table",
        ("make", "migration"),
        TaskStatus.IN_PROGRESS,
        run=Run(ExecutionStatus.CANCELLING, timedelta(seconds=38), output=b"creating index\n"),
    ),
    Deed("Rate limit per key", ("pytest", "tests/limits"), priority=Priority.URGENT),
    Deed("Document the error codes", run=Run(ExecutionStatus.QUEUED, timedelta(seconds=5)), argv=("make", "docs")),
    Deed("Übersetzung prüfen: 中文 und שלום 🎉", ("make", "lint")),
    Deed("Release notes for 2.0", priority=Priority.LOW),
    Deed(
        "Upgrade the dependencies",
        ("npm", "ci"),
        TaskStatus.BLOCKED,
        run=Run(
            ExecutionStatus.FAILED,
            timedelta(minutes=9),
            output=b"npm ERR! peer react@18 is required by widget@4\n",
            exit_code=1,
        ),
    ),
    Deed("Migrate to the second API", ("make", "migrate"), TaskStatus.BLOCKED, waits_for=(1, 2)),
    Deed(
        "Rename the billing module",
        ("ruff", "check"),
        TaskStatus.DONE,
        run=Run(ExecutionStatus.SUCCEEDED, timedelta(minutes=20), output=b"All checks passed!\n", exit_code=0),
    ),
    Deed(
        "Measure the cold start",
        ("python", "-X", "importtime", "-m", "acme"),
        TaskStatus.DONE,
        run=Run(ExecutionStatus.SUCCEEDED, timedelta(minutes=25), timedelta(seconds=3), b"412 ms\n", 0),
    ),
    Deed("Drop Python 3.10", status=TaskStatus.CANCELLED),
)


@asynccontextmanager
async def scene(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    size: tuple[int, int],
    deeds: Sequence[Deed] = DEEDS,
    look: Look = USUAL_LOOK,
    has_toasts: bool = False,
) -> AsyncIterator[Board]:
    """Open the application over these cards, with a clock that stands still and nothing that moves."""
    time.tzset()
    clock = FakeClock(START)
    monkeypatch.setenv("AGENTMON_REDUCED_MOTION", "1")
    monkeypatch.setattr("agentmon.bootstrap.SystemClock", lambda: clock)
    monkeypatch.setattr("agentmon.services.workspaces._resolved", lambda root: (root, True))
    paths = find_paths({"AGENTMON_HOME": str(folder / "agentmon")})
    await _fill(paths, clock, deeds)
    clock.present = NOW
    app = AgentmonApp(paths, ROOT, clock=clock, look=look)
    app.esc_doubt_s = app.split_sequence.within_s = app.replaced_doubt_s = 0.0
    with idle_worker(paths):
        async with app.run_test(size=size, notifications=has_toasts) as pilot:
            board = Board(app, pilot)
            await until(lambda: app._is_opened, "services are open")
            await board.settled()
            yield board
            assert not app.failures, app.failures


async def picture(board: Board) -> str:
    """Return what is shown as an SVG file that names no font to be fetched."""
    app = board.app
    for widget in app.screen.query("Input, TextArea").results(Input | TextArea):  # type: ignore[arg-type] # a union of widgets
        widget.cursor_blink = False
    await board.pilot.pause()
    await board.pilot._wait_for_screen()
    return svg_of(app)


def svg_of(app: App[None]) -> str:
    """Return what is shown at this moment as such a file."""
    svg = app.export_screenshot(title="agentmon", simplify=True)
    return _UNIQUE.sub("terminal-", _FONT_FACE.sub("", svg))


async def _fill(paths: Paths, clock: FakeClock, deeds: Sequence[Deed]) -> None:
    async with open_services(paths) as services:
        workspace = await services.workspaces.open(ROOT)
        agent = await services.agents.by_slug("command")
        tasks: list[Task] = []
        for deed in deeds:
            clock.move(timedelta(seconds=1))
            draft = TaskDraft(
                title=deed.title,
                description=deed.description,
                priority=deed.priority,
                assignee_agent_id=agent.id if deed.argv else None,
                input_context=InputContext(args={"argv": list(deed.argv)} if deed.argv else {}),
                parent_task_id=None if deed.parent is None else tasks[deed.parent - 1].id,
                schedule=deed.schedule,
            )
            tasks.append(await services.tasks.add(workspace, draft, actor=USER_ACTOR))
        for task, deed in reversed([*zip(tasks, deeds, strict=True)]):
            clock.move(timedelta(seconds=1))
            if deed.run is not None:
                await _run(services, clock, task, deed.run)
            if deed.status is not TaskStatus.TODO:
                await services.tasks.move(task.id, deed.status, actor=USER_ACTOR)
            for number in deed.waits_for:
                await services.tasks.add_dependency(task.id, number, actor=USER_ACTOR)


async def _run(services: Services, clock: FakeClock, task: Task, run: Run) -> None:
    agent = await services.agents.by_slug("command")
    execution_id = ExecutionId(new_id())
    log_path = services.paths.execution_dir(execution_id) / "output.log"
    log_path.parent.mkdir(parents=True)
    log_path.write_bytes(run.output)
    clock.present, present = NOW - run.ago, clock.present
    await ExecutionRepository(services.database).enqueue(
        ExecutionRequest(
            task_id=task.id, agent_id=agent.id, capability_id=agent.capabilities[0].id, args=task.input_context.args
        ),
        execution_id=execution_id,
        log_file_path=str(log_path),
        actor=USER_ACTOR,
        at=clock.now(),
    )
    clock.present = present
    last_line = re.sub(r"\x1b\[\d*m", "", run.output.decode().strip().rpartition("\n")[2])
    with closing(sqlite3.connect(services.paths.database_path)) as connection, connection:
        connection.execute(
            "UPDATE executions SET status = ?, started_at = ?, ended_at = ?, exit_code = ?, last_line = ?, error = ?,"
            " log_byte_size = ?, log_line_count = ? WHERE id = ?",
            (
                run.status.value,
                None if run.status is ExecutionStatus.QUEUED else moment_text(NOW - run.ago),
                None if run.status.is_open else moment_text(NOW - run.ago + run.took),
                run.exit_code,
                last_line or None,
                f"exit {run.exit_code}: {last_line}" if run.exit_code else None,
                len(run.output),
                run.output.count(b"\n"),
                execution_id,
            ),
        )
        for name, column in run.columns.items():
            stored = moment_text(column) if isinstance(column, datetime) else column
            connection.execute(f"UPDATE executions SET {name} = ? WHERE id = ?", (stored, execution_id))
