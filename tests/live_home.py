"""A home of agentmon in which a real worker and a real tmux server run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmon.domain.tasks import InputContext, TaskDraft
from agentmon.paths import Paths, find_paths
from agentmon.services.actors import USER_ACTOR
from agentmon.worker.presence import read_presence
from tests.waiting import DEADLINE_S, until, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Task, Workspace


@dataclass(frozen=True)
class LiveHome:
    folder: Path

    @property
    def paths(self) -> Paths:
        return find_paths({"AGENTMON_HOME": str(self.folder / "home")})

    @property
    def project(self) -> Path:
        project = self.folder / "project"
        project.mkdir(exist_ok=True)
        return project

    def kill_worker(self) -> int:
        """Kill the worker without a word, as a crash would, and return the pid it had."""
        pid = read_presence(self.paths.worker_lock).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not read_presence(self.paths.worker_lock).is_running)
        return pid

    def _is_without_worker(self) -> bool:
        presence = read_presence(self.paths.worker_lock)
        if presence.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(presence.pid, signal.SIGKILL)
        return not presence.is_running

    def kill_tmux(self) -> None:
        subprocess.run(
            ["tmux", "-S", str(self.paths.tmux_socket), "kill-server"], check=False, capture_output=True, timeout=10
        )

    def end(self) -> None:
        """End what still lives; never raises."""
        with contextlib.suppress(OSError, AssertionError):
            # One that was started at the same time may take the place of the one that is killed.
            wait_for(self._is_without_worker)
        self.kill_tmux()
        for journal in self.paths.executions_dir.glob("*/journal.jsonl"):
            with contextlib.suppress(OSError, ValueError, KeyError):
                end_run(journal)


def end_run(journal: Path) -> None:
    """Kill the host and the program of a journal that has no end, each only when it is still the same process."""
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    if entries and entries[-1]["type"] == "ended":
        return
    marker = f"AGENTMON_EXECUTION_ID={journal.parent.name}".encode()
    # One that has only begun has not written its number yet.
    host = next((entry for entry in entries if entry["type"] == "host_started"), None)
    for process in process_ids():
        with contextlib.suppress(OSError):
            environ = (process / "environ").read_bytes()
            is_host = (host is None or process.name == str(host["pid"])) and journal.parent.name.encode() in (
                process / "cmdline"
            ).read_bytes()
            if is_host or marker in environ.split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)


def process_ids() -> list[Path]:
    from pathlib import Path

    return [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def marked_processes(execution_id: str) -> list[int]:
    """Return the living processes that carry the marker of an execution."""
    marker = f"AGENTMON_EXECUTION_ID={execution_id}".encode()
    found = []
    for process in process_ids():
        with contextlib.suppress(OSError):
            if marker in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


async def add_command(
    services: Services, workspace: Workspace, *argv: str, title: str = "a task", **context: object
) -> Task:
    """Make a task that runs a command."""
    agent = await services.agents.by_slug("command")
    draft = TaskDraft(
        title=title,
        assignee_agent_id=agent.id,
        input_context=InputContext(args={"argv": list(argv)}, **context),  # type: ignore[arg-type]  # named by tests
    )
    return await services.tasks.add(workspace, draft, actor=USER_ACTOR)


async def run_to_end(services: Services, task: Task, **asked: object) -> Execution:
    execution = await services.queue.run(task.id, actor=USER_ACTOR, **asked)  # type: ignore[arg-type]  # named by tests
    async with asyncio.timeout(DEADLINE_S):
        return await services.queue.wait(execution.id)


async def until_started(services: Services, execution: Execution) -> Execution:
    """Wait until the program of an execution has a process."""

    async def has_started() -> bool:
        return (await services.executions.get(execution.id)).pid is not None

    await until(has_started)
    return await services.executions.get(execution.id)
