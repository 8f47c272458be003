"""Starting: what the program finds, what a failure says, and who may run an execution."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.runners.locks import is_locked
from tests.runners.host.host_runs import host_command
from tests.waiting import DEADLINE_S, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.runners.host.conftest import PrepareRun
    from tests.runners.host.host_runs import HostRun


@pytest.mark.parametrize("code", [0, 1, 3, 127, 255])
def test_the_exit_code_is_recorded(prepare_run: PrepareRun, code: int) -> None:
    run = prepare_run("sh", "-c", f"exit {code}").start()

    ended = run.wait_for_end()

    assert run.wait_for_entry("exited")["exit_code"] == code
    assert (ended["outcome"], ended["exit_code"], ended["error"]) == ("exited", code, None)
    assert ended["signal"] is None


@pytest.mark.parametrize("number", [9, 11, 15])
def test_the_signal_that_ended_the_program_is_recorded(prepare_run: PrepareRun, number: int) -> None:
    run = prepare_run("sh", "-c", f"ulimit -c 0; kill -{number} $$").start()

    ended = run.wait_for_end()

    exited = run.wait_for_entry("exited")
    assert (exited["exit_code"], exited["signal"]) == (None, number)
    assert (ended["outcome"], ended["exit_code"], ended["signal"]) == ("exited", 128 + number, number)


def test_entries_are_numbered_without_gap_and_end_with_ended(prepare_run: PrepareRun) -> None:
    run = prepare_run("echo", "hello").start()

    run.wait_for_end()

    entries = run.entries()
    assert [entry["n"] for entry in entries] == list(range(1, len(entries) + 1))
    assert (run.types()[:2], run.types()[-1]) == (["host_started", "agent_started"], "ended")


def test_the_host_leaves_only_the_record_behind(prepare_run: PrepareRun) -> None:
    run = prepare_run("echo", "hello").start()

    run.wait_for_end()

    names = sorted(path.name for path in run.folder.iterdir())
    assert names == ["host-errors", "host.lock", "journal.jsonl", "output.log", "spec.json"]


def test_the_environment_is_the_given_one_with_marker_and_terminal(prepare_run: PrepareRun) -> None:
    run = prepare_run("/usr/bin/env", environment={"SECRET": "s = \n'1'", "PATH": "/usr/bin"}).start()

    run.wait_for_end()

    expected = {"SECRET=s = ", "'1'", "PATH=/usr/bin", "TERM=xterm-256color"}
    assert set(run.output.decode().splitlines()) == expected | {f"AGENTMON_EXECUTION_ID={run.execution_id}"}
    assert not (run.folder / "launch-environment.json").exists()


def test_the_program_gets_its_arguments_unchanged(prepare_run: PrepareRun) -> None:
    arguments = ["--help", "", 'it\'s "q" `x` $(touch X) ${HOME} ! \\', "a\nb", "ü漢🙂", "\udcff"]
    run = prepare_run("printf", "%s|", *arguments).start()

    run.wait_for_end()

    assert run.output == "".join(f"{argument}|" for argument in arguments).encode("utf-8", "surrogateescape")
    assert run.wait_for_entry("agent_started")["argv"] == ["printf", "%s|", *arguments]


def test_the_program_runs_in_a_terminal_of_the_asked_size(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "test -t 0 && test -t 2 && stty size && : </dev/tty", columns=111, rows=37).start()

    ended = run.wait_for_end()

    assert (run.output, ended["exit_code"]) == (b"37 111\n", 0)


def test_the_program_finds_signals_and_files_as_any_program_does(prepare_run: PrepareRun) -> None:
    run = prepare_run("sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd | wc -l").start()

    run.wait_for_end()

    _, blocked, _, ignored, file_count = run.output.split()
    # Whatever posix_spawn(3) of the GNU library started ignores the library's own signals 32 and 33 for good.
    of_the_library = 1 << 31 | 1 << 32
    assert int(blocked, 16) == 0
    assert int(ignored, 16) & ~of_the_library == 0
    # Its three files, and the folder that ls reads.
    assert file_count == b"4"


def test_a_relative_program_is_looked_up_in_the_working_folder(prepare_run: PrepareRun, tmp_path: Path) -> None:
    folder = tmp_path / "it's a ü folder "
    folder.mkdir()
    script = folder / "tool"
    script.write_text("#!/bin/sh\npwd")
    script.chmod(0o755)

    run = prepare_run("./tool", working_dir=str(folder)).start()

    assert run.wait_for_end()["exit_code"] == 0
    assert run.output.decode() == f"{folder}\n"


def test_a_program_is_looked_up_on_the_path_of_its_own_environment(prepare_run: PrepareRun, tmp_path: Path) -> None:
    for name, mode in (("first", 0o644), ("second", 0o755)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "my-tool").write_text(f"#!/bin/sh\necho {name}")
        (tmp_path / name / "my-tool").chmod(mode)

    run = prepare_run("my-tool", environment={"PATH": f"{tmp_path}/none:{tmp_path}/first:{tmp_path}/second"}).start()

    run.wait_for_end()
    assert run.output == b"second\n"


@pytest.mark.parametrize(
    ("program", "content", "mode", "error", "number"),
    [
        ("no-such-program", None, 0, "program not found: no-such-program (not in any folder of PATH)", errno.ENOENT),
        ("./gone", None, 0, "program not found: ./gone", errno.ENOENT),
        ("./tool/x", "", 0o644, "program not found: ./tool/x", errno.ENOTDIR),
        ("./tool", "#!/bin/sh\n", 0o644, "not allowed to run ./tool: it is not executable, or a folder", errno.EACCES),
        (".", None, 0, "not allowed to run .: it is not executable, or a folder", errno.EACCES),
        ("./tool", "echo hello\n", 0o755, "./tool is not a program: neither a binary", errno.ENOEXEC),
        ("./tool", "", 0o755, "./tool is not a program: neither a binary", errno.ENOEXEC),
        (
            "./tool",
            "#!/no/such/interpreter -x\n",
            0o755,
            "the interpreter that the first line of ./tool names does not exist: /no/such/interpreter -x",
            errno.ENOENT,
        ),
    ],
)
def test_a_program_that_cannot_start_is_explained(
    prepare_run: PrepareRun, tmp_path: Path, program: str, content: str | None, mode: int, error: str, number: int
) -> None:
    if content is not None:
        (tmp_path / "tool").write_text(content)
        (tmp_path / "tool").chmod(mode)
    if program == ".":
        program = "./"

    run = prepare_run(program).start()

    ended = run.wait_for_end()
    failed = run.wait_for_entry("start_failed")
    assert failed["error"].replace("./:", ".:").startswith(error)
    assert failed["errno"] == number
    assert (ended["outcome"], ended["exit_code"], ended["error"]) == ("start_failed", None, failed["error"])
    assert run.types() == ["host_started", "start_failed", "ended"]


def test_a_command_line_that_is_too_long_is_explained(prepare_run: PrepareRun) -> None:
    run = prepare_run("true", "x" * 3_000_000).start()

    assert "too long" in run.wait_for_end()["error"]


@pytest.mark.parametrize(
    ("name", "error", "number"),
    [
        ("gone", "the working folder does not exist: ", errno.ENOENT),
        ("file", "the working folder is not a folder: ", errno.ENOTDIR),
    ],
)
def test_a_working_folder_that_cannot_be_used_is_told_apart(
    prepare_run: PrepareRun, tmp_path: Path, name: str, error: str, number: int
) -> None:
    (tmp_path / "file").touch()

    run = prepare_run("true", working_dir=str(tmp_path / name)).start()

    assert run.wait_for_end()["error"] == error + str(tmp_path / name)
    assert run.wait_for_entry("start_failed")["errno"] == number


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("", "spec.json is damaged: this is not JSON"),
        ("[" * 100_000, "spec.json is damaged: this JSON is nested too deeply"),
        ("{} {}", "spec.json is damaged: something follows the JSON value"),
        ("[]", "spec.json is damaged: an object is expected"),
        ('{"execution_id": "x"}', "spec.json: argv must name a program"),
        ('{"execution_id": "x", "argv": ["a", 1]}', "spec.json: argv holds something other than texts without NUL"),
        ('{"execution_id": "x", "argv": ["\\u0000"]}', "spec.json: argv holds something other than texts without NUL"),
        ('{"execution_id": "x", "argv": ["true"]}', "spec.json: working_dir must be a text without NUL"),
        (
            '{"execution_id": "x", "argv": ["true"], "working_dir": "/", "timeout_s": -1}',
            "spec.json: timeout_s must be a number from 0 up",
        ),
        *(
            (
                f'{{"execution_id": "x", "argv": ["true"], "working_dir": "/", "interrupt": {interrupt}}}',
                "spec.json: interrupt must be a list of some of INT, TERM, HUP, QUIT",
            )
            for interrupt in ('["INT", "KILL"]', '["SIGINT"]', "[]", "[2]", '"INT"', "null")
        ),
        ('{"execution_id": NaN}', "spec.json is damaged: NaN is not a JSON value"),
    ],
)
def test_a_wrong_specification_is_reported_and_recorded(prepare_run: PrepareRun, spec: str, error: str) -> None:
    run = prepare_run("true")
    (run.folder / "spec.json").write_text(spec)

    answer = subprocess.run(host_command(run.folder), capture_output=True, text=True, check=False)

    assert (answer.returncode, answer.stderr) == (2, f"agentmon host: {error}\n")
    assert run.types() == ["host_started", "start_failed", "ended"]
    assert run.wait_for_entry("ended")["error"] == error
    assert not (run.folder / "launch-environment.json").exists()


def test_what_was_taken_back_is_not_run(prepare_run: PrepareRun) -> None:
    run = prepare_run("touch", "started")
    folder = ExecutionFolder(run.folder)
    assert folder.withdraw()
    assert folder.withdraw()

    answer = subprocess.run(host_command(run.folder), capture_output=True, check=False)

    assert answer.returncode == 3
    assert not folder.journal.exists()
    assert not (run.folder.parent / "started").exists()


def test_what_a_host_has_begun_with_is_not_taken_back(prepare_run: PrepareRun) -> None:
    run = prepare_run("sleep", "600").start()
    wait_for(lambda: is_locked(ExecutionFolder(run.folder).host_lock))

    assert not ExecutionFolder(run.folder).withdraw()

    run.command("kill")
    assert run.wait_for_end()["outcome"] == "stopped"
    assert not ExecutionFolder(run.folder).withdraw()


def test_a_missing_environment_is_reported_and_recorded(prepare_run: PrepareRun) -> None:
    run = prepare_run("true")
    (run.folder / "launch-environment.json").unlink()

    answer = subprocess.run(host_command(run.folder), capture_output=True, text=True, check=False)

    assert answer.returncode == 2
    assert run.wait_for_entry("ended")["error"] == "launch-environment.json cannot be read: No such file or directory"


@pytest.mark.parametrize("arguments", [[], ["/no/such/folder"], ["/", "/"]])
def test_without_a_folder_the_host_says_what_it_expects(tmp_path: Path, arguments: list[str]) -> None:
    command = [*host_command(tmp_path)[:-1], *arguments]

    answer = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (answer.returncode, answer.stderr) == (2, "agentmon host: one argument is expected: an execution folder\n")


def _snapshot(run: HostRun) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_size, path.stat().st_mtime_ns) for path in run.folder.iterdir()}


def test_a_second_host_is_refused_and_touches_nothing(prepare_run: PrepareRun) -> None:
    run = prepare_run("cat").start()
    run.wait_for_entry("agent_started")
    before = _snapshot(run)

    answer = subprocess.run(host_command(run.folder), capture_output=True, text=True, check=False)

    assert (answer.returncode, answer.stderr) == (3, "agentmon host: another host runs this execution\n")
    assert _snapshot(run) == before


def test_an_execution_is_never_run_twice(prepare_run: PrepareRun) -> None:
    run = prepare_run("echo", "once").start()
    run.wait_for_end()
    (run.folder / "launch-environment.json").write_text("{}")
    before = _snapshot(run)

    answer = subprocess.run(host_command(run.folder), capture_output=True, text=True, check=False)

    assert (answer.returncode, answer.stderr) == (3, "agentmon host: this execution was run before\n")
    assert _snapshot(run) == before


def test_the_lock_tells_whether_the_host_is_alive(prepare_run: PrepareRun) -> None:
    run = prepare_run("cat").start()
    run.wait_for_entry("agent_started")

    with (run.folder / "host.lock").open("rb") as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert run.process is not None
        run.process.kill()
        run.process.wait()
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_host_that_finds_the_lock_held_for_a_moment_starts_all_the_same(prepare_run: PrepareRun) -> None:
    run = prepare_run("true")
    with (run.folder / "host.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run.start()
        # It waits with the lock open as soon as it has come that far.
        wait_for(lambda: str(run.folder / "host.lock") in _open_files(run.pid), "the host at the lock")

    assert run.wait_for_end()["exit_code"] == 0


def _open_files(pid: int) -> list[str]:
    folder = f"/proc/{pid}/fd"
    links = []
    for name in os.listdir(folder):  # noqa: PTH208 - a file may close meanwhile
        try:
            links.append(os.readlink(f"{folder}/{name}"))  # noqa: PTH115 - as above
        except OSError:
            continue
    return links


def test_host_started_names_the_process_for_good(prepare_run: PrepareRun) -> None:
    run = prepare_run("cat").start()

    started = run.wait_for_entry("host_started")

    with open(f"/proc/{run.pid}/stat") as stat:  # noqa: PTH123 - /proc
        start_time = stat.read().rpartition(")")[2].split()[19]
    assert (started["pid"], started["start_time"]) == (run.pid, start_time)
    assert re.fullmatch(r"[0-9a-f-]{36}", started["boot_id"])


def test_every_entry_is_told_by_a_datagram_after_it_is_written(prepare_run: PrepareRun, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as worker:
        worker.bind(str(tmp_path / "w"))
        worker.settimeout(20)
        run = prepare_run("sh", "-c", "exit 4", notify_socket=str(tmp_path / "w")).start()
        seen = 0
        while "ended" not in run.types():
            assert worker.recv(100).decode() == run.execution_id
            seen += 1
            assert len(run.entries()) >= seen

        run.wait_for_end()
        worker.settimeout(0)
        with suppress(BlockingIOError):
            while worker.recv(100):
                seen += 1

    assert seen == len(run.entries())


def test_a_worker_that_does_not_read_holds_nothing_up(prepare_run: PrepareRun, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as worker:
        worker.bind(str(tmp_path / "w"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.setblocking(False)
            with suppress(BlockingIOError):
                while other.sendto(b"x", str(tmp_path / "w")):
                    pass

        run = prepare_run("true", notify_socket=str(tmp_path / "w")).start()

        assert run.wait_for_end()["exit_code"] == 0


def test_closed_standard_files_do_no_harm(prepare_run: PrepareRun) -> None:
    run = prepare_run("echo", "hello")

    subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *host_command(run.folder)], check=True)

    assert run.output == b"hello\n"
    assert json.loads((run.folder / "journal.jsonl").read_text().splitlines()[-1])["type"] == "ended"


def test_a_hangup_while_it_starts_leaves_no_journal_without_an_end(prepare_run: PrepareRun) -> None:
    for step in range(30):
        run = prepare_run("true").start()
        deadline = time.monotonic() + step * 0.001
        while time.monotonic() < deadline:
            pass
        os.kill(run.pid, signal.SIGHUP)
        assert run.process is not None
        run.process.wait(DEADLINE_S)

        # Before the journal is made nothing has begun, and the worker starts another host.
        if (run.folder / "journal.jsonl").exists():
            assert run.types()[-1] == "ended"
