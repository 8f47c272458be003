from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import ConflictError, UsageError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import Execution
from agentmon.domain.ids import AgentId, CapabilityId, ExecutionId, TaskId, new_id
from agentmon.paths import find_paths
from agentmon.runners.tmux import Tmux
from agentmon.services import attaching
from agentmon.services.attaching import AttachService
from agentmon.worker.preparation import session_name
from tests.runners.tmux_servers import RawTmux, short_folder
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentmon.paths import Paths

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/", "LANG": "C.UTF-8"}


@pytest.fixture
def paths() -> Iterator[Paths]:
    with short_folder() as folder:
        found = find_paths({"AGENTMON_HOME": str(folder)})
        found.run_dir.mkdir(parents=True)
        yield found


def execution(status: ExecutionStatus) -> Execution:
    return Execution(
        id=ExecutionId(new_id()),
        task_id=TaskId("t"),
        agent_id=AgentId("a"),
        capability_id=CapabilityId("c"),
        status=status,
        created_at=datetime.now(UTC),
    )


async def test_what_was_only_just_claimed_gets_its_terminal_as_soon_as_it_is_there(paths: Paths) -> None:
    claimed = execution(ExecutionStatus.RUNNING)
    tmux = Tmux(paths.tmux_socket, environ=ENVIRON)
    attaching = asyncio.create_task(AttachService(paths).plan(claimed, environ=ENVIRON))
    await asyncio.sleep(0)

    await tmux.start_session(
        name=session_name(claimed), command=("sleep", "600"), working_dir=paths.run_dir, title="claimed"
    )

    # Its session is found; only the terminal of this test is none.
    with pytest.raises(UsageError):
        await attaching
    tmux.close()


async def start(paths: Paths, run: Execution, *command: str) -> None:
    """Start a session for the run, in which everything carries its mark."""
    tmux = Tmux(paths.tmux_socket, environ=ENVIRON)
    mark = f"AGENTMON_EXECUTION_ID={run.id}"
    words = ("env", mark, *command)
    await tmux.start_session(name=session_name(run), command=words, working_dir=paths.run_dir, title="run")
    tmux.close()


def live(number: int) -> Execution:
    made = replace(execution(ExecutionStatus.RUNNING), id=ExecutionId(new_id()), attempt=number)
    return replace(made, tmux_session_name=session_name(made))


async def test_a_run_is_not_shown_within_itself(paths: Paths) -> None:
    run = live(1)
    await start(paths, run, "sleep", "600")

    with pytest.raises(ConflictError, match="inside this run"):
        await AttachService(paths).plan(run, environ=ENVIRON | {"AGENTMON_EXECUTION_ID": run.id})


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system shows no environment of a process")
async def test_runs_are_not_shown_within_each_other(paths: Paths) -> None:
    one, two, three, four = (live(number) for number in range(4))
    client = ("tmux", "-u", "-S", str(paths.tmux_socket), "attach-session", "-t")
    await start(paths, one, "sleep", "600")
    await start(paths, two, "env", "-u", "TMUX", "TERM=xterm", *client, f"={session_name(one)}")
    await start(paths, three, "env", "-u", "TMUX", "TERM=xterm", *client, f"={session_name(two)}")
    await start(paths, four, "sleep", "600")
    raw = RawTmux(paths.tmux_socket)
    wait_for(lambda: len(raw("list-clients").splitlines()) == 2, "both are shown")
    inside = ENVIRON | {"AGENTMON_EXECUTION_ID": one.id}

    for shows_one in (two, three):
        with pytest.raises(ConflictError, match="shows the run that you are in"):
            await AttachService(paths).plan(shows_one, environ=inside)
    # Only the terminal of this test is none.
    for other, environ in ((four, inside), (two, ENVIRON), (one, ENVIRON | {"AGENTMON_EXECUTION_ID": two.id})):
        with pytest.raises(UsageError):
            await AttachService(paths).plan(other, environ=environ)


@pytest.mark.parametrize("status", [ExecutionStatus.QUEUED, ExecutionStatus.SUCCEEDED])
async def test_what_waits_or_is_over_has_no_terminal(paths: Paths, status: ExecutionStatus) -> None:
    with pytest.raises(ConflictError):
        await AttachService(paths).plan(execution(status), environ=ENVIRON)


@pytest.mark.parametrize(("name", "sentence"), [(None, "has not begun"), ("agentmon-x", "is gone")])
async def test_a_run_whose_terminal_never_comes_has_not_begun(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, name: str | None, sentence: str
) -> None:
    monkeypatch.setattr(attaching, "_COMES_WITHIN_S", 0.2)
    claimed = replace(execution(ExecutionStatus.RUNNING), tmux_session_name=name)

    with pytest.raises(ConflictError, match=sentence) as caught:
        await AttachService(paths).plan(claimed, environ=ENVIRON)

    assert ("worker --status" in caught.value.hint) == (name is None)
