"""What a run is told about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.paths import DATABASE_URL_NAME, LOCATION_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Task
    from agentmon.paths import Paths
    from agentmon.store.worktrees import WorktreeRepository

FIRST_PORT: Final = 20_000
PORTS_EACH: Final = 10
"""Worktree number N has the ports from ``FIRST_PORT + N * PORTS_EACH`` on."""
_OF_USUAL_PLACES: Final = frozenset({"HOME", "XDG_DATA_HOME"})


async def run_variables(
    worktrees: WorktreeRepository, execution: Execution, task: Task, paths: Paths
) -> Mapping[str, str]:
    """Return the variables that name the task of a run, its board, and in a worktree its ports."""
    told = {"AGENTMON_TASK": str(task.number)} | _locations(task.input_context.env_overrides, paths)
    if execution.worktree_id is not None:
        slot = await worktrees.slot(execution.worktree_id)
        told["AGENTMON_PORT_BASE"] = str(FIRST_PORT + slot * PORTS_EACH)
    return told


def _locations(own: Mapping[str, str], paths: Paths) -> dict[str, str]:
    """Return what leads the calls of a run to its board; nothing where its card names another one."""
    if LOCATION_NAMES & own.keys():
        return {}
    is_moved = not _OF_USUAL_PLACES.isdisjoint(own)
    return paths.variables | ({DATABASE_URL_NAME: paths.database_url} if is_moved else {})
