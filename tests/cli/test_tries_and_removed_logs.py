from __future__ import annotations

import asyncio
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.clock import SystemClock
from agentmon.domain.ids import ExecutionId, TaskId
from agentmon.store.database import open_database
from agentmon.store.old_logs import OldLog, OldLogRepository
from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


@pytest.mark.proof
def test_each_try_of_a_run_has_its_log(cli: CommandLine) -> None:
    script = "if [ -e tried ]; then echo second; else touch tried; echo first; exit 1; fi"
    number = cli.add("fails once", "--max-retries", "1", "--command", f"sh -c '{script}'")
    cli("run", number, "--wait")

    newest = cli("log", number)
    first, second, third = (cli("log", number, "--try", str(one)) for one in (1, 2, 3))

    assert (newest.stdout, first.stdout, second.stdout) == ("second\n", "first\n", "second\n")
    assert f"agentmon log {number} --try 1" in newest.stderr
    assert first.stderr == second.stderr == ""
    assert third.code == 2
    assert "it had 2 tries" in third.stderr
    assert cli("log", number, "--try", "1", "-f", "--json").document()["lines"] == ["first"]


def test_a_log_is_saved_to_a_new_file_and_over_one_only_when_told_to(cli: CommandLine, tmp_path: Path) -> None:
    number = cli.add("colours", "--command", r"printf '\033[31mred\033[0m\nplain\n'")
    cli("run", number, "--wait")
    target = tmp_path / "saved.txt"

    saved = cli("log", number, "--save", str(target))
    assert (saved.code, target.read_text()) == (0, "red\nplain\n")
    assert str(target) in saved.stdout
    again = cli("log", number, "--save", str(target), "--raw")
    assert again.code != 0
    assert "--overwrite" in again.stderr
    assert target.read_text() == "red\nplain\n"
    assert cli("log", number, "--save", str(target), "--raw", "--overwrite").code == 0
    assert target.read_bytes() == b"\x1b[31mred\x1b[0m\nplain\n"
    assert cli("log", number, "--save", str(target), "--follow").code == 2


def test_a_log_that_cannot_be_read_says_why(cli: CommandLine) -> None:
    number = cli.add("prints", "--command", "printf one")
    cli("run", number, "--wait")
    path = Path(cli("log", number, "--json").document()["path"])
    path.unlink()
    path.symlink_to(path)

    for ways in ((), ("-n", "2"), ("-f",), ("--json",), ("--raw",)):
        refused = cli("log", number, *ways)
        assert (refused.code, refused.stdout) == (2, "")
        assert "the log cannot be read: too many levels of symbolic links" in refused.stderr
        assert str(path) in refused.stderr


@pytest.mark.proof
def test_a_retry_that_only_waits_has_no_log_yet(cli: CommandLine) -> None:
    number = cli.add("fails", "--max-retries", "3", "--command", "sh -c 'echo no; exit 1'")
    cli("run", number)
    _wait_for_retry(cli, number)
    cli("pause")

    execution = cli("executions", "--task", number, "--json").document()[0]
    waiting = cli("log", number, "--try", str(execution["attempt"] + 1))
    before = cli("log", number, "--try", str(execution["attempt"]))
    cli("stop", number)
    cli("resume")

    assert waiting.code == 2
    assert "has not begun yet" in waiting.stderr
    assert before.stdout == "no\n"


@pytest.mark.proof
@pytest.mark.parametrize(("is_too_old", "setting"), [(True, "worker.keep_logs_days"), (False, "worker.keep_logs_mb")])
def test_a_removed_log_says_when_and_by_which_setting(cli: CommandLine, is_too_old: bool, setting: str) -> None:
    number = cli.add("removed", "--command", "echo gone")
    cli("run", number, "--wait")
    execution = cli("executions", "--task", number, "--json").document()[0]
    asyncio.run(_mark_removed(cli, execution, is_too_old=is_too_old))

    ended = cli("log", number)

    assert (ended.code, ended.stdout) == (1, "")
    assert "the log of this run was removed " in ended.stderr
    assert f"({setting} = " in ended.stderr
    assert f"agentmon settings {setting} 0" in ended.stderr
    assert "log removed " in cli("task", "show", number).stdout


async def _mark_removed(cli: CommandLine, execution: dict[str, object], *, is_too_old: bool) -> None:
    paths = cli.paths
    opened = await open_database(paths.database_path, backups_dir=paths.backups_dir, release="0", clock=SystemClock())
    try:
        log = OldLog(
            execution_id=ExecutionId(str(execution["id"])),
            task_id=TaskId(str(execution["task_id"])),
            log_file_path=str(execution["log_file_path"]),
            log_byte_size=5,
            is_too_old=is_too_old,
        )
        await OldLogRepository(opened.database).mark_removed(log, at=datetime.now(UTC))
    finally:
        await opened.database.close()


def _wait_for_retry(cli: CommandLine, number: str) -> None:
    wait_for(lambda: cli("executions", "--task", number, "--json").document()[0]["attempt"] > 0)


@pytest.mark.proof
def test_the_log_of_a_program_that_repaints_is_what_a_terminal_shows(cli: CommandLine) -> None:
    number = cli.add(
        "paints", "--command", r"printf 'first\nasks\n> no\033[1A\033[2K\033[Gready\n\033[2K\033[31mred\033[0m'"
    )
    cli("run", number, "--wait")

    assert cli("log", number).stdout == "first\nready\nred\n"
    assert cli("log", number, "-n", "1").stdout == "red\n"
    assert cli("log", number, "--grep", "asks").code == 1
    assert cli("log", number, "--color", "-n", "1").stdout == "\x1b[31mred\x1b[0m\n"
    document = cli("log", number, "--json").document()
    assert (document["stream"], document["lines"]) == ("screen", ["first", "ready", "red"])
    assert "asks" in cli("log", number, "--stream", "output").stdout
    assert cli("log", number, "--from", "1").stdout.startswith("first\nasks\n")
    assert "asks\n> no\x1b[1A" in cli("log", number, "--raw").stdout
    refused = cli("log", number, "--raw", "--stream", "screen")
    assert (refused.code, "--stream screen" in refused.stderr) == (2, True)


@pytest.mark.proof
def test_what_was_painted_over_long_before_plain_lines_stays_painted_over(cli: CommandLine) -> None:
    script = (
        "print('begin\\n\\n');"
        "[print(f'\\x1b[2A\\x1b[2Kspinner {n}\\n\\x1b[2Kof 3000') for n in range(3000)];"
        "[print(f'plain line {n} of very many') for n in range(20_000)]"
    )
    number = cli.add("paints first", "--command", shlex.join([sys.executable, "-c", script]))
    cli("run", number, "--wait")

    lines = cli("log", number).stdout.splitlines()

    assert lines[-20_002:-20_000] == ["spinner 2999", "of 3000"]
    assert lines[-20_000:] == [f"plain line {n} of very many" for n in range(20_000)]
    assert cli("log", number, "--grep", "spinner").stdout == "spinner 2999\n"
