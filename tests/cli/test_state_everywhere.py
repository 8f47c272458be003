"""One run in each of its states: every place shows the same state, the same time and the same need."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.amounts import DOLLARS
from agentmon.domain.board import ColumnRequest
from agentmon.domain.execution_columns import ExecutionColumn
from agentmon.domain.live_state import LiveState
from agentmon.domain.task_status import TaskStatus
from agentmon.store.moments import moment_text
from agentmon.widgets.card_text import card_lines
from agentmon.widgets.execution_cells import CELLS, Row
from agentmon.widgets.inbox_blocks import InboxItem
from agentmon.widgets.session_rows import session_rows, session_words
from agentmon.widgets.state_words import NO_WAIT, execution_words
from agentmon.worker.loop_report import write_loop_report
from tests.cli.stored_rows import change_rows
from tests.cli.test_inbox import Talk
from tests.idle_worker import idle_worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentmon.domain.executions import Execution
    from tests.cli.command_lines import CommandLine

SOON = moment_text(datetime.now(UTC) + timedelta(hours=5))
ENDED: dict[str, object] = {"activity": None, "end_reason": "exited"}


class Step(NamedTuple):
    """A state of the run as its row has it, and as a person sees it."""

    state: LiveState
    row: dict[str, object]
    word: str = ""
    """Of the state, where it is more than that."""
    is_unseen: bool = False
    """Whether no worker is at work, and the last sign of life of its host is five minutes old."""


STEPS = (
    Step(LiveState.QUEUED, {"status": "queued"}),
    Step(LiveState.NEEDS_YOU, {"status": "queued", "is_held": 1}),
    Step(LiveState.QUEUED, {"status": "queued", "wait_reason": "retry", "not_before": SOON}, "queued · retry at "),
    Step(LiveState.PARKED, {"status": "queued", "wait_reason": "usage_limit", "not_before": SOON}, "parked until "),
    Step(LiveState.RUNNING, {"status": "running"}),
    Step(LiveState.RUNNING, {"status": "running", "activity": "working"}),
    Step(LiveState.NEEDS_YOU, {"status": "running", "activity": "waiting"}),
    Step(LiveState.UNKNOWN, {"status": "running", "activity": "unknown"}),
    Step(LiveState.PAUSED, {"status": "running", "activity": "waiting", "paused_at": SOON}),
    Step(
        LiveState.STUCK,
        {"status": "running", "activity": "waiting", "error": "could not stop pid 12 (a)"},
        "could not stop pid 12",
    ),
    Step(LiveState.STOPPING, {"status": "cancelling", "activity": "waiting"}),
    Step(LiveState.FINALIZING, {"status": "finalizing"}),
    Step(LiveState.DONE, {"status": "succeeded", "exit_code": 0, **ENDED}),
    Step(LiveState.FAILED, {"status": "failed", "exit_code": 0, "error": "it has no login", **ENDED}),
    Step(LiveState.FAILED, {"status": "failed", "exit_code": 1, **ENDED}, "failed (exit 1)"),
    Step(LiveState.LOST, {"status": "failed", **ENDED, "end_reason": "lost"}),
    Step(LiveState.TIMED_OUT, {"status": "timed_out", "exit_code": 143, **ENDED}),
    Step(LiveState.CANCELLED, {"status": "cancelled", "exit_code": 143, **ENDED}),
    Step(LiveState.BUDGET_SPENT, {"status": "cancelled", "exit_code": 143, **ENDED, "end_reason": "budget"}),
)
UNSEEN_STEPS = (
    Step(LiveState.QUEUED, {"status": "queued"}, is_unseen=True),
    Step(LiveState.UNKNOWN, {"status": "running"}, "unknown · last seen 5m", is_unseen=True),
    Step(LiveState.UNKNOWN, {"status": "running", "activity": "working"}, "unknown · last seen 5m", is_unseen=True),
    Step(LiveState.NEEDS_YOU, {"status": "running", "activity": "waiting"}, "needs you · last seen 5m", is_unseen=True),
    Step(LiveState.UNKNOWN, {"status": "running", "paused_at": SOON}, "unknown · last seen 5m", is_unseen=True),
    Step(LiveState.UNKNOWN, {"status": "cancelling"}, "unknown · last seen 5m", is_unseen=True),
    Step(LiveState.UNKNOWN, {"status": "finalizing"}, "unknown · last seen 5m", is_unseen=True),
    Step(LiveState.DONE, {"status": "succeeded", "exit_code": 0, **ENDED}, is_unseen=True),
)
PLAIN: dict[str, object] = dict.fromkeys(
    ("activity", "activity_note", "end_reason", "error", "exit_code", "not_before", "paused_at", "wait_reason")
)


@pytest.fixture(scope="module")
def run(cli: CommandLine) -> Iterator[tuple[str, Execution]]:
    """The number of the only task, and its run."""
    cli("task", "list")
    with idle_worker(cli.paths):
        yield Talk(cli).begin("mend the login")


def set_row(cli: CommandLine, execution_id: str, step: Step) -> None:
    """Write a step; the run began 75 minutes before its end, or before its host was last heard of."""
    begun_at = datetime.now(UTC) - timedelta(minutes=80 if step.is_unseen else 75, seconds=20)
    is_queued = step.row["status"] == "queued"
    is_over = step.row["status"] in {"succeeded", "failed", "timed_out", "cancelled"}
    row = {
        **PLAIN,
        "is_held": 0,
        "started_at": None if is_queued else moment_text(begun_at),
        "log_updated_at": None if is_queued else moment_text(begun_at + timedelta(seconds=1)),
        "heartbeat_at": None if is_queued else moment_text(begun_at + timedelta(minutes=75)),
        "ended_at": moment_text(begun_at + timedelta(minutes=75)) if is_over else None,
        **step.row,
    }
    change_rows(
        cli,
        f"UPDATE executions SET {', '.join(f'{name} = ?' for name in row)} WHERE id = ?",
        *row.values(),
        execution_id,
    )
    # The worker of these tests lives; one whose last beat is old hangs.
    write_loop_report(cli.paths.worker_loops, (), at=datetime.now(UTC))
    if step.is_unseen:
        old = (datetime.now(UTC) - timedelta(minutes=5)).timestamp()
        os.utime(cli.paths.worker_loops, (old, old))


async def read_screens(cli: CommandLine) -> dict[str, str]:
    """Return what the widgets of each screen show of the only run."""
    async with open_services(cli.paths) as services:
        now = datetime.now(UTC)
        workspace = await services.workspaces.open(cli.workspace)
        requests = [ColumnRequest(status=status) for status in TaskStatus]
        page = await services.board.page(workspace, requests)
        (card,) = [card for column in page.columns.values() for card in column.cards]
        (listing,) = await services.executions.list(workspace)
        (session,) = await services.sessions.list(workspace.id)
        waiting = await services.executions.without_request(workspace)
        row = Row(listing, NO_WAIT, now, DOLLARS)
        task_page = execution_words(listing.execution, now)
        assert card.state is listing.execution.live_state is session.state
        return {
            "board": "\n".join("".join(part.text for part in line) for line in card_lines(card, width=70, now=now)),
            "executions": f"{CELLS[ExecutionColumn.STATE].text(row)} {CELLS[ExecutionColumn.ELAPSED].text(row)}",
            "task page": f"{task_page.text} {listing.execution.elapsed_text(now)}",
            "sessions": session_rows([session], now)[0].cells[0].text,
            "conversation": session_words(session).text,
            "inbox": " ".join(InboxItem(execution=one, since=now).key for one in waiting),
            "status line": str(page.status_line.needs_you),
        }


def find(documents: list[dict[str, Any]]) -> dict[str, Any]:
    (document,) = documents
    return document


@pytest.mark.proof
@pytest.mark.parametrize("steps", [STEPS, UNSEEN_STEPS], ids=["looked after", "by nobody"])
def test_every_place_shows_the_same_of_one_run_in_all_its_states(
    cli: CommandLine, run: tuple[str, Execution], steps: tuple[Step, ...]
) -> None:
    number, execution = run
    for step in steps:
        set_row(cli, execution.id, step)
        word = step.word or step.state.value
        shown = f"{step.state.glyph} {word}"
        screens = asyncio.run(read_screens(cli))
        texts = {
            **{name: screens[name] for name in ("executions", "task page")},
            "board --text": cli("board").stdout,
            "task show": cli("task", "show", number).stdout,
            "executions --text": cli("executions", environ={"COLUMNS": "160"}).stdout,
        }
        if step.state not in {LiveState.QUEUED, LiveState.PARKED} and step.row["status"] != "queued":
            assert {name for name, text in texts.items() if "1h15m" not in text} == set(), (step, texts)
            assert "1h15m" in screens["board"]
        if step.state is LiveState.PARKED or (step.state is LiveState.QUEUED and step.word):
            del texts["task show"]  # it says so in a sentence
        assert {name for name, text in texts.items() if shown not in text} == set(), (step, texts)

        assert not any("(exit 0)" in text for text in (*texts.values(), *screens.values()))
        assert step.state.glyph in screens["board"]
        for place in ("sessions", "conversation"):
            assert screens[place].startswith(f"{step.state.glyph} {step.state.value}"), place
        assert f"{step.state.glyph} {step.state.value}" in cli("conversation", number).stderr.splitlines()[0]
        assert cli("conversation", number, "--json").document()["state"] == step.state.value
        if step.row["status"] in {"queued", "succeeded", "failed", "timed_out", "cancelled"}:
            assert step.state.value in cli("attach", number).stderr
        assert cli("explain", number).stdout.startswith(f"#{number} {word}")
        is_unseen = step.is_unseen and step.row["status"] in {"running", "cancelling", "finalizing"}
        for document in (
            find(cli("executions", "--json").document()),
            cli("task", "show", number, "--json").document()["executions"][0],
            find(cli("sessions", "--json").document()),
        ):
            assert document["state"] == step.state.value, step
            assert "last_seen_at" not in document or (document["last_seen_at"] is not None) is is_unseen, step

        needs_you = int(step.state is LiveState.NEEDS_YOU)
        inbox = cli("inbox")
        assert cli("status", "--json").document()["needs_you"] == needs_you, step
        assert int(screens["status line"]) == needs_you, step
        assert screens["inbox"] == (f"execution-{execution.id}" if needs_you else "")
        assert [one["execution"]["id"] for one in cli("inbox", "--json").document()] == [execution.id] * needs_you
        assert (f"#{number} mend the login" in inbox.stdout) == bool(needs_you)


def test_every_state_is_walked_through() -> None:
    # A verification is a row beside that of the run.
    assert {step.state for step in STEPS} == set(LiveState) - {LiveState.VERIFYING}


@pytest.mark.proof
def test_every_place_says_how_old_it_may_be_while_no_worker_is_at_work(
    cli: CommandLine, run: tuple[str, Execution]
) -> None:
    number, execution = run
    for step in (STEPS[4], *UNSEEN_STEPS[:2]):
        set_row(cli, execution.id, step)
        status = cli("status", "--json").document()
        is_told = step.is_unseen

        assert status == cli("board", "--json").document()["status_line"]
        assert (status["worker_seen_at"] is not None) is is_told, step
        for words in ("status", "board", "tmux-status --plain"):
            assert ("?" in cli(*words.split()).stdout.splitlines()[0]) is is_told, (step, words)
        for words in ("executions", "task list", f"task show {number}", "inbox"):
            assert ("was last seen" in cli(*words.split()).stderr) is is_told, (step, words)
