"""Verifying the work of a run that is over, and what is known of verifications."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.domain.errors import ConflictError, NotFoundError, UsageError
from agentmon.domain.sandboxes import Sandbox
from agentmon.domain.verifications import VerificationStatus
from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.runners.sandbox.plan import plan_sandbox
from agentmon.services.launch_check import launch_environment
from agentmon.worker.run_variables import run_variables
from agentmon.worker.verifying import command_of, verify

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Task
    from agentmon.domain.verifications import Verification
    from agentmon.paths import Paths
    from agentmon.services.agents import AgentService
    from agentmon.services.settings import SettingsService
    from agentmon.store.agent_files import AgentFileRepository
    from agentmon.store.verifications import VerificationRepository
    from agentmon.store.worktrees import WorktreeRepository


class VerificationService:
    """Runs verifications in the place of the worker, and reads all."""

    def __init__(
        self,
        *,
        verifications: VerificationRepository,
        agents: AgentService,
        agent_files: AgentFileRepository,
        worktrees: WorktreeRepository,
        settings: SettingsService,
        paths: Paths,
        clock: Clock,
    ) -> None:
        self._verifications = verifications
        self._agents = agents
        self._agent_files = agent_files
        self._worktrees = worktrees
        self._settings = settings
        self._paths = paths
        self._clock = clock

    async def newest(self, task: Task, execution: Execution) -> Verification:
        """Return the newest verification of a run.

        Raises:
            NotFoundError: There is none.
        """
        found = await self._verifications.newest(execution.id)
        if found is None:
            raise NotFoundError(
                f"this run of #{task.number} was never verified", hint=f"`agentmon verify {task.number}` runs it now"
            )
        return found

    async def command(self, task: Task, execution: Execution) -> str:
        """Return what the work of a run has to pass, as it is said now.

        Raises:
            UsageError: Nobody says anything, or it comes from a project's file that is not as it was trusted.
        """
        wanted = await self._verifications.wanted(execution.id)
        command = await command_of(wanted, await self._agents.get(execution.agent_id), self._agent_files)
        if not command:
            raise UsageError(
                f"#{task.number} has no verification command",
                hint=f"`agentmon task edit {task.number} --verify 'make test'`, or for all: "
                "`agentmon settings workspace.verify 'make test'`",
            )
        return command

    async def verify(
        self,
        task: Task,
        execution: Execution,
        command: str,
        *,
        actor: Actor,
        environ: Mapping[str, str] | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> Verification:
        """Run a verification of a run that is over, in its folder and with the environment of a run; return its end.

        The run and its card stay as they are, however it ends.

        Args:
            task: Of the run.
            execution: The run.
            command: What ``command`` returned.
            actor: Who asks.
            environ: The environment from which that of the run is chosen; None means that of this process.
            on_output: Called with each piece of output.

        Raises:
            ConflictError: The run is not over, is being verified, or an agent asks.
            UsageError: Its folder is gone.
            OSError: It cannot be run, or its log cannot be written.
        """
        if execution.status.is_open:
            raise ConflictError(
                f"#{task.number} is not over: {execution.live_state.value}",
                hint="the worker verifies it when its program has ended",
            )
        folder = execution.working_dir
        if folder is None or not await asyncio.to_thread(Path(folder).is_dir):
            raise UsageError(f"the folder of this run is gone: {folder or 'it never started'}", hint="run it again")
        agent = await self._agents.get(execution.agent_id)
        environment = launch_environment(agent, task.input_context, dict(os.environ) if environ is None else environ)
        environment = {**environment, **await run_variables(self._worktrees, execution, task, self._paths)}
        layout = await asyncio.to_thread(
            plan_sandbox,
            execution.sandbox or Sandbox.OFF,
            paths=self._paths,
            environ=os.environ,
            working_dir=folder,
            program=agent.binary_path,
            settings=await self._settings.sandbox(),
            folder=None,
        )
        try:
            return await verify(
                self._verifications,
                execution.id,
                command,
                folder=ExecutionFolder(Path(execution.log_file_path or folder).parent),
                working_dir=folder,
                environment=environment,
                layout=layout,
                timeout_s=(await self._settings.verification()).timeout_s,
                is_stopped=lambda: False,
                on_output=on_output,
                clock=self._clock,
            )
        except asyncio.CancelledError:
            await asyncio.shield(self._note_stop(execution))
            raise

    async def _note_stop(self, execution: Execution) -> None:
        known = await self._verifications.newest(execution.id)
        if known is not None and known.status is VerificationStatus.RUNNING:
            await self._verifications.end(known, VerificationStatus.STOPPED, exit_code=None, at=self._clock.now())
