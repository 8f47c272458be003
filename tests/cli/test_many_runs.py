from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.stored_rows import change_rows
from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


def test_several_tasks_run_by_one_command_and_each_failure_is_told(cli: CommandLine) -> None:
    good = [cli.add(f"good {place}", "--command", "true") for place in range(2)]
    empty = cli.add("without a program")

    ended = cli("run", good[0], empty, "99", f"#{good[1]}", "--wait", "--json")

    assert ended.code == 1
    assert f"error: #{empty} has no program to run" in ended.stderr
    assert "error: there is no task #99" in ended.stderr
    assert ended.stdout.count('"status": "succeeded"') == 2


@pytest.mark.parametrize(("last", "code"), [("true", 0), ("sh -c 'exit 7'", 1)])
def test_waiting_for_several_tells_whether_all_succeeded(cli: CommandLine, last: str, code: int) -> None:
    numbers = [cli.add("one", "--command", "true"), cli.add("other", "--command", last)]

    ended = cli("run", *numbers, "--wait")

    assert ended.code == code
    assert all(f"#{number} " in ended.stderr for number in numbers)


def test_a_run_starts_at_its_time_or_at_once_when_it_is_asked_for_again(cli: CommandLine) -> None:
    number = cli.add("later", "--command", "true")

    queued = cli("run", number, "--at", "in 2h")
    again = cli("run", number, "--at", "in 3h")
    shown = cli("task", "show", number).stdout
    hastened = cli("run", number)

    assert queued.stdout.startswith(f"{number} ◌ queued, starts at ")
    assert again.code == 1
    assert "◌ queued, starts at " in shown
    assert hastened.stdout == f"{number} ◌ queued\n"
    wait_for(lambda: _status(cli, number) == "succeeded")


def test_a_run_that_is_to_start_when_ready_follows_the_task_it_waits_for(cli: CommandLine) -> None:
    first = cli.add("first", "--command", "true")
    added = cli("task", "add", "second", "--command", "true", "--after", first, "--run", "--when-ready")
    second = added.stdout.split()[0].removeprefix("#")

    cli("run", first, "--wait")

    assert f"◌ queued, starts after #{first}" in added.stderr
    wait_for(lambda: _status(cli, second) == "succeeded")


def test_a_task_that_waits_says_how_to_let_it_start_by_itself(cli: CommandLine) -> None:
    first = cli.add("first", "--command", "true")
    second = cli.add("second", "--command", "true", "--after", first)

    refused = cli("run", second)
    queued = cli("run", second, "--when-ready")

    assert refused.code == 1
    assert f"agentmon run {second} --when-ready" in refused.stderr
    assert queued.stdout == f"{second} ◌ queued, starts after #{first} (not queued)\n"
    cli("stop", second)


def test_a_parked_run_says_until_when_and_why(cli: CommandLine) -> None:
    number = cli.add("parked", "--command", "true")
    cli("run", number, "--at", "in 2h")
    change_rows(
        cli,
        "UPDATE executions SET wait_reason = 'usage_limit', error = ? WHERE wait_reason = 'scheduled'",
        "usage limit reached",
    )

    shown = cli("task", "show", number).stdout
    listed = cli("executions", "--task", number).stdout

    assert "⏸ parked until " in shown
    assert ": usage limit reached" in shown
    assert "parked until " in listed
    cli("stop", number)


@pytest.mark.proof
def test_lost_runs_run_again_all_at_once(cli: CommandLine) -> None:
    lost = [cli.add(f"lost {place}", "--command", "true") for place in range(2)]
    cli("run", *lost, "--wait")
    for number in lost:
        cli("task", "move", number, "todo")
        cli("task", "move", number, "blocked")
        execution = cli("executions", "--task", number, "--json").document()[0]
        change_rows(cli, "UPDATE executions SET status = 'failed', end_reason = 'lost' WHERE id = ?", execution["id"])

    shown = cli("task", "show", lost[0]).stdout
    ended = cli("run", "--lost", "--wait", "--json")
    again = cli("run", "--lost")

    assert f"agentmon run {lost[0]} runs it again" in shown
    assert {execution["status"] for execution in ended.document()} == {"succeeded"}
    assert all(f"#{number} ◌ queued" in ended.stderr for number in lost)
    assert (again.code, again.stdout) == (0, "")
    assert "was lost" in again.stderr


def test_several_runs_stop_by_one_command(cli: CommandLine) -> None:
    numbers = [cli.add(f"long {place}", "--command", "sleep 600") for place in range(2)]
    idle = cli.add("idle", "--command", "true")
    cli("run", *numbers)

    stopped = cli("stop", *numbers, idle, "--kill", "--wait")

    assert stopped.code == 1
    assert f"error: #{idle}: nothing of this task is queued or running" in stopped.stderr
    assert stopped.stdout == "".join(f"{number} ⊘ cancelled\n" for number in numbers)


@pytest.mark.proof
def test_all_runs_stop_after_a_question_that_says_how_many(cli: CommandLine) -> None:
    numbers = [cli.add(f"long {place}", "--command", "sleep 600") for place in range(2)]
    cli("run", *numbers)

    refused = cli("stop", "--all")
    declined = _answered(cli, "n\n")
    stopped = cli("stop", "--all", "--yes", "--kill", "--wait", "--json").document()
    nothing = cli("stop", "--all")

    assert refused.code == 2
    assert "this would stop 2" in refused.stderr
    assert "--yes" in refused.stderr
    assert (declined[0], "Stop 2 that wait or run?" in declined[1]) == (1, True)
    assert {execution["status"] for execution in stopped} == {"cancelled"}
    assert (nothing.code, nothing.stderr) == (0, "nothing waits or runs\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run",), "which task?"),
        (("run", "1", "--lost"), "exclude each other"),
        (("run", "1", "--at", "yesterday"), "'yesterday' is not understood"),
        (("run", "1", "--at", "2020-01-01 07:00"), "is in the past"),
        (("stop",), "which task?"),
        (("stop", "1", "--all"), "exclude each other"),
        (("task", "add", "x", "--when-ready"), "need --run"),
    ],
)
def test_wrong_words_for_runs_are_told(cli: CommandLine, words: tuple[str, ...], sentence: str) -> None:
    ended = cli(*words)

    assert (ended.code, ended.stdout) == (2, "")
    assert sentence in ended.stderr
    assert "hint: " in ended.stderr


def _status(cli: CommandLine, number: str) -> str:
    return str(cli("executions", "--task", number, "--json").document()[0]["status"])


def _answered(cli: CommandLine, answer: str) -> tuple[int, str]:
    """Run ``stop --all`` on a terminal, answer its question, and return its exit code and standard error."""
    controller, terminal = pty.openpty()
    os.write(controller, answer.encode())
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "agentmon", "stop", "--all"],
        cwd=cli.workspace,
        env=cli.environ,
        stdin=terminal,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    os.close(controller)
    os.close(terminal)
    return ended.returncode, ended.stdout + ended.stderr
