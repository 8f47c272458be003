from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


@pytest.mark.proof
def test_a_halted_worker_is_told_by_whoever_needs_it_and_can_be_stopped(cli: CommandLine) -> None:
    number = cli.add("waits", "--command", "true")
    cli("run", number, "--wait")
    well = wait_for(lambda: _status_with_loops(cli), "loops of the worker")
    pid = well["pid"]
    assert isinstance(pid, int)

    os.kill(pid, signal.SIGSTOP)
    queued = cli("run", number)
    waiting = cli.start("run", cli.add("waits too", "--command", "true"), "--wait")
    with waiting:
        assert waiting.stderr is not None
        told = iter(waiting.stderr.readline, b"")
        first = next(line for line in told if b"is halted, so nothing starts" in line)
        halted = cli("worker", "--status", "--json").document()
        doctor = {finding["name"]: finding for finding in cli("doctor", "--json").document()}
        stopped = cli("worker", "--stop")
        rest = b"".join(told)
        code = waiting.wait(timeout=40)

    assert {loop["condition"] for loop in well["loops"] if loop["name"] == "queue"} == {"well"}
    assert queued.code == 0
    assert f"`kill -CONT {pid}`" in queued.stderr
    assert halted["is_halted"] is True
    assert (doctor["worker"]["level"], doctor["background loops"]["level"]) == ("warn", "warn")
    assert stopped.stdout == "the worker has stopped\n"
    assert first.startswith(b"warning: the worker")
    assert b"is halted" not in rest
    # Whoever waits starts another worker.
    assert code == 0


def _status_with_loops(cli: CommandLine) -> dict[str, Any]:
    status: dict[str, Any] = cli("worker", "--status", "--json").document()
    return status if any(loop["name"] == "queue" and loop["ok_at"] for loop in status["loops"]) else {}
