"""From an execution folder to a running supervisor, or a refusal."""

from __future__ import annotations

import fcntl
import os
import sys
import time

from agentmon.runners.host import process_table
from agentmon.runners.host.control import ControlChannel
from agentmon.runners.host.journal import Journal
from agentmon.runners.host.last_word import wait_until_written
from agentmon.runners.host.lean import signal
from agentmon.runners.host.output_log import OutputLog
from agentmon.runners.host.spec import SpecError, read_spec, take_environment
from agentmon.runners.host.supervisor import Supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DONE = 0
UNUSABLE = 2
REFUSED = 3

_LOCK_PATIENCE_S = 0.5
"""Longer than anybody holds the lock who only looks whether a host is alive."""
_LOCK_RETRY_INTERVAL_S = 0.02


def main(arguments: Sequence[str]) -> int:
    """Run the execution whose folder is the only argument, and return the exit code of the host.

    0: the run is over and recorded, however it ended. 2: the folder does not say properly what to run. 3: another host
    has this execution, or had it, or it was taken back; nothing was touched.
    """
    # A tmux server that dies before the supervisor listens must not leave a journal without a word in it.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _open_standard_files()
    if len(arguments) != 1 or not os.path.isdir(arguments[0]):
        return _complain("one argument is expected: an execution folder", UNUSABLE)
    folder = os.path.abspath(arguments[0])
    try:
        lock_file = os.open(os.path.join(folder, "host.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        return _complain(f"host.lock cannot be opened: {error.strerror}", UNUSABLE)
    if not _take_lock(lock_file):
        return _complain("another host runs this execution", REFUSED)
    if not os.path.lexists(os.path.join(folder, "spec.json")):
        return _complain("there is nothing to run any more", REFUSED)
    try:
        journal = Journal(folder)
    except FileExistsError:
        return _complain("this execution was run before", REFUSED)
    except OSError as error:
        return _complain(f"journal.jsonl cannot be opened: {error.strerror}", UNUSABLE)
    return _run(folder, lock_file, journal)


def _run(folder: str, lock_file: int, journal: Journal) -> int:
    journal.reserve.fill()
    problem = None
    spec = None
    environment: dict[str, str] = {}
    try:
        environment = take_environment(folder)
    except SpecError as error:
        problem = str(error)
    try:
        spec = read_spec(folder)
        journal.notify_at(spec.notify_socket, spec.execution_id)
        journal.bound(spec.max_output_bytes)
    except SpecError as error:
        problem = str(error)
    if spec is not None and problem is None:
        try:
            path = os.path.join(folder, "output.log")
            output = OutputLog(path, spec.max_output_bytes, goes_on=spec.continues_log)
        except OSError as error:
            problem = f"output.log cannot be created: {error.strerror}"
        else:
            supervisor = Supervisor(spec, folder, lock_file, journal, output)
            _note_host_start(journal)
            supervisor.run(environment)
            return DONE
    _note_host_start(journal)
    journal.add("start_failed", error=problem, errno=None)
    journal.add(
        "ended",
        outcome="start_failed",
        exit_code=None,
        output_bytes=0,
        output_lines=0,
        left_out_bytes=0,
        duration_ms=0,
        error=problem,
    )
    if journal.is_behind:
        control = ControlChannel(folder)
        wait_until_written(journal, control, folder)
        control.close()
    journal.reserve.drop()
    return _complain(str(problem), UNUSABLE)


def _note_host_start(journal: Journal) -> None:
    pid = os.getpid()
    journal.add(
        "host_started",
        pid=pid,
        start_time=process_table.find_start_time(pid) or "",
        boot_id=process_table.find_boot_id(),
        python=".".join([str(number) for number in sys.version_info[:3]]),
    )


def _take_lock(lock_file: int) -> bool:
    deadline = time.monotonic() + _LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOCK_RETRY_INTERVAL_S)
        else:
            return True


def _open_standard_files() -> None:
    """Keep files that are opened later from taking the place of a closed standard one."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _complain(text: str, exit_code: int) -> int:
    try:
        os.write(2, f"agentmon host: {text}\n".encode("utf-8", "replace"))
    except OSError:
        pass
    return exit_code
