from __future__ import annotations

import hashlib
import os
import pty
import select
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


def test_a_run_that_is_waited_for_tells_how_it_ended(cli: CommandLine) -> None:
    number = cli.add("succeeds", "--command", "sh -c 'printf \"one\\ntwo\\n\"'")

    ended = cli("run", number, "--wait", "--json")

    execution = ended.document()
    assert execution["status"] == "succeeded"
    assert execution["exit_code"] == 0
    assert cli("log", number).stdout == "one\ntwo\n"
    assert cli("task", "show", number, "--json").document()["status"] == "done"


@pytest.mark.parametrize("code", [1, 3, 255])
def test_the_exit_code_of_a_failed_run_is_that_of_its_program(cli: CommandLine, code: int) -> None:
    number = cli.add("fails", "--command", f"sh -c 'exit {code}'")

    ended = cli("run", number, "--wait")

    assert ended.code == code
    assert f"failed (exit {code})" in ended.stderr
    assert ended.stdout == ""


def test_adding_and_running_are_one_command(cli: CommandLine) -> None:
    added = cli("task", "add", "at once", "--command", "echo at once", "--run", "--json").document()
    number = str(added["number"])

    wait_for(lambda: cli("log", number).stdout == "at once\n" if _has_run(cli, number) else False)

    assert cli("executions", "--task", number, "--json").document()[0]["task_number"] == added["number"]


def test_a_program_that_is_not_there_is_told_before_anything_starts(cli: CommandLine) -> None:
    number = cli.add("no such program", "--command", "no-such-program-anywhere")

    ended = cli("run", number, "--wait")

    assert ended.code == 1
    assert "no-such-program-anywhere" in ended.stderr
    assert cli("executions", "--task", number, "--json").document() == []


def test_a_task_that_waits_for_another_is_refused_with_its_number(cli: CommandLine) -> None:
    first = cli.add("first", "--command", "true")
    second = cli.add("second", "--command", "true", "--after", first)

    refused = cli("run", second)
    cli("run", first, "--wait")
    allowed = cli("run", second, "--wait")

    assert refused.code == 1
    assert f"#{first}" in refused.stderr
    assert allowed.code == 0


def test_a_run_takes_other_arguments_than_its_task(cli: CommandLine) -> None:
    number = cli.add("script", "--agent", "sh", "--with", "script", "--arg", "script=echo own")

    cli("run", number, "--arg", "script=echo other", "--wait")
    cli("run", number, "--wait", "--command", "echo third")

    executions = cli("executions", "--task", number, "--json").document()
    logs = [cli("log", number, "--execution", execution["id"]).stdout for execution in executions]
    assert logs == ["third\n", "other\n"]


def test_no_shell_touches_the_words_of_a_command(cli: CommandLine) -> None:
    word = '$(touch made) `touch made` ; " \\ ! #{pane_id} ${HOME}'
    number = cli.add("quoting", "--command", f"printf %s '{word}'")

    cli("run", number, "--wait")

    assert cli("log", number, "--raw").stdout == word
    assert not (cli.workspace / "made").exists()


def test_a_variable_that_is_passed_reaches_the_program_and_no_file(cli: CommandLine) -> None:
    number = cli.add("passes", "--command", "sh -c 'printf %s \"$GREETING\" | tr a-z A-Z'", "--env", "GREETING")

    cli("run", number, "--wait", environ={"GREETING": "sentinel-of-the-test"})

    stored = b"".join(path.read_bytes() for path in cli.home.rglob("*") if path.is_file())
    assert cli("log", number).stdout == "SENTINEL-OF-THE-TEST\n"
    assert b"sentinel-of-the-test" not in stored


def test_raw_bytes_and_clean_text_are_both_there(cli: CommandLine) -> None:
    script = r"printf 'a\033[31mred\033[0m\n10%%\r 20%%\r 30%%\n\377\n'"
    number = cli.add("raw", "--command", f'sh -c "{script}"')
    cli("run", number, "--wait")

    raw = cli.run_for_bytes("log", number, "--raw")
    document = cli("log", number, "--json").document()

    assert raw == b"a\x1b[31mred\x1b[0m\n10%\r 20%\r 30%\n\xff\n"
    assert document["lines"] == ["ared", " 30%", "�"]
    assert document["size_bytes"] == len(raw)
    assert document["line_count"] == 3
    assert cli("log", number, "-n", "2").stdout == " 30%\n�\n"
    assert document["execution_id"] in document["path"]
    assert cli("log", number, "--color").stdout == "a\x1b[31mred\x1b[0m\n 30%\n�\n"


def test_a_part_of_a_log_is_named_by_lines_shares_times_and_what_matches(cli: CommandLine) -> None:
    number = cli.add("parts", "--command", "sh -c 'seq -f \"step %g\" 100'")
    cli("run", number, "--wait")

    def lines(*options: str) -> list[str]:
        return cli("log", number, *options).stdout.splitlines()

    assert lines("--from", "98") == ["step 98", "step 99", "step 100"]
    assert lines("--from", "3", "--to", "4") == ["step 3", "step 4"]
    assert lines("--grep", "STEP 9$".lower()) == ["step 9"]
    assert lines("--grep", "9$", "-n", "2", "--to", "90") == ["step 79", "step 89"]
    assert lines("-f", "--grep", "0$", "--from", "85") == ["step 90", "step 100"]
    assert lines("--from", "+0s", "--to", "99%")[:2] == ["step 1", "step 2"]
    assert cli.run_for_bytes("log", number, "--raw", "-g", "7 ?7") == b"step 77\n"
    document = cli("log", number, "--json", "--grep", "step 2.", "--from", "21").document()
    assert document["lines"][0] == "step 21"
    assert document["offsets"][0] == len("".join(f"step {line}\n" for line in range(1, 21)))
    assert document["stream"] == "output"
    nothing = cli("log", number, "--grep", "absent")
    assert (nothing.code, nothing.stdout, "no line matches" in nothing.stderr) == (1, "", True)
    assert "no errors apart" in cli("log", number, "--stream", "errors").stderr
    for wrong in (("-f", "--to", "3"), ("--from", "9", "--to", "3"), ("--grep", "("), ("--from", "when")):
        assert cli("log", number, *wrong).code == 2


def test_a_followed_log_ends_with_the_run_and_misses_nothing(cli: CommandLine) -> None:
    number = cli.add("counts", "--command", "sh -c 'for i in 1 2 3 4 5 6; do echo line $i; sleep 0.15; done'")
    cli("run", number)

    raw = cli.start("log", number, "-f", "--raw")
    clean = cli.start("log", number, "-f")
    raw_output, _ = raw.communicate(timeout=40)
    clean_output, _ = clean.communicate(timeout=40)

    expected = b"".join(b"line %d\n" % count for count in range(1, 7))
    assert hashlib.sha256(raw_output).digest() == hashlib.sha256(expected).digest()
    assert clean_output == expected


@pytest.mark.proof
def test_a_followed_log_shows_a_line_that_is_not_finished_and_finishes_it(cli: CommandLine) -> None:
    number = cli.add("asks", "--command", "sh -c 'printf \"password: \"; read answer; echo got it'")
    cli("run", number)
    following = cli.start_alone("log", number, "-f")
    assert following.stdout is not None

    assert following.stdout.read(len(b"password: ")) == b"password: "
    assert cli("stop", number, "--wait").code == 0
    rest, _ = following.communicate(timeout=60)
    assert rest == b"\n"


@pytest.mark.proof
def test_a_follower_whose_reader_goes_away_ends_quietly_and_so_does_an_interrupted_one(cli: CommandLine) -> None:
    number = cli.add("talks on", "--command", "sh -c 'while echo line; do sleep 0.1; done'")
    cli("run", number)
    left, interrupted = cli.start_alone("log", number, "-f"), cli.start_alone("log", number, "-f")
    assert left.stdout is not None
    assert left.stderr is not None
    assert interrupted.stdout is not None

    first_lines = left.stdout.readline(), interrupted.stdout.readline()
    left.stdout.close()
    interrupted.send_signal(signal.SIGINT)
    interrupted.communicate(timeout=60)

    assert first_lines == (b"line\n", b"line\n")
    assert (left.wait(60), left.stderr.read()) == (0, b"")
    assert interrupted.returncode == 130
    left.stderr.close()
    assert cli("stop", number, "--wait").code == 0


def test_starting_several_times_at_once_makes_one_run(cli: CommandLine) -> None:
    number = cli.add("started at once", "--command", "sleep 600")

    starts = [cli.start("run", number) for _ in range(3)]
    told = [start.communicate(timeout=60)[1] for start in starts]

    assert sorted(start.wait() for start in starts) == [0, 1, 1], told
    assert len(cli("executions", "--task", number, "--json").document()) == 1
    assert cli("stop", number, "--kill", "--wait").code == 0


def test_a_stopped_run_is_cancelled(cli: CommandLine) -> None:
    number = cli.add("long", "--command", "sleep 600")
    waiting = cli.start("run", number, "--wait")
    wait_for(lambda: _status(cli, number) == "running")

    refused = cli("run", number)
    status = cli("status", "--json").document()
    worker = cli("worker", "--status", "--json").document()
    stopped = cli("stop", number, "--wait", "--json").document()

    _, told = waiting.communicate(timeout=40)
    assert refused.code == 1
    assert status["running"] == 1
    assert worker["is_running"] is True
    assert stopped["status"] == "cancelled"
    assert waiting.returncode == 130
    assert b"cancelled" in told
    assert cli("stop", number).code == 1


def test_an_interrupted_wait_leaves_the_run_alone(cli: CommandLine) -> None:
    number = cli.add("goes on", "--command", "sleep 600")
    waiting = cli.start("run", number, "--wait")
    # It says that the run is queued, and then waits.
    told = os.read(waiting.stderr.fileno(), 65536)
    wait_for(lambda: _status(cli, number) == "running")

    waiting.send_signal(signal.SIGINT)
    told += waiting.communicate(timeout=40)[1]

    assert waiting.returncode == 130
    assert f"agentmon stop {number}".encode() in told
    assert _status(cli, number) == "running"
    assert cli("stop", number, "--kill", "--wait", "--json").document()["status"] == "cancelled"


@pytest.mark.proof
def test_attaching_without_a_terminal_is_refused_with_the_way_to_the_log(cli: CommandLine) -> None:
    number = cli.add("attached", "--command", "sh -c 'read line; echo got $line'")
    cli("run", number)
    wait_for(lambda: _status(cli, number) == "running")

    ended = cli("attach", number)
    answered = _answer_in_terminal(cli, number, b"blue\r")

    assert ended.code == 2
    assert "agentmon log" in ended.stderr
    wait_for(lambda: _status(cli, number) == "succeeded")
    assert "got blue" in cli("log", number).stdout
    assert b"\x1b" in answered


def test_what_never_ran_has_no_log_and_no_terminal(cli: CommandLine) -> None:
    number = cli.add("idle", "--command", "true")

    assert cli("log", number).code == 2
    assert f"agentmon run {number}" in cli("log", number).stderr
    assert cli("attach", number).code == 1


def test_the_executions_are_a_table_and_a_list(cli: CommandLine) -> None:
    number = cli.add("listed", "--command", "echo the last line")
    cli("run", number, "--wait")

    listing = next(one for one in cli("executions", "--json").document() if str(one["task_number"]) == number)
    shown = cli("executions").stdout

    assert listing["status"] == "succeeded"
    assert listing["last_line"] == "the last line"
    assert listing["agent_slug"] == "command"
    assert listing["cost_nano"] is None or isinstance(listing["cost_nano"], int)
    assert "the last line" in shown
    assert len(cli("executions", "--limit", "1", "--json").document()) == 1


@pytest.mark.proof
def test_what_runs_took_and_cost_is_told_of_each_and_of_their_task(cli: CommandLine) -> None:
    number = cli.add("dear", "--command", "true")
    for _ in range(2):
        cli("run", number, "--wait")
    spent = [(one["id"], tokens) for one, tokens in zip(_executions(cli, number), (12_345, 50), strict=True)]
    with closing(sqlite3.connect(cli.paths.database_path)) as connection, connection:
        for execution_id, tokens in spent:
            connection.execute(
                "UPDATE executions SET tokens_used = ?, cost_nano = 190000000 WHERE id = ?", [tokens, execution_id]
            )

    task = cli("task", "show", number).stdout.splitlines()
    listed = cli("executions", "--task", number).stdout.splitlines()

    assert "  cost:      $0.38, 12 K tokens" in task
    assert [spent for spent in ("$0.19, 12 K tokens", "$0.19, 50 tokens") if spent in "\n".join(task)] == [
        "$0.19, 12 K tokens",
        "$0.19, 50 tokens",
    ]
    assert "COST" in listed[0]
    assert "$0.19, 12 K tokens" in listed[1]
    assert [line for line in cli("task", "list").stdout.splitlines() if " $0.38 " in line and "dear" in line]
    assert [line for line in cli("board").stdout.splitlines() if line.endswith("$0.38") and "dear" in line]
    (one,) = [task for task in cli("task", "list", "--json").document() if str(task["number"]) == number]
    shown = cli("task", "show", number, "--json").document()
    for form in (one, shown):
        assert (form["cost_nano"], form["tokens_used"], form["unpriced_runs"]) == (380_000_000, 12_395, 0)


def test_the_worker_can_be_stopped_and_comes_back_with_the_next_run(cli: CommandLine) -> None:
    number = cli.add("again", "--command", "true")
    cli("run", number, "--wait")

    stopped = cli("worker", "--stop", "--json").document()
    again = cli("worker", "--stop")
    ended = cli("run", number, "--wait")

    assert stopped["is_running"] is False
    assert again.stdout == "no worker was running\n"
    assert ended.code == 0


def _has_run(cli: CommandLine, number: str) -> bool:
    return _status(cli, number) == "succeeded"


def _executions(cli: CommandLine, number: str) -> list[dict[str, object]]:
    executions: list[dict[str, object]] = cli("executions", "--task", number, "--json").document()
    return executions


def _status(cli: CommandLine, number: str) -> str:
    executions = _executions(cli, number)
    return str(executions[0]["status"]) if executions else ""


def _answer_in_terminal(cli: CommandLine, number: str, keys: bytes) -> bytes:
    """Attach inside a pseudo-terminal, type the keys, and return what was shown until the attached program ended."""
    controller, terminal = pty.openpty()
    attached = subprocess.Popen(
        [sys.executable, "-P", "-m", "agentmon", "attach", number],
        cwd=cli.workspace,
        env=cli.environ,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    shown = b""
    is_typed = False
    deadline = time.monotonic() + 40
    try:
        while time.monotonic() < deadline and attached.poll() is None:
            if select.select([controller], [], [], 0.1)[0]:
                try:
                    shown += os.read(controller, 65536)
                except OSError:
                    break
            if b"\x1b" in shown and not is_typed:
                os.write(controller, keys)
                is_typed = True
        attached.wait(10)
    finally:
        os.close(controller)
        if attached.poll() is None:
            attached.kill()
            attached.wait()
    return shown
