"""A program in a run that hides where it runs, and asks agentmon to allow everything: it is known as an agent."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.live_home import add_command, run_to_end

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Workspace

_NAMESPACE = "unshare --user --map-root-user --pid --fork"
_HAS_NAMESPACES = (
    shutil.which("unshare") is not None
    and subprocess.run([*_NAMESPACE.split(), "--mount-proc", "true"], check=False, capture_output=True).returncode == 0
)
_DEEP = """import os, sys
for _ in range(150):
    if pid := os.fork():
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
os.execvp("sh", ["sh", "-c", sys.argv[1]])"""
# It waits until the one that started it, whose number it is given, is gone.
_LEFT = 'while kill -0 $1 2>/dev/null; do sleep 0.02; done; exec sh -c "$0"'
_ORPHAN = f'sh -c {shlex.quote(_LEFT)} "$0" $$ &'
_TMUX = "tmux -S {socket}"
_WAYS = {
    "without a marker": "sh -c {asks}",
    "in a session of its own": "setsid --wait sh -c {asks}",
    "behind 150 processes": f"{shlex.quote(sys.executable)} -c {shlex.quote(_DEEP)} {{asks}}",
    "as an orphan": f"sh -c {shlex.quote(_ORPHAN)} {{asks}}",
    "by new-session": f"{_TMUX} new-session -d {{asks}}",
    "by run-shell": f"{_TMUX} run-shell -b {{asks}}",
    "in a namespace": f"{_NAMESPACE} sh -c {{asks}}",
    "in a namespace with its own /proc": f"{_NAMESPACE} --mount-proc sh -c {{asks}}",
}


@pytest.mark.proof
@pytest.mark.skipif(sys.platform != "linux", reason="the processes above are read on Linux alone")
@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["", "data said to be elsewhere"])
@pytest.mark.parametrize("way", _WAYS)
async def test_it_is_refused_and_no_rule_is_added(
    services: Services, workspace: Workspace, way: str, is_elsewhere: bool
) -> None:
    if "unshare" in _WAYS[way] and not _HAS_NAMESPACES:
        pytest.skip("this kernel gives an ordinary user no namespaces")
    root, database = shlex.quote(workspace.root_path), services.paths.database_path
    places = f"AGENTMON_HOME={shlex.quote(str(database.parent))}"
    if is_elsewhere:
        places = f"AGENTMON_HOME={root}/elsewhere AGENTMON_DATABASE_URL={shlex.quote(f'sqlite:///{database}')}"
    command = shlex.join([sys.executable, "-P", "-m", "agentmon", "rules", "add", "allow"])
    asks = f'env -i PATH="$PATH" HOME="$HOME" {places} {command} > {root}/said 2>&1; echo $? > {root}/code'
    socket = shlex.quote(str(services.paths.tmux_socket))
    line = (
        f"{_WAYS[way].format(asks=shlex.quote(asks), socket=socket)}; while [ ! -s {root}/code ]; do sleep 0.05; done"
    )
    hidden = f'env -i PATH="$PATH" HOME="$HOME" sh -c {shlex.quote(line)}'

    ended = await run_to_end(services, await add_command(services, workspace, "sh", "-c", hidden))

    assert ended.exit_code == 0
    assert (Path(workspace.root_path) / "code").read_text() == "1\n"
    assert "an agent may not decide" in (Path(workspace.root_path) / "said").read_text()
    assert await services.approvals.rules() == ()
