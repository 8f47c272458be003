"""The queue: running tasks, stopping them, waiting for their end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.agents import ToolType
from agentmon.domain.errors import (
    ConflictError,
    DatabaseBusyError,
    DatabaseFullError,
    NotFoundError,
    RunnerError,
    StoreError,
    UndeliveredError,
    UsageError,
)
from agentmon.domain.events import ActorType
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import LIVE_STATUSES, ExecutionStatus
from agentmon.domain.executions import CommandType, ConversationStart
from agentmon.domain.ids import ExecutionId, new_id
from agentmon.domain.sandboxes import Sandbox, sandbox_of, stricter
from agentmon.domain.tasks import draft_of
from agentmon.domain.worktrees import Beside, Isolation
from agentmon.paths import find_workspace_root
from agentmon.runners.adapters.prompt import PERMISSION_MODE_ARGUMENT
from agentmon.runners.danger import danger_rules_in_force
from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.runners.locks import is_locked
from agentmon.services.launch_check import launch_environment, require_launchable
from agentmon.store.alternatives import WantedRun
from agentmon.store.work_places import DEFAULT_PER_FOLDER
from agentmon.worker.project_folders import find_project, find_repository
from agentmon.worker.requests import NO_VARIABLES, build_request, with_choices
from agentmon.worker.wake import wake_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from agentmon.domain.agents import Agent
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.executions import Execution, ExecutionRequest
    from agentmon.domain.idempotency import IdempotencyKey
    from agentmon.domain.ids import TaskId
    from agentmon.domain.pause import QueuePause
    from agentmon.domain.tasks import InputContext, Task, TaskDraft, Workspace
    from agentmon.paths import Paths
    from agentmon.services.agent_files import AgentFileService
    from agentmon.services.agents import AgentService
    from agentmon.services.workers import WorkerService
    from agentmon.services.workspaces import WorkspaceService
    from agentmon.store.alternatives import AlternativeRepository
    from agentmon.store.claims import ClaimRepository
    from agentmon.store.executions import ExecutionRepository
    from agentmon.store.idempotency import IdempotencyRepository
    from agentmon.store.live_executions import LiveExecutionRepository
    from agentmon.store.queue_pause import QueuePauseRepository
    from agentmon.store.schedules import ScheduleRepository
    from agentmon.store.task_authors import TaskAuthorRepository
    from agentmon.store.tasks import TaskRepository

_STOPS: Final = frozenset({CommandType.STOP, CommandType.KILL})
_LOOK_EVERY_S: Final = 0.1
_LOOK_AFTER_WORKER_EVERY_S: Final = 1.0
_SETTLED_WITHIN_S: Final = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What was asked of a run; see ``QueueService.run``."""

    environ: Mapping[str, str]
    capability_key: str | None
    args: Mapping[str, object] | None
    message: str | None
    comment_ids: tuple[str, ...]
    history: str
    start: ConversationStart
    parent_execution_id: ExecutionId | None
    model: str | None
    permission_mode: str | None
    own_screen: bool
    isolation: Isolation | None
    sandbox: Sandbox | None
    base: str | None
    not_before: datetime | None
    when_ready: bool
    anyway: bool
    is_one_of_several: bool = False
    """Whether others do the same, each in a worktree of its own."""


class _Prepared(NamedTuple):
    """A run that may be queued."""

    request: ExecutionRequest
    environment: Mapping[str, str] | None
    """None leaves it to the worker."""
    draft: TaskDraft | None = None
    """The card as it is then, where it is an alternative to others."""


class QueueService:
    """Puts executions into the queue and takes them out."""

    def __init__(
        self,
        *,
        executions: ExecutionRepository,
        alternatives: AlternativeRepository,
        live: LiveExecutionRepository,
        keys: IdempotencyRepository,
        pauses: QueuePauseRepository,
        schedules: ScheduleRepository,
        tasks: TaskRepository,
        authors: TaskAuthorRepository,
        claims: ClaimRepository,
        agents: AgentService,
        agent_files: AgentFileService,
        workspaces: WorkspaceService,
        workers: WorkerService,
        paths: Paths,
        clock: Clock,
        data_version: Callable[[], int],
    ) -> None:
        self._data_version = data_version
        self._executions = executions
        self._alternatives = alternatives
        self._live = live
        self._keys = keys
        self._pauses = pauses
        self._schedules = schedules
        self._tasks = tasks
        self._authors = authors
        self._claims = claims
        self._agents = agents
        self._agent_files = agent_files
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
        not_before: datetime | None = None,
        when_ready: bool = False,
        anyway: bool = False,
        message: str | None = None,
        comment_ids: Sequence[str] = (),
        history: str = "",
        start: ConversationStart = ConversationStart.FRESH,
        parent_execution_id: ExecutionId | None = None,
        model: str | None = None,
        permission_mode: str | None = None,
        own_screen: bool = False,
        isolation: Isolation | None = None,
        base: str | None = None,
        sandbox: Sandbox | None = None,
        also: Sequence[str] = (),
        key: IdempotencyKey | None = None,
    ) -> Execution:
        """Queue one execution of the task and make sure that a worker will start it.

        One that is queued already and waits for a time, a retry or its vendor starts at once instead.

        Args:
            task_id: What to run.
            actor: Who asks.
            agent_slug: Another agent than the task's own, for this run.
            capability_key: Another capability than the task's own, for this run.
            args: Other arguments than the task's own, for this run.
            environ: The environment that the program gets, by allowlist; None means that of this process.
            not_before: It starts at this time at the earliest.
            when_ready: Whether it may be queued while the task waits for others, to start by itself after them.
            anyway: Whether the task no longer waits for those that keep it from starting; alone, it lets what is queued
                of it start as it was queued.
            message: What the agent is told instead of the task's own text.
            comment_ids: The comments on changes that the message consists of, which are noted as sent.
            history: What was said and done in a conversation that this one goes on from, told before the message.
            start: Whether the agent's conversation is a fresh one, or goes on with that of an earlier execution.
            parent_execution_id: The earlier execution; its agent and arguments are the ones that count.
            model: Another model than the task's own, for this run.
            permission_mode: Another permission mode than the task's own, for this run.
            own_screen: Whether the agent shows its own screen instead of speaking its protocol.
            isolation: Where this run works, other than the task says.
            base: What its worktree is made from, other than the task says.
            sandbox: The sandbox of this run, other than the agent's; that of what it goes on with, and of the run that
                asks, is the least.
            also: Agents that do the same, each on a new card that is an alternative to this one; all of them work in
                worktrees of their own then. ``queued_with`` returns the other runs. Model and permission mode are for
                those by the same agent as this run.
            key: Of this request; what came of the same one before is returned, as it is now.

        Raises:
            UsageError: No program is chosen, or a chosen part does not exist; with ``also``, one is no AI agent, or the
                folder is in no git repository.
            ArgumentsError: The arguments do not fit the capability.
            AgentNotInstalledError: The program is not on the PATH or cannot be executed.
            TmuxUnavailableError: tmux is missing or too old.
            WaitsForTasksError: The task waits for others, which the message names, and ``when_ready`` is not set.
            ConflictError: The task is queued or running already, something else was asked for under the key, or an
                agent asks for a start anyway.
            RunnerError: The folder of the run cannot be written.
            UndeliveredError: The worker does not start; the execution stays queued.
        """
        chosen = (
            *(agent_slug, capability_key, args, not_before, message, parent_execution_id, model, permission_mode),
            *(isolation, base, sandbox),
        )
        is_alone = not (own_screen or also) and all(one is None for one in chosen)
        begun = await self.find_begun(key, actor=actor)
        if begun is None and anyway and is_alone:
            begun = await self._start_queued_anyway(task_id, key, actor=actor)
        if begun is not None:
            return begun
        asked = _Asked(
            environ=dict(os.environ) if environ is None else environ,
            capability_key=capability_key,
            args=args,
            message=message,
            comment_ids=tuple(comment_ids),
            history=history,
            start=start,
            parent_execution_id=parent_execution_id,
            model=model,
            permission_mode=permission_mode,
            own_screen=own_screen,
            isolation=isolation,
            sandbox=sandbox,
            base=base,
            not_before=not_before,
            when_ready=when_ready,
            anyway=anyway,
        )
        task = await self._tasks.get(task_id)
        workspace = await self._workspaces.get(task.workspace_id)
        parent = None
        if parent_execution_id is not None and start is not ConversationStart.FRESH:
            parent = await self._executions.get(parent_execution_id)
        agent = await self._agent_of(task, parent, agent_slug)
        if also:
            return await self._run_alternatives(task, workspace, agent, asked, also, key=key, actor=actor)
        prepared = await self._prepared(task, workspace, agent, asked, parent=parent, actor=actor)
        return await self._enqueue([prepared], key=key, actor=actor)

    async def queued_with(self, execution: Execution) -> tuple[Execution, ...]:
        """Return the runs that were queued together with one, which comes first; see ``also`` of ``run``."""
        return await self._alternatives.queued_with(execution.id) or (execution,)

    async def let_go(self, task_id: TaskId, *, actor: Actor) -> tuple[Task, ...]:
        """Cancel the open cards among a task and its alternatives, since one of them was taken; return these.

        What runs of them is asked to end, and its card moves after that. Worktrees stay.

        Raises:
            NotFoundError: The task is gone.
            ConflictError: None of them was taken, or none is left.
            UndeliveredError: Nobody ends what runs yet.
        """
        left = await self._alternatives.let_go(task_id, actor=actor, at=self._clock.now())
        await self.deliver()
        return left

    async def _run_alternatives(
        self,
        task: Task,
        workspace: Workspace,
        agent: Agent,
        asked: _Asked,
        also: Sequence[str],
        *,
        key: IdempotencyKey | None,
        actor: Actor,
    ) -> Execution:
        """Queue a run of the task and one of a new card for each other agent; see ``run``."""
        if asked.start is not ConversationStart.FRESH:
            raise UsageError("several agents cannot go on with one conversation", hint="let each begin a fresh one")
        if asked.isolation not in {None, Isolation.WORKTREE}:
            raise UsageError("several agents cannot work in one folder", hint="each gets a worktree: leave it out")
        others = [await self._agents.by_slug(slug) for slug in also]
        for one in (agent, *others):
            if one.tool_type is not ToolType.AI_AGENT:
                raise UsageError(
                    f"{one.slug} is no AI agent, and has no alternatives", hint="`agentmon agents` lists those that are"
                )
        asked = replace(asked, isolation=Isolation.WORKTREE, is_one_of_several=True)
        context = replace(task.input_context, isolation=Isolation.WORKTREE)
        prepared = []
        for one in (agent, *others):
            is_own = one.id == task.assignee_agent_id
            own = context if is_own else replace(context, capability_key=None, args={})
            card = replace(task, assignee_agent_id=one.id, input_context=own)
            said = asked
            if one.id != agent.id:
                said = replace(asked, capability_key=None, args=None, model=None, permission_mode=None)
            run = await self._prepared(card, workspace, one, said, actor=actor)
            prepared.append(run._replace(draft=draft_of(card)))
        return await self._enqueue(prepared, version=task.version, key=key, actor=actor)

    async def _prepared(
        self,
        task: Task,
        workspace: Workspace,
        agent: Agent,
        asked: _Asked,
        *,
        parent: Execution | None = None,
        actor: Actor,
    ) -> _Prepared:
        """Return the request for a run, checked; see ``run``."""
        is_own_agent = agent.id == task.assignee_agent_id
        context, capability_key, args = task.input_context, asked.capability_key, asked.args
        if parent is not None:
            capability_key = capability_key or _key_of(agent, parent)
            args = parent.args if args is None else args
        agent.require_usable(workspace.id)
        await self._agent_files.require_trusted(agent, workspace)
        capability = agent.choose_capability(capability_key or (context.capability_key if is_own_agent else None))
        is_own_capability = is_own_agent and capability.key == (context.capability_key or capability.key)
        if args is None:
            args = context.args if is_own_capability else {}
        is_typed = actor.type is ActorType.USER and (
            asked.args is not None or not await self._authors.has_agent(task.id)
        )
        is_agent, held_for = actor.type is ActorType.AGENT, ""
        if is_agent and not await self._authors.is_own(task.id, actor):
            held_for = "an agent wants to start a card that is not its own"
        sandbox = asked.sandbox
        if is_agent:
            sandbox, reason = await self._sandbox_for(actor, asked, agent, context, workspace)
            held_for = held_for or reason
        if asked.sandbox is None and parent is not None:
            sandbox = stricter(sandbox, parent.sandbox)
        known_mode = None if parent is None else parent.args.get(PERMISSION_MODE_ARGUMENT)
        if not is_agent and (asked.permission_mode is not None or asked.args is not None):
            known_mode = asked.permission_mode or args.get(PERMISSION_MODE_ARGUMENT)
        args = with_choices(args, model=asked.model, permission_mode=asked.permission_mode)
        environment = launch_environment(agent, context, asked.environ)
        working_dir = Path(agent.work_folder(context.working_dir, workspace.root_path))
        args = await asyncio.to_thread(
            require_launchable, task, agent, capability, args, environment=environment, working_dir=working_dir
        )
        repository = await asyncio.to_thread(find_repository, str(working_dir))
        if (asked.isolation or context.isolation) is Isolation.WORKTREE and repository is None:
            hint = f"`agentmon run {task.number} --isolation folder` runs it in the folder"
            if asked.is_one_of_several:
                hint = "let one agent do it, or make a repository: `git init`, then commit"
            raise UsageError(
                f"{working_dir} is in no git repository with a commit, so that it has no worktrees", hint=hint
            )
        request = await asyncio.to_thread(
            build_request,
            task,
            agent,
            capability,
            args=args,
            working_dir=str(working_dir),
            danger_rules=await asyncio.to_thread(danger_rules_in_force, self._paths.danger_rules_file),
            is_typed=is_typed,
            held_for=held_for,
            known_mode=known_mode,
            variables=environment if is_agent else NO_VARIABLES,
            search_path=None if held_for else environment.get("PATH"),
            project=await asyncio.to_thread(find_project, str(working_dir)),
            repository=repository,
            message=asked.message,
            history=asked.history,
            start=asked.start,
            parent_execution_id=asked.parent_execution_id,
            own_screen=asked.own_screen or (parent is not None and parent.mode is ExecutionMode.TMUX),
        )
        request = replace(
            request,
            not_before=asked.not_before,
            may_wait=asked.when_ready,
            drops_dependencies=asked.anyway,
            isolation=asked.isolation,
            sandbox=sandbox,
            base=asked.base,
            comment_ids=asked.comment_ids,
        )
        # A person would not see what an agent hands over: the worker's own holds for the card of another.
        return _Prepared(request, None if held_for else environment)

    async def _sandbox_for(
        self, actor: Actor, asked: _Asked, agent: Agent, context: InputContext, workspace: Workspace
    ) -> tuple[Sandbox | None, str]:
        """Return the least sandbox of a run that an agent asks for, and why it waits for a person; empty for no reason.

        It is not lower than that of the agent's own run, nor than what holds for the program or the workspace.
        """
        own = None
        with contextlib.suppress(NotFoundError):
            own = await self._executions.get(ExecutionId(actor.id or ""))
        own_sandbox = None if own is None or own.sandbox is Sandbox.OFF else own.sandbox
        told = (await self._workspaces.own_settings(workspace.id)).get("sandbox")
        sandbox = stricter(stricter(asked.sandbox, own_sandbox), agent.sandbox or sandbox_of(told))
        if sandbox is Sandbox.OFF and asked.sandbox is Sandbox.OFF:
            return sandbox, f"an agent chose the sandbox {sandbox}"
        if own is None or own.sandbox is not Sandbox.PROJECT:
            return sandbox, ""
        roots = [own.working_dir or ""]
        if (await self._tasks.get(own.task_id)).workspace_id == workspace.id:
            roots.append(workspace.root_path)
        place = agent.work_folder(context.working_dir, workspace.root_path)
        is_within = await asyncio.to_thread(_is_in_project, place, roots)
        return sandbox, "" if is_within else "an agent chose a folder outside of its own project"

    async def find_begun(self, key: IdempotencyKey | None, *, actor: Actor) -> Execution | None:
        """Return the execution that came of the same request under this key, looked after; None when it is new.

        Raises:
            ConflictError: The actor asked for something else under this key.
            UndeliveredError: No worker becomes ready for it.
        """
        known = await self._keys.find_result(key, actor=actor)
        if known is None:
            return None
        begun = await self._executions.get(ExecutionId(known))
        if begun.status.is_open:
            # Whoever asked first may have died before it came to this.
            await self._workers.wake()
        return begun

    async def start_anyway(self, task_id: TaskId, *, actor: Actor) -> Execution:
        """Let what is queued of the task start without what the task waits for, which it waits for no longer.

        Raises:
            NotFoundError: The task is gone.
            ConflictError: Nothing of it is queued behind other tasks, or an agent asks for it.
            UndeliveredError: The worker does not start; the execution stays queued.
        """
        started = await self._start_queued_anyway(task_id, None, actor=actor)
        if started is None:
            raise ConflictError(
                "nothing of this task waits for others any more", hint="r on the card runs it, whatever became of it"
            )
        return started

    async def _start_queued_anyway(
        self, task_id: TaskId, key: IdempotencyKey | None, *, actor: Actor
    ) -> Execution | None:
        """As ``start_anyway``; None when nothing of the task is queued, or it waits for none."""
        started = await self._executions.start_anyway(task_id, key=key, actor=actor, at=self._clock.now())
        if started is not None:
            await self._workers.wake()
        return started

    async def pause(self, *, actor: Actor, halts_running: bool = False) -> QueuePause:
        """Let nothing start any more, in all workspaces and after any restart, until ``resume``.

        Args:
            actor: Who asks.
            halts_running: Whether what runs is halted where it is; otherwise it may finish.

        Raises:
            ConflictError: The queue is paused this way already.
            UndeliveredError: Nobody halts what runs yet.
        """
        pause = await self._pauses.pause(halts_running=halts_running, actor=actor, at=self._clock.now())
        if halts_running:
            await self.deliver()
        else:
            wake_worker(self._paths.worker_socket)
        return pause

    async def resume(self, *, actor: Actor) -> QueuePause:
        """Let the queue go on, and what was halted; return the pause that ended.

        Raises:
            ConflictError: The queue is not paused.
            UndeliveredError: Nobody lets it go on yet.
        """
        pause = await self._pauses.resume(actor=actor, at=self._clock.now())
        await self.deliver()
        return pause

    async def find_pause(self) -> QueuePause | None:
        """Return the pause in force, or None."""
        return await self._pauses.get()

    async def find_folder_holder(self, task_id: TaskId) -> int | None:
        """Return the number of the task whose run keeps that of this one out of its folder; None for none."""
        return await self._claims.find_folder_holder(task_id)

    async def numbers_in_folder(self, task: Task, workspace: Workspace) -> tuple[int, ...]:
        """Return the other tasks whose AI agents work in the folder of a task now: their numbers."""
        folder = task.input_context.working_dir or workspace.root_path
        return await self._claims.numbers_in_folder(folder, but=task.id)

    async def look_beside(
        self, task_id: TaskId, *, agent_slug: str | None = None, isolation: Isolation | None = None
    ) -> Beside | None:
        """Return what AI agents are at work in the folder in which a run of the task would start; None for none.

        Args:
            task_id: What would run.
            agent_slug: Another agent than the task's own.
            isolation: What is chosen for this run alone.

        Raises:
            NotFoundError: The task or the agent is gone.
            UsageError: It has no program.
        """
        task = await self._tasks.get(task_id)
        agent = await self._agent_of(task, None, agent_slug)
        if agent.tool_type is not ToolType.AI_AGENT:
            return None
        workspace = await self._workspaces.get(task.workspace_id)
        folder = agent.work_folder(task.input_context.working_dir, workspace.root_path)
        numbers = await self._claims.numbers_in_folder(folder, but=task_id)
        if not numbers:
            return None
        own = await self._workspaces.own_settings(workspace.id)
        chosen = isolation or task.input_context.isolation or agent.isolation
        return Beside(
            numbers=numbers,
            isolation=chosen or Isolation(str(own.get("isolation", Isolation.AUTO))),
            max_per_folder=int(own.get("max_per_folder", DEFAULT_PER_FOLDER)),
            is_chosen=chosen is not None or not own.keys().isdisjoint({"isolation", "max_per_folder"}),
            can_isolate=await asyncio.to_thread(find_repository, folder) is not None,
        )

    async def lost_tasks(self, workspace: Workspace | None, *, since: datetime | None = None) -> tuple[Task, ...]:
        """Return the tasks whose newest run was lost and that nobody has dealt with, oldest first; see ``settle``."""
        workspace_id = None if workspace is None else workspace.id
        task_ids = await self._executions.lost_task_ids(workspace_id, since=since)
        return tuple([await self._tasks.get(task_id) for task_id in task_ids])

    async def stop(
        self, task_id: TaskId, *, actor: Actor, kill: bool = False, key: IdempotencyKey | None = None
    ) -> Execution:
        """Cancel the queued execution of the task at once, or ask for the end of the running one.

        The execution is ``cancelling`` until no process of it is alive; ``wait`` tells when. On a full disk its host is
        asked past the database, since the program may be what fills the disk, and so it is while others hold the
        database for too long, or when no worker can be had.
        The same request under the same key stops nothing that began since.

        Raises:
            ConflictError: Nothing of the task waits or runs, or something else was asked for under the key.
            UndeliveredError: Nobody carries it out yet.
        """
        command_type = CommandType.KILL if kill else CommandType.STOP
        try:
            execution = await self._executions.request_stop(
                task_id, command_type=command_type, key=key, actor=actor, at=self._clock.now()
            )
        except (DatabaseBusyError, DatabaseFullError):
            stopping = await self._stop_past_the_worker(task_id, command_type)
            if stopping is None:
                raise
            return stopping
        if execution.status is ExecutionStatus.CANCELLED:
            folder = self._folder_of(execution)
            folder.environment.unlink(missing_ok=True)
        elif execution.status.is_open:
            try:
                await self._workers.hand_over()
            except UndeliveredError:
                # A host obeys without a worker too; the next one records what became of it.
                if not await self._hand_over_stops(execution.id):
                    raise
        return execution

    async def look_after(self) -> None:
        """Start a worker when executions wait or run, or tasks run by themselves, and no worker lives.

        So it is after a crash and at the machine's next start.

        Raises:
            RunnerError: It did not become ready.
        """
        if await self._has_work():
            await self._workers.ensure_running()

    async def deliver(self) -> None:
        """See to it that what was just recorded about runs is carried out, where anything waits or runs.

        Raises:
            UndeliveredError: Nobody carries it out yet; the message says why, and the hint what to do.
        """
        if not await self._has_work():
            return
        try:
            await self._workers.hand_over()
        except UndeliveredError:
            commands = await self._live.waiting_commands()
            is_all_stops = all(one.type in _STOPS for one in commands)
            handed = [await self._hand_over_stops(one) for one in {one.execution_id for one in commands}]
            if not (handed and is_all_stops and all(handed)):
                raise

    async def _has_work(self) -> bool:
        return bool(await self._executions.count_open()) or await self._schedules.next_time() is not None

    async def settle(self) -> None:
        """Return when what a crash cut off is known to be lost: no live execution has a dead host, or 15 s are over.

        Raises:
            RunnerError: The worker that settles them did not become ready.
        """
        await self.look_after()
        deadline = time.monotonic() + _SETTLED_WITHIN_S
        while await asyncio.to_thread(_has_dead_host, await self._executions.live_log_paths()):
            if time.monotonic() >= deadline:
                return
            await asyncio.sleep(_LOOK_EVERY_S)

    async def wait(self, execution_id: ExecutionId) -> Execution:
        """Return the execution when it is over and will not be tried again; a worker that died is started anew.

        Raises:
            RunnerError: There is no worker any more, and none can be started.
        """
        look_after_worker_at, version = time.monotonic(), None
        while True:
            # Many may wait for long: nothing is read as long as nothing is written.
            present = self._data_version()
            if version != present and not await self._executions.is_open(execution_id):
                return await self._executions.get(execution_id)
            version = present
            if time.monotonic() >= look_after_worker_at:
                await self._workers.ensure_running()
                look_after_worker_at = time.monotonic() + _LOOK_AFTER_WORKER_EVERY_S
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _agent_of(self, task: Task, parent: Execution | None, agent_slug: str | None) -> Agent:
        if parent is not None:
            return await self._agents.get(parent.agent_id)
        if agent_slug is not None:
            return await self._agents.by_slug(agent_slug)
        if task.assignee_agent_id is not None:
            return await self._agents.get(task.assignee_agent_id)
        raise UsageError(
            f"#{task.number} has no program to run",
            hint=f"choose one: e on the board, or `agentmon task edit {task.number} --agent NAME`",
        )

    async def _enqueue(
        self, prepared: Sequence[_Prepared], *, version: int = 0, key: IdempotencyKey | None, actor: Actor
    ) -> Execution:
        """Queue one run, or several that are alternatives, of which the first is that of the task itself."""
        folders = {
            (execution_id := ExecutionId(new_id())): ExecutionFolder(self._paths.execution_dir(execution_id))
            for _ in prepared
        }
        wanted = [
            WantedRun(one.request, execution_id, str(folder.output_log), one.draft)
            for one, (execution_id, folder) in zip(prepared, folders.items(), strict=True)
        ]
        try:
            for one, folder in zip(prepared, folders.values(), strict=True):
                await asyncio.to_thread(_prepare, folder, one.environment)
            if len(wanted) > 1:
                execution = await self._alternatives.queue(
                    wanted, expected_version=version, key=key, actor=actor, at=self._clock.now()
                )
            else:
                execution = await self._executions.enqueue(
                    wanted[0].request,
                    execution_id=wanted[0].execution_id,
                    log_file_path=wanted[0].log_file_path,
                    key=key,
                    actor=actor,
                    at=self._clock.now(),
                )
        except BaseException as error:
            for execution_id, folder in folders.items():
                await asyncio.shield(self._forget(execution_id, folder))
            if isinstance(error, OSError):
                raise RunnerError(
                    f"the folder of the run cannot be written: {error.strerror or error}",
                    hint=f"it goes below {self._paths.executions_dir}; `agentmon doctor` shows how much space there is",
                ) from error
            if isinstance(error, ConflictError):
                # What is in its way may itself wait for a worker.
                await self.look_after()
            raise
        if execution.id not in folders:
            for folder in folders.values():
                folder.remove()
        await self._workers.wake()
        return execution

    async def _forget(self, execution_id: ExecutionId, folder: ExecutionFolder) -> None:
        """Remove the folder of an execution that was not queued; one of which nobody can tell is swept later."""
        with contextlib.suppress(StoreError):
            if not await self._executions.was_queued(execution_id):
                folder.remove()

    def _folder_of(self, execution: Execution) -> ExecutionFolder:
        return ExecutionFolder(self._paths.output_of(execution.id, execution.log_file_path).parent)

    async def _hand_over_stops(self, execution_id: ExecutionId) -> bool:
        """Hand a host that lives the stops that no worker hands over; return whether it has them all."""
        folder = self._folder_of(await self._executions.get(execution_id))
        if not is_locked(folder.host_lock):
            return False
        waiting = [one for one in await self._live.waiting_commands() if one.execution_id == execution_id]
        stops = [one for one in waiting if one.type in _STOPS]
        try:
            for one in stops:
                # Under its own id it is obeyed once, whoever else hands it over.
                line = {**one.payload, "id": one.id, "type": one.type.value}
                await asyncio.to_thread(folder.append_command, line)
        except OSError:
            return False
        await self._live.mark_delivered([one.id for one in stops], at=self._clock.now())
        return True

    async def _stop_past_the_worker(self, task_id: TaskId, command_type: CommandType) -> Execution | None:
        """Ask the host of the task's running execution to end it; None when there is none that can be reached.

        The journal says so, and from there it comes into the database as soon as there is a worker and space.
        """
        for execution in await self._executions.of_task(task_id, limit=1):
            folder = self._folder_of(execution)
            if execution.status in LIVE_STATUSES:
                try:
                    await asyncio.to_thread(folder.append_command, {"id": new_id(), "type": command_type.value})
                except OSError:
                    return None
                return replace(execution, status=ExecutionStatus.CANCELLING)
        return None


def _has_dead_host(log_paths: Sequence[str]) -> bool:
    folders = [ExecutionFolder(Path(path).parent) for path in log_paths]
    return any(folder.journal.exists() and not is_locked(folder.host_lock) for folder in folders)


def _key_of(agent: Agent, execution: Execution) -> str | None:
    return next((part.key for part in agent.capabilities if part.id == execution.capability_id), None)


def _prepare(folder: ExecutionFolder, environment: Mapping[str, str] | None) -> None:
    folder.make()
    if environment is not None:
        folder.write_environment(environment)


def _is_in_project(place: str, roots: Sequence[str]) -> bool:
    """Return whether a folder lies in one of these, or in the repository around it."""
    whole = Path(place).resolve()
    return any(whole.is_relative_to(find_workspace_root(Path(root))) for root in roots if root)
