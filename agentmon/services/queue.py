"""The queue: running tasks, stopping them, waiting for their end."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import UsageError
from agentmon.domain.executions import CommandType, ExecutionRequest, ExecutionStatus
from agentmon.domain.ids import ExecutionId, new_id
from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.services.launch_check import choose_capability, launch_environment, require_launchable
from agentmon.worker.wake import wake_worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import TaskId
    from agentmon.paths import Paths
    from agentmon.services.agents import AgentService
    from agentmon.services.workers import WorkerService
    from agentmon.services.workspaces import WorkspaceService
    from agentmon.store.executions import ExecutionRepository
    from agentmon.store.tasks import TaskRepository

_LOOK_EVERY_S: Final = 0.1


class QueueService:
    """Puts executions into the queue and takes them out."""

    def __init__(
        self,
        *,
        executions: ExecutionRepository,
        tasks: TaskRepository,
        agents: AgentService,
        workspaces: WorkspaceService,
        workers: WorkerService,
        paths: Paths,
        clock: Clock,
    ) -> None:
        self._executions = executions
        self._tasks = tasks
        self._agents = agents
        self._workspaces = workspaces
        self._workers = workers
        self._paths = paths
        self._clock = clock

    async def run(
        self,
        task_id: TaskId,
        *,
        actor: Actor,
        agent_slug: str | None = None,
        capability_key: str | None = None,
        args: Mapping[str, object] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Execution:
        """Queue one execution of the task and make sure that a worker will start it.

        Args:
            task_id: What to run.
            actor: Who asks.
            agent_slug: Another agent than the task's own, for this run.
            capability_key: Another capability than the task's own, for this run.
            args: Other arguments than the task's own, for this run.
            environ: The environment that the program gets, by allowlist; None means that of this process.

        Raises:
            UsageError: No program is chosen, or a chosen part does not exist.
            ArgumentsError: The arguments do not fit the capability.
            AgentNotInstalledError: The program is not on the PATH or cannot be executed.
            TmuxUnavailableError: tmux is missing or too old.
            ConflictError: The task is queued or running already, or waits for others.
        """
        environ = dict(os.environ) if environ is None else environ
        task = await self._tasks.get(task_id)
        workspace = await self._workspaces.get(task.workspace_id)
        if agent_slug is not None:
            agent = await self._agents.by_slug(agent_slug)
        elif task.assignee_agent_id is not None:
            agent = await self._agents.get(task.assignee_agent_id)
        else:
            raise UsageError(
                f"#{task.number} has no program to run",
                hint=f"choose one: e on the board, or `agentmon task edit {task.number} --agent NAME`",
            )
        is_own_agent = agent.id == task.assignee_agent_id
        context = task.input_context
        capability = choose_capability(agent, capability_key or (context.capability_key if is_own_agent else None))
        is_own_capability = is_own_agent and capability.key == (context.capability_key or capability.key)
        if args is None:
            args = context.args if is_own_capability else {}
        environment = launch_environment(agent, context, environ)
        working_dir = Path(context.working_dir or workspace.root_path)
        args = await asyncio.to_thread(
            require_launchable, task, agent, capability, args, environment=environment, working_dir=working_dir
        )
        execution_id = ExecutionId(new_id())
        folder = ExecutionFolder(self._paths.execution_dir(execution_id))
        await asyncio.to_thread(_prepare, folder, environment)
        request = ExecutionRequest(
            task_id=task.id,
            agent_id=agent.id,
            capability_id=capability.id,
            args=args,
            max_retries=context.max_retries,
        )
        try:
            execution = await self._executions.enqueue(
                request,
                execution_id=execution_id,
                log_file_path=str(folder.output_log),
                actor=actor,
                at=self._clock.now(),
            )
        except BaseException:
            folder.remove()
            raise
        await self._workers.ensure_running()
        wake_worker(self._paths.worker_socket)
        return execution

    async def stop(self, task_id: TaskId, *, actor: Actor, kill: bool = False) -> Execution:
        """Cancel the queued execution of the task at once, or ask for the end of the running one.

        The execution is ``cancelling`` until no process of it is alive; ``wait`` tells when.

        Raises:
            ConflictError: Nothing of the task waits or runs.
        """
        execution = await self._executions.request_stop(
            task_id,
            command_type=CommandType.KILL if kill else CommandType.STOP,
            actor=actor,
            at=self._clock.now(),
        )
        if execution.status is ExecutionStatus.CANCELLED:
            folder = ExecutionFolder(self._paths.execution_dir(execution.id))
            folder.environment.unlink(missing_ok=True)
        else:
            await self._workers.ensure_running()
            wake_worker(self._paths.worker_socket)
        return execution

    async def wait(self, execution_id: ExecutionId) -> Execution:
        """Return the execution when it is over and will not be tried again."""
        while True:
            execution = await self._executions.get(execution_id)
            if not execution.status.is_open:
                return execution
            await asyncio.sleep(_LOOK_EVERY_S)


def _prepare(folder: ExecutionFolder, environment: Mapping[str, str]) -> None:
    folder.make()
    folder.write_environment(environment)
