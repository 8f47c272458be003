"""A home of agentmon that a benchmark can use up: its worker and tmux server are ended afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.domain.tasks import InputContext, TaskDraft
from agentmon.paths import find_paths
from agentmon.services.actors import USER_ACTOR
from agentmon.worker.presence import read_presence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Task, Workspace
    from agentmon.paths import Paths


@contextmanager
def scratch_home() -> Iterator[Paths]:
    """Point AGENTMON_HOME at a short scratch folder and take everything away again."""
    folder = Path(tempfile.mkdtemp(prefix="amb-", dir="/tmp"))
    os.environ["AGENTMON_HOME"] = str(folder / "home")
    os.environ["AGENTMON_COSTS_IMPORT_HISTORY"] = "false"
    os.environ["AGENTMON_AGENTS_SCAN_HOURS"] = "0"
    os.environ["AGENTMON_COMMAND_SERVER"] = "0"
    (folder / "project").mkdir()
    paths = find_paths()
    try:
        yield paths
    finally:
        kill_worker(paths)
        subprocess.run(["tmux", "-S", str(paths.tmux_socket), "kill-server"], check=False, capture_output=True)
        os.environ.pop("AGENTMON_HOME")
        os.environ.pop("AGENTMON_COSTS_IMPORT_HISTORY")
        os.environ.pop("AGENTMON_AGENTS_SCAN_HOURS")
        os.environ.pop("AGENTMON_COMMAND_SERVER", None)
        shutil.rmtree(folder, ignore_errors=True)


def kill_worker(paths: Paths) -> bool:
    """Kill the worker without a word and wait until it is gone; False when there was none that is ready."""
    pid = read_presence(paths.worker_lock).pid
    if pid is None:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    while read_presence(paths.worker_lock).pid == pid:
        time.sleep(0.005)
    return True


async def add_command(services: Services, workspace: Workspace, *argv: str, title: str) -> Task:
    """Make a task that runs a command."""
    agent = await services.agents.by_slug("command")
    draft = TaskDraft(title=title, assignee_agent_id=agent.id, input_context=InputContext(args={"argv": list(argv)}))
    return await services.tasks.add(workspace, draft, actor=USER_ACTOR)
