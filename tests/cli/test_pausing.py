from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.command_lines import CommandLine


@pytest.fixture(autouse=True)
def _not_paused_afterwards(cli: CommandLine) -> Iterator[None]:
    yield
    cli("resume")


def test_nothing_starts_while_the_queue_is_paused_and_all_of_it_afterwards(cli: CommandLine) -> None:
    number = cli.add("waits for the pause", "--command", "true")

    paused = cli("pause", "--json").document()
    queued = cli("run", number)
    resumed = cli("resume", "--json").document()

    assert (paused["halts_running"], paused["running"]) == (False, 0)
    assert queued.stdout == f"{number} ◌ queued, queue is paused\n"
    assert resumed["since"] == paused["since"]
    wait_for(lambda: _state(cli, number) == "succeeded")


def test_a_pause_says_how_many_wait_and_run(cli: CommandLine) -> None:
    paused = cli("pause")
    number = cli.add("waits", "--command", "true")
    cli("run", number, "--at", "in 2h")
    resumed = cli("resume")

    assert paused.stdout == "the queue is paused: 0 queued, nothing runs\n"
    assert "agentmon resume" in paused.stderr
    assert resumed.stdout == "the queue goes on: 1 queued, 0 running\n"


def test_pausing_twice_and_resuming_twice_are_told(cli: CommandLine) -> None:
    cli("pause")

    again = cli("pause")
    extended = cli("pause", "--running")
    cli("resume")
    resumed = cli("resume")

    assert (again.code, again.stdout) == (1, "")
    assert again.stderr.startswith("error: the queue is paused already since ")
    assert "agentmon resume" in again.stderr
    assert extended.code == 0
    assert resumed.stderr == "error: the queue is not paused\n"
    assert resumed.code == 1


def test_what_runs_is_halted_where_it_is_and_goes_on(cli: CommandLine) -> None:
    number = cli.add("halted", "--command", "sh -c 'while sleep 0.05; do echo tick; done'")
    cli("run", number)
    wait_for(lambda: "tick" in cli("log", number).stdout)

    paused = cli("pause", "--running")
    wait_for(lambda: cli("executions", "--task", number).stdout.splitlines()[1].startswith("‖ paused"))
    cli("resume")

    assert "1 running is halted where it is" in paused.stdout
    wait_for(lambda: cli("executions", "--task", number).stdout.splitlines()[1].startswith("● running"))
    assert cli("stop", number, "--kill", "--wait").code == 0


def test_board_executions_and_worker_say_that_the_queue_is_paused(cli: CommandLine) -> None:
    cli("pause")

    board = cli("board")
    others = [cli("executions"), cli("worker", "--status")]
    machine = cli("executions", "--json")

    assert board.stdout.splitlines()[0].endswith("‖ paused")
    assert all("note: the queue is paused since" in other.stderr for other in others)
    assert machine.stderr == ""


def _state(cli: CommandLine, number: str) -> str:
    return str(cli("executions", "--task", number, "--json").document()[0]["status"])
