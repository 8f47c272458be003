"""Starts that what agentmon itself runs with holds up: the runs wait, and none of them fails."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.execution_status import ExecutionStatus, WaitReason
from agentmon.domain.live_state import LiveState
from agentmon.services.actors import USER_ACTOR
from tests.live_home import add_command, until_started
from tests.waiting import DEADLINE_S, until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from tests.live_home import LiveHome

pytestmark = pytest.mark.proof

BROKEN_TMUX = """#!/bin/sh
for word; do
    test "$word" = new-session && test -e {broken} && echo "create window failed: fork failed: {why}" >&2 && exit 1
done
exec {tmux} "$@"
"""


def tmux_server(home: LiveHome) -> int:
    asked = ["tmux", "-S", str(home.paths.tmux_socket), "display-message", "-p", "#{pid}"]
    return int(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)


async def waiting(services: Services, runs: Sequence[Execution]) -> bool:
    found = [await services.executions.get(run.id) for run in runs]
    return all(one.wait_reason is WaitReason.NOT_STARTED for one in found)


async def wait_all(services: Services, runs: Sequence[Execution]) -> list[Execution]:
    async with asyncio.timeout(3 * DEADLINE_S):
        return list(await asyncio.gather(*(services.queue.wait(run.id) for run in runs)))


async def test_a_tmux_that_hangs_fails_no_run_and_starts_none_twice(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        sleeping = await add_command(services, workspace, "sleep", "600")
        first = await services.queue.run(sleeping.id, actor=USER_ACTOR)
        await until_started(services, first)
        server = await asyncio.to_thread(tmux_server, live_home)
        os.kill(server, signal.SIGSTOP)
        try:
            tasks = [await add_command(services, workspace, "sh", "-c", "echo $$ >> starts") for _ in range(6)]
            runs = [await services.queue.run(task.id, actor=USER_ACTOR) for task in tasks]
            await until(lambda: waiting(services, runs), deadline_s=3 * DEADLINE_S)
            held = [await services.executions.get(run.id) for run in runs]
        finally:
            os.kill(server, signal.SIGCONT)
        ended = await wait_all(services, runs)
        await services.queue.stop(sleeping.id, actor=USER_ACTOR)
        agent = await services.agents.by_slug("command")

    assert {run.live_state for run in held} <= {LiveState.PARKED, LiveState.RUNNING}
    assert all("tmux" in (run.error or "") for run in held)
    assert [run.status for run in ended] == [ExecutionStatus.SUCCEEDED] * 6
    assert {(run.attempt, run.retry_count) for run in ended} == {(0, 0)}
    assert len((live_home.project / "starts").read_text().split()) == 6
    assert agent.parked_until is None


async def test_a_tmux_that_cannot_fork_fails_no_run(
    live_home: LiveHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, programs = tmp_path / "broken", tmp_path / "bin"
    programs.mkdir()
    broken.touch()
    tmux = programs / "tmux"
    tmux.write_text(BROKEN_TMUX.format(broken=broken, tmux=shutil.which("tmux"), why=os.strerror(11)), encoding="utf-8")
    tmux.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        run = await services.queue.run((await add_command(services, workspace, "true")).id, actor=USER_ACTOR)
        await until(lambda: waiting(services, [run]), deadline_s=3 * DEADLINE_S)
        held = await services.executions.get(run.id)
        broken.unlink()
        (ended,) = await wait_all(services, [run])

    assert os.strerror(11) in (held.error or "")
    assert (ended.status, ended.attempt, ended.retry_count) == (ExecutionStatus.SUCCEEDED, 0, 0)
