"""Tasks that run by themselves: queued when their time comes, once however many times were missed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from agentmon.domain.clock import CLOCK_JITTER
from agentmon.domain.errors import AgentmonError, RunnerError
from agentmon.domain.ids import ExecutionId, new_id
from agentmon.runners.danger import danger_rules_in_force
from agentmon.schedule import next_time
from agentmon.store.budget_enforcing import NEVER
from agentmon.threads import in_daemon_thread
from agentmon.worker.file_trust import require_trusted
from agentmon.worker.project_folders import find_project, find_repository
from agentmon.worker.requests import build_request

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ExecutionRequest
    from agentmon.domain.ids import TaskId
    from agentmon.domain.tasks import Task
    from agentmon.paths import Paths
    from agentmon.store.agent_files import AgentFileRepository
    from agentmon.store.agents import AgentRepository
    from agentmon.store.schedules import ScheduleRepository
    from agentmon.store.task_authors import TaskAuthorRepository
    from agentmon.store.workspaces import WorkspaceRepository

_log = logging.getLogger(__name__)

_ANSWERS_WITHIN_S: Final = 5.0
_MOST_LOOKED_AT: Final = 16
"""Most tasks whose folders are looked at at one time, each in a thread of its own."""
_MOST_NAMED: Final = 5
_SET_BACK_MAX: Final = timedelta(days=1)
"""A clock that was ahead by no more has run what was due meanwhile; one that was further ahead told a wrong date."""


class Scheduler:
    """Queues what is due."""

    def __init__(
        self,
        *,
        schedules: ScheduleRepository,
        agents: AgentRepository,
        agent_files: AgentFileRepository,
        workspaces: WorkspaceRepository,
        authors: TaskAuthorRepository,
        paths: Paths,
        clock: Clock,
    ) -> None:
        self._schedules = schedules
        self._agents = agents
        self._agent_files = agent_files
        self._workspaces = workspaces
        self._authors = authors
        self._paths = paths
        self._clock = clock
        self._next_time: datetime | None = None
        self._seen_at = NEVER
        self._ran_until: dict[TaskId, datetime] = {}
        """Up to when the times of a task are done with."""
        self._silent: set[TaskId] = set()
        """Tasks whose folders are still being looked at."""

    async def look(self) -> None:
        """Read anew when the next task is due."""
        self._next_time = await self._schedules.next_time()

    @property
    def is_due(self) -> bool:
        """Whether the time of a task has come."""
        return self._next_time is not None and self._next_time <= self._clock.now()

    async def queue_due(self) -> bool:
        """Queue every task whose time has come; return whether there was one.

        A task whose folder does not answer within 5 s, as on a dead mount, is queued by the first call after it does.

        Raises:
            StoreError: The rest is queued at the next call.
            RunnerError: The folders of some do not answer; all others are queued.
        """
        now = self._clock.now()
        if now < self._seen_at - CLOCK_JITTER:
            await self._bring_forward(now)
        self._seen_at = now
        if self._next_time is None or now < self._next_time:
            return False
        due = await self._schedules.due(at=now)
        for begin in range(0, len(due), _MOST_LOOKED_AT):
            await self._queue_some(due[begin : begin + _MOST_LOOKED_AT], now)
        await self.look()
        silent = [f"#{task.number}" for task in due if task.id in self._silent]
        if silent:
            raise RunnerError(
                f"the folder of {', '.join(silent[:_MOST_NAMED])} does not answer", hint="it is queued once that does"
            )
        return True

    async def _queue_some(self, due: Sequence[Task], now: datetime) -> None:
        requests = [(task, asyncio.ensure_future(self._request(task))) for task in due if task.id not in self._silent]
        if requests:
            await asyncio.wait([request for _, request in requests], timeout=_ANSWERS_WITHIN_S)
        for task, request in requests:
            if request.done():
                await self._queue(task, request, now)
            else:
                self._silent.add(task.id)
                request.add_done_callback(partial(self._answered, task.id))

    def _answered(self, task_id: TaskId, request: asyncio.Future[ExecutionRequest]) -> None:
        # It may be out of date: the next call asks anew.
        self._silent.discard(task_id)
        if not request.cancelled():
            request.exception()

    async def _bring_forward(self, now: datetime) -> None:
        """Set the next times anew that a clock has written which was ahead: a daily task must not rest for a year."""
        for task in await self._schedules.waiting(after=now):
            if task.schedule is None or task.next_run_at is None:
                continue
            ran_until = self._ran_until.get(task.id, now)
            after = max(now, ran_until) if ran_until - now <= _SET_BACK_MAX else now
            with contextlib.suppress(AgentmonError):
                earliest = await asyncio.to_thread(next_time, task.schedule.cron, task.schedule.zone, after)
                if earliest < task.next_run_at:
                    await self._schedules.bring_forward(task, earliest)
        await self.look()

    async def _queue(self, task: Task, requested: asyncio.Future[ExecutionRequest], now: datetime) -> None:
        request, cannot_run = None, ""
        try:
            request = await requested
        except AgentmonError as error:
            cannot_run = str(error)
        next_run_at = None
        if task.schedule is not None:
            try:
                next_run_at = await asyncio.to_thread(next_time, task.schedule.cron, task.schedule.zone, now)
            except AgentmonError as error:
                _log.warning("task #%s runs no more by itself: %s", task.number, error)
                cannot_run = cannot_run or str(error)
        self._ran_until[task.id] = now
        execution_id = ExecutionId(new_id())
        queued = await self._schedules.queue_due(
            task,
            request,
            execution_id=execution_id,
            log_file_path=str(self._paths.execution_dir(execution_id) / "output.log"),
            next_run_at=next_run_at,
            cannot_run=cannot_run,
            at=now,
        )
        if queued is not None:
            _log.info("task #%s queued by its schedule: execution %s", task.number, execution_id)

    async def _request(self, task: Task) -> ExecutionRequest:
        if task.assignee_agent_id is None:
            raise AgentmonError("it has no program to run")
        agent = await self._agents.find(task.assignee_agent_id)
        if agent is None:
            raise AgentmonError("its program is gone")
        agent.require_usable(task.workspace_id)
        capability = agent.choose_capability(task.input_context.capability_key)
        workspace = await self._workspaces.find(task.workspace_id)
        if workspace is None:
            raise AgentmonError("its workspace is gone")
        await require_trusted(self._agent_files, agent, workspace.root_path)
        working_dir = agent.work_folder(task.input_context.working_dir, workspace.root_path)
        is_typed = not await self._authors.has_agent(task.id)
        request = await in_daemon_thread(
            lambda: build_request(
                task,
                agent,
                capability,
                args=task.input_context.args,
                working_dir=working_dir,
                danger_rules=danger_rules_in_force(self._paths.danger_rules_file),
                is_typed=is_typed,
                project=find_project(working_dir),
                repository=find_repository(working_dir),
            ),
            name=f"folder of task {task.id}",
        )
        return replace(request, may_wait=True)
