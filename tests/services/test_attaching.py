from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import ConflictError, UsageError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.executions import Execution
from agentmon.domain.ids import AgentId, CapabilityId, ExecutionId, TaskId
from agentmon.paths import find_paths
from agentmon.runners.tmux import Tmux
from agentmon.services import attaching
from agentmon.services.attaching import AttachService
from agentmon.worker.preparation import session_name
from tests.runners.tmux_servers import short_folder

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
        id=ExecutionId("01J00000000000000000000000"),
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
